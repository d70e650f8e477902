//! A packet socket with a ring.

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::Ordering;

use crate::mapping::Mapping;
use crate::{BATCH, Port, QUEUE, check, set_structure, socket, veth};

/// A packet socket on one end of a veth pair: a ring from which packets are read where they are (TPACKET_V2; V3 shows packets a block
/// at a time, after a millisecond or more), and a system call for each batch that is sent. Not the ring for sending: veth tells the
/// ring that a packet has left while the receiving host still reads it there.
pub struct Ring {
    socket: OwnedFd,
    frames: Mapping,
    next: usize,
    batch: Vec<Vec<u8>>,
    count: usize,
}

const FRAME: usize = 2048;
/// Of linux/if_packet.h.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

impl Ring {
    pub fn on(device: &str) -> io::Result<Self> {
        let protocol = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: the descriptor is owned at once.
        let socket = unsafe {
            OwnedFd::from_raw_fd(check(libc::socket(libc::AF_PACKET, libc::SOCK_RAW, i32::from(protocol)))?)
        };
        let set = |name, value| socket::set(&socket, libc::SOL_PACKET, name, value);
        set(libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V2 as libc::c_int)?;
        set(libc::PACKET_QDISC_BYPASS, 1)?;
        set(PACKET_IGNORE_OUTGOING, 1)?;
        let block = FRAME * 512;
        let request = libc::tpacket_req {
            tp_block_size: block as u32,
            tp_block_nr: (FRAME * QUEUE / block) as u32,
            tp_frame_size: FRAME as u32,
            tp_frame_nr: QUEUE as u32,
        };
        set_structure(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let frames = Mapping::of(&socket, 0, FRAME * QUEUE)?;
        // SAFETY: a zeroed address is valid, and it is as long as it says.
        unsafe {
            let mut address: libc::sockaddr_ll = zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = protocol;
            address.sll_ifindex = veth::index(device)? as i32;
            let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            check(libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length))?;
        }
        let batch = (0..BATCH).map(|_| Vec::with_capacity(FRAME)).collect();
        Ok(Self { socket, frames, next: 0, batch, count: 0 })
    }
}

impl Port for Ring {
    fn receive(&mut self, to: &mut dyn FnMut(&[u8])) -> usize {
        for count in 0..BATCH {
            // The status is the header's first word.
            let status = self.frames.word(self.next * FRAME);
            if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                return count;
            }
            // SAFETY: frames are within the mapping, and the kernel leaves one alone while its status says that it is ours.
            unsafe {
                let frame = self.frames.at(self.next * FRAME, FRAME);
                let header = frame.cast::<libc::tpacket2_hdr>().read_unaligned();
                let at = frame.add(usize::from(header.tp_mac));
                to(std::slice::from_raw_parts(at, header.tp_snaplen as usize));
            }
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % QUEUE;
        }
        BATCH
    }

    fn send(&mut self, packet: &[u8]) {
        let slot = &mut self.batch[self.count];
        slot.clear();
        slot.extend_from_slice(packet);
        self.count += 1;
        if self.count == BATCH {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.count == 0 {
            return;
        }
        // SAFETY: the packets outlive the call, and there are as many as it says.
        unsafe {
            let mut parts: Vec<libc::iovec> = Vec::with_capacity(BATCH);
            parts.extend(
                self.batch[..self.count].iter_mut().map(|packet| libc::iovec {
                    iov_base: packet.as_mut_ptr().cast(),
                    iov_len: packet.len(),
                }),
            );
            let mut messages: [libc::mmsghdr; BATCH] = zeroed();
            for (message, part) in messages.iter_mut().zip(&mut parts) {
                (message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen) = (part, 1);
            }
            libc::sendmmsg(self.socket.as_raw_fd(), messages.as_mut_ptr(), self.count as u32, 0);
        }
        self.count = 0;
    }
}

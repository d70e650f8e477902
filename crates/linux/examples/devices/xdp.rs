//! An AF_XDP socket. Documentation/networking/af_xdp.rst of Linux says how its rings go.

use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::Ordering;

use crate::mapping::Mapping;
use crate::redirect::{Mode, Redirect};
use crate::{BATCH, Port, QUEUE, check, set_structure, veth};

/// An AF_XDP socket on one end of a veth pair. Packets lie in frames of one memory that the kernel shares; rings hand frames to and fro.
/// Veth has no way without a copy (it refuses XDP_ZEROCOPY), so that the kernel sends only when asked to and XDP_USE_NEED_WAKEUP would
/// tell nothing. Both modes of XDP carry packets both ways, whatever the peer does; they differ in what it costs whom.
pub struct Xdp {
    socket: OwnedFd,
    frames: Mapping,
    /// Empty frames for the kernel to receive into,
    fill: Shared<u64>,
    /// which come back with packets in them;
    received: Shared<libc::xdp_desc>,
    /// packets to send,
    sending: Shared<libc::xdp_desc>,
    /// whose frames come back when they have left,
    sent: Shared<u64>,
    /// to wait here.
    free: Vec<u64>,
    _redirect: Redirect,
}

/// The first 256 bytes of a frame that is received into are headroom.
const FRAME: usize = 2048;
const RECEIVING: u32 = QUEUE as u32;
const SENDING: u32 = 2048;
/// Of linux/if_xdp.h, where libc has them as signed.
const PAGE_RECEIVED: u64 = 0;
const PAGE_SENDING: u64 = 0x8000_0000;

impl Xdp {
    pub fn on(device: &str, mode: Mode) -> io::Result<Self> {
        // SAFETY: the descriptor is owned at once.
        let socket = unsafe {
            OwnedFd::from_raw_fd(check(libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0))?)
        };
        let length = FRAME * (RECEIVING + SENDING) as usize;
        let frames = Mapping::anonymous(length)?;
        let memory = libc::xdp_umem_reg {
            addr: frames.at(0, length) as u64,
            len: length as u64,
            chunk_size: FRAME as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        set_structure(&socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &memory)?;
        for (ring, size) in [
            (libc::XDP_UMEM_FILL_RING, RECEIVING),
            (libc::XDP_RX_RING, RECEIVING),
            (libc::XDP_TX_RING, SENDING),
            (libc::XDP_UMEM_COMPLETION_RING, SENDING),
        ] {
            set_structure(&socket, libc::SOL_XDP, ring, &size)?;
        }
        let at = offsets(&socket)?;
        let (page_fill, page_sent) = (libc::XDP_UMEM_PGOFF_FILL_RING, libc::XDP_UMEM_PGOFF_COMPLETION_RING);
        let mut fill = Shared::new(&socket, page_fill, &at.fr, RECEIVING, Role::Puts)?;
        let received = Shared::new(&socket, PAGE_RECEIVED, &at.rx, RECEIVING, Role::Takes)?;
        let sending = Shared::new(&socket, PAGE_SENDING, &at.tx, SENDING, Role::Puts)?;
        let sent = Shared::new(&socket, page_sent, &at.cr, SENDING, Role::Takes)?;
        let mut all = (0..u64::from(RECEIVING + SENDING)).map(|frame| frame * FRAME as u64);
        for frame in all.by_ref().take(RECEIVING as usize) {
            fill.put(frame);
        }
        fill.show();
        let index = veth::index(device)?;
        bind(&socket, index)?;
        let redirect = Redirect::to(&socket, index, mode)?;
        Ok(Self { socket, frames, fill, received, sending, sent, free: all.collect(), _redirect: redirect })
    }
}

impl Port for Xdp {
    fn receive(&mut self, to: &mut dyn FnMut(&[u8])) -> usize {
        let mut count = 0;
        while count < BATCH
            && let Some(packet) = self.received.take()
        {
            let length = packet.len as usize;
            let at = self.frames.at(packet.addr as usize, length);
            // SAFETY: within the mapping, and ours until the frame is put back.
            to(unsafe { std::slice::from_raw_parts(at, length) });
            // The kernel finds the frame by any address in it.
            self.fill.put(packet.addr);
            count += 1;
        }
        self.received.show();
        self.fill.show();
        count
    }

    fn send(&mut self, packet: &[u8]) {
        if self.free.is_empty() {
            self.flush();
        }
        // Else a loss, which TCP counts.
        if let Some(frame) = self.free.pop() {
            let at = self.frames.at(frame as usize, packet.len());
            // SAFETY: within the mapping, and ours until it is sent.
            unsafe { std::ptr::copy_nonoverlapping(packet.as_ptr(), at, packet.len()) };
            self.sending.put(libc::xdp_desc { addr: frame, len: packet.len() as u32, options: 0 });
        }
    }

    fn flush(&mut self) {
        self.sending.show();
        // A call sends 32 packets. One that sends none has a reason to wait, for which the next batch is time enough.
        let mut left = self.sending.left();
        while left > 0 {
            // SAFETY: a plain call.
            unsafe {
                libc::sendto(
                    self.socket.as_raw_fd(),
                    std::ptr::null(),
                    0,
                    libc::MSG_DONTWAIT,
                    std::ptr::null(),
                    0,
                )
            };
            let before = std::mem::replace(&mut left, self.sending.left());
            if left == before {
                break;
            }
        }
        while let Some(frame) = self.sent.take() {
            self.free.push(frame);
        }
        self.sent.show();
    }
}

fn offsets(socket: &OwnedFd) -> io::Result<libc::xdp_mmap_offsets> {
    let mut offsets = MaybeUninit::<libc::xdp_mmap_offsets>::zeroed();
    let mut length = size_of::<libc::xdp_mmap_offsets>() as libc::socklen_t;
    // SAFETY: as much room as it says; numbers, for which zero is a value.
    unsafe {
        let (socket, to) = (socket.as_raw_fd(), offsets.as_mut_ptr().cast());
        check(libc::getsockopt(socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, to, &raw mut length))?;
        Ok(offsets.assume_init())
    }
}

/// To the first queue, the only one that such a veth has.
fn bind(socket: &OwnedFd, index: u32) -> io::Result<()> {
    // SAFETY: a zeroed address is valid, and it is as long as it says.
    unsafe {
        let mut address: libc::sockaddr_xdp = zeroed();
        address.sxdp_family = libc::AF_XDP as u16;
        address.sxdp_flags = libc::XDP_COPY;
        address.sxdp_ifindex = index;
        let length = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
        check(libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length)).map(|_| ())
    }
}

/// A ring of entries that one side puts and the other takes. Each keeps count of its own; the counts go round.
struct Shared<T> {
    mapping: Mapping,
    entries: usize,
    size: u32,
    /// Where our count is, and theirs.
    own_at: usize,
    their_at: usize,
    /// Our count, shown to the kernel when a batch is through, and theirs when it was last looked at.
    own: u32,
    theirs: u32,
    entry: std::marker::PhantomData<T>,
}

/// What we do with a ring.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Puts,
    Takes,
}

impl<T: Copy> Shared<T> {
    fn new(
        socket: &OwnedFd,
        page: u64,
        at: &libc::xdp_ring_offset,
        size: u32,
        role: Role,
    ) -> io::Result<Self> {
        let entries = at.desc as usize;
        let mapping = Mapping::of(socket, page as libc::off_t, entries + size as usize * size_of::<T>())?;
        let (producer, consumer) = (at.producer as usize, at.consumer as usize);
        let (own_at, their_at) = if role == Role::Puts { (producer, consumer) } else { (consumer, producer) };
        let entry = std::marker::PhantomData;
        Ok(Self { mapping, entries, size, own_at, their_at, own: 0, theirs: 0, entry })
    }

    fn place(&self) -> *mut T {
        let entry = (self.own & (self.size - 1)) as usize;
        self.mapping.at(self.entries + entry * size_of::<T>(), size_of::<T>()).cast()
    }

    fn look(&self) -> u32 {
        self.mapping.word(self.their_at).load(Ordering::Acquire)
    }

    /// Takes what the kernel has put.
    fn take(&mut self) -> Option<T> {
        if self.own == self.theirs {
            self.theirs = self.look();
            if self.own == self.theirs {
                return None;
            }
        }
        // SAFETY: put by the kernel, which waits for our count before it puts another there.
        let entry = unsafe { self.place().read() };
        self.own = self.own.wrapping_add(1);
        Some(entry)
    }

    /// Puts what the kernel is to take. There is room: a ring has as many entries as there are frames for it.
    fn put(&mut self, entry: T) {
        // SAFETY: the kernel has taken what was there, and waits for our count before it takes another.
        unsafe { self.place().write(entry) };
        self.own = self.own.wrapping_add(1);
    }

    /// Shows the kernel how far we are.
    fn show(&self) {
        self.mapping.word(self.own_at).store(self.own, Ordering::Release);
    }

    /// How many entries the kernel has still to take.
    fn left(&self) -> u32 {
        self.own.wrapping_sub(self.look())
    }
}

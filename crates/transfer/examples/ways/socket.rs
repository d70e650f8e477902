//! Blocks that go through TCP, from memory by `send` and `MSG_ZEROCOPY`, and from the page cache by `sendfile`: over the loopback device,
//! and between two namespaces (which needs root).

use std::fs::File;
use std::io::{self, IoSliceMut, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::thread;

use elephan_sys::Namespace;
use elephan_sys::device::{configure_veth, veth};
use elephan_sys::socket::set;
use nix::cmsg_space;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, open, sendfile};

use crate::{AHEAD, BLOCK, Took, Way, table};

const BLOCKS: u64 = 500;
/// `SO_EE_ORIGIN_ZEROCOPY` and `SO_EE_CODE_ZEROCOPY_COPIED` of include/uapi/linux/errqueue.h.
const FROM_ZEROCOPY: u8 = 5;
const COPIED: u8 = 1;

/// Sends all blocks by `send`.
fn copied(mut socket: &TcpStream) -> io::Result<()> {
    let data = vec![0x5a; BLOCK];
    (0..BLOCKS).try_for_each(|_| socket.write_all(&data))
}

/// Sends all blocks by `sendfile`, from pages that are in memory.
fn from_file(socket: &TcpStream, file: &File) -> io::Result<()> {
    for _ in 0..BLOCKS {
        let mut at = 0;
        while at < BLOCK as u64 {
            let rest = BLOCK - at as usize;
            sendfile(socket, file, Some(&mut at), rest)?;
        }
    }
    Ok(())
}

/// What the kernel has said of calls with `MSG_ZEROCOPY`.
#[derive(Default)]
struct Told {
    /// Calls whose memory it no longer uses, and of these the ones that it copied after all.
    done: u32,
    copied: u32,
}

impl Told {
    /// Reads what has been said; waits for something if `wait`.
    fn hear(&mut self, socket: &TcpStream, wait: bool) -> io::Result<()> {
        if wait {
            // An error is always reported.
            poll(&mut [PollFd::new(socket, PollFlags::empty())], None)?;
        }
        loop {
            let mut space = cmsg_space!(libc::sock_extended_err, libc::sockaddr_in);
            let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
            let mut nothing = [IoSliceMut::new(&mut [])];
            let heard =
                match recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut nothing, Some(&mut space), flags) {
                    Ok(heard) => heard,
                    Err(nix::errno::Errno::EAGAIN) => return Ok(()),
                    Err(error) => return Err(error.into()),
                };
            for control in heard.cmsgs()? {
                if let ControlMessageOwned::Ipv4RecvErr(said, _) = control
                    && said.ee_origin == FROM_ZEROCOPY
                {
                    // A range of calls, both ends included.
                    let calls = said.ee_data - said.ee_info + 1;
                    self.done += calls;
                    self.copied += if said.ee_code & COPIED != 0 { calls } else { 0 };
                }
            }
        }
    }
}

/// Sends all blocks with `MSG_ZEROCOPY`. Returns the share of calls whose data the kernel copied after all.
fn uncopied(socket: &TcpStream) -> io::Result<f64> {
    set(socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY, &[1])?;
    let rooms = vec![vec![0x5a; BLOCK]; AHEAD + 1];
    // The number of calls until each room was sent.
    let mut until = vec![0_u32; rooms.len()];
    let (mut calls, mut told) = (0_u32, Told::default());
    for block in 0..BLOCKS as usize {
        let index = block % rooms.len();
        // A room is filled again only when the kernel no longer uses it.
        while told.done < until[index] {
            told.hear(socket, true)?;
        }
        let mut rest = rooms[index].as_slice();
        while !rest.is_empty() {
            let flags = rustix::net::SendFlags::from_bits_retain(libc::MSG_ZEROCOPY as u32);
            match rustix::net::send(socket, rest, flags) {
                Ok(sent) => {
                    rest = &rest[sent..];
                    calls += 1;
                }
                // The limits of memory that may be held (`optmem_max`, `RLIMIT_MEMLOCK`) are reached.
                Err(rustix::io::Errno::NOBUFS) if told.done < calls => told.hear(socket, true)?,
                Err(error) => return Err(error.into()),
            }
        }
        until[index] = calls;
        told.hear(socket, false)?;
    }
    while told.done < calls {
        told.hear(socket, true)?;
    }
    Ok(f64::from(told.copied) / f64::from(calls))
}

/// Runs `send` on a connection whose other end discards everything, until it has.
fn through(
    ends: Option<&(Namespace, Namespace)>,
    send: impl FnOnce(&TcpStream) -> io::Result<()>,
) -> io::Result<Took> {
    let (listener, sender) = match ends {
        None => {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let sender = TcpStream::connect(listener.local_addr()?)?;
            (listener, sender)
        }
        Some((near, far)) => {
            let listener = far.within(|| TcpListener::bind((FAR, 0)))?;
            let at = listener.local_addr()?;
            let sender = near.within(|| TcpStream::connect(at))?;
            (listener, sender)
        }
    };
    let (mut receiver, _) = listener.accept()?;
    Took::of(BLOCKS * BLOCK as u64, || {
        thread::scope(|scope| {
            let received = scope.spawn(move || {
                let mut room = vec![0; 1 << 18];
                while receiver.read(&mut room)? > 0 {}
                Ok(())
            });
            let sent = send(&sender);
            sender.shutdown(Shutdown::Write)?;
            sent.and(received.join().expect("it does not panic"))
        })
    })
}

const NEAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

fn namespaces() -> io::Result<(Namespace, Namespace)> {
    let (near, far) = (Namespace::new()?, Namespace::new()?);
    near.within(|| veth("near", "far", far.descriptor()))?;
    near.within(|| configure_veth("near", NEAR, FAR, 1500))?;
    far.within(|| configure_veth("far", FAR, NEAR, 1500))?;
    Ok((near, far))
}

/// Prints a table for each device.
pub fn measure(runs: usize) -> io::Result<()> {
    let file: File =
        open(std::env::temp_dir(), OFlags::TMPFILE | OFlags::RDWR, Mode::RUSR | Mode::WUSR)?.into();
    file.write_all_at(&vec![0x5a; BLOCK], 0)?;
    let ends = namespaces();
    if let Err(error) = &ends {
        println!("Between namespaces: {error}.\n");
    }
    for (what, ends) in [("loopback device", None), ("veth, between namespaces", ends.as_ref().ok())] {
        if what != "loopback device" && ends.is_none() {
            continue;
        }
        let share = std::cell::Cell::new(f64::NAN);
        let ways = vec![
            Way::new("`send`", || through(ends, copied)),
            Way::new("`MSG_ZEROCOPY`", || {
                through(ends, |socket| uncopied(socket).map(|copied| share.set(copied)))
            }),
            Way::new("`sendfile`", || through(ends, |socket| from_file(socket, &file))),
        ];
        table(&format!("{what}: memory to memory"), runs, ways);
        println!(
            "Of the calls with `MSG_ZEROCOPY` the kernel copied {:.0} % after all.\n",
            share.get() * 100.0
        );
    }
    Ok(())
}

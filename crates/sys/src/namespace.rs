//! Network namespaces that exist as long as this process, and the hosts in them.
//!
//! A thread makes a namespace by leaving that of the process; a file descriptor alone keeps it. It has no
//! name, no mount, and nothing on disk. When the descriptor closes, in an orderly end or because the process
//! was killed, the kernel removes the namespace with its devices and sockets, so there is nothing to clean
//! up. The namespace has its own `/proc/sys/net`; the host's settings are never changed.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::device;

/// A network namespace.
pub struct Namespace(File);

impl Namespace {
    /// Creates a namespace that contains only a loopback device, which is up.
    pub fn new() -> io::Result<Self> {
        let made = thread::spawn(|| {
            #[expect(unsafe_code, reason = "rustix has no safe form, for the sake of other flags")]
            // SAFETY: file descriptors stay shared with the other threads.
            unsafe {
                unshare_unsafe(UnshareFlags::NEWNET)?;
            }
            device::loopback()?;
            File::open("/proc/thread-self/ns/net")
        });
        Ok(Self(made.join().expect("it does not panic")?))
    }

    /// Its file descriptor in this process.
    pub fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Moves the calling thread into it permanently. To be called at the start of a separate thread.
    pub fn enter(&self) -> io::Result<()> {
        Ok(move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))?)
    }

    /// Runs `work` in the namespace, on a separate thread.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let working = scope.spawn(|| {
                self.enter()?;
                work()
            });
            working.join().expect("it does not panic")
        })
    }

    /// Sets keys below `/proc/sys/net` of the namespace; keys that this kernel does not have are skipped.
    pub fn set(&self, settings: &[(&str, String)]) -> io::Result<()> {
        self.within(|| {
            for (key, value) in settings {
                let path = format!("/proc/sys/net/{key}");
                match fs::write(&path, value) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(io::Error::new(error.kind(), format!("{path}: {error}"))),
                    Ok(()) => {}
                }
            }
            Ok(())
        })
    }
}

//! Network namespaces that live as long as this process, and the hosts in them.
//!
//! A namespace is made by a thread that leaves the process's own, and is held by a file descriptor alone. It has no name, no
//! mount, nothing on disk: when the descriptor closes, in an orderly end or because the process was killed, the kernel takes the
//! namespace away with its devices and sockets. So there is nothing to clean up. Its `/proc/sys/net` is its own; the host's
//! settings are never touched.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::device;

/// A network namespace.
pub struct Namespace(File);

impl Namespace {
    /// A new one, with nothing in it but a loopback device that is up.
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

    /// Moves the calling thread into it, for good. To be called at the start of a thread of its own.
    pub fn enter(&self) -> io::Result<()> {
        Ok(move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))?)
    }

    /// Carries out `work` in the namespace, on a thread of its own.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let working = scope.spawn(|| {
                self.enter()?;
                work()
            });
            working.join().expect("it does not panic")
        })
    }

    /// Sets keys below `/proc/sys/net/ipv4` of the namespace; those that this kernel does not have are left out.
    pub fn set_ipv4(&self, settings: &[(&str, String)]) -> io::Result<()> {
        self.within(|| {
            for (key, value) in settings {
                let path = format!("/proc/sys/net/ipv4/{key}");
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

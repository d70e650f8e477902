//! How the threads of a transfer end together: the first failure counts, and closes all connections.

use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use crate::Error;

/// A thread that waits for something else than a socket looks this often whether the transfer has ended.
pub const LOOK: Duration = Duration::from_millis(20);

/// What the threads of a transfer share in order to end together.
#[derive(Default)]
pub struct Stop {
    failed: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    error: Option<Error>,
    sockets: Vec<TcpStream>,
}

impl Stop {
    /// Closes this socket when the transfer fails, so that no thread waits for it.
    pub fn close_at_failure(&self, socket: &TcpStream) -> Result<(), Error> {
        let socket = socket.try_clone().map_err(|error| Error::System("socket", error))?;
        let mut inner = self.inner.lock().expect("nobody panics with it");
        if inner.error.is_some() {
            let _ = socket.shutdown(Shutdown::Both);
        }
        inner.sockets.push(socket);
        Ok(())
    }

    /// Ends the transfer; the first reason counts.
    pub fn fail(&self, error: Error) {
        let mut inner = self.inner.lock().expect("nobody panics with it");
        if inner.error.is_none() {
            inner.error = Some(error);
            self.failed.store(true, Ordering::Release);
            for socket in &inner.sockets {
                // It may be closed already.
                let _ = socket.shutdown(Shutdown::Both);
            }
        }
    }

    /// Carries out a thread's work; its failure ends the transfer.
    pub fn heed(&self, work: impl FnOnce() -> Result<(), Error>) {
        if let Err(error) = work() {
            self.fail(error);
        }
    }

    /// Waits until a pipe can be read or written without waiting; an error if the transfer ends before.
    pub fn ready(&self, pipe: &impl AsFd, to: PollFlags) -> Result<(), Error> {
        let limit = LOOK.try_into().expect("a short time");
        while !self.has_failed() {
            match poll(&mut [PollFd::new(pipe, to)], Some(&limit)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(errno) => return Err(Error::System("pipe", errno.into())),
            }
        }
        Err(Error::Cancelled)
    }

    /// Whether the transfer has ended.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Why it has ended, if it failed.
    pub fn take(&self) -> Option<Error> {
        self.inner.lock().expect("nobody panics with it").error.take()
    }
}

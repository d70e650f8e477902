//! How the threads of a transfer end together: the first failure counts, and closes all connections.

use std::net::{Shutdown, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Error;

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

    /// Whether the transfer has ended.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Why it has ended, if it failed.
    pub fn take(&self) -> Option<Error> {
        self.inner.lock().expect("nobody panics with it").error.take()
    }
}

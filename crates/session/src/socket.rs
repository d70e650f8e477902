//! A TCP socket whose reads and writes end when they take too long.

use std::io::{self, BufReader, IoSlice, Read, Write};
use std::mem;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Bytes that are read at once: TLS asks for 4 kB at a time, and each system call costs as much as decrypting some kB.
const AT_ONCE: usize = 128 << 10;

/// A socket with a patience for each read and write, and perhaps a deadline for all of them.
pub struct Socket {
    stream: BufReader<TcpStream>,
    patience: Duration,
    deadline: Option<Instant>,
    /// The time limits that the socket has for reading and writing.
    limits: [Option<Duration>; 2],
}

impl Socket {
    /// Everything until [`Socket::admit`] has to happen within `patience`: a peer that sends a byte now and then is no better
    /// than one that sends none.
    pub fn new(stream: TcpStream, patience: Duration) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        let stream = BufReader::with_capacity(AT_ONCE, stream);
        Ok(Self { stream, patience, deadline: Some(Instant::now() + patience), limits: [None; 2] })
    }

    /// From now on only each read and each write has to happen within `patience`.
    pub fn admit(&mut self, patience: Duration) {
        (self.patience, self.deadline) = (patience, None);
    }

    /// Everything until [`Socket::restore`] has to happen within the patience, or before an earlier deadline, which is returned.
    pub fn limit(&mut self) -> Option<Instant> {
        let until = self.deadline.or_else(|| Instant::now().checked_add(self.patience));
        mem::replace(&mut self.deadline, until)
    }

    /// Sets the deadline that there was.
    pub fn restore(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// The longest time in which a read or a write has to happen.
    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// The socket itself.
    pub fn stream(&self) -> &TcpStream {
        self.stream.get_ref()
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.map_or(self.patience, |end| end.saturating_duration_since(Instant::now()));
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stream.buffer().is_empty() {
            let left = Some(self.left()?);
            if self.limits[0] != left {
                self.stream().set_read_timeout(left)?;
                self.limits[0] = left;
            }
        }
        self.stream.read(buffer)
    }
}

impl Socket {
    fn writable(&mut self) -> io::Result<&mut TcpStream> {
        let left = Some(self.left()?);
        if self.limits[1] != left {
            self.stream().set_write_timeout(left)?;
            self.limits[1] = left;
        }
        Ok(self.stream.get_mut())
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writable()?.write(bytes)
    }
    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.writable()?.write_vectored(parts)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.stream.get_mut().flush()
    }
}

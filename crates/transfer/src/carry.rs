//! A stream of frames: encrypted, or plain with sealed heads.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use elephan_session::Session;
use rustix::net::SendFlags as Flags;

use crate::Error;
use crate::frame::{HEAD, Head, SEAL, seal};

/// The label of the key of plain streams.
const LABEL: &str = "EXPORTER-elephan-transfer-plain";

/// A stream.
pub struct Stream {
    session: Session,
    plain: Option<Plain>,
    number: u64,
}

struct Plain {
    socket: TcpStream,
    key: [u8; 32],
}

impl Stream {
    /// Of a session whose two ends have said all that they had to say in it. Where it is to be `plain`, the bytes of the socket
    /// are from now on those of frames: the peers know each other, and the key is theirs alone.
    pub fn new(session: Session, plain: bool) -> Result<Self, Error> {
        let plain = if plain {
            let socket = session.socket().try_clone().map_err(|error| Error::System("socket", error))?;
            Some(Plain { socket, key: session.secret(LABEL) })
        } else {
            None
        };
        Ok(Self { session, plain, number: 0 })
    }

    /// Sets the time that each read or write may take from now on.
    pub fn set_patience(&mut self, patience: Duration) -> Result<(), Error> {
        self.session.set_patience(patience);
        if let Some(plain) = &self.plain {
            let set = plain.socket.set_read_timeout(Some(patience));
            set.and_then(|()| plain.socket.set_write_timeout(Some(patience)))
                .map_err(|error| Error::System("socket", error))?;
        }
        Ok(())
    }

    /// The socket, for its options and its data.
    pub fn socket(&self) -> &TcpStream {
        self.session.socket()
    }

    /// Sends a frame.
    pub fn send(&mut self, head: &Head, data: &[u8]) -> Result<(), Error> {
        let bytes = head.bytes();
        let sent = match &mut self.plain {
            Some(plain) => {
                let mut start = [0; HEAD + SEAL];
                start[..HEAD].copy_from_slice(&bytes);
                start[HEAD..].copy_from_slice(seal(&plain.key, self.number, &bytes).as_bytes());
                // The head leaves with the data that follow.
                let more = if data.is_empty() { Flags::empty() } else { Flags::MORE };
                send_all(&plain.socket, &start, more).and_then(|()| plain.socket.write_all(data))
            }
            None => self
                .session
                .write_all(&bytes)
                .and_then(|()| self.session.write_all(data))
                .and_then(|()| self.session.flush()),
        };
        self.number += 1;
        sent.map_err(|error| self.session.failed(error).into())
    }

    /// Receives the head of the next frame; its data follow.
    pub fn head(&mut self) -> Result<Head, Error> {
        let mut bytes = [0; HEAD];
        self.fill(&mut bytes)?;
        if let Some(plain) = &self.plain {
            let expected = seal(&plain.key, self.number, &bytes);
            let mut found = [0; SEAL];
            self.fill(&mut found)?;
            // This comparison takes the same time for any difference.
            if expected != blake3::Hash::from_bytes(found) {
                return Err(Error::Peer("a frame of its own", "one with the seal of another".to_owned()));
            }
        }
        self.number += 1;
        Head::read(&bytes).map_err(|found| Error::Peer("the head of a frame", found))
    }

    /// Receives data until `room` is full.
    pub fn fill(&mut self, room: &mut [u8]) -> Result<(), Error> {
        let read = match &mut self.plain {
            Some(plain) => plain.socket.read_exact(room),
            None => self.session.read_exact(room),
        };
        read.map_err(|error| self.session.failed(error).into())
    }
}

fn send_all(socket: &TcpStream, mut bytes: &[u8], flags: Flags) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::net::send(socket, bytes, flags | Flags::NOSIGNAL) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

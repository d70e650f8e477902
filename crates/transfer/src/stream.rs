//! A stream of frames, each a head of fixed length and then data: encrypted, or plain with sealed heads.
//!
//! In a plain stream a keyed hash follows the head. It covers the number of the frame in the stream, so frames can be neither
//! forged nor repeated, reordered or left out; the hash of the data is in the head.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use elephan_session::Session;
use rustix::net::SendFlags as Flags;

use crate::{BLOCK, Error};

/// Length of a head, bytes.
const HEAD: usize = 48;
/// Length of the hash after it in plain streams.
const SEAL: usize = 32;
/// The most blocks: the place of each can be computed.
const MOST_BLOCKS: u64 = 1 << 40;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The sender has nothing to send yet, and is still there.
    Idle = 0,
    /// A block of a file, or from a pipe.
    Block = 1,
    /// Memory. Its hash is not computed, because nobody uses it.
    Memory = 2,
    /// The end of the stream. What a pipe has yielded has as many blocks as the head says.
    End = 3,
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// What it is.
    pub kind: Kind,
    /// Bytes of data that follow.
    pub length: u32,
    /// The number of the block.
    pub block: u64,
    /// The hash of the block.
    pub hash: [u8; 32],
}

impl Head {
    /// A head without a hash.
    pub fn plain(kind: Kind, length: u32, block: u64) -> Self {
        Self { kind, length, block, hash: [0; 32] }
    }

    /// Its bytes.
    pub fn bytes(&self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[0] = self.kind as u8;
        bytes[4..8].copy_from_slice(&self.length.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.block.to_be_bytes());
        bytes[16..].copy_from_slice(&self.hash);
        bytes
    }

    /// Reads it; the error is what was found.
    fn read(bytes: &[u8; HEAD]) -> Result<Self, String> {
        let kinds = [Kind::Idle, Kind::Block, Kind::Memory, Kind::End];
        let kind = *kinds.get(bytes[0] as usize).ok_or_else(|| format!("kind {}", bytes[0]))?;
        let length = u32::from_be_bytes(bytes[4..8].try_into().expect("four bytes"));
        let block = u64::from_be_bytes(bytes[8..16].try_into().expect("eight bytes"));
        let lengths = if matches!(kind, Kind::Idle | Kind::End) { 0..=0 } else { 1..=BLOCK };
        if !lengths.contains(&u64::from(length)) || block > MOST_BLOCKS || bytes[1..4] != [0; 3] {
            return Err(format!("{length} bytes of kind {}, block {block}", bytes[0]));
        }
        Ok(Self { kind, length, block, hash: bytes[16..].try_into().expect("its length") })
    }
}

/// The hash that proves that a head is the sender's, as the frame with this number of its stream.
fn seal(key: &[u8; 32], number: u64, head: &[u8; HEAD]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(&number.to_be_bytes()).update(head);
    hasher.finalize()
}

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_a_head_or_an_error(bytes in prop::array::uniform32(any::<u8>()), kind in 0u8..5, small: bool) {
            let mut all = [0; HEAD];
            all[16..].copy_from_slice(&bytes);
            all[4..16].copy_from_slice(&bytes[..12]);
            if small {
                all[4..14].fill(0);
            }
            all[0] = kind;
            if let Ok(head) = Head::read(&all) {
                prop_assert_eq!(head.bytes(), all);
                prop_assert!(u64::from(head.length) <= BLOCK && head.block.checked_mul(BLOCK).is_some());
            }
        }
    }

    #[test]
    fn a_seal_is_of_one_head_at_one_place() {
        let of =
            |key: u8, number, block| seal(&[key; 32], number, &Head::plain(Kind::Memory, 9, block).bytes());
        let first = of(1, 0, 3);
        assert_eq!(first, of(1, 0, 3));
        for other in [of(2, 0, 3), of(1, 1, 3), of(1, 0, 4)] {
            assert_ne!(first, other);
        }
    }
}

//! The form of a datagram, and the code that shows that it is of the session.
//!
//! All numbers have their largest byte first: session (8 bytes), stream (4), sequence number (4), time at which it was due on its
//! sender's clock (8, ns since 1970), MAC (8). Padding follows, which nobody reads. The MAC is BLAKE3, keyed by a secret of the
//! session, over the first 24 bytes and the length. Each direction has its own key, so an echo cannot be sent back as a question.

/// The shortest datagram, bytes of UDP payload.
pub const HEADER_BYTES: usize = 32;
/// What the MAC covers, besides the length.
const COVERED: usize = 24;

/// The key of one direction.
pub type Key = [u8; 32];

/// What a datagram says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    pub session: u64,
    pub stream: u32,
    pub sequence: u32,
    pub due_ns: u64,
}

impl Datagram {
    /// Writes the header of a datagram that fills `buffer`. Panics if it is shorter than a header.
    pub fn write(&self, key: &Key, buffer: &mut [u8]) {
        buffer[..8].copy_from_slice(&self.session.to_be_bytes());
        buffer[8..12].copy_from_slice(&self.stream.to_be_bytes());
        buffer[12..16].copy_from_slice(&self.sequence.to_be_bytes());
        buffer[16..COVERED].copy_from_slice(&self.due_ns.to_be_bytes());
        let mac = mac(key, buffer);
        buffer[COVERED..HEADER_BYTES].copy_from_slice(&mac.to_be_bytes());
    }

    /// Reads a datagram; `None` if its MAC is wrong.
    pub fn read(key: &Key, bytes: &[u8]) -> Option<Self> {
        if bytes.len() < HEADER_BYTES || mac(key, bytes) != u64::from_be_bytes(part(bytes, COVERED)?) {
            return None;
        }
        Some(Self {
            session: u64::from_be_bytes(part(bytes, 0)?),
            stream: u32::from_be_bytes(part(bytes, 8)?),
            sequence: u32::from_be_bytes(part(bytes, 12)?),
            due_ns: u64::from_be_bytes(part(bytes, 16)?),
        })
    }
}

/// The session that a datagram claims to be of, by which its key is found.
pub fn claimed_session(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(part(bytes, 0)?))
}

fn part<const LENGTH: usize>(bytes: &[u8], from: usize) -> Option<[u8; LENGTH]> {
    bytes.get(from..from + LENGTH)?.try_into().ok()
}

/// A number, because the comparison of two takes the same time whatever they are.
fn mac(key: &Key, bytes: &[u8]) -> u64 {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(&bytes[..COVERED]).update(&(bytes.len() as u64).to_be_bytes());
    let hash = hasher.finalize();
    u64::from_be_bytes(part(hash.as_bytes(), 0).expect("a hash is longer"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Datagram, HEADER_BYTES, claimed_session};

    proptest! {
        #[test]
        fn what_is_written_is_read_and_nothing_else_is(
            key: [u8; 32], session: u64, stream: u32, sequence: u32, due_ns: u64,
            more in 0_usize..200, at in 0_usize..HEADER_BYTES, flip in 1_u8..,
        ) {
            let datagram = Datagram { session, stream, sequence, due_ns };
            let mut bytes = vec![0; HEADER_BYTES + more];
            datagram.write(&key, &mut bytes);
            prop_assert_eq!(Datagram::read(&key, &bytes), Some(datagram));
            prop_assert_eq!(claimed_session(&bytes), Some(session));
            let mut other = key;
            other[at] ^= flip;
            prop_assert_eq!(Datagram::read(&other, &bytes), None);
            // Longer or shorter than it was sent.
            prop_assert_eq!(Datagram::read(&key, &[&bytes[..], &[0]].concat()), None);
            prop_assert_eq!(Datagram::read(&key, &bytes[..bytes.len() - 1]), None);
            bytes[at] ^= flip;
            prop_assert_eq!(Datagram::read(&key, &bytes), None);
        }

        #[test]
        fn any_bytes_are_refused(key: [u8; 32], bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(Datagram::read(&key, &bytes), None);
        }
    }
}

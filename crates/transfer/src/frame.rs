//! Frames of a stream: a head of fixed length, then data.
//!
//! In a plain stream a keyed hash follows the head. It covers the number of the frame in the stream, so frames can be neither
//! forged nor repeated, reordered or left out; the hash of the data is in the head.

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The sender has nothing to send yet, and is still there.
    Idle = 0,
    /// A block of a file: where its data are ([`segments`]), then the data.
    Block = 1,
    /// Short files: how many, the number and the size of each, then the data of all.
    Pack = 2,
    /// Memory. Its hash is not computed, because nobody uses it.
    Memory = 3,
    /// A file that could not be sent; the data are the reason as text.
    Left = 4,
    /// The end of the stream.
    End = 5,
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// What it is.
    pub kind: Kind,
    /// Bytes of data that follow.
    pub length: u32,
    /// The number of the file, of a block or of a file that was left out.
    pub file: u32,
    /// The number of the block.
    pub block: u32,
    /// BLAKE3 of the data; of a block that of its content, as a part of its file.
    pub hash: [u8; 32],
}

/// Length of a head, bytes.
pub const HEAD: usize = 48;
/// Length of the hash after it in plain streams.
pub const SEAL: usize = 32;
/// The most files of a pack.
pub const MOST_IN_PACK: usize = 4096;
/// The most parts of a block: one for each other page.
const MOST_SEGMENTS: usize = 512;
/// The most data of a frame: a block, and the table before it.
pub const MOST_DATA: u32 = crate::BLOCK as u32 + 64 * 1024;

impl Head {
    /// A head of a frame that is not about a file.
    pub fn plain(kind: Kind, length: u32) -> Self {
        Self { kind, length, file: 0, block: 0, hash: [0; 32] }
    }

    /// Its bytes.
    pub fn bytes(&self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[0] = self.kind as u8;
        bytes[4..8].copy_from_slice(&self.length.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.file.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.block.to_be_bytes());
        bytes[16..].copy_from_slice(&self.hash);
        bytes
    }

    /// Reads it; the error is what was found.
    pub fn read(bytes: &[u8; HEAD]) -> Result<Self, String> {
        let kinds = [Kind::Idle, Kind::Block, Kind::Pack, Kind::Memory, Kind::Left, Kind::End];
        let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let kind = *kinds.get(bytes[0] as usize).ok_or_else(|| format!("kind {}", bytes[0]))?;
        let length = number(4);
        let carries = !matches!(kind, Kind::Idle | Kind::End);
        if length > if carries { MOST_DATA } else { 0 } || bytes[1..4] != [0; 3] {
            return Err(format!("{length} bytes of kind {}", bytes[0]));
        }
        let hash = bytes[16..].try_into().expect("its length");
        Ok(Self { kind, length, file: number(8), block: number(12), hash })
    }
}

/// The hash that proves that a head is the sender's, as the frame with this number of its stream.
pub fn seal(key: &[u8; 32], number: u64, head: &[u8; HEAD]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(&number.to_be_bytes()).update(head);
    hasher.finalize()
}

/// Two numbers of a table before data.
pub type Pair = (u32, u32);

/// A part of a block that is not a hole: where it starts in the block, and its length.
pub type Segment = Pair;

/// Whether a block with these parts can be told as such.
pub fn can_be_told(segments: &[Segment]) -> bool {
    segments.len() <= MOST_SEGMENTS
}

/// Writes pairs of numbers before data: their count, then each.
pub fn write_pairs(pairs: &[Pair], to: &mut Vec<u8>) {
    to.extend((pairs.len() as u32).to_be_bytes());
    for (one, other) in pairs {
        to.extend(one.to_be_bytes());
        to.extend(other.to_be_bytes());
    }
}

/// Reads pairs of numbers, at most `most`; returns them and what follows. None if there are fewer than said.
pub fn read_pairs(data: &[u8], most: usize) -> Option<(Vec<Pair>, &[u8])> {
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().expect("four bytes"));
    let (count, rest) = data.split_at_checked(4)?;
    let count = number(count) as usize;
    if count > most {
        return None;
    }
    let (table, rest) = rest.split_at_checked(8 * count)?;
    let pairs = table.chunks_exact(8).map(|pair| (number(&pair[..4]), number(&pair[4..]))).collect();
    Some((pairs, rest))
}

/// The parts of a block of `length` bytes and their data. None if they overlap, leave the block, or are not as long as the
/// data.
pub fn segments(data: &[u8], length: u64) -> Option<(Vec<Segment>, &[u8])> {
    let (segments, rest) = read_pairs(data, MOST_SEGMENTS)?;
    let mut end = 0;
    let mut sum = 0;
    for &(from, bytes) in &segments {
        if u64::from(from) < end || bytes == 0 {
            return None;
        }
        end = u64::from(from) + u64::from(bytes);
        sum += u64::from(bytes);
    }
    (end <= length && sum == rest.len() as u64).then_some((segments, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_a_head_or_an_error(bytes in prop::array::uniform32(any::<u8>()), kind in 0u8..8) {
            let mut all = [0; HEAD];
            all[16..].copy_from_slice(&bytes);
            all[4..16].copy_from_slice(&bytes[..12]);
            all[0] = kind;
            if let Ok(head) = Head::read(&all) {
                prop_assert_eq!(head.bytes(), all);
                prop_assert!(head.length <= MOST_DATA);
            }
        }

        #[test]
        fn segments_stay_within_their_block(data in prop::collection::vec(0u8..4, 0..64), length in 0u64..5000) {
            if let Some((segments, rest)) = segments(&data, length) {
                let sum: u64 = segments.iter().map(|&(_, bytes)| u64::from(bytes)).sum();
                prop_assert_eq!(sum, rest.len() as u64);
                prop_assert!(segments.iter().all(|&(from, bytes)| u64::from(from) + u64::from(bytes) <= length));
            }
        }

        #[test]
        fn pairs_come_back(pairs in prop::collection::vec(any::<(u32, u32)>(), 0..20)) {
            let mut bytes = Vec::new();
            write_pairs(&pairs, &mut bytes);
            bytes.push(7);
            prop_assert_eq!(read_pairs(&bytes, 20), Some((pairs.clone(), &[7][..])));
            prop_assert!(pairs.is_empty() || read_pairs(&bytes, pairs.len() - 1).is_none());
        }
    }

    #[test]
    fn a_seal_is_of_one_head_at_one_place() {
        let head = Head { file: 3, ..Head::plain(Kind::Memory, 9) };
        let of = |key: u8, number, head: Head| seal(&[key; 32], number, &head.bytes());
        let one = of(1, 0, head);
        assert_eq!(one, of(1, 0, head));
        for other in [of(2, 0, head), of(1, 1, head), of(1, 0, Head { file: 4, ..head })] {
            assert_ne!(one, other);
        }
    }
}

//! Messages: MessagePack, after its length in four bytes, the largest first.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The largest message, bytes. A longer one is refused before it is read.
pub const MOST_BYTES: u32 = 1 << 20;

/// Writes a message and flushes.
pub fn write(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let bytes = rmp_serde::to_vec_named(message).map_err(io::Error::other)?;
    let length = u32::try_from(bytes.len()).ok().filter(|&length| length <= MOST_BYTES);
    let length = length.ok_or_else(|| io::Error::other("a message is too long"))?;
    to.write_all(&[&length.to_be_bytes(), &bytes[..]].concat())?;
    to.flush()
}

/// Reads a message of at most `most` bytes. Longer or malformed data are [`io::ErrorKind::InvalidData`], with what was found.
pub fn read<T: DeserializeOwned>(from: &mut impl Read, most: u32) -> io::Result<T> {
    let invalid = |found: String| io::Error::new(io::ErrorKind::InvalidData, found);
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > most {
        return Err(invalid(format!("{length} bytes")));
    }
    let mut bytes = vec![0; length as usize];
    from.read_exact(&mut bytes)?;
    rmp_serde::from_slice(&bytes).map_err(|error| invalid(error.to_string()))
}

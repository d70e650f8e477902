//! What a sender says of a file, and which names a receiver accepts.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

/// The folder of partial files within a receiving folder. No file of a sender may go there.
pub const PARTIALS: &str = ".elephan-partial";
/// The most entries of a transfer: half a gigabyte of memory on both sides.
pub const MOST_ENTRIES: usize = 1 << 22;
/// The most bytes of all names together.
pub const MOST_NAMES: usize = 1 << 29;
/// The largest file, bytes: the hashes of its blocks take half a gigabyte of memory.
const LARGEST: u64 = 1 << 46;
/// The longest name of a file, and the longest path (Linux: NAME_MAX, and PATH_MAX without its zero).
const LONGEST_NAME: usize = 255;
const LONGEST_PATH: usize = 4095;
/// Permissions that are kept: neither set-user-ID nor the like.
pub const MODES: u32 = 0o777;

/// A file or a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its path, from the receiving folder, as the system has it: bytes.
    #[serde(with = "bytes")]
    pub name: Vec<u8>,
    /// Whether it is a folder.
    pub folder: bool,
    /// Its bytes; 0 for folders.
    pub size: u64,
    /// Time of modification, seconds since 1970 and nanoseconds.
    pub modified: (i64, u32),
    /// Permissions.
    pub mode: u32,
}

/// MessagePack has a type for bytes, in which a name is not longer than itself.
pub mod bytes {
    use std::fmt;

    use serde::de::{Error, SeqAccess, Visitor};
    use serde::{Deserializer, Serializer};

    /// Writes them.
    pub fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    /// Reads them.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        struct Bytes;
        impl<'de> Visitor<'de> for Bytes {
            type Value = Vec<u8>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
                Ok(bytes.to_vec())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Vec<u8>, A::Error> {
                let mut bytes = Vec::new();
                while let Some(byte) = from.next_element()? {
                    bytes.push(byte);
                }
                Ok(bytes)
            }
        }
        from.deserialize_bytes(Bytes)
    }
}

impl Entry {
    /// Why a receiver does not accept it.
    pub fn problem(&self) -> Option<&'static str> {
        problem(&self.name)
            .or((self.folder && self.size != 0).then_some("a folder without bytes"))
            .or((self.size > LARGEST).then_some("at most 64 TiB"))
            .or((self.modified.1 >= 1_000_000_000).then_some("nanoseconds below a second"))
    }
}

/// What is expected of a name where it is not acceptable.
fn problem(name: &[u8]) -> Option<&'static str> {
    if name.len() > LONGEST_PATH {
        return Some("a path of at most 4095 bytes");
    }
    if name.contains(&0) {
        return Some("a path without a zero byte");
    }
    let mut parts = name.split(|&byte| byte == b'/');
    if parts.clone().any(|part| part.is_empty() || part == b"." || part == b"..") {
        return Some("a path below the receiving folder, without empty parts, `.` and `..`");
    }
    if parts.clone().any(|part| part.len() > LONGEST_NAME) {
        return Some("names of at most 255 bytes");
    }
    (parts.next() == Some(PARTIALS.as_bytes())).then_some("a path outside the folder of partial files")
}

/// A name as text for people: what is not printable is written as `\x..`.
pub fn shown(name: &[u8]) -> String {
    let mut text = String::new();
    for chunk in name.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter.is_control() || ('\u{202a}'..='\u{202e}').contains(&letter) {
                let _ = write!(text, "{}", letter.escape_default());
            } else {
                text.push(letter);
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let long = [b'a'; 256];
        let longer = b"a/".repeat(2048);
        for name in [
            &b""[..],
            b"/",
            b"/etc/passwd",
            b"..",
            b"../a",
            b"a/../../b",
            b"a/..",
            b".",
            b"./a",
            b"a//b",
            b"a/",
            b"a\0b",
            b".elephan-partial",
            b".elephan-partial/x",
            &long,
            &longer,
        ] {
            assert!(problem(name).is_some(), "{}", shown(name));
        }
        for name in
            [&b"a"[..], b"a/b", b"...", b"..a", b"a..", b"\xff\xfe", b"a\nb", b"x/.elephan-partial", b"-rf"]
        {
            assert_eq!(problem(name), None, "{}", shown(name));
        }
    }

    proptest! {
        #[test]
        fn an_accepted_name_stays_below(name in prop::collection::vec(prop_oneof![Just(b'/'), Just(b'.'), Just(b'a'), any::<u8>()], 0..20)) {
            if problem(&name).is_none() {
                let mut depth = 0;
                for part in name.split(|&byte| byte == b'/') {
                    prop_assert!(!part.is_empty() && part != b"." && part != b"..");
                    depth += 1;
                }
                prop_assert!(depth >= 1 && name[0] != b'/');
            }
        }

        #[test]
        fn shown_names_have_no_control_characters(name in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert!(!shown(&name).chars().any(char::is_control));
        }
    }
}

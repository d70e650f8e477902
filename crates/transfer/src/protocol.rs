//! What both sides say to each other in the session that controls a transfer.
//!
//! The sender says [`Hello`] with its [`Offer`]. The receiver answers, of a file when it has read what it has of it. Each stream
//! joins by a [`Hello`] in a session of its own. From then on only the receiver speaks in the first session: [`Report`], ten
//! times a second, and at last [`Report::Done`].

use std::fmt::Write;

use serde::{Deserialize, Serialize};

/// The version of what is said.
pub const VERSION: u32 = 2;
/// The start of the names of partial files. No file of a sender may have it.
pub const RESERVED: &str = ".elephan-";
/// The largest file, bytes: which of its blocks a receiver has fits in a message.
const LARGEST: u64 = 1 << 43;
/// The longest name of a file (Linux: NAME_MAX).
const LONGEST_NAME: usize = 255;

/// The first message of a session.
#[derive(Serialize, Deserialize)]
pub enum Hello {
    /// Opens a transfer.
    Open(Offer),
    /// Joins a transfer as one of its streams.
    Join {
        /// The number of the transfer.
        transfer: u64,
        /// Its key.
        key: [u8; 32],
        /// The number of the stream.
        stream: u32,
    },
}

/// What a sender wants to send, and how.
#[derive(Clone, Serialize, Deserialize)]
pub struct Offer {
    /// [`VERSION`].
    pub version: u32,
    /// What is sent.
    pub content: Content,
    /// The number of streams.
    pub streams: u32,
    /// Whether streams drop their encryption.
    pub plain: bool,
    /// Whether an existing file is replaced.
    pub force: bool,
}

/// What is sent.
#[derive(Clone, Serialize, Deserialize)]
pub enum Content {
    /// So many bytes of memory, which the receiver discards.
    Memory(u64),
    /// A file.
    File(Entry),
    /// What a pipe yields.
    Pipe,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name in the receiving folder, as the system has it: bytes.
    pub name: Vec<u8>,
    /// Its bytes.
    pub size: u64,
    /// Time of modification, seconds since 1970 and nanoseconds.
    pub modified: (i64, u32),
    /// Permissions.
    pub mode: u32,
}

impl Entry {
    /// What is expected of it where a receiver does not accept it. An accepted name is one component, so it leads nowhere else.
    pub fn problem(&self) -> Option<&'static str> {
        let name = self.name.as_slice();
        match () {
            () if matches!(name, b"" | b"." | b"..") || name.contains(&b'/') => {
                Some("a name in the receiving folder, without `/`, and not `.` or `..`")
            }
            () if name.contains(&0) => Some("a name without a zero byte"),
            () if name.len() > LONGEST_NAME => Some("a name of at most 255 bytes"),
            () if name.starts_with(RESERVED.as_bytes()) => {
                Some("a name that does not start with `.elephan-`, as those of partial files")
            }
            () if self.size > LARGEST => Some("a file of at most 8 TiB"),
            () if self.modified.1 >= 1_000_000_000 => Some("nanoseconds below a second"),
            () => None,
        }
    }

    /// Its name as text for people: what is not printable is written as `\x..`.
    pub fn shown(&self) -> String {
        let mut text = String::new();
        for chunk in self.name.utf8_chunks() {
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
}

/// The receiver's answer to [`Hello`].
#[derive(Serialize, Deserialize)]
pub enum Answer {
    /// It is still reading what it has of the file.
    Looking,
    /// A transfer is open.
    Opened {
        /// Its number.
        transfer: u64,
        /// The key with which streams join it.
        key: [u8; 32],
        /// Blocks of the file that are not to be sent: a bit for each, lowest first.
        have: Vec<u8>,
    },
    /// The stream has joined.
    Joined,
    /// It is not wanted, and why.
    Refused(String),
}

/// What a receiver says while data arrive.
#[derive(Serialize, Deserialize)]
pub enum Report {
    /// How far it is.
    SoFar {
        /// Bytes that were verified and written, in earlier transfers too; of memory those that have arrived.
        stored: u64,
        /// Time for which streams waited until data were written, all streams together, nanoseconds.
        waited_ns: u64,
    },
    /// Everything is in place.
    Done(Done),
    /// The transfer has ended, and why.
    Failed(String),
}

/// What a receiver has done.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Done {
    /// Bytes that arrived in this transfer.
    pub bytes: u64,
    /// Whether the file was there, with its size and time of modification, so that nothing was sent.
    pub there: bool,
    /// BLAKE3 of all data, those of earlier transfers included; none of memory, and of a file that was there.
    pub hash: Option<[u8; 32]>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named(name: &[u8]) -> Entry {
        Entry { name: name.to_vec(), size: 0, modified: (0, 0), mode: 0 }
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let long = [b'a'; 256];
        for name in [
            &b""[..],
            b"/",
            b"/etc/passwd",
            b".",
            b"..",
            b"../a",
            b"a/b",
            b"a/",
            b"a\0b",
            b".elephan-",
            b".elephan-x.partial",
            &long,
        ] {
            assert!(named(name).problem().is_some(), "{}", named(name).shown());
        }
        for name in [&b"a"[..], b"...", b"..a", b"a..", b"\xff\xfe", b"a\nb", b".elephan", b"-rf"] {
            assert_eq!(named(name).problem(), None, "{}", named(name).shown());
        }
    }

    proptest! {
        #[test]
        fn an_accepted_name_is_one_component(name in prop::collection::vec(prop_oneof![Just(b'/'), Just(b'.'), Just(b'a'), any::<u8>()], 0..20)) {
            if named(&name).problem().is_none() {
                use std::os::unix::ffi::OsStrExt;
                let path = std::path::Path::new(std::ffi::OsStr::from_bytes(&name));
                let parts: Vec<_> = path.components().collect();
                prop_assert!(matches!(parts[..], [std::path::Component::Normal(part)] if part.as_bytes() == name));
            }
        }

        #[test]
        fn shown_names_have_no_control_characters(name in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert!(!named(&name).shown().chars().any(char::is_control));
        }
    }
}

//! Sizes.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use crate::parse::{self, Unit, as_text};

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

const SCALES: [(&str, u64); 4] = [("B", 1), ("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000)];

const UNITS: [Unit; 8] = [
    (&["B", "bytes", "byte"], 1),
    (&["kB"], 1_000),
    (&["MB"], 1_000_000),
    (&["GB"], 1_000_000_000),
    (&["TB"], 1_000_000_000_000),
    (&["KiB"], 1 << 10),
    (&["MiB"], 1 << 20),
    (&["GiB"], 1 << 30),
];

impl Bytes {
    pub(crate) const EXPECTED: &'static str = "a size such as \"1500 B\" or \"2 GB\"";
    /// Zero bytes.
    pub const ZERO: Self = Self(0);

    /// `count` bytes.
    pub const fn new(count: u64) -> Self {
        Self(count)
    }
    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// The number of bits.
    pub const fn bits(self) -> u64 {
        self.0 * 8
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        parse::write(f, self.0, &SCALES)
    }
}

as_text!(
    Bytes,
    r"^[0-9_]+(\.[0-9]+)? ?(B|bytes?|[kMGT]B|[KMG]iB)$",
    "A size, such as \"1500 B\" or \"2 GB\""
);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimal_and_binary_prefixes_differ() {
        assert_eq!("2 GB".parse(), Ok(Bytes(2_000_000_000)));
        assert_eq!("64 KiB".parse(), Ok(Bytes(65_536)));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(count: u64) {
            prop_assert_eq!(Bytes(count).to_string().parse(), Ok(Bytes(count)));
        }
    }
}

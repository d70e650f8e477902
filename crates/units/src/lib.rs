//! The quantities that all parts of Elephan use.
//!
//! Each has one type, one exact integer representation, and one notation in files: [`Time`] in picoseconds
//! (`"82 ms"`), [`Rate`] in bits per second (`"250 Mbit/s"`), [`Bytes`] (`"2 GB"`), and [`Seed`], from which
//! every random process gets its own random stream.
//!
//! Prefixes are decimal, as on every line card: 1 Mbit/s is 10^6 bit/s and 1 GB is 10^9 bytes;
//! `KiB`, `MiB` and `GiB` are binary.

mod bytes;
mod choice;
mod defaults;
pub mod entry;
mod known;
mod mistake;
mod parse;
mod rate;
mod seed;
mod time;

pub use bytes::Bytes;
pub use choice::{Choice, read_choice};
pub use entry::Entry;
pub use known::OneOf;
pub use mistake::{Mistake, refuse};
pub use rate::Rate;
pub use seed::{Seed, Stream};
pub use time::Time;

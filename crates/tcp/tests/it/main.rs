//! Tests of the endpoint from outside, all in one binary.
#![expect(clippy::single_range_in_vec_init, reason = "one SACK block is a list of blocks too")]

mod common;

mod acceptance;
mod bursts;
mod drawn;
mod dsack;
mod duplicates;
mod fuzz;
mod governor;
mod host;
mod linux;
mod marks;
mod misbehave;
mod opening;
mod properties;
mod rack;
mod receiving;
mod reordering;
mod sack;
mod segment;
mod spurious;
mod timers;
mod window;

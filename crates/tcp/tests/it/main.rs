//! Tests of the endpoint from outside, all in one binary.

mod common;

mod acceptance;
mod drawn;
mod dsack;
mod duplicates;
mod fuzz;
mod host;
mod marks;
mod opening;
mod properties;
mod rack;
mod receiving;
mod reordering;
mod sack;
mod segment;
mod spurious;
mod timers;
mod told;
mod window;

//! Tests of the scenario file from outside, all in one binary.

mod bad_input;
mod fuzz;
mod limits;
mod untrusted;

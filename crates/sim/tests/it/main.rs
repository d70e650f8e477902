//! Tests of whole runs, all in one binary.

mod apps;
mod common;
mod drawn;

mod conservation;
mod crowds;
mod datagrams;
mod estimate;
mod foreign;
mod fuzz;
mod hosts;
mod kernel;
mod links;
mod measuring;
mod misbehave;
mod queues;
mod regression;
mod sessions;
mod stacks;
mod starts;
mod steady_state;
mod traces;
mod variables;

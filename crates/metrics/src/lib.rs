//! What a run is worth: every metric defined once, in one pass, with bounded memory.
//!
//! An engine feeds a [`Collector`] with samples of each flow's counters at equal distances; [`Collector::finish`] turns
//! them into a [`Summary`]. The formulas stand in [`formula`], one function each, with their sources. What is kept is one
//! `f32` for each flow and sample, because convergence is judged against an average that is known only at the end.
//!
//! Goodput counts application bytes, delivered once and in order. Utilisation counts IP packets.

mod check;
mod collector;
mod completions;
mod control;
mod epochs;
pub mod field;
pub mod formula;
mod outcome;
mod reception;
pub mod summary;
pub mod table;
#[cfg(test)]
mod template;
pub mod trace;

pub use collector::{Collector, FlowSample, HostSample, LinkSample, Setup};
pub use completions::Completions;
pub use control::{Control, SoFar, Uncontrolled};
pub use outcome::Outcome;
pub use reception::{Received, Reception};
pub use summary::{
    ClassSummary, CrowdSummary, FlowSummary, HostSummary, LinkSummary, StreamSummary, Summary,
    TransferSummary,
};

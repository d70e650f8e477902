//! The metrics of a run: every metric defined once, computed in one pass, with bounded memory.
//!
//! An engine passes a [`Collector`] samples of each flow's counters at equal intervals; [`Collector::finish`]
//! turns them into a [`Summary`]. The formulas are in [`formula`], one function each, with their sources. One
//! `f32` is stored for each flow and sample, because convergence is evaluated against an average that is
//! known only at the end.
//!
//! Goodput counts application bytes, delivered once and in order. Utilisation counts IP packets.

mod check;
mod collector;
mod completions;
mod control;
mod epochs;
pub mod field;
mod flow_samples;
pub mod formula;
mod outcome;
mod reception;
pub mod summary;
pub mod table;
#[cfg(test)]
mod template;
pub mod trace;

pub use collector::{Collector, FlowCounters, FlowSample, HostCounters, LinkSample, Reduction, Setup};
pub use completions::Completions;
pub use control::{Control, SoFar, Uncontrolled};
pub use flow_samples::FlowSamples;
pub use outcome::Outcome;
pub use reception::{Received, Reception};
pub use summary::{
    ClassSummary, CrowdSummary, FlowSummary, HostSummary, LinkSummary, StreamSummary, Summary,
    TransferSummary,
};

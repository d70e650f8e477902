//! The results of a run, for all engines.

use crate::Summary;
use crate::trace::{
    CrowdTrace, EventTrace, FlowTrace, QueueTrace, StreamTrace, TransferTrace, VariableTrace,
};

/// The results of a run, for all engines.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Outcome {
    /// Its metrics.
    pub summary: Summary,
    /// Samples of the flows.
    pub flows: FlowTrace,
    /// Samples of the crowds of short flows.
    pub crowds: CrowdTrace,
    /// Samples of the streams of datagrams.
    pub streams: StreamTrace,
    /// Samples of the links that have a rate.
    pub queues: QueueTrace,
    /// Transfers.
    pub transfers: TransferTrace,
    /// Every event, if the plan asks for them.
    pub events: EventTrace,
    /// The variables of the flows' algorithms, if the plan asks for them.
    pub variables: VariableTrace,
    /// Data segments that were acknowledged, of all flows together.
    pub segments_delivered: u64,
    /// Events of the engine.
    pub events_handled: u64,
}

//! What is recorded packet by packet: events, captures, variables of algorithms.

mod captures;
mod pcap;
mod variables;

use elephan_metrics::Control;
use elephan_metrics::table::Table;
use elephan_metrics::trace::{EventKind, EventRow, EventTrace, UNKNOWN, VariableTrace};
use elephan_scenario::Plan;
use elephan_tcp::{Endpoint, Header};
use elephan_units::Time;

use crate::detail::captures::Captures;
use crate::detail::variables::Variables;
use crate::error::Error;

/// The events, captures and variables of a run.
pub struct Detail<'a> {
    plan: &'a Plan,
    events: EventTrace,
    /// Captured packets.
    pub captures: Captures,
    /// Variables of the flows' algorithms.
    pub variables: Variables,
}

/// An event of a packet, a window or a connection.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// The kind of event.
    pub kind: EventKind,
    /// The flow, crowd or stream, by its number in traces.
    pub flow: u32,
    /// The link.
    pub link: Option<u32>,
    /// The header of the segment.
    pub segment: Option<&'a Header>,
}

impl<'a> Detail<'a> {
    /// Of a run that has not begun.
    pub fn new(plan: &'a Plan, control: &dyn Control) -> Result<Self, Error> {
        Ok(Self {
            plan,
            events: EventTrace::default(),
            captures: Captures::new(plan, control)?,
            variables: Variables::new(plan.flows.len()),
        })
    }

    /// Records an event, of a flow with this sender.
    pub fn event(&mut self, sender: Option<&Endpoint>, event: Event<'_>, now: Time) {
        if !self.plan.trace.events {
            return;
        }
        self.events.push(EventRow {
            time_s: now.secs_f64(),
            kind: event.kind as u8,
            flow: event.flow,
            link: event.link.unwrap_or(UNKNOWN),
            seq: event.segment.map_or(0, |s| if s.len > 0 { s.seq } else { s.ack }),
            bytes: event.segment.map_or(0, |s| u32::from(s.len)),
            cwnd_segments: sender.map_or(f64::NAN, Endpoint::cwnd),
            ssthresh_segments: sender.map_or(f64::NAN, |sender| sender.controller().ssthresh()),
        });
    }

    /// Rows of events and variables so far.
    pub fn rows(&self) -> usize {
        self.events.rows() + self.variables.trace.rows()
    }

    /// The events in order, and the variables. All captures are complete.
    pub fn finish(mut self) -> Result<(EventTrace, VariableTrace), Error> {
        self.captures.finish()?;
        self.events.sort();
        Ok((self.events, self.variables.trace))
    }
}

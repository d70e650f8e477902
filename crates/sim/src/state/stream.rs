//! The source of a stream of datagrams while a plan is carried out.

use elephan_scenario::plan::{self, Plan};
use elephan_traffic::Source;
use elephan_units::Time;

/// The source of a stream of datagrams.
pub struct Stream {
    source: Source,
    stop: Time,
    /// When it started; `None` before the start.
    pub started: Option<Time>,
    /// Packets sent.
    pub sent: u64,
}

impl Stream {
    /// Stream number `index` of a plan.
    pub fn new(stream: &plan::Stream, plan: &Plan, index: u64) -> Self {
        let start = stream.start.draw_for("start of stream", plan.seed, index);
        Self {
            source: Source::new(&stream.datagrams, plan.seed, index, start),
            stop: stream.stop.unwrap_or(Time::MAX),
            started: None,
            sent: 0,
        }
    }

    /// When it next sends, or the earliest time at which it may; `Time::MAX` once it has stopped.
    pub fn next(&self) -> Time {
        let next = self.source.next();
        if next < self.stop { next } else { Time::MAX }
    }

    /// The time returned by [`Stream::next`] has come; returns the number of the packet to send, if there is
    /// one.
    pub fn send(&mut self, now: Time) -> Option<u64> {
        if !self.source.leaves() {
            return None;
        }
        self.started.get_or_insert(now);
        self.source.sent();
        self.sent += 1;
        Some(self.sent - 1)
    }
}

//! Intervals that count on-time only: the clock of a source that is on and off in turn.

use elephan_units::{Stream, Time};

use crate::distribution::Distribution;

/// When a source is on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// Without pauses.
    Constant,
    /// Alternately on and off, for random times in seconds. A rate is that of an on period.
    OnOff {
        /// Length of an on period, s.
        on: Distribution,
        /// Length of an off period, s.
        off: Distribution,
    },
}

impl Pattern {
    /// The share of the time in which the source is on.
    pub fn share(&self) -> f64 {
        match self {
            Self::Constant => 1.0,
            Self::OnOff { on, off } => on.mean() / (on.mean() + off.mean()),
        }
    }
}

/// When a source that is on and off in turn next does something.
///
/// Intervals count on-time only: if an on period ends within an interval, the rest of the interval
/// continues in the next on period. So the mean rate is exact however short the on periods are.
#[derive(Clone, Debug)]
pub(crate) struct Periods {
    stream: Stream,
    pattern: Pattern,
    next: Time,
    /// End of the current on period.
    on_until: Time,
    /// Whether `next` lies in an on period; if not, there are periods left to skip before it does.
    is_on: bool,
}

/// Maximum number of on and off periods that are skipped at a time: if an interval needs millions of them, other
/// events are handled in between.
const PERIODS: u32 = 1000;

impl Periods {
    /// A source that begins, on, at `start`, and does something then. Its periods are drawn from `stream`.
    pub fn new(pattern: Pattern, mut stream: Stream, start: Time) -> Self {
        let on_until = match pattern {
            Pattern::Constant => Time::MAX,
            Pattern::OnOff { on, .. } => start.saturating_add(Time::from_secs_f64(on.draw(&mut stream))),
        };
        Self { stream, pattern, next: start, on_until, is_on: true }
    }

    /// When it next does something, or the earliest time at which it may: [`Periods::has_come`] distinguishes the two.
    pub fn next(&self) -> Time {
        if self.is_on { self.next } else { self.on_until }
    }

    /// The time of [`Periods::next`] has come: returns whether the source does something now. If not, there is a later time
    /// for the next call.
    pub fn has_come(&mut self) -> bool {
        let has_come = self.is_on;
        if !has_come {
            self.pass();
        }
        has_come
    }

    /// What is next follows after `interval` of on-time.
    pub fn advance(&mut self, interval: Time) {
        self.next = self.next.saturating_add(interval);
        self.pass();
    }

    /// Moves times beyond the end of an on period behind the next off period, and so on.
    fn pass(&mut self) {
        let Pattern::OnOff { on, off } = self.pattern else { return };
        for _ in 0..PERIODS {
            self.is_on = self.next < self.on_until || self.next == Time::MAX;
            if self.is_on {
                return;
            }
            let beyond = self.next - self.on_until;
            let off = Time::from_secs_f64(off.draw(&mut self.stream));
            let on_from = self.on_until.saturating_add(off);
            self.next = on_from.saturating_add(beyond);
            self.on_until = on_from.saturating_add(Time::from_secs_f64(on.draw(&mut self.stream)));
        }
    }
}

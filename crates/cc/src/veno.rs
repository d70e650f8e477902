//! TCP Veno (Fu and Liew 2003): Standard TCP that estimates its queue as Vegas does, and takes a loss with a short queue
//! as random.

use elephan_units::Time;

use crate::algorithm::{Ack, Algorithm, Cause, Congestion, Window};
use crate::parameter::parameters;
use crate::reno;
use crate::variable::{Tell, variables};

parameters! {
    /// Veno's parameters.
    pub struct Parameters {
        /// Queued segments from which the path counts as congested (Fu and Liew 2003, section II).
        beta: f64 = 3.0, 0.0..=1e9, "segments";
        /// Fraction of the window that remains after a loss on a path that is not congested (section II).
        random: f64 = 0.8, 0.0..=1.0, "";
    }
}

/// TCP Veno.
#[derive(Clone, Debug)]
pub struct Veno {
    parameters: Parameters,
    /// Smallest round-trip time since the last congestion event.
    base_rtt: Time,
    /// The part of the smoothed round-trip time that is queueing.
    queueing: f64,
}

impl Veno {
    /// Veno with these parameters.
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters, base_rtt: Time::MAX, queueing: 0.0 }
    }

    /// Whether so many segments of the window are queued that a loss means congestion.
    fn is_congested(&self, window: &Window) -> bool {
        window.cwnd * self.queueing >= self.parameters.beta
    }
}

impl Algorithm for Veno {
    fn observe(&mut self, _: &Window, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.base_rtt = self.base_rtt.min(rtt);
            self.queueing = 1.0 - self.base_rtt.secs_f64() / ack.srtt.secs_f64();
        }
    }

    fn increase(&mut self, window: &Window, ack: &Ack) -> f64 {
        // At every other ACK, if the path is congested (section II).
        let share = if self.is_congested(window) { 0.5 } else { 1.0 };
        share * reno::increase(window, ack)
    }

    fn decrease(&mut self, window: &Window, event: &Congestion) -> f64 {
        // The smallest round-trip time is measured again after each event (section II).
        self.base_rtt = Time::MAX;
        match event.cause {
            Cause::Loss if !self.is_congested(window) => self.parameters.random * window.cwnd,
            Cause::Loss | Cause::Ecn | Cause::Timeout => reno::decrease(event),
        }
    }

    fn variables(&self, tell: &mut Tell<'_>) {
        variables! { tell;
            /// Part of the smoothed round-trip time that is queueing (section II); of a window, the part that is queued.
            queueing: "" = self.queueing;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::history::History;

    /// A connection at a window of 100 with a smallest round-trip time of 100 ms, and one of `ms` now.
    fn at(ms: u64) -> History {
        let mut history = History::of("veno").at(100.0);
        history.idle_acks(1).rtt_becomes(ms).idle_acks(1);
        history
    }

    #[test]
    fn a_loss_with_a_short_queue_is_random() {
        // 100 (1 - 100/T): 1.96 segments at 102 ms, 3.85 at 104 ms.
        for (ms, added, left) in [(102, 1.0, 0.8), (104, 0.5, 0.5)] {
            let mut history = at(ms);
            history.ack(1.0).window_near(100.0 + added / 100.0, 1e-12);
            let before = history.cwnd();
            history.loss().window_near(left * before, 1e-12);
        }
    }

    #[test]
    fn marks_and_timeouts_are_congestion_whatever_the_queue() {
        for cause in [Cause::Ecn, Cause::Timeout] {
            let mut history = at(102);
            history.event(cause);
            assert_eq!(history.ssthresh(), 50.0);
        }
    }

    #[test]
    fn the_smallest_round_trip_time_is_measured_again_after_a_loss() {
        // The path is now longer: 130 ms are no queue, and a second loss is random.
        let mut history = at(130);
        history.loss().window_is(50.0);
        history.ack(1.0).window_near(50.02, 1e-12);
        history.loss().window_near(0.8 * 50.02, 1e-12);
    }
}

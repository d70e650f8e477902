//! TCP Westwood+ (Grieco and Mascolo 2004): grows as Standard TCP; at a loss the threshold is what the path carries
//! without a queue, the delivery rate times the smallest round-trip time.

use elephan_units::Time;

use crate::algorithm::{Ack, Algorithm, Congestion, Window};
use crate::parameter::parameters;
use crate::reno;
use crate::variable::{Tell, variables};

parameters! {
    /// Westwood+'s parameters.
    pub struct Parameters {
        /// Weight of earlier round trips in the average bandwidth (Grieco and Mascolo 2004, section 2; two averages in a row with
        /// 7/8 each in Linux).
        alpha: f64 = 0.9, 0.0..=0.999_999, "";
    }
}

/// TCP Westwood+.
#[derive(Clone, Debug)]
pub struct Westwood {
    parameters: Parameters,
    /// Average bandwidth in segments per second; none before the first round trip.
    bandwidth: Option<f64>,
    /// Round trip that is being measured: its number, its start, moved later by any time in which nothing was sent, and
    /// the segments delivered until then.
    round: Option<(u64, Time, f64)>,
}

impl Westwood {
    /// Westwood+ with these parameters.
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters, bandwidth: None, round: None }
    }
}

impl Algorithm for Westwood {
    fn observe(&mut self, _: &Window, ack: &Ack) {
        let &mut (number, begin, delivered) = self.round.get_or_insert((ack.round, ack.now, ack.delivered));
        let span = ack.now.since(begin).secs_f64();
        // A sample is of a whole round trip: one for each ACK would take compressed ACKs for bandwidth.
        if ack.round > number && span > 0.0 {
            let sample = (ack.delivered - delivered) / span;
            let alpha = self.parameters.alpha;
            self.bandwidth =
                Some(self.bandwidth.map_or(sample, |average| alpha * average + (1.0 - alpha) * sample));
            self.round = Some((ack.round, ack.now, ack.delivered));
        }
    }

    fn resume(&mut self, idle: Time) {
        // The bandwidth is that of the time in which data was sent.
        if let Some((_, begin, _)) = &mut self.round {
            *begin += idle;
        }
    }

    fn increase(&mut self, window: &Window, ack: &Ack) -> f64 {
        reno::increase(window, ack)
    }

    fn decrease(&mut self, _: &Window, event: &Congestion) -> f64 {
        self.bandwidth.map_or_else(|| reno::decrease(event), |bandwidth| bandwidth * event.min_rtt.secs_f64())
    }

    fn variables(&self, tell: &mut Tell<'_>) {
        variables! { tell;
            /// Average bandwidth; unknown before the first round trip.
            bandwidth: "segments/s" = self.bandwidth.unwrap_or(f64::NAN);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::history::{History, close};

    /// Round trips of as many segments in 125 ms, 25 ms of which are queueing.
    fn rounds(history: &mut History, segments: f64, count: u32) {
        history.rtt_becomes(125);
        for _ in 0..count {
            history.wait(0.125).next_round().ack_worth(segments, 0.0);
        }
    }

    /// A connection at a window of 100 and a bandwidth of 800/s.
    fn steady() -> History {
        let mut history = History::of("westwood").at(100.0);
        history.idle_acks(1);
        rounds(&mut history, 100.0, 5);
        history
    }

    #[test]
    fn a_loss_leaves_what_the_path_carries_without_a_queue() {
        // 800/s times 100 ms. A timeout has the same threshold.
        let mut history = steady();
        history.loss().window_near(80.0, 1e-9);
        history.ack(1.0).window_near(80.0 + 1.0 / 80.0, 1e-9);
        let mut history = steady();
        history.event(Cause::Timeout).window_is(1.0);
        close(history.ssthresh(), 80.0, 1e-9);
    }

    #[test]
    fn bandwidth_is_averaged_over_round_trips() {
        // 50 in 125 ms are 400/s: 0.9 * 800 + 0.1 * 400 = 760, then 0.9 * 760 + 40 = 724.
        let mut history = steady();
        rounds(&mut history, 50.0, 2);
        history.loss().window_near(72.4, 1e-9);
    }

    #[test]
    fn a_loss_at_a_small_window_leaves_it_and_slow_start_continues_to_the_threshold() {
        let mut history = steady();
        history.controller.moderate(20.0);
        history.loss().window_is(20.0);
        close(history.ssthresh(), 80.0, 1e-9);
        history.ack(1.0).window_is(21.0);
    }

    #[test]
    fn before_a_round_trip_is_measured_a_loss_halves_the_window() {
        let mut history = History::of("westwood").at(100.0);
        history.idle_acks(1).loss().window_is(50.0);
    }

    #[test]
    fn silence_does_not_lower_the_bandwidth() {
        let mut history = steady();
        history.idle(10.0);
        rounds(&mut history, 100.0, 1);
        history.loss().window_near(80.0, 1e-9);
    }
}

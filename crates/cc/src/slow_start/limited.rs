//! Limited slow start (RFC 3742): beyond `max_ssthresh` the window grows by no more than half of
//! `max_ssthresh` in a round trip, so that the doubling of a large window does not cause a loss of thousands
//! of segments.

use crate::algorithm::{Ack, Start, Window};
use crate::parameter::parameters;

parameters! {
    /// Limited slow start's parameters.
    pub struct Parameters {
        /// Window above which growth is limited (RFC 3742, section 2).
        max_ssthresh: f64 = 100.0, 2.0..=1e9, "segments";
    }
}

/// Limited slow start.
#[derive(Clone, Debug)]
pub struct Limited {
    parameters: Parameters,
}

impl Limited {
    /// Limited slow start with these parameters.
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters }
    }

    /// RFC 3742, section 2: 1/K segments for each one acknowledged, `K = int(cwnd / (0.5 max_ssthresh))`.
    pub fn grow(&self, window: &Window, ack: &Ack) -> Start {
        let max_ssthresh = self.parameters.max_ssthresh;
        let growth = if window.cwnd <= max_ssthresh {
            ack.segments
        } else {
            ack.segments / libm::floor(window.cwnd / (0.5 * max_ssthresh))
        };
        Start { growth, ends: false }
    }
}

#[cfg(test)]
mod tests {
    use crate::history::History;

    #[test]
    fn windows_after_acks() {
        // Up to 100 one for one. At 101: K = int(101/50) = 2. At 150.5: K = 3. At 1000: K = 20.
        for (cwnd, growth) in [(50.0, 1.0), (100.0, 1.0), (101.0, 0.5), (150.5, 1.0 / 3.0), (1000.0, 0.05)] {
            let mut history = History::of("reno").slow_start("limited").starting(cwnd);
            history.ack(1.0).window_near(cwnd + growth, 1e-12);
        }
    }

    /// RFC 3742, section 3: at most max_ssthresh/2 segments in a round trip, so 1000 segments take
    /// about 7 round trips to 100 and (1000 - 100)/50 = 18 more, or a few more as K is rounded.
    #[test]
    fn grows_by_half_of_max_ssthresh_in_a_round_trip() {
        let mut history = History::of("reno").slow_start("limited").starting(200.0);
        for _ in 0..20 {
            let before = history.cwnd();
            history.round_trip();
            let growth = history.cwnd() - before;
            assert!((40.0..=63.0).contains(&growth), "{before} grew by {growth}");
        }
    }
}

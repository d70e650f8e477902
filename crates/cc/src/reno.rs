//! Standard TCP: additive increase, multiplicative decrease (RFC 5681; thesis, chapter 4).
//!
//! `tahoe`, `reno`, `newreno` and `sack` change the window by the same two rules. They differ in how losses
//! are recovered, which the endpoint determines.

use crate::algorithm::{Ack, Algorithm, Congestion, Window};
use crate::parameter::parameters;

parameters! {
    /// Standard TCP's parameters; other values make a general AIMD(a, beta).
    pub struct Parameters {
        /// Increase in each round trip (RFC 5681, section 3.1).
        a: f64 = 1.0, 0.0..=1e6, "segments";
        /// Fraction of the window that remains after a congestion event (RFC 5681, equation 4).
        beta: f64 = 0.5, 0.0..=1.0, "";
    }
}

/// Standard TCP.
#[derive(Clone, Debug)]
pub struct Reno {
    parameters: Parameters,
}

impl Reno {
    /// Standard TCP, or an AIMD with other parameters.
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters }
    }

    /// The increase at an ACK of so many segments.
    #[inline(always)]
    fn growth(&self, window: &Window, segments: f64) -> f64 {
        self.parameters.a * (segments / window.cwnd)
    }
}

/// Standard TCP's increase at an ACK: one segment for each window of acknowledged segments.
pub fn increase(window: &Window, ack: &Ack) -> f64 {
    ack.segments / window.cwnd
}

/// Standard TCP's window after a congestion event: half of the data in flight.
pub fn decrease(event: &Congestion) -> f64 {
    event.flight_size / 2.0
}

impl Algorithm for Reno {
    fn increase(&mut self, window: &Window, ack: &Ack) -> f64 {
        self.growth(window, ack.segments)
    }

    #[inline(always)]
    fn increase_by_window(&self, window: &Window, segments: f64) -> Option<f64> {
        Some(self.growth(window, segments))
    }

    fn decrease(&mut self, _: &Window, event: &Congestion) -> f64 {
        self.parameters.beta * event.flight_size
    }

    // RFC 8511, section 3: beta_ecn of Standard TCP.
    fn abe(&self) -> Option<f64> {
        Some(0.8)
    }
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::history::{History, close};

    #[test]
    fn windows_after_acks_and_losses() {
        // Slow start: 10 + 1 + 2 = 13. Loss: 6.5. ACK of 1: 6.5 + 1/6.5 = 6.6538462.
        // ACK of 2: + 2/6.6538462 = 6.9544242. Timeout: ssthresh 3.4772121, window 1.
        // ACK of 2: 3, slow start. ACK of 1: 0.4772121 to ssthresh, and 0.5227879/3.4772121 beyond: 3.6275590.
        let mut history = History::of("reno");
        history.ack(1.0).ack(2.0).window_is(13.0);
        history.loss();
        assert_eq!((history.cwnd(), history.ssthresh()), (6.5, 6.5));
        history.ack(1.0).window_near(6.653_846_2, 1e-7);
        history.ack(2.0).window_near(6.954_424_2, 1e-7);
        history.event(Cause::Timeout).window_is(1.0);
        close(history.ssthresh(), 3.477_212_1, 1e-7);
        history.ack(2.0).window_is(3.0);
        history.ack(1.0).window_near(3.627_559_0, 1e-7);
    }

    #[test]
    fn a_mark_leaves_four_fifths_where_it_is_no_loss() {
        // RFC 8511, section 3: beta_ecn = 0.8 for a mark, and half for a loss and a timeout.
        for (cause, ssthresh) in [(Cause::Ecn, 80.0), (Cause::Loss, 50.0), (Cause::Timeout, 50.0)] {
            let mut history = History::of("reno").at(100.0);
            history.controller = history.controller.with_abe();
            history.event(cause);
            assert_eq!(history.ssthresh(), ssthresh, "{cause:?}");
        }
    }

    /// Kelly 2003, Table 1: with a round-trip time of 200 ms, windows of 17, 170 and 1700 segments are
    /// recovered in 1.7 s, 17 s and 170 s: this takes half the window in round trips.
    #[test]
    fn recovery_times_of_kellys_table_1() {
        for (window, seconds) in [(17.0, 1.7), (170.0, 17.0), (1700.0, 170.0)] {
            let mut history = History::of("reno").rtt_ms(200.0).at(window);
            history.loss();
            // Within a round trip the divisor grows too, so each adds a little less than 1.
            close(history.round_trips_to(window) * 0.2, seconds, 0.05 * seconds);
        }
    }

    #[test]
    fn a_general_aimd() {
        // AIMD(0.31, 0.875): 100 + 0.31/100, then 0.875 of it.
        let mut history = History::of("reno").set("a", 0.31).set("beta", 0.875).at(100.0);
        history.ack(1.0).window_near(100.0031, 1e-12);
        history.loss().window_near(87.502_712_5, 1e-9);
    }
}

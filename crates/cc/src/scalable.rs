//! Scalable TCP (Kelly 2003): multiplicative increase and decrease, so that a loss is recovered in
//! the same number of round trips at every rate.

use crate::algorithm::{Ack, Algorithm, Congestion, Window};
use crate::linux::Form;
use crate::parameter::{parameters, words};
use crate::reno;

parameters! {
    /// Scalable TCP's parameters.
    pub struct Parameters {
        /// Segments added for each segment acknowledged (Kelly 2003, section 3); 0.02 offsets delayed ACKs
        /// that are counted as one segment (section 4).
        a: f64 = 0.01, 0.0..=1.0, "";
        /// Fraction of the window that is removed at a loss (section 3).
        b: f64 = 0.125, 0.0..=1.0, "";
        /// Window up to which the algorithm is Standard TCP: the legacy window (section 3.1).
        lwnd: f64 = 16.0, 1.0..=1e9, "segments";
        /// The reduction at a loss is b cwnd, in whole segments rounded down or up (section 3 brackets it; the print does not
        /// show which, and the thesis, section 9.1.2, observes 18 -> 16), or unrounded.
        rounding: Rounding = Rounding::Floor;
        /// Whose computation of the rule: "published", or "linux" for that of Linux's tcp_scalable.c, with its constants; the other
        /// parameters are then ignored.
        form: Form = Form::Published;
    }
}

words! {
    /// How what a loss takes is rounded to whole segments.
    pub enum Rounding {
        /// Down.
        Floor = "floor",
        /// Up.
        Ceil = "ceil",
        /// Not at all.
        None = "none",
    }
}

/// Scalable TCP.
#[derive(Clone, Debug)]
pub struct Scalable {
    parameters: Parameters,
}

impl Scalable {
    /// Scalable TCP with these parameters.
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters }
    }

    /// The increase at an ACK of so many segments.
    #[inline(always)]
    fn growth(&self, window: &Window, segments: f64) -> f64 {
        let Parameters { a, lwnd, .. } = self.parameters;
        if window.cwnd <= lwnd { segments / window.cwnd } else { a * segments }
    }
}

impl Algorithm for Scalable {
    fn increase(&mut self, window: &Window, ack: &Ack) -> f64 {
        self.growth(window, ack.segments)
    }

    #[inline(always)]
    fn increase_by_window(&self, window: &Window, segments: f64) -> Option<f64> {
        Some(self.growth(window, segments))
    }

    fn decrease(&mut self, window: &Window, event: &Congestion) -> f64 {
        if window.cwnd <= self.parameters.lwnd {
            return reno::decrease(event);
        }
        let given_up = self.parameters.b * window.cwnd;
        window.cwnd
            - match self.parameters.rounding {
                Rounding::Floor => libm::floor(given_up),
                Rounding::Ceil => libm::ceil(given_up),
                Rounding::None => given_up,
            }
    }
}

#[cfg(test)]
mod tests {
    use crate::Quantisation;
    use crate::history::{History, close};

    #[test]
    fn windows_after_acks_and_losses() {
        // ACK of 1 at 100: 100.01; ACK of 2: 100.03; loss: floor(12.50375) = 12, so 88.03.
        // Unrounded: 100.03 * 0.875 = 87.52625; rounded up: 100.03 - 13 = 87.03.
        for (rounding, after) in [("floor", 88.03), ("none", 87.526_25), ("ceil", 87.03)] {
            let mut history = History::of("scalable").set("rounding", rounding).at(100.0);
            history.ack(1.0).window_near(100.01, 1e-12);
            history.ack(2.0).window_near(100.03, 1e-12);
            history.loss().window_near(after, 1e-12);
        }
    }

    #[test]
    fn whole_windows_as_the_kernels_of_the_thesis() {
        // Thesis, section 9.1.2: 18 becomes 15.75 in theory, 18 - floor(18/8) = 16 in Linux, and floor(18 *
        // 7/8) = 15 if the product is implemented.
        for (quantisation, after) in
            [(Quantisation::None, 15.75), (Quantisation::RoundUp, 16.0), (Quantisation::RoundDown, 15.0)]
        {
            let mut history =
                History::of("scalable").set("rounding", "none").quantised(quantisation).at(18.0);
            history.loss().window_is(after);
        }
        // 100 ACKs make one segment: 50 -> 51 at the hundredth.
        let mut history = History::of("scalable").quantised(Quantisation::RoundUp).at(50.0);
        history.acks(99, 1.0).window_is(50.0);
        history.ack(1.5).window_is(51.0);
    }

    /// Kelly 2003, Table 2: round trips to recover from a loss, to halve and to double the rate.
    #[test]
    fn times_of_kellys_table_2() {
        for (b, a, recovery, halving, doubling) in [
            (1.0 / 2.0, 1.0 / 25.0, 17.7, 1.00, 17.7),
            (1.0 / 4.0, 1.0 / 50.0, 14.5, 2.41, 35.0),
            (1.0 / 8.0, 1.0 / 100.0, 13.4, 5.19, 69.7),
            (1.0 / 16.0, 1.0 / 200.0, 12.9, 10.7, 139.0),
        ] {
            let start = 10_000.0;
            let history =
                |window| History::of("scalable").set("a", a).set("b", b).set("rounding", "none").at(window);
            let mut lost = history(start);
            lost.loss();
            let steps = lost.round_trips_to(start);
            close(steps, recovery, 0.006 * recovery);
            close(history(start).round_trips_to(2.0 * start), doubling, 0.006 * doubling);
            // Halving: the number of losses needed, one for each round trip; the last one counts as a
            // fraction.
            let mut halved = history(start);
            let mut losses = 0.0;
            while halved.cwnd() > start / 2.0 {
                let from = halved.cwnd();
                halved.loss();
                let needed = libm::log(from / (start / 2.0)) / libm::log(from / halved.cwnd());
                losses += needed.min(1.0);
            }
            close(losses, halving, 0.006 * halving);
        }
    }
}

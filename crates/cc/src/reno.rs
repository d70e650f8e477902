//! Standard TCP: additive increase, multiplicative decrease (RFC 5681; thesis, chapter 4).
//!
//! `tahoe`, `reno`, `newreno` and `sack` move the window by the same two rules. They differ in how
//! losses are recovered, which is the endpoint's choice.

use crate::algorithm::{Ack, Algorithm, Congestion, Window};
use crate::parameter::{Range, parameters};

parameters! {
    /// Standard TCP's parameters; other values make a general AIMD(a, beta).
    pub struct Parameters {
        /// Increase in each round trip, in segments (RFC 5681, section 3.1).
        a: f64 = Number(1.0), Range::Number(0.0, 1e6);
        /// Fraction of the window that is kept at a congestion event (RFC 5681, equation 4).
        beta: f64 = Number(0.5), Range::Number(0.0, 1.0);
    }
}

/// Standard TCP.
#[derive(Clone, Debug)]
pub struct Reno {
    parameters: Parameters,
}

impl Reno {
    /// Standard TCP, or an AIMD with other constants.
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters }
    }
}

/// Standard TCP's increase at an ACK: one segment for each window of acknowledged segments.
pub fn increase(window: &Window, ack: &Ack) -> f64 {
    ack.segments / window.cwnd
}

/// Standard TCP's window after a congestion event: half of what was in flight.
pub fn decrease(event: &Congestion) -> f64 {
    event.flight_size / 2.0
}

impl Algorithm for Reno {
    fn increase(&mut self, window: &Window, ack: &Ack) -> f64 {
        self.parameters.a * increase(window, ack)
    }

    fn decrease(&mut self, _: &Window, event: &Congestion) -> f64 {
        self.parameters.beta * event.flight_size
    }

    fn boxed(&self) -> Box<dyn Algorithm> {
        Box::new(self.clone())
    }
}

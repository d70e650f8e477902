//! Rate-limited increase (draft-ietf-ccwg-ratelimited-increase-10, section 3): how far a window that the application does not fill
//! may grow.

use super::Sender;
use super::validation::Underuse;
use crate::config::Config;

/// maxFS: the largest FlightSize since the last reduction of the window, and the initial window at least before the first.
#[derive(Clone, Copy, Debug)]
pub struct MaxFlight {
    bytes: u64,
    /// The window when FlightSize was last measured, in segments.
    cwnd: f64,
}

impl MaxFlight {
    /// Of a connection that has sent nothing yet.
    pub fn new(config: &Config) -> Self {
        Self { bytes: u64::from(config.initial_window) * u64::from(config.mss()), cwnd: 0.0 }
    }

    /// FlightSize is `bytes` now, in a window of `cwnd` segments. A reduction, whatever its reason, makes it the first measurement.
    fn measure(&mut self, bytes: u64, cwnd: f64) {
        let before = if cwnd < self.cwnd { 0 } else { self.bytes };
        *self = Self { bytes: before.max(bytes), cwnd };
    }
}

impl Sender {
    /// FlightSize has changed, or the window.
    pub(super) fn measure_flight(&mut self) {
        if let Some(Underuse { max_flight: Some(max_flight), .. }) = self.underuse.as_deref_mut() {
            max_flight.measure(self.space.outstanding(), self.controller.cwnd());
        }
    }

    /// maxFS in segments, where it limits the growth of the window.
    pub(super) fn max_flight(&self) -> Option<f64> {
        self.underuse.as_ref()?.max_flight.as_ref().map(|max_flight| self.segments(max_flight.bytes))
    }
}

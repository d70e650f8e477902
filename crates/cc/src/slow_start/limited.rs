//! Limited slow start (RFC 3742): beyond `max_ssthresh` the window grows by no more than half of it
//! in a round trip, so that a large window does not double into a loss of thousands of segments.

use crate::algorithm::{Ack, Start, Window};
use crate::parameter::{Range, parameters};

parameters! {
    /// Limited slow start's parameters.
    pub struct Parameters {
        /// Window from which growth is limited, in segments (RFC 3742, section 2).
        max_ssthresh: f64 = Number(100.0), Range::Number(2.0, 1e9);
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

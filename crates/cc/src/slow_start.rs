//! How the window grows below `ssthresh`.

use crate::algorithm::{Ack, Window};

/// A slow start, chosen apart from the algorithm.
#[derive(Clone, Debug)]
pub enum SlowStart {
    /// One segment for each segment acknowledged (RFC 5681, section 3.1).
    Standard,
}

impl SlowStart {
    /// Grows `window` by what `ack` is worth, not beyond `ssthresh`; an early exit lowers `ssthresh`.
    ///
    /// Returns the segments of growth that are left for congestion avoidance when `ssthresh` is reached.
    pub fn grow(&mut self, window: &mut Window, ack: &Ack) -> f64 {
        match self {
            Self::Standard => {
                let room = (window.ssthresh - window.cwnd).min(ack.segments);
                window.cwnd += room;
                ack.segments - room
            }
        }
    }
}

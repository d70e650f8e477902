//! The window of a recovery in Linux 2.4: every second ACK reduces it by one segment, and each ACK limits it
//! to the packets in flight plus one (net/ipv4/tcp_input.c, `tcp_cwnd_down`; after Mathis, Semke and
//! Mahdavi's rate halving, 1999).
//!
//! So the window decreases with the ACKs instead of at once. The packets in flight limit it: if ACKs are late
//! or lost, an ACK that covers many segments reduces the window by as many, and the window does not recover
//! before slow start.

/// The window of one recovery, in segments.
#[derive(Clone, Copy, Debug)]
pub struct Halving {
    cwnd: f64,
    /// Whether the next ACK reduces the window by one segment.
    second: bool,
}

impl Halving {
    /// A recovery begins; `cwnd` is the window before the reduction.
    pub fn new(cwnd: f64) -> Self {
        Self { cwnd, second: false }
    }

    /// An ACK left `in_flight` segments in flight.
    pub fn on_ack(&mut self, in_flight: f64, ssthresh: f64) {
        // Counting reduces the window to half of ssthresh at most, which is one segment or more.
        if self.second && self.cwnd > ssthresh / 2.0 {
            self.cwnd = (self.cwnd - 1.0).max(1.0);
        }
        self.second = !self.second;
        self.cwnd = self.cwnd.min(in_flight + 1.0);
    }

    /// The window, in segments.
    pub fn cwnd(&self) -> f64 {
        self.cwnd
    }
}

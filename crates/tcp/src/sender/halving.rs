//! The window of a recovery in Linux 2.4: an ACK in two takes a segment off, and no ACK leaves more than is in flight and one
//! (net/ipv4/tcp_input.c, `tcp_cwnd_down`; after Mathis, Semke and Mahdavi's rate halving, 1999).
//!
//! So the window goes down with the ACKs instead of at once. What is in flight holds it there: where ACKs come late or not at
//! all, one that tells of much takes as much off the window, and nothing brings it back before slow start does.

/// The window of one recovery, in segments.
#[derive(Clone, Copy, Debug)]
pub struct Halving {
    cwnd: f64,
    /// Whether the next ACK takes a segment off.
    second: bool,
}

impl Halving {
    /// A recovery begins at a window of `cwnd`, as it was before the reduction.
    pub fn new(cwnd: f64) -> Self {
        Self { cwnd, second: false }
    }

    /// An ACK left `in_flight`.
    pub fn on_ack(&mut self, in_flight: f64, ssthresh: f64) {
        // Half of ssthresh is as far as counting goes.
        if self.second && self.cwnd > ssthresh / 2.0 {
            self.cwnd -= 1.0;
        }
        self.second = !self.second;
        self.cwnd = self.cwnd.min(in_flight + 1.0);
    }

    /// The window.
    pub fn cwnd(&self) -> f64 {
        self.cwnd
    }
}

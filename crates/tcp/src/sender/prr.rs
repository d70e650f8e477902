//! Proportional rate reduction (RFC 9937, and its first form, RFC 6937): recovery sends in proportion to what is
//! delivered.

/// The state of one recovery, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Prr {
    /// Bytes outstanding when the recovery began (RecoverFS).
    flight: u64,
    /// Bytes delivered since the recovery began.
    delivered: u64,
    /// Bytes sent since the recovery began.
    out: u64,
    /// The congestion window: what was in flight after the last ACK that delivered something, and SndCnt.
    cwnd: u64,
    /// Whether only an ACK that shows progress adds a segment below ssthresh (RFC 9937's SafeACK).
    safe: bool,
}

impl Prr {
    /// A recovery begins with `flight` bytes in flight and a congestion window of `cwnd` bytes, which holds until an ACK delivers
    /// something; `safe` selects RFC 9937.
    pub fn new(flight: u64, cwnd: u64, safe: bool) -> Self {
        Self { flight: flight.max(1), delivered: 0, out: 0, cwnd, safe }
    }

    /// An ACK delivered `bytes`; `pipe` is what remains in flight, `ssthresh` is in segments. `progress` says
    /// whether the ACK moved the left edge and showed no further loss.
    pub fn on_ack(&mut self, bytes: u64, pipe: u64, ssthresh: f64, mss: u32, progress: bool) {
        if bytes == 0 && self.safe {
            return;
        }
        self.delivered += bytes;
        let ssthresh = (ssthresh * f64::from(mss)) as u64;
        let mut count = if pipe > ssthresh {
            // Proportional part: sent / delivered tends to ssthresh / RecoverFS. It is rounded up to whole
            // segments, as in the RFC's example, so each segment is sent one delivery sooner.
            let target = u128::from(self.delivered) * u128::from(ssthresh);
            let segments = target.div_ceil(u128::from(self.flight) * u128::from(mss)) as u64;
            (segments * u64::from(mss)).saturating_sub(self.out)
        } else {
            // The conservative reduction bound, and with one segment more the slow start reduction bound.
            let limit = self.delivered.saturating_sub(self.out).max(bytes);
            let more = if progress || !self.safe { u64::from(mss) } else { 0 };
            (ssthresh - pipe).min(limit + more)
        };
        if self.out == 0 {
            // RFC 9937, section 6: the first segment leaves at once.
            count = count.max(u64::from(mss));
        }
        self.cwnd = pipe + count;
    }

    /// The congestion window, in bytes: never below a segment.
    pub fn cwnd(&self, mss: u32) -> u64 {
        self.cwnd.max(mss.into())
    }

    /// Records that `bytes` were sent.
    pub fn on_sent(&mut self, bytes: u64) {
        self.out += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_by_sending_for_every_second_delivery() {
        // 20 segments of 1000 in flight, one lost, ssthresh 10: RFC 6937, section 4's example.
        let mut prr = Prr::new(20_000, 20_000, true);
        let (mut pipe, mut sent) = (19_000, 0);
        for _ in 0..18 {
            pipe -= 1000;
            prr.on_ack(1000, pipe, 10.0, 1000, false);
            while pipe + 1000 <= prr.cwnd(1000) {
                prr.on_sent(1000);
                pipe += 1000;
                sent += 1;
            }
        }
        assert_eq!(pipe, 10_000);
        assert_eq!(sent, 9);
    }

    #[test]
    fn a_window_is_never_below_a_segment() {
        // Everything in flight is lost, and nothing was delivered; then a small segment is.
        let mut prr = Prr::new(1000, 0, true);
        assert_eq!(prr.cwnd(1000), 1000);
        prr.on_sent(1000);
        prr.on_ack(10, 0, 2.0, 1000, false);
        assert_eq!(prr.cwnd(1000), 1000);
    }

    #[test]
    fn below_the_threshold_only_progress_adds_a_segment() {
        // RFC 9937, section 6.2: 3 in flight, ssthresh 10, one delivered: one may be sent, and two only if the ACK
        // moved the left edge and showed no further loss. RFC 6937, section 3.1: always two.
        for (safe, progress, allowed) in [(true, false, 1000), (true, true, 2000), (false, false, 2000)] {
            let mut prr = Prr::new(20_000, 20_000, safe);
            prr.on_ack(1000, 3000, 10.0, 1000, progress);
            assert_eq!(prr.cwnd(1000), 3000 + allowed, "{safe} {progress}");
        }
    }
}

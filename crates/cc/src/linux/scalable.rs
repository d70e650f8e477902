//! Scalable TCP as Linux has it (tcp_scalable.c): Standard TCP's growth up to a window of 100 segments, where 1
//! for each window becomes 1 for each 100 segments; every loss takes an eighth, rounded down.

use super::{Counter, segments};
use crate::algorithm::{Ack, Algorithm, Congestion, Window};

/// Acknowledged segments that add one, beyond a window of as many.
const PER_SEGMENT: u32 = 100;

/// Linux's Scalable TCP.
#[derive(Clone, Debug, Default)]
pub struct Scalable {
    counter: Counter,
}

impl Algorithm for Scalable {
    fn increase(&mut self, window: &Window, ack: &Ack) -> f64 {
        let acked = self.counter.whole(ack);
        self.counter.grow(segments(window).min(PER_SEGMENT), acked)
    }

    fn decrease(&mut self, window: &Window, _: &Congestion) -> f64 {
        self.counter.count = 0;
        let cwnd = segments(window);
        f64::from(cwnd - cwnd / 8)
    }
}

#[cfg(test)]
mod tests {
    use crate::history::History;

    #[test]
    fn windows_after_acks_and_losses() {
        // At 50 the fiftieth segment adds one, as in Standard TCP; at 500 the hundredth. Losses take an
        // eighth below the legacy window too: 12 - 1.
        for (cwnd, acks, left) in [(50.0, 50, 45.0), (500.0, 100, 439.0), (12.0, 12, 12.0)] {
            let mut history = History::of("scalable").set("form", "linux").at(cwnd);
            for _ in 1..acks {
                history.ack(1.0);
            }
            history.window_is(cwnd);
            history.ack(1.0).window_is(cwnd + 1.0);
            history.loss().window_is(left);
        }
    }
}

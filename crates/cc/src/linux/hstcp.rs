//! HighSpeed TCP as Linux has it (tcp_highspeed.c): with RFC 3649's table, in which a window belongs to the
//! row above it, so that `a` is larger by one.
//!
//! Each ACK adds `a / cwnd`, however many segments it acknowledges. The row is looked up at ACKs in congestion
//! avoidance only, and a loss uses the last: the first one, in slow start, halves the window.

use super::{Counter, segments};
use crate::algorithm::{Ack, Algorithm, Congestion, Window};
use crate::hstcp::TABLE;

/// Linux has one row less than the RFC.
const ROWS: usize = TABLE.len() - 1;

/// The window up to which a row applies.
fn end(row: usize) -> u32 {
    TABLE[row].0
}

/// Linux's HighSpeed TCP.
#[derive(Clone, Debug, Default)]
pub struct Hstcp {
    /// The row of the window at the last ACK in congestion avoidance.
    row: usize,
    counter: Counter,
}

impl Algorithm for Hstcp {
    fn increase(&mut self, window: &Window, _: &Ack) -> f64 {
        let cwnd = segments(window);
        while self.row < ROWS - 1 && cwnd > end(self.row) {
            self.row += 1;
        }
        while self.row > 0 && cwnd <= end(self.row - 1) {
            self.row -= 1;
        }
        self.counter.count += self.row as u32 + 1;
        if self.counter.count < cwnd {
            return 0.0;
        }
        self.counter.count -= cwnd;
        1.0
    }

    fn uses_rest(&self) -> bool {
        false
    }

    fn decrease(&mut self, window: &Window, _: &Congestion) -> f64 {
        self.counter.count = 0;
        let cwnd = segments(window);
        f64::from(cwnd - cwnd / 256 * removed(self.row) - cwnd % 256 * removed(self.row) / 256)
    }
}

/// What a loss removes of a window of this row, in 256ths: RFC 3649's b(w) at the row's end, rounded down. Unlike
/// the RFC's, the line continues beyond the window of 83,000.
fn removed(row: usize) -> u32 {
    let x = libm::log(f64::from(end(row)) / 38.0) / libm::log(83_000.0 / 38.0);
    libm::floor(256.0 * (0.5 - 0.4 * x)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::History;

    #[test]
    fn rows_of_the_kernel() {
        // 256 times 0.5, 0.44105, 0.40845, ... 0.10184, 0.09936, 0.09634.
        assert_eq!([0, 1, 2, 7].map(removed), [128, 112, 104, 83]);
        assert_eq!([ROWS - 3, ROWS - 2, ROWS - 1].map(removed), [26, 25, 24]);
    }

    #[test]
    fn windows_after_acks_and_losses() {
        // 1100 lies between 1058 (row 7) and 1284 (row 8): each ACK counts for 9, of one segment or of two;
        // 123 are needed for 1100.
        let mut history = History::of("hstcp").set("form", "linux").at(1100.0);
        for acks in 1..=123 {
            history.window_is(1100.0);
            history.ack(f64::from(1 + acks % 2));
        }
        history.window_is(1101.0);
        // Row 8: 81/256 of 1101 is 348.4.
        history.loss().window_is(1101.0 - 348.0);
        // A second loss, without an ACK in between, uses the same row.
        history.loss().window_is(753.0 - 238.0);
    }

    #[test]
    fn the_loss_that_ends_slow_start_halves_the_window() {
        let mut history = History::of("hstcp").set("form", "linux").starting(3000.0);
        history.ack(1.0).loss().window_is(1501.0);
    }
}

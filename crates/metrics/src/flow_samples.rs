//! The samples of flows while they are taken.

use crate::table::Table;
use crate::trace::{FlowRow, FlowTrace};

/// Number of rows that are packed at a time: enough for values to recur, and less than most runs have.
const ROWS: usize = 1 << 14;
/// From this number of flows on, samples are packed: of fewer they take less memory than the rest of a run, and packing takes time.
const MANY: usize = 1 << 10;

/// The samples of flows while they are taken. A row takes 92 bytes, and most of its values are those of other rows: if there are many flows, all
/// but the last rows are packed, in less than half of that, until the state of the connections is gone.
#[derive(Debug, Default)]
pub struct FlowSamples {
    is_packed: bool,
    /// Parts of [`ROWS`] rows each, in one piece of memory: what is freed around many pieces would stay too small for whole columns.
    packed: Vec<u8>,
    /// Where each part ends.
    ends: Vec<usize>,
    last: FlowTrace,
}

impl FlowSamples {
    /// For so many flows, without any row.
    pub fn of(flows: usize) -> Self {
        Self { is_packed: flows >= MANY, ..Self::default() }
    }

    /// Adds a row.
    pub fn push(&mut self, row: FlowRow) {
        self.last.push(row);
        if self.is_packed && self.last.rows() == ROWS {
            let bytes = rmp_serde::to_vec(&self.last).expect("numbers");
            self.packed.extend_from_slice(&lz4_flex::compress_prepend_size(&bytes));
            self.ends.push(self.packed.len());
            self.last.clear();
        }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.ends.len() * ROWS + self.last.rows()
    }

    /// The rows from `first` on.
    pub fn since(&self, first: usize) -> FlowTrace {
        let mut trace = FlowTrace::with_capacity(self.rows().saturating_sub(first));
        let mut begin = 0;
        for (&end, row) in self.ends.iter().zip((0..).step_by(ROWS)) {
            if first < row + ROWS {
                let part = &self.packed[begin..end];
                let bytes = lz4_flex::decompress_size_prepended(part).expect("packed above");
                let part: FlowTrace = rmp_serde::from_slice(&bytes).expect("packed above");
                trace.append(&part, first.saturating_sub(row));
            }
            begin = end;
        }
        trace.append(&self.last, first.saturating_sub(self.ends.len() * ROWS));
        trace
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_what_they_were_to_the_bit() {
        let (mut samples, mut all) = (FlowSamples::of(MANY), FlowTrace::default());
        for number in 0..2 * ROWS as u32 + 100 {
            let odd = f64::from(number).sqrt();
            let row = FlowRow {
                time_s: f64::from(number / 1000) * 0.1,
                flow: number % 1000,
                cwnd_segments: odd,
                ssthresh_segments: if number.is_multiple_of(2) { f64::INFINITY } else { -0.0 },
                srtt_s: if number.is_multiple_of(3) { f64::NAN } else { 1.0 / odd },
                rto_s: 1.0,
                pipe_bytes: u64::MAX,
                goodput_bit_s: odd * 8.0,
                receive_rate_bit_s: f64::NAN,
                delivered_bytes: u64::from(number) << 20,
                sent_bytes: u64::from(number) * 1448,
                retransmits: 0,
                timeouts: u32::MAX,
                congestion_events: number,
            };
            samples.push(row);
            all.push(row);
        }
        assert_eq!((samples.ends.len(), samples.rows()), (2, all.rows()));
        for first in [0, 1, ROWS - 1, ROWS, ROWS + 1, 2 * ROWS + 50, all.rows()] {
            let mut rest = FlowTrace::default();
            rest.append(&all, first);
            assert_eq!(samples.since(first), rest);
        }
    }
}

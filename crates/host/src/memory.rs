//! Memory bandwidth: reading, writing and copying arrays that no cache holds.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;

use serde::Deserialize;

use crate::{Error, Moved, Stop, Stopwatch, together};

/// Words between two looks at the clock: 2 MiB, some tenths of a millisecond.
const CHUNK: usize = 1 << 18;

/// A test of memory.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// What is done.
    pub operation: Operation,
    /// Threads, each with an array of its own.
    pub threads: usize,
    /// Bytes of the array of each thread; of both its arrays for a copy. More than the caches hold.
    pub bytes: usize,
    /// How long, s.
    pub seconds: f64,
}

/// What is done with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Sums of words.
    Read,
    /// Writes words.
    Write,
    /// Copies words; bytes count once, though each is read and written.
    Copy,
}

impl Memory {
    /// Moves as many bytes as it can in the time.
    pub fn measure(&self, stop: Stop<'_>) -> Result<Moved, Error> {
        if self.threads == 0 || self.bytes < 2 * 8 * CHUNK || self.seconds <= 0.0 {
            return Err(Error::Unfit(format!(
                "memory: expected a thread, {} bytes and a time or more, found {} threads, {} bytes, {} s",
                2 * 8 * CHUNK,
                self.threads,
                self.bytes,
                self.seconds
            )));
        }
        let all_ready = Barrier::new(self.threads);
        let parts: Vec<Moved> = thread::scope(|scope| {
            let threads: Vec<_> =
                (0..self.threads).map(|_| scope.spawn(|| self.one(&all_ready, stop))).collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
        });
        if stop() { Err(Error::Cancelled) } else { Ok(together(parts)) }
    }

    fn one(&self, all_ready: &Barrier, stop: Stop<'_>) -> Moved {
        let words = self.bytes / 8 / CHUNK * CHUNK;
        let half = words / 2 / CHUNK * CHUNK;
        // Written once, so that every page exists. On a busy machine this takes seconds.
        let mut array = Vec::with_capacity(words);
        while array.len() < words && !stop() {
            array.resize(array.len() + CHUNK, 1_u64);
        }
        all_ready.wait();
        let (watch, mut moved) = (Stopwatch::start(), 0);
        if array.len() < words {
            return watch.moved(0);
        }
        let length = if self.operation == Operation::Copy { half } else { words };
        let mut value = 0_u64;
        'time: loop {
            for start in (0..length).step_by(CHUNK) {
                if watch.seconds() >= self.seconds || stop() {
                    break 'time;
                }
                match self.operation {
                    Operation::Read => {
                        let sum = array[start..start + CHUNK]
                            .iter()
                            .fold(0, |sum: u64, word| sum.wrapping_add(*word));
                        value = value.wrapping_add(black_box(sum));
                    }
                    Operation::Write => {
                        value += 1;
                        array[start..start + CHUNK].fill(black_box(value));
                    }
                    Operation::Copy => {
                        let (from, to) = array.split_at_mut(half);
                        to[start..start + CHUNK].copy_from_slice(&from[start..start + CHUNK]);
                    }
                }
                moved += 8 * CHUNK as u64;
            }
            black_box(&mut array);
        }
        black_box(value);
        watch.moved(moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(operation: Operation, threads: usize) -> Memory {
        Memory { operation, threads, bytes: 1 << 23, seconds: 0.05 }
    }

    #[test]
    #[ignore = "real time"]
    fn every_operation_moves_bytes_in_about_the_time() {
        for operation in [Operation::Read, Operation::Write, Operation::Copy] {
            for threads in [1, 2] {
                let moved = test(operation, threads).measure(&|| false).unwrap();
                assert!(moved.bytes > 0 && moved.seconds >= 0.05, "{operation:?}: {moved:?}");
                // Processor time of n threads: not more than n times the wall-clock time.
                assert!(
                    moved.cpu_seconds <= threads as f64 * moved.seconds * 1.01,
                    "{operation:?}: {moved:?}"
                );
            }
        }
    }

    #[test]
    fn a_stop_ends_it_at_once() {
        let long = Memory { seconds: 1e9, ..test(Operation::Copy, 1) };
        assert!(matches!(long.measure(&|| true), Err(Error::Cancelled)));
    }

    #[test]
    fn an_array_that_a_cache_could_hold_is_refused() {
        let small = Memory { bytes: 1000, ..test(Operation::Read, 1) };
        assert!(small.measure(&|| false).unwrap_err().to_string().contains("found 1 threads, 1000 bytes"));
    }
}

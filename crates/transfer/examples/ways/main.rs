//! The ways to overlap a disk with the processor, and to hand data to a socket: what each gives here, in turn, medians. As a table in
//! Markdown.
//!
//!     cargo run --release -p elephan-transfer --example ways -- FOLDER [--megabytes N] [--runs N]
//!
//! A file without a name is written in FOLDER, whose disk is the one that is measured.
#![expect(clippy::print_stdout, reason = "a command line")]

mod disk;
mod socket;

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Bytes that are moved by a call: those of a block of a transfer.
const BLOCK: usize = elephan_transfer::BLOCK as usize;
/// Blocks that may wait for what comes next, as in a transfer.
const AHEAD: usize = 2;

/// What a way took for so many bytes.
struct Took {
    bytes: u64,
    wall: Duration,
    processor: Duration,
}

impl Took {
    /// Runs `work`, which moves so many bytes. The processor time is that of all threads, the kernel's for this process included.
    fn of(bytes: u64, work: impl FnOnce() -> io::Result<()>) -> io::Result<Self> {
        let (before, began) = (clock_gettime(ClockId::ProcessCPUTime), Instant::now());
        work()?;
        let wall = began.elapsed();
        let spent = clock_gettime(ClockId::ProcessCPUTime) - before;
        let processor = Duration::try_from(spent).expect("it does not run backwards");
        Ok(Self { bytes, wall, processor })
    }

    fn gbit_s(&self) -> f64 {
        self.bytes as f64 * 8e-9 / self.wall.as_secs_f64()
    }

    fn s_per_gb(&self) -> f64 {
        self.processor.as_secs_f64() / (self.bytes as f64 * 1e-9)
    }
}

/// One way of a table, and what it gave in each round: nothing where the system refuses it.
struct Way<'a> {
    name: &'a str,
    run: Box<dyn FnMut() -> io::Result<Took> + 'a>,
    took: Vec<Took>,
    refused: Option<io::Error>,
}

impl<'a> Way<'a> {
    fn new(name: &'a str, run: impl FnMut() -> io::Result<Took> + 'a) -> Self {
        Self { name, run: Box::new(run), took: Vec::new(), refused: None }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs the ways in turn, so that a disturbance meets all of them, and prints a table.
fn table(what: &str, runs: usize, mut ways: Vec<Way<'_>>) {
    for _ in 0..runs {
        for way in &mut ways {
            match (way.run)() {
                Ok(took) => way.took.push(took),
                Err(error) => way.refused = Some(error),
            }
        }
    }
    println!("| {what} | Gbit/s | lowest and highest | processor time, s/GB |\n| --- | --- | --- | --- |");
    for Way { name, took, refused, .. } in ways {
        if let Some(error) = refused {
            println!("| {name} | {error} | | |");
            continue;
        }
        let rates: Vec<f64> = took.iter().map(Took::gbit_s).collect();
        let (low, high) =
            rates.iter().fold((f64::MAX, 0.0_f64), |(low, high), &one| (low.min(one), high.max(one)));
        let processor = median(took.iter().map(Took::s_per_gb).collect());
        println!("| {name} | {:.2} | {low:.2} to {high:.2} | {processor:.2} |", median(rates));
    }
    println!();
}

fn option(name: &str, default: usize) -> usize {
    let words: Vec<String> = std::env::args().collect();
    let at = words.iter().position(|word| word == name);
    at.and_then(|at| words.get(at + 1)?.parse().ok()).unwrap_or(default)
}

fn main() -> io::Result<()> {
    let folder = std::env::args().nth(1).map_or_else(|| ".".into(), PathBuf::from);
    let blocks = (option("--megabytes", 512) * 1_000_000 / BLOCK).max(1) as u64;
    let runs = option("--runs", 5);
    disk::measure(&folder, blocks, runs)?;
    socket::measure(runs)
}

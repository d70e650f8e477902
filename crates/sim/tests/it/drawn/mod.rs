//! Random scenarios, drawn from the JSON Schema of the scenario file, and run.

mod draw;
mod examine;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use draw::Draw;
use examine::{Loaded, examine, leave_out, load};

/// The outcome of a scenario.
enum Fate {
    /// It was refused when it was loaded, whichever keys were removed.
    Refused,
    /// It would take too long.
    TooLarge,
    /// It ran; the number of events.
    Ran(u64),
}

/// Counts of the random scenarios, by outcome.
#[derive(Default)]
pub struct Tally {
    pub drawn: u64,
    /// Scenarios refused as first drawn, by key; and the number that were refused to the last.
    pub refused: BTreeMap<String, u64>,
    pub hopeless: u64,
    pub too_large: u64,
    pub ran: u64,
    /// The slowest scenario: its duration, and its seed.
    pub slowest: (Duration, u64),
    /// The largest scenario: its number of events, and its seed.
    pub largest: (u64, u64),
}

impl Tally {
    /// Draws the scenario of `seed` and runs it; returns the error of the scenario or of the program as text.
    /// Keys for which a scenario is refused are removed until it loads or nothing is left.
    fn examine(&mut self, seed: u64) -> Result<(), String> {
        let mut document = Draw::new(seed).scenario();
        self.drawn += 1;
        let began = Instant::now();
        let fate = catch_unwind(AssertUnwindSafe(|| {
            let (mut is_refused, mut is_too_large) = (false, false);
            let plan = loop {
                let key = match load(&document)? {
                    Loaded::Ready(ready) => break *ready,
                    Loaded::Refused(key) => {
                        if !is_refused {
                            let names = key.split('.').filter(|part| part.parse::<u64>().is_err());
                            *self.refused.entry(names.collect::<Vec<_>>().join(".")).or_default() += 1;
                        }
                        is_refused = true;
                        key
                    }
                    Loaded::TooLarge(key) => {
                        is_too_large = true;
                        key
                    }
                };
                if !leave_out(&mut document, &key) {
                    return Ok(if is_too_large { Fate::TooLarge } else { Fate::Refused });
                }
            };
            examine(&plan, seed).map(Fate::Ran)
        }));
        let took = began.elapsed();
        let wrong = match fate {
            Ok(Ok(Fate::Refused)) => {
                self.hopeless += 1;
                return Ok(());
            }
            Ok(Ok(Fate::TooLarge)) => {
                self.too_large += 1;
                return Ok(());
            }
            Ok(Ok(Fate::Ran(events))) => {
                self.ran += 1;
                self.slowest = self.slowest.max((took, seed));
                self.largest = self.largest.max((events, seed));
                return Ok(());
            }
            Ok(Err(wrong)) => wrong,
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or(panic.downcast_ref::<&str>().copied());
                format!("it panicked: {}", text.unwrap_or("without a word"))
            }
        };
        let table: toml::Table = serde_json::from_value(document).expect("a scenario is a table");
        Err(format!("scenario {seed}: {wrong}\n\n{table}"))
    }

    /// Adds the counts of another.
    fn add(&mut self, other: Self) {
        self.drawn += other.drawn;
        self.hopeless += other.hopeless;
        self.too_large += other.too_large;
        self.ran += other.ran;
        self.slowest = self.slowest.max(other.slowest);
        self.largest = self.largest.max(other.largest);
        for (key, count) in other.refused {
            *self.refused.entry(key).or_default() += count;
        }
    }

    /// A report of the drawn scenarios, in a few lines.
    pub fn report(&self) -> String {
        let refused: u64 = self.refused.values().sum();
        let (slowest, largest) = (self.slowest, self.largest);
        let mut text = format!(
            "drawn {}, refused when loaded {refused} ({} still without what they were refused for), too large {}, run {}\nslowest {:.3} s (scenario {}), largest {} events \
             (scenario {})\n",
            self.drawn,
            self.hopeless,
            self.too_large,
            self.ran,
            slowest.0.as_secs_f64(),
            slowest.1,
            largest.0,
            largest.1
        );
        let mut kinds: Vec<_> = self.refused.iter().map(|(kind, count)| (count, kind)).collect();
        kinds.sort_by(|a, b| b.cmp(a));
        for (count, kind) in kinds {
            writeln!(text, "{count:>7} refused for {kind}").expect("text grows");
        }
        text
    }
}

/// Draws and runs the scenarios of `seeds` on every core, and calls `tell` each minute. Stops at the first
/// scenario that fails a check: returns its seed, and the error.
pub fn examine_all(seeds: Range<u64>, tell: impl Fn(&Tally)) -> (Tally, Option<(u64, String)>) {
    let next = AtomicU64::new(seeds.start);
    let (tally, wrong) = (Mutex::new(Tally::default()), Mutex::new(None));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let mut one = Tally::default();
            let fate = one.examine(seed);
            tally.lock().expect("nobody panics with it").add(one);
            if let Err(what) = fate {
                next.store(seeds.end, Ordering::Relaxed);
                wrong.lock().expect("nobody panics with it").get_or_insert((seed, what));
            }
        }
    };
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let mut told = Instant::now();
        while !workers.iter().all(thread::ScopedJoinHandle::is_finished) {
            thread::sleep(Duration::from_millis(50));
            if told.elapsed() >= Duration::from_mins(1) {
                tell(&tally.lock().expect("nobody panics with it"));
                told = Instant::now();
            }
        }
    });
    let wrong = wrong.into_inner().expect("nobody panics with it");
    (tally.into_inner().expect("nobody panics with it"), wrong)
}

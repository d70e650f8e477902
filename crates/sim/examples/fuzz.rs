//! `fuzz [--seed FIRST] [--count N]`: draws scenarios from the schema and runs them, without end unless a
//! count is given. It stops at the first scenario that fails a check, and prints it.
#![allow(clippy::print_stdout, reason = "a program that prints")]

use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

#[path = "../tests/it/drawn/mod.rs"]
mod drawn;

fn main() -> ExitCode {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (mut first, mut count) = (now << 24, u64::MAX);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().and_then(|value| value.parse().ok());
        match (name.as_str(), value) {
            ("--seed", Some(value)) => first = value,
            ("--count", Some(value)) => count = value,
            _ => {
                println!("expected [--seed FIRST] [--count N], found {name}");
                return ExitCode::FAILURE;
            }
        }
    }
    println!("scenarios from {first} on");
    let began = Instant::now();
    let (tally, wrong) =
        drawn::examine_all(first..first.saturating_add(count), |tally| println!("{}", tally.report()));
    println!("{}in {:.0} s", tally.report(), began.elapsed().as_secs_f64());
    let Some((seed, what)) = wrong else { return ExitCode::SUCCESS };
    println!("{what}\nFUZZ_SEED={seed} cargo test -p elephan-sim --test it fuzz draws it again");
    ExitCode::FAILURE
}

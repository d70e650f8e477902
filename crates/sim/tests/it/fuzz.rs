//! Random scenarios, drawn from the schema, run and checked.
#![allow(clippy::print_stdout, reason = "what was drawn is of interest")]

use crate::drawn::examine_all;

/// A number from the environment.
fn given(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}: expected a number, found {text}")))
}

/// The first thousand scenarios; `FUZZ_COUNT` from `FUZZ_SEED` on; or the one of `FUZZ_SEED`.
#[test]
fn whatever_the_schema_allows_runs_or_is_refused() {
    let (seed, count) = (given("FUZZ_SEED"), given("FUZZ_COUNT"));
    let first = seed.unwrap_or(0);
    let seeds = first..first.saturating_add(count.unwrap_or(if seed.is_some() { 1 } else { 1000 }));
    let (tally, wrong) = examine_all(seeds.clone(), |tally| println!("{}", tally.report()));
    println!("scenarios {seeds:?}: {}", tally.report());
    if let Some((seed, what)) = wrong {
        panic!("{what}\nFUZZ_SEED={seed} draws it again");
    }
    assert!(tally.drawn == 1 || tally.ran * 2 > tally.drawn, "most scenarios do not run");
}

//! Random scenarios, drawn from the schema, run and checked. `make fuzz` draws more.
#![allow(clippy::print_stdout, reason = "what was drawn is of interest")]

use crate::drawn::examine_all;

/// The first thousand scenarios, or that of `FUZZ_SEED`.
#[test]
fn whatever_the_schema_allows_runs_or_is_refused() {
    let seed = std::env::var("FUZZ_SEED").ok().map(|seed| seed.parse().expect("FUZZ_SEED is a number"));
    let seeds = seed.map_or(0..1000, |seed: u64| seed..seed + 1);
    let (tally, wrong) = examine_all(seeds.clone(), |_| ());
    println!("scenarios {seeds:?}: {}", tally.report());
    if let Some((seed, what)) = wrong {
        panic!("{what}\nFUZZ_SEED={seed} draws it again");
    }
    assert!(tally.drawn == 1 || tally.ran * 2 > tally.drawn, "most scenarios do not run");
}

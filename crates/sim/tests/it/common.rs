//! Shared helpers of the simulator's tests.

use elephan_metrics::{Outcome, Uncontrolled};
use elephan_scenario::{Plan, Scenario};
use elephan_sim::run;

/// The plan of a scenario in TOML.
pub fn plan(toml: &str) -> Plan {
    Scenario::from_toml(toml, "test", &[])
        .and_then(|scenario| scenario.resolve("test"))
        .unwrap_or_else(|error| panic!("{error}\nin\n{toml}"))
}

/// The outcome of a scenario in TOML.
pub fn outcome(toml: &str) -> Outcome {
    run(&plan(toml), &Uncontrolled).expect("nothing cancels it")
}

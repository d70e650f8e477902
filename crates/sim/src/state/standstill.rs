//! Detection of virtual time that does not advance.

use elephan_units::Time;

use crate::error::Error;

/// This number of steps (events, and packets given to links) at one simulated time is a standstill. A million
/// flows that all start at time zero, over links without a rate, need half as many.
const STANDSTILL: u64 = if cfg!(test) { 1_000_000 } else { 100_000_000 };
/// During this number of further steps, the sources of the steps are recorded.
const WITNESSED: u64 = 100;
/// The error names this number of sources.
const NAMED: usize = 5;

/// Detects that virtual time does not advance.
#[derive(Default)]
pub struct Standstill {
    /// The simulated time at the last check, and the number of steps taken at that time.
    at: Time,
    steps: u64,
    /// The sources of the steps at that time.
    who: Vec<String>,
}

impl Standstill {
    /// Checks the clock, `steps` steps after the last check; fails if time does not advance. Returns whether
    /// to check again at the next step. `name` returns the source of the current step.
    pub fn look(&mut self, steps: u64, now: Time, name: impl FnOnce() -> String) -> Result<bool, Error> {
        if now > self.at {
            *self = Self { at: now, steps: 0, who: Vec::new() };
            return Ok(false);
        }
        self.steps += steps;
        if self.steps < STANDSTILL {
            return Ok(false);
        }
        let name = name();
        if !self.who.contains(&name) {
            self.who.push(name);
        }
        if self.steps < STANDSTILL + WITNESSED {
            return Ok(true);
        }
        let more = self.who.len().saturating_sub(NAMED);
        self.who.truncate(NAMED);
        if more > 0 {
            self.who.push(format!("{more} more"));
        }
        Err(Error::Standstill { at: now, steps: STANDSTILL, who: self.who.join(", ") })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use elephan_metrics::{Control, Uncontrolled};
    use elephan_scenario::{Plan, Scenario};

    use super::*;
    use crate::run;

    /// Two flows over links that have neither a rate nor a delay; with `one_link`, they use a single link in
    /// both directions.
    fn plan(one_link: bool) -> Plan {
        let text = r#"duration = "10 s"
            path = { rate = "100 Mbit/s", rtt = "40 ms" }
            flow = [{ cc = "htcp", label = "first", start = "2 s" }, { cc = "reno", label = "second", start = "3 s" }]"#;
        let scenario = Scenario::from_toml(text, "test", &[]).unwrap();
        let mut plan = scenario.resolve("test").unwrap();
        for link in &mut plan.links {
            (link.config.rate, link.config.delay) = (None, Time::ZERO);
        }
        if one_link {
            plan.routes.fill(vec![0]);
        }
        plan
    }

    #[test]
    fn virtual_time_that_stands_still_is_an_error_that_names_who_goes_on() {
        for one_link in [false, true] {
            let plan = plan(one_link);
            let Err(error) = run(&plan, &Uncontrolled) else { panic!("it ended") };
            let Error::Standstill { at, who, .. } = &error else { panic!("{error}") };
            assert_eq!(*at, Time::from_secs(2));
            assert!(who.contains("flow \"first\"") && !who.contains("second"), "{who}");
            let text = error.to_string();
            assert!(
                text.starts_with("expected simulated time to advance, found it at 2 s after 1000000 "),
                "{text}"
            );
        }
    }

    /// Cancels the run after this number of queries.
    struct After(u32, AtomicU32);

    impl Control for After {
        fn is_cancelled(&self) -> bool {
            self.1.fetch_add(1, Ordering::Relaxed) >= self.0
        }
    }

    #[test]
    fn a_run_can_be_cancelled_while_virtual_time_stands_still() {
        for one_link in [false, true] {
            let plan = plan(one_link);
            // Fewer steps than a standstill takes, but more than there are before it begins.
            let control = After(700, AtomicU32::new(0));
            assert!(matches!(run(&plan, &control), Err(Error::Cancelled)));
            // Within an event, the part that stops reports it to the engine, once.
            assert!(control.1.into_inner() <= 702);
        }
    }
}

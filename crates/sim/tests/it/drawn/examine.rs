//! Loads a random scenario, runs it and checks the outcome.

use std::sync::atomic::{AtomicBool, Ordering};

use elephan_metrics::table::Table;
use elephan_metrics::{Control, Outcome, SoFar, Uncontrolled};
use elephan_scenario::{Error as Refusal, Plan, Scenario};
use elephan_sim::{Error, check, run, run_as_one_site};
use serde_json::Value;

/// Limits on a scenario; keys that exceed them are removed, because the run would take longer than
/// milliseconds.
const MOST_EVENTS: f64 = 2e6;
const MOST_ROWS: f64 = 1e5;
const MOST_BYTES: f64 = 2e8;
/// One in this number of runs is repeated, and one in this number is cancelled midway.
const AGAIN: u64 = 8;

/// The second query for progress cancels the run.
#[derive(Default)]
struct Cancels(AtomicBool);

impl Control for Cancels {
    fn goes_on(&self, _: &SoFar<'_>) -> bool {
        !self.0.swap(true, Ordering::Relaxed)
    }
}

/// The key in the first error for which a scenario is refused. Each error is one line.
fn refused_for(refusal: &Refusal) -> Result<&str, String> {
    for mistake in &refusal.mistakes {
        if mistake.to_string().contains('\n') {
            return Err(format!("an error has more than one line: {mistake:?}"));
        }
    }
    refusal.mistakes.first().map(|mistake| mistake.key.as_str()).ok_or("refused for no reason".to_owned())
}

/// Removes `key` from a document, or the longest existing prefix of it: the table that lacks it. Returns
/// false if there is none.
pub fn leave_out(document: &mut Value, key: &str) -> bool {
    let (first, rest) = key.split_once('.').unwrap_or((key, ""));
    let inner = match document {
        Value::Object(table) => table.get_mut(first),
        Value::Array(list) => first.parse::<usize>().ok().and_then(|number| list.get_mut(number)),
        _ => None,
    };
    let Some(inner) = inner else { return false };
    if !rest.is_empty() && leave_out(inner, rest) {
        return true;
    }
    match document {
        Value::Object(table) => table.remove(first).is_some(),
        Value::Array(list) => {
            first.parse().is_ok_and(|number: usize| number < list.len() && list.remove(number) != Value::Null)
        }
        _ => false,
    }
}

/// Everything that an outcome contains, to the bit.
fn fingerprint(outcome: &Outcome) -> String {
    format!("{outcome:?}")
}

/// The outcome of loading a scenario.
pub enum Loaded {
    Ready(Box<Plan>),
    /// It is refused, or would take longer than milliseconds: because of this key.
    Refused(String),
    TooLarge(String),
}

/// Reads a scenario, from JSON and from the TOML and JSON that it is written as, and resolves it.
pub fn load(document: &Value) -> Result<Loaded, String> {
    let refused = |refusal: &Refusal| refused_for(refusal).map(|key| Loaded::Refused(key.to_owned()));
    let scenario = match Scenario::from_json(&document.to_string(), "drawn", &[]) {
        Ok(scenario) => scenario,
        Err(refusal) => return refused(&refusal),
    };
    let json = serde_json::to_string(&scenario).map_err(|error| error.to_string())?;
    let table: toml::Table = serde_json::from_str(&json).map_err(|error| error.to_string())?;
    for (form, back) in [
        ("JSON", Scenario::from_json(&json, "as JSON", &[])),
        ("TOML", Scenario::from_toml(&table.to_string(), "as TOML", &[])),
    ] {
        let back = back.map_err(|error| error.to_string())?;
        if back != scenario {
            return Err(format!("through {form} it became\n{back:?}\nfrom\n{scenario:?}"));
        }
    }
    let plan = match scenario.check("drawn", false) {
        Ok(plan) => plan,
        Err(refusal) => return refused(&refusal),
    };
    for (bound, most) in [
        (&plan.estimate.events, MOST_EVENTS),
        (&plan.estimate.rows, MOST_ROWS),
        (&plan.estimate.bytes, MOST_BYTES),
    ] {
        if bound.amount > most {
            return Ok(Loaded::TooLarge(bound.key.clone()));
        }
    }
    Ok(Loaded::Ready(Box::new(plan)))
}

/// Runs the plan of a scenario; repeats or cancels the run if it is its turn. Returns its number of events,
/// or the error.
pub fn examine(plan: &Plan, seed: u64) -> Result<u64, String> {
    let estimate = &plan.estimate;
    let outcome = run(plan, &Uncontrolled).map_err(|error| error.to_string())?;
    check(plan, &outcome)?;
    if outcome.events_handled as f64 > estimate.events.amount {
        return Err(format!(
            "{} events, where the estimate was {:?}",
            outcome.events_handled, estimate.events
        ));
    }
    let rows = [
        outcome.flows.rows(),
        outcome.crowds.rows(),
        outcome.streams.rows(),
        outcome.queues.rows(),
        outcome.transfers.rows(),
        outcome.events.rows(),
        outcome.variables.rows(),
    ];
    let rows = rows.iter().sum::<usize>();
    if rows as f64 > estimate.rows.amount {
        return Err(format!("{rows} rows, where the estimate was {:?}", estimate.rows));
    }
    let in_order = run_as_one_site(plan, &Uncontrolled).map_err(|error| error.to_string())?;
    if fingerprint(&outcome) != fingerprint(&in_order) {
        return Err("as one site it differs".to_owned());
    }
    if seed.is_multiple_of(AGAIN) {
        let again = run(plan, &Uncontrolled).map_err(|error| error.to_string())?;
        if fingerprint(&outcome) != fingerprint(&again) {
            return Err("two runs of one seed differ".to_owned());
        }
    }
    if seed % AGAIN == 2 {
        let mut plan = plan.clone();
        plan.trace.variables = true;
        let mut more = run(&plan, &Uncontrolled).map_err(|error| error.to_string())?;
        more.variables.clone_from(&outcome.variables);
        if fingerprint(&outcome) != fingerprint(&more) {
            return Err("with variables it differs".to_owned());
        }
    }
    if seed % AGAIN == 1 && !matches!(run(plan, &Cancels::default()), Err(Error::Cancelled)) {
        return Err("it was not cancelled".to_owned());
    }
    Ok(outcome.events_handled)
}

//! What a scenario can name: the entries of all registries.

use elephan_cc::{Variable, registry, slow_start};
use elephan_net::DISCIPLINES;
use elephan_scenario::TRAFFIC;
use elephan_tcp::RECOVERIES;
use elephan_units::{Entry, OneOf};
use pyo3::prelude::*;
use serde_json::{Value, json};

/// Everything that a scenario can name, as JSON: lists of entries by the key that names them. These are algorithms, those that
/// Linux has (`linux`), slow starts, recoveries, queue disciplines and kinds of traffic. Of algorithms and slow starts it also says
/// their `variables`, and of an algorithm whose response function it has (`model`) and which file of kernel/ has it.
#[pyfunction]
pub fn vocabulary() -> String {
    let algorithm = |entry: &registry::Entry| {
        let mut all = entry.describe();
        let kernel = elephan_abi::find(entry.name).map(|known| known.source);
        all.extend([
            ("model".to_owned(), json!(elephan_model::modelled(entry.name))),
            ("kernel".to_owned(), json!(kernel)),
            (
                "variables".to_owned(),
                variables(&registry::variables(entry), registry::told_by_linux(entry.name)),
            ),
        ]);
        all
    };
    let start = |entry: &slow_start::Entry| {
        let mut all = entry.describe();
        all.insert("variables".to_owned(), variables(&slow_start::variables(entry), &[]));
        all
    };
    json!({
        "cc": registry::ALL.iter().map(algorithm).collect::<Vec<_>>(),
        "linux": described(elephan_abi::linux::ALL),
        "slow_start": slow_start::ALL.iter().map(start).collect::<Vec<_>>(),
        "recovery": described(RECOVERIES),
        "queue": described(DISCIPLINES),
        "traffic": described(TRAFFIC),
    })
    .to_string()
}

/// What is expected in place of `found`, in words: all `known` names, or those of many that `found` is near to.
#[pyfunction]
pub fn one_of(known: Vec<String>, found: &str) -> String {
    OneOf { known: &known, found }.to_string()
}

/// Variables, of which a kernel tells those with these names, too.
fn variables(all: &[&Variable], on_kernels: &[&str]) -> Value {
    let one = |it: &&Variable| {
        let is_told = on_kernels.contains(&it.name);
        json!({ "name": it.name, "meaning": it.meaning, "unit": it.unit, "values": it.values, "on_kernels": is_told })
    };
    json!(all.iter().map(one).collect::<Vec<_>>())
}

fn described<M>(entries: &[Entry<M>]) -> Value {
    json!(entries.iter().map(Entry::describe).collect::<Vec<_>>())
}

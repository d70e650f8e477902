//! The variables of the flows' algorithms: at every sample, and where a discrete one has changed.

use elephan_cc::{Controller, Variable, registry};
use elephan_metrics::table::Table;
use elephan_metrics::trace::{UNKNOWN, VariableRow, VariableTrace};
use elephan_units::Time;

/// The variables so far.
pub struct Variables {
    pub trace: VariableTrace,
    /// The names of all variables, and of the values of discrete ones.
    vocabulary: [Vec<&'static str>; 2],
    /// The last rows of each flow.
    last: Vec<Last>,
    /// All of one flow, as they are told.
    told: Vec<(&'static Variable, f64)>,
}

/// The last rows of a flow, one for each of its variables.
#[derive(Clone)]
struct Last {
    at: Time,
    /// The first of them.
    row: usize,
    /// The values of the discrete variables.
    discrete: Vec<f64>,
}

impl Variables {
    /// Of so many flows that have not begun.
    pub fn new(flows: usize) -> Self {
        Self {
            trace: VariableTrace::default(),
            vocabulary: registry::vocabulary(),
            last: vec![Last { at: Time::MAX, row: 0, discrete: Vec::new() }; flows],
            told: Vec::new(),
        }
    }

    /// Records the variables of a flow.
    pub fn sample(&mut self, flow: u32, controller: &Controller, now: Time) {
        self.ask(controller);
        self.record(flow, now);
    }

    /// The same if a discrete variable differs from its last row, or there is none yet.
    pub fn note(&mut self, flow: u32, controller: &Controller, now: Time) {
        self.ask(controller);
        if !self.last[flow as usize].discrete.iter().copied().eq(discrete(&self.told)) {
            self.record(flow, now);
        }
    }

    fn ask(&mut self, controller: &Controller) {
        self.told.clear();
        controller.variables(&mut |variable, value| self.told.push((variable, value)));
    }

    /// A flow has one row of each variable at a time: what a later event of the same time leaves takes the place of what was before.
    fn record(&mut self, flow: u32, now: Time) {
        let [names, values] = &self.vocabulary;
        let last = &mut self.last[flow as usize];
        let is_again = last.at == now;
        if !is_again {
            (last.at, last.row) = (now, self.trace.rows());
        }
        for (row, &(variable, value)) in (last.row..).zip(&self.told) {
            let value_name = variable.values.get(value as usize).map_or(UNKNOWN, |name| number(values, name));
            if is_again {
                (self.trace.value[row], self.trace.value_name[row]) = (value, value_name);
            } else {
                let (time_s, variable) = (now.secs_f64(), number(names, variable.name));
                self.trace.push(VariableRow { time_s, flow, variable, value, value_name });
            }
        }
        last.discrete.clear();
        last.discrete.extend(discrete(&self.told));
    }
}

/// The values of the discrete variables among these.
fn discrete(told: &[(&'static Variable, f64)]) -> impl Iterator<Item = f64> {
    told.iter().filter(|(variable, _)| !variable.values.is_empty()).map(|&(_, value)| value)
}

/// The place of a name in a list that has it.
fn number(names: &[&'static str], name: &str) -> u32 {
    names.iter().position(|known| *known == name).map_or(UNKNOWN, |place| place as u32)
}

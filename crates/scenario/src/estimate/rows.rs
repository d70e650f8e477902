//! Rows of transfers and samples, and what they take.

use elephan_traffic::Demand;

use super::tables::Table;
use super::{Estimator, MOST_MODELLED, SAME_START_S};
use crate::file::Engine;
use crate::plan::{Crowd, Members};

/// Reports of progress and the ends of the measuring window.
const REPORTS: f64 = 110.0;
/// Bytes of a row in any table, in a column that has grown to twice what it holds.
const ROW_BYTES: f64 = 200.0;
/// Bytes of a flow's rate sample, while the summary is made.
const RATE_SAMPLE_BYTES: f64 = 16.0;

impl Estimator<'_> {
    /// Rows of transfers.
    pub(super) fn transfers(&mut self, tables: &[Table<'_>]) {
        for table in tables.iter().filter(|table| table.flow.demand != Demand::Unlimited) {
            if self.plan.trace.transfers {
                self.rows.add(self.count_key(&table.key), table.connections);
                self.bytes.add(self.count_key(&table.key), table.connections * ROW_BYTES);
            }
        }
    }

    /// Samples: rows of flows, crowds, streams and links, and rates for the metrics.
    pub(super) fn sample(&mut self) {
        let plan = self.plan;
        let times = (plan.duration.picos() / plan.trace.interval.picos()) as f64 + 1.0;
        let measured = (plan.measure.to.picos() / plan.measure.interval.picos()) as f64 + 2.0;
        let flows = match self.scenario.engine {
            Engine::Model => self.classes(),
            Engine::Sim | Engine::Linux | Engine::Kernel => plan.flows.len() as f64,
        };
        let links = plan.links.iter().filter(|link| link.config.rate.is_some()).count() as f64;
        let members = flows + plan.crowds.len() as f64 + plan.streams.len() as f64;
        let rows = times * (members + links);
        let users = |crowd: &Crowd| match crowd.members {
            Members::Users(users, _) => users as f64,
            Members::Arrivals(_) => 1.0,
        };
        let looked_at = times * plan.crowds.iter().map(users).sum::<f64>();
        let many = self.largest_table();
        let key = if members + links > times { many.as_str() } else { "trace.interval" };
        self.rows.add(key, rows);
        self.bytes.add(key, rows * ROW_BYTES);
        self.events.add(key, times + rows + looked_at);
        let key = if flows > measured { many.as_str() } else { "measure.interval" };
        self.events.add(key, measured * (1.0 + flows));
        self.bytes.add(key, measured * flows * RATE_SAMPLE_BYTES);
        if let Some(traced) = self.rows.0.get("trace.events") {
            self.bytes.add("trace.events", traced * ROW_BYTES);
        }
        self.events.add("event", plan.changes.len() as f64);
        for replay in &plan.replays {
            let periods = replay.period.map_or(1.0, |period| self.seconds / period.secs_f64() + 1.0);
            let key = format!("{}.trace", self.link_key(replay.link as usize));
            self.events.add(key, periods * replay.steps.len() as f64);
        }
        self.events.add("duration", REPORTS);
    }

    /// Flows that the fluid model shows: all, or where they are too many, a class of those that start at about the same time.
    pub(super) fn classes(&self) -> f64 {
        let flows = self.plan.flows.len();
        let starts = self.seconds / SAME_START_S + 1.0;
        let classes = self.scenario.flow.iter().map(|flow| (flow.count as f64).min(starts)).sum();
        if flows > MOST_MODELLED { classes } else { flows as f64 }
    }

    /// The key of the table with the most members.
    pub(super) fn largest_table(&self) -> String {
        let flows = self.scenario.flow.iter().enumerate().map(|(n, flow)| (flow.count, format!("flow.{n}")));
        let crowds = self.scenario.crowd_files().map(|(key, file)| (file.common().count, key));
        let streams = self.scenario.stream_files().map(|(key, file)| (file.common().count, key));
        let all = flows.chain(crowds).chain(streams);
        all.max_by_key(|(count, _)| *count).map_or_else(String::new, |(_, key)| format!("{key}.count"))
    }
}

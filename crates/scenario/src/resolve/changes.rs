//! The changes of links during a run.

use std::collections::BTreeSet;

use elephan_net::Queue;
use elephan_units::Time;

use super::network::Network;
use super::topology::check_loss;
use crate::file::{EventFile, Scenario};
use crate::plan::Change;

/// The most changes that repeated events may make, as rows of a trace.
const MOST_CHANGES: u64 = 200_000;

impl Scenario {
    /// Every change of the plan, in order of time; those of the same time in order of the file.
    pub(crate) fn changes(&self, network: &mut Network) -> Vec<Change> {
        let mut changes: Vec<(usize, Change)> = Vec::new();
        for (number, event) in self.event.iter().enumerate() {
            let key = format!("event.{number}");
            if event.at > self.duration {
                let expected = format!("a time up to the end at \"{}\"", self.duration);
                network.wrong(format!("{key}.at"), expected, format_args!("\"{}\"", event.at));
            }
            let Some(link) = network.links.iter().position(|link| link.name == event.link) else {
                let expected = format!("one of the links {}", network.names());
                network.wrong(format!("{key}.link"), expected, format_args!("\"{}\"", event.link));
                continue;
            };
            check(event, link, &key, network);
            self.check_replayed(event, &key, network);
            if event.rate.is_some() || event.up.is_some() {
                network.links[link].config.changes = true;
            }
            let change = |at| Change {
                at,
                link: link as u32,
                rate: event.rate,
                delay: event.delay,
                loss: event.loss,
                weights: event.weights.clone(),
                up: event.up,
            };
            let times = self.times(event, &key, changes.len() as u64, network);
            changes.extend(times.map(|at| (number, change(at))));
        }
        changes.sort_by_key(|(_, change)| change.at);
        self.check_together(&changes, network);
        let changes: Vec<Change> = changes.into_iter().map(|(_, change)| change).collect();
        let mut queues: Vec<Queue> = network.links.iter().map(|link| link.config.queue.clone()).collect();
        for change in changes.iter().filter(|change| !change.weights.is_empty()) {
            let queue = &mut queues[change.link as usize];
            queue.set_weights(&change.weights);
            for mistake in queue.mistakes() {
                let found = format!("{} at \"{}\"", mistake.found, change.at);
                network.wrong("event.weights", mistake.expected, found);
            }
        }
        changes
    }

    /// When an event is, after others that make so many changes.
    fn times(
        &self,
        event: &EventFile,
        key: &str,
        before: u64,
        network: &mut Network,
    ) -> impl Iterator<Item = Time> + use<> {
        let at = event.at;
        let every = event.every.unwrap_or(Time::MAX);
        let times = self.duration.since(at).picos().checked_div(every.picos()).map_or(1, |more| more + 1);
        let is_possible = every > Time::ZERO && before.saturating_add(times) <= MOST_CHANGES;
        if event.every.is_some() && !is_possible {
            let expected = format!("a time above zero, with at most {MOST_CHANGES} changes of all events");
            network.wrong(format!("{key}.every"), expected, format_args!("\"{every}\""));
        }
        (0..if is_possible { times } else { 1 }).map(move |number| at + every * number)
    }

    /// Refuses two values of the same thing at the same time, if an event that repeats has one of them: events that the file
    /// has at the same time follow each other in its order.
    fn check_together(&self, changes: &[(usize, Change)], network: &mut Network) {
        let mut known = BTreeSet::new();
        for together in changes.chunk_by(|(_, a), (_, b)| a.at == b.at) {
            for (place, (number, change)) in together.iter().enumerate() {
                for (earlier, other) in &together[..place] {
                    let repeats = self.event[*number].every.or(self.event[*earlier].every).is_some();
                    if !repeats || change.link != other.link || !known.insert([*earlier, *number]) {
                        continue;
                    }
                    for name in names_of_two_values(change, other) {
                        let expected = format!("no {name} when event.{earlier} changes it");
                        let found = format_args!("both at \"{}\"", change.at);
                        network.wrong(format!("event.{number}.{name}"), expected, found);
                    }
                }
            }
        }
    }
}

/// What two changes set to different values.
fn names_of_two_values(a: &Change, b: &Change) -> impl Iterator<Item = &'static str> {
    fn differ<T: PartialEq>(a: Option<T>, b: Option<T>) -> bool {
        a.zip(b).is_some_and(|(a, b)| a != b)
    }
    let weights = a.weights.iter().any(|(name, weight)| differ(Some(weight), b.weights.get(name)));
    let all = [
        ("rate", differ(a.rate, b.rate)),
        ("delay", differ(a.delay, b.delay)),
        ("loss", differ(a.loss, b.loss)),
        ("weights", weights),
        ("up", differ(a.up, b.up)),
    ];
    all.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name)
}

fn check(event: &EventFile, link: usize, key: &str, network: &mut Network) {
    let config = network.links[link].config.clone();
    let changes_something = event.rate.is_some()
        || event.delay.is_some()
        || event.loss.is_some()
        || event.up.is_some()
        || !event.weights.is_empty();
    if !changes_something {
        network.wrong(key, "one of rate, delay, loss, weights, up", "none");
    }
    match (event.rate, config.rate) {
        (Some(rate), _) if rate.bits_per_sec() == 0 => {
            network.wrong(format!("{key}.rate"), "a rate above zero; up = false stops a link", "\"0 bit/s\"");
        }
        (Some(rate), None) => {
            let expected = "no rate, since the link has none to change";
            network.wrong(format!("{key}.rate"), expected, format_args!("\"{rate}\""));
        }
        _ => {}
    }
    if let Some(loss) = event.loss {
        check_loss(network, key, loss);
    }
    let names = config.queue.class_names();
    for name in event.weights.keys().filter(|name| !names.contains(&name.as_str())) {
        let expected = match names.as_slice() {
            [] => format!("no weights, since \"{}\" has no classes", event.link),
            names => format!("one of the classes {}", names.join(", ")),
        };
        network.wrong(format!("{key}.weights"), expected, format_args!("\"{name}\""));
    }
}

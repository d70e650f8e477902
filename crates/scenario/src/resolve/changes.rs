//! The changes of links during a run.

use elephan_net::Queue;

use super::network::Network;
use super::topology::check_loss;
use crate::file::{EventFile, Scenario};
use crate::plan::Change;

impl Scenario {
    /// Every change of the plan, in order of time; those of the same time in order of the file.
    pub(crate) fn changes(&self, network: &mut Network) -> Vec<Change> {
        let mut changes = Vec::new();
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
            changes.push(Change {
                at: event.at,
                link: link as u32,
                rate: event.rate,
                delay: event.delay,
                loss: event.loss,
                weights: event.weights.clone(),
                up: event.up,
            });
        }
        changes.sort_by_key(|change| change.at);
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

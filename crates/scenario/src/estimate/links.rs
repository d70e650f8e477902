//! What queue disciplines do besides, and what links hold.

use elephan_net::Queue;

use super::{Estimator, LINK_BYTES};

/// Bytes of a queue of fair queueing.
const QUEUE_BYTES: f64 = 120.0;

impl Estimator<'_> {
    /// What queue disciplines do besides, and what they and links hold.
    pub(super) fn queues(&mut self) {
        let named = if self.tables.is_empty() { 2 } else { self.plan.links.len() };
        for (number, link) in self.plan.links.iter().enumerate().take(named) {
            let key = self.link_key(number);
            let size = if link.config.rate.is_some() { LINK_BYTES.1 } else { LINK_BYTES.0 };
            self.bytes.add(key.clone(), size);
            self.queue(&link.config.queue, &format!("{key}.queue"), self.rates[number].0);
        }
        // A link for each round-trip time of its own; those of hosts were counted with them.
        let others = self.plan.links.len() - named.min(self.plan.links.len());
        self.bytes.add("path", others as f64 * LINK_BYTES.0);
    }

    pub(super) fn queue(&mut self, queue: &Queue, key: &str, rate: f64) {
        let turns = |quantum: u32| rate * self.seconds / 8.0 / f64::from(quantum);
        let classes = match queue {
            Queue::Pie(pie) => {
                self.events.add(format!("{key}.t_update"), self.seconds / pie.t_update.secs_f64());
                return;
            }
            Queue::FqCodel(fq) => {
                self.events.add(format!("{key}.quantum"), turns(fq.quantum));
                self.bytes.add(format!("{key}.flows"), f64::from(fq.flows) * QUEUE_BYTES);
                return;
            }
            Queue::Drr(drr) => {
                self.events.add(format!("{key}.quantum"), turns(drr.quantum));
                self.bytes.add(format!("{key}.flows"), f64::from(drr.flows) * QUEUE_BYTES);
                &drr.class
            }
            Queue::Wrr(wrr) => &wrr.class,
            Queue::Priority(priority) => &priority.class,
            _ => return,
        };
        for (number, class) in classes.iter().enumerate() {
            self.queue(&class.queue, &format!("{key}.class.{number}.queue"), rate);
        }
    }
}

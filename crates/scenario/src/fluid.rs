//! A plan as the fluid model sees it: one bottleneck, and classes of flows that are alike.

use std::collections::BTreeMap;

use elephan_net::{Delay, Limit, Loss, Queue};
use elephan_traffic::Demand;
use elephan_units::Time;
use serde_json::{Value, json};

use crate::error::{Error, Mistake};
use crate::estimate::{MOST_MODELLED, SAME_START_S};
use crate::plan::{Link, Members, Plan};

/// Flows that are alike: the first of them, how many they are, and the sum of their starts in s.
struct Class {
    first: usize,
    count: u64,
    starts_s: f64,
}

impl Class {
    fn describe(&self, plan: &Plan) -> Value {
        let flow = &plan.flows[self.first];
        json!({
            "label": flow.label,
            "cc": flow.cc.table(),
            "flows": self.count,
            "rtt_s": flow.rtt.secs_f64(),
            "start_s": self.starts_s / self.count as f64,
            "stop_s": flow.stop.map(Time::secs_f64),
            "initial_window": flow.tcp.initial_window,
            "initial_ssthresh": flow.tcp.initial_ssthresh,
        })
    }
}

fn refused(key: &str, expected: &str, found: &str) -> Error {
    let mistake = Mistake::new(format!("{key}: engine \"model\""), expected, found);
    Error { file: "scenario".to_owned(), mistakes: vec![mistake] }
}

/// A key of the table of this link.
fn key(link: &str, name: &str) -> String {
    match link {
        "bottleneck" => format!("path.{name}"),
        "bottleneck.reverse" => format!("path.reverse.{name}"),
        _ => format!("link.{name}"),
    }
}

impl Plan {
    /// What the fluid model needs: numbers in s, bit/s and packets.
    ///
    /// # Errors
    /// Where there is more than one bottleneck, traffic that is no bulk transfer, or a link that the model cannot express.
    pub fn fluid(&self) -> Result<Value, Error> {
        let replayed = self.replays.iter().map(|replay| replay.link as usize);
        let scheduled = self.links.iter().position(|link| link.config.schedule.is_some());
        if let Some(link) = replayed.chain(scheduled).min() {
            let name = self.links[link].name.as_str();
            let found = format!("a trace of {name}");
            return Err(refused(&key(name, "trace"), "links that do not change", &found));
        }
        if self.crowds.iter().any(|crowd| matches!(crowd.members, Members::Sessions(_))) {
            return Err(refused("sessions", "none", "some"));
        }
        for Link { name, config } in &self.links {
            if config.ecn.is_some() {
                return Err(refused(&key(name, "ecn"), "none", &format!("a rewritten field on {name}")));
            }
            if matches!(config.vary, Some(Delay::Aggregate { .. })) {
                return Err(refused(&key(name, "vary"), "no bursts", &format!("aggregation on {name}")));
            }
            if matches!(config.vary, Some(Delay::HeavyTail { .. })) {
                return Err(refused(&key(name, "vary"), "steady delays", &format!("a heavy tail on {name}")));
            }
        }
        let bottleneck = &self.links[self.bottleneck as usize];
        let config = &bottleneck.config;
        let Some(rate) = config.rate else {
            return Err(refused("path.rate", "a bottleneck with a rate", "none"));
        };
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        let mut classes: Vec<Class> = Vec::new();
        // The class of each flow.
        let mut members = Vec::with_capacity(self.flows.len());
        self.behaves()?;
        for (number, flow) in self.flows.iter().enumerate() {
            let refused = |expected, found| Err(refused(&format!("flow.{number}"), expected, found));
            if flow.demand != Demand::Unlimited {
                let found =
                    if matches!(flow.demand, Demand::App(_)) { "an application" } else { "transfers" };
                return refused("data without end", found);
            }
            let route = &self.routes[flow.forward as usize];
            if !route.contains(&self.bottleneck) {
                return refused("data across the bottleneck", "another way");
            }
            let others = route.iter().filter(|&&link| link != self.bottleneck);
            let mut others = others.map(|&link| &self.links[link as usize]);
            if let Some(slower) = others.find(|link| link.config.rate.is_some_and(|other| other <= rate)) {
                return refused("a single bottleneck", &format!("link {} too", slower.name));
            }
            let start_s = flow.start.draw(self.seed, number as u64).secs_f64();
            let start = (start_s / SAME_START_S) as u64;
            let kind = format!("{:?}", (&flow.cc, flow.rtt, flow.stop, start, flow.tcp.initial_ssthresh));
            let class = *known.entry(kind).or_insert_with(|| {
                classes.push(Class { first: number, count: 0, starts_s: 0.0 });
                classes.len() - 1
            });
            classes[class].count += 1;
            classes[class].starts_s += start_s;
            members.push(class);
        }
        let first = self.flows.first();
        let packet = first.map_or(1500, |flow| flow.tcp.packet.get());
        if self.flows.iter().any(|flow| flow.tcp.packet.get() != packet) {
            return Err(refused("tcp.packet", "one size for all flows", "several"));
        }
        let random_loss = match config.loss {
            None => 0.0,
            Some(Loss::Random { probability }) => probability,
            Some(Loss::Periodic { every }) => 1.0 / every as f64,
            Some(Loss::GilbertElliott { .. }) => {
                return Err(refused("path.loss", "random or periodic losses", "gilbert-elliott"));
            }
        };
        let buffer = match config.limit {
            Limit::Packets(packets) => packets as f64,
            Limit::Bytes(bytes) => (bytes / packet) as f64,
        };
        let red = match &config.queue {
            Queue::DropTail(_) => None,
            Queue::Red(red) => {
                let (min, max, weight) = red.settled(rate.bits_per_sec() as f64 / (8.0 * packet as f64));
                Some((min, max, red.max_p, weight, red.gentle, red.wait))
            }
            other => return Err(refused("path.queue", "droptail or red", other.name())),
        };
        Ok(json!({
            "link": bottleneck.name,
            "rate_bit_s": rate.bits_per_sec(),
            "buffer_packets": buffer,
            "queue": config.queue.name(),
            // Minimum, maximum, max_p, weight, gentle and wait.
            "red": red,
            "random_loss": random_loss,
            "packet_bytes": packet,
            "mss_bytes": first.map_or(1460, |flow| flow.tcp.mss()),
            "classes": classes.iter().map(|class| class.describe(self)).collect::<Vec<_>>(),
            // Empty where there are too many flows to list.
            "members": if members.len() <= MOST_MODELLED { members } else { Vec::new() },
            "duration_s": self.duration.secs_f64(),
            "from_s": self.measure.from.secs_f64(),
            "to_s": self.measure.to.secs_f64(),
            "interval_s": self.measure.interval.secs_f64(),
            "trace_s": self.trace.interval.secs_f64(),
        }))
    }

    /// Whether the ends of all flows behave; else the first key that says otherwise is refused.
    fn behaves(&self) -> Result<(), Error> {
        let asked = self.flows.iter().find_map(|flow| flow.tcp.misbehave.asked().into_iter().next());
        asked.map_or(Ok(()), |(key, found)| Err(refused(&format!("tcp.{key}"), "ends that behave", &found)))
    }
}

#[cfg(test)]
mod tests {
    use crate::Scenario;

    #[test]
    fn what_a_fluid_cannot_do_is_refused_with_its_key() {
        let fluid = |path: &str| {
            let text = format!(
                "duration = \"10 s\"\npath.rate = \"10 Mbit/s\"\npath.rtt = \"20 ms\"\n{path}\nflow = [{{ cc = \"reno\" }}]"
            );
            let plan = Scenario::from_toml(&text, "test", &[]).and_then(|file| file.resolve("test")).unwrap();
            plan.fluid().map_err(|error| error.to_string())
        };
        assert!(fluid("").is_ok());
        for (path, expected) in [
            (
                r#"path.ecn = "bleach""#,
                "path.ecn: engine \"model\": expected none, found a rewritten field on bottleneck",
            ),
            (
                r#"path.reverse.vary = { name = "aggregate", slot = "4 ms" }"#,
                "path.reverse.vary: engine \"model\": expected no bursts, found aggregation on bottleneck.reverse",
            ),
            (
                r#"sessions = [{ cc = "reno", vectors = { lines = ["SEQ 0 1 1 1", "> 1"] } }]"#,
                "sessions: engine \"model\": expected none, found some",
            ),
            (
                r#"path.vary = { name = "heavy-tail", median = "1 ms", shape = 2 }"#,
                "path.vary: engine \"model\": expected steady delays, found a heavy tail on bottleneck",
            ),
        ] {
            let error = fluid(path).expect_err(path);
            assert!(error.contains(expected), "{error}");
        }
        for misbehave in ["ack_division = 2", "optimistic_acks = 3", "ignore_losses = true"] {
            let (key, value) = misbehave.split_once(" = ").unwrap();
            let expected =
                format!("tcp.misbehave.{key}: engine \"model\": expected ends that behave, found {value}");
            let error = fluid(&format!("tcp.misbehave.{misbehave}")).expect_err(key);
            assert!(error.contains(&expected), "{error}");
        }
    }
}

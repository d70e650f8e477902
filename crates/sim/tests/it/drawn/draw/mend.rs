//! Constraints that the schema does not express: names that refer to each other, and lists that must be
//! complete.

use serde_json::{Map, Value, json};

use super::{Draw, time};

impl Draw {
    /// Repairs names that refer to each other, and lists that must be complete.
    pub(super) fn mend(&mut self, document: &mut Map<String, Value>) {
        let nodes = self.name_links(document);
        let links: Vec<String> = match document.get("link").and_then(Value::as_array) {
            Some(links) => links.iter().filter_map(|link| link["name"].as_str().map(str::to_owned)).collect(),
            None => vec!["bottleneck".into(), "bottleneck.reverse".into()],
        };
        let kinds = ["flow", "web", "arrivals", "sessions", "cbr", "on_off"];
        if kinds.iter().all(|kind| document.get(*kind).and_then(Value::as_array).is_none_or(Vec::is_empty)) {
            document.insert("flow".into(), json!([{ "cc": "sack" }]));
        }
        for kind in kinds {
            for member in document.get_mut(kind).and_then(Value::as_array_mut).into_iter().flatten() {
                self.place(member, nodes);
                let Some(table) = member.as_object_mut() else { continue };
                if kind == "arrivals" && table.contains_key("per_second") == table.contains_key("load") {
                    table.remove("load");
                    table.insert("per_second".into(), json!(self.decades(-1.0, 2.0) / self.duration));
                }
                if kind == "sessions" {
                    self.mend_sessions(table);
                }
            }
        }
        for event in document.get_mut("event").and_then(Value::as_array_mut).into_iter().flatten() {
            event["link"] = json!(self.pick(&links));
            if self.chance(0.9) {
                event["at"] = time(self.duration * self.below(9) as f64 / 8.0);
            }
            if event.get("every").is_some() && self.chance(0.9) {
                event["every"] = time(self.duration / (1 + self.below(12)) as f64);
            }
        }
        if let Some(pcap) = document.get_mut("trace").and_then(|trace| trace.get_mut("pcap")) {
            *pcap = json!([self.pick(&links)]);
        }
        if let Some(measure) = document.get_mut("measure").and_then(Value::as_object_mut)
            && self.chance(0.9)
        {
            let eighth = self.below(8);
            let to = eighth + 1 + self.below(8 - eighth);
            let eighth_s = self.duration / 8.0;
            measure.insert("from".into(), time(eighth_s * eighth as f64));
            measure.insert("to".into(), time(eighth_s * to as f64));
            if measure.contains_key("interval") {
                let interval = self.decades(-2.0, 0.0) * eighth_s;
                measure.insert("interval".into(), time(interval));
            }
        } else if self.chance(0.9) {
            document.insert("measure".into(), json!({ "from": time(self.duration * 0.25) }));
        }
        for (_, value) in document.iter_mut() {
            Self::mend_classes(value);
        }
        // A share of a small product is less than a packet.
        let paths = document.get_mut("path").into_iter();
        let buffer = self.buffer("buffer");
        for path in paths {
            if path.get("buffer").is_none() {
                path["buffer"] = buffer.clone();
            }
        }
        for link in document.get_mut("link").and_then(Value::as_array_mut).into_iter().flatten() {
            if link.get("buffer").is_none() {
                link["buffer"] = buffer.clone();
            }
        }
    }

    /// Gives sessions either vectors or what is drawn.
    fn mend_sessions(&mut self, table: &mut Map<String, Value>) {
        if self.chance(0.3) {
            for name in ["per_second", "epochs", "request", "response", "think", "serve"] {
                table.remove(name);
            }
            let lines = [
                "SEQ 0 2 1 1",
                "> 300",
                "t 1000",
                "< 20000",
                "t 5",
                "> 5000",
                "t 100",
                "SEQ 20000 1 1 1",
                "< 3000",
                "CONC 5000 2 1 1 2",
                "c> 10",
                "t> 1000",
                "c> 5000",
                "c< 40000",
                "t< 10",
            ];
            table.insert("vectors".into(), json!({ "lines": lines }));
            return;
        }
        for name in ["vectors", "shuffle", "load"] {
            table.remove(name);
        }
        table.insert("per_second".into(), json!(self.decades(-1.0, 2.0) / self.duration));
        for (name, value) in [
            ("epochs", json!({ "uniform": [1, 4] })),
            ("request", json!("400 B")),
            ("response", json!({ "exponential": "20 kB" })),
            ("think", json!({ "exponential": time(self.duration / 20.0) })),
        ] {
            table.entry(name).or_insert(value);
        }
    }

    /// Makes the links a chain of nodes, of which some pairs have two links; returns the number of nodes.
    fn name_links(&mut self, document: &mut Map<String, Value>) -> Option<usize> {
        let links = document.get_mut("link")?.as_array_mut()?;
        let mut last = 0;
        for (number, link) in links.iter_mut().enumerate() {
            if number == 0 || self.chance(0.8) {
                last += 1;
            }
            link["name"] = json!(format!("link {number}"));
            link["from"] = json!(format!("node {}", last - 1));
            link["to"] = json!(format!("node {last}"));
            if self.chance(0.9) {
                link["both_ways"] = json!(true);
            }
        }
        Some(last + 1)
    }

    /// Traffic goes from node to node if there are nodes, and over the dumbbell otherwise.
    fn place(&mut self, member: &mut Value, nodes: Option<usize>) {
        let Some(table) = member.as_object_mut() else { return };
        let Some(nodes) = nodes else {
            table.retain(|key, _| key != "from" && key != "to");
            return;
        };
        table.retain(|key, _| key != "rtt" && key != "reverse");
        let from = self.below(nodes);
        let to = (from + 1 + self.below(nodes - 1)) % nodes;
        table.insert("from".into(), json!(format!("node {from}")));
        table.insert("to".into(), json!(format!("node {to}")));
    }

    /// Classes have unique names, and one of them takes the packets that match no other.
    fn mend_classes(value: &mut Value) {
        match value {
            Value::Array(values) => values.iter_mut().for_each(Self::mend_classes),
            Value::Object(table) => {
                let is_priority = table.get("name") == Some(&json!("priority"));
                for key in ["class", "profile"] {
                    let Some(list) = table.get_mut(key).and_then(Value::as_array_mut) else { continue };
                    if list.is_empty() && key == "class" {
                        list.push(json!({ "name": "" }));
                    }
                    for (number, one) in list.iter_mut().enumerate() {
                        let Some(one) = one.as_object_mut() else { continue };
                        if key == "class" {
                            one.insert("name".into(), json!(format!("class {number}")));
                        }
                        if number == 0 {
                            one.remove("dscp");
                        } else if one.get("dscp").and_then(Value::as_array).is_none_or(Vec::is_empty) {
                            let named = if number % 2 == 0 { "ef" } else { "af" };
                            one.insert("dscp".into(), json!([named]));
                        }
                        if is_priority {
                            one.remove("weight");
                        }
                        if number > 0 {
                            one.remove("buffer_share");
                        }
                    }
                }
                table.iter_mut().for_each(|(_, value)| Self::mend_classes(value));
            }
            _ => {}
        }
    }
}

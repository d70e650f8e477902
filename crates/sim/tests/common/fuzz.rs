//! Whole scenarios, drawn from the JSON Schema of the scenario file and carried out: what the test `fuzz` and the example of the same
//! name share.
//!
//! The schema says which keys there are and what each may be, so a new key is drawn as soon as it exists. What no schema says stands in
//! [`Draw::mend`]: names that refer to each other. One seed gives one scenario.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use elephan_metrics::table::Table;
use elephan_metrics::{Control, Outcome, SoFar};
use elephan_scenario::estimate::Estimate;
use elephan_scenario::{Error as Refusal, Plan, Scenario};
use elephan_sim::{Error, check, run};
use elephan_units::{Seed, Stream};
use rand::RngExt;
use serde_json::{Map, Value, json};

/// What asks for more is left out of a scenario: its run would take longer than milliseconds.
const MOST_EVENTS: f64 = 2e6;
const MOST_ROWS: f64 = 1e5;
const MOST_BYTES: f64 = 2e8;
/// A run of so many events that goes on for longer has no end.
const PATIENCE: Duration = Duration::from_mins(1);
/// One in so many runs is made a second time, and one in so many is cancelled on its way.
const AGAIN: u64 = 8;
/// Tables within tables go no deeper.
const DEEPEST: u32 = 5;

/// Draws a scenario.
struct Draw {
    schema: Value,
    stream: Stream,
    /// Rates and times of a scenario lie around these, bit/s and s, and so do what is sent and how long that takes.
    rate: f64,
    duration: f64,
}

impl Draw {
    /// The scenario of a seed.
    fn new(seed: u64) -> Self {
        let mut draw = Self {
            schema: Scenario::schema(),
            stream: Seed::new(seed).stream("fuzz", 0),
            rate: 0.0,
            duration: 0.0,
        };
        draw.rate = draw.decades(0.0, 12.0);
        // A few thousand packets at that rate, in no more than 10 s.
        let packets = draw.decades(0.0, 3.7);
        draw.duration = (packets * 12_000.0 / draw.rate).clamp(1e-9, 10.0);
        draw
    }

    fn chance(&mut self, probability: f64) -> bool {
        self.stream.random::<f64>() < probability
    }

    fn below(&mut self, most: usize) -> usize {
        self.stream.random_range(0..most.max(1))
    }

    /// A number whose logarithm is uniform from `from` to `to`.
    fn decades(&mut self, from: f64, to: f64) -> f64 {
        10f64.powf(from + (to - from) * self.stream.random::<f64>())
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// The scenario, as a document.
    fn scenario(&mut self) -> Value {
        let schema = std::mem::take(&mut self.schema);
        let mut document = Map::new();
        for (key, property) in schema["properties"].as_object().expect("a scenario is a table") {
            // Files of other engines and of many runs are not what is tested here.
            if key == "engine" || key == "sweep" {
                continue;
            }
            let is_needed = schema["required"].as_array().is_some_and(|keys| keys.contains(&json!(key)));
            if (is_needed || self.chance(0.5))
                && let Some(value) = self.value(&schema, property, key, 0)
            {
                document.insert(key.clone(), value);
            }
        }
        document.insert("duration".into(), time(self.duration));
        if self.chance(0.7) {
            document.remove("link");
            let path = &schema["properties"]["path"]["anyOf"][0];
            let path = self.value(&schema, path, "path", 0);
            document.insert("path".into(), path.expect("a path is a table"));
        } else {
            document.remove("path");
            let links = &schema["properties"]["link"];
            let mut made = self.value(&schema, links, "link", 0).unwrap_or_default();
            while made.as_array().is_none_or(Vec::is_empty) {
                made = self.value(&schema, links, "link", 0).unwrap_or_default();
            }
            document.insert("link".into(), made);
        }
        self.schema = schema;
        self.mend(&mut document);
        Value::Object(document)
    }

    // ---- What a schema allows ----

    /// A value of a schema; none where that is nothing.
    fn value(&mut self, whole: &Value, schema: &Value, key: &str, depth: u32) -> Option<Value> {
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
            return match name {
                "Time" => Some(self.time()),
                "Rate" => Some(self.rate()),
                "Bytes" => Some(self.bytes(key)),
                "Buffer" => Some(self.buffer(key)),
                "Dscp" | "Codepoints" => Some(self.codepoint(name == "Codepoints")),
                _ => self.value(whole, &whole["$defs"][name], key, depth),
            };
        }
        if let Some(value) = schema.get("const") {
            return Some(value.clone());
        }
        if let Some(values) = schema["enum"].as_array() {
            return Some(self.pick(values).clone());
        }
        if let Some(kinds) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
            // No file is read. A table in a table in a table ends with what is no table.
            let can_be = |kind: &&Value| {
                let requires =
                    |key: &str| kind["required"].as_array().is_some_and(|keys| keys.contains(&json!(key)));
                !requires("csv")
                    && (depth < DEEPEST
                        || kind.get("enum").is_some()
                        || kinds.iter().all(|k| k.get("enum").is_none()))
            };
            let kinds: Vec<&Value> = kinds.iter().filter(can_be).collect();
            let kind = *self.pick(&kinds);
            return self.value(whole, kind, key, depth);
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) if self.chance(0.8) => kinds[0].as_str(),
            Value::Array(_) => return None,
            kind => kind.as_str(),
        };
        match kind {
            Some("null") => None,
            Some("boolean") => Some(json!(self.chance(0.5))),
            Some("integer") => Some(self.integer(schema, key)),
            Some("number") => Some(self.number(schema)),
            Some("string") => Some(self.text(schema)),
            Some("array") => Some(self.list(whole, schema, key, depth)),
            Some("object") => Some(self.table(whole, schema, depth)),
            _ => panic!("{key}: no rule for how to draw {schema}"),
        }
    }

    fn table(&mut self, whole: &Value, schema: &Value, depth: u32) -> Value {
        let mut table = Map::new();
        let often = *self.pick(&[0.1, 0.3, 0.8]);
        for (key, property) in schema["properties"].as_object().into_iter().flatten() {
            let is_needed = schema["required"].as_array().is_some_and(|keys| keys.contains(&json!(key)));
            if (is_needed || self.chance(often))
                && let Some(value) = self.value(whole, property, key, depth + 1)
            {
                table.insert(key.clone(), value);
            }
        }
        if let Some(property) = schema.get("additionalProperties").filter(|property| property.is_object()) {
            for _ in 0..self.below(3) {
                let name = format!("class {}", self.below(3));
                let value = self.value(whole, property, &name, depth + 1);
                table.insert(name, value.unwrap_or_default());
            }
        }
        Value::Object(table)
    }

    fn list(&mut self, whole: &Value, schema: &Value, key: &str, depth: u32) -> Value {
        if let Some(items) = schema["prefixItems"].as_array() {
            return items.iter().filter_map(|item| self.value(whole, item, key, depth + 1)).collect();
        }
        let count = *self.pick(&[0, 1, 1, 2, 3]);
        (0..count).filter_map(|_| self.value(whole, &schema["items"], key, depth + 1)).collect()
    }

    fn number(&mut self, schema: &Value) -> Value {
        let bound = |key: &str| schema[key].as_f64();
        let least = bound("minimum").or(bound("exclusiveMinimum"));
        let most = bound("maximum").or(bound("exclusiveMaximum"));
        let (from, to) = (least.unwrap_or(0.0), most.unwrap_or(least.map_or(1.0, |least| least + 1000.0)));
        json!(match self.below(60) {
            // A bound that is not a value itself is refused.
            0 if least.is_none() || schema.get("exclusiveMinimum").is_none() || self.chance(0.1) => from,
            1 => to,
            // Beyond what any bound says, where there is none.
            2 if most.is_none() => self.decades(-6.0, 6.0),
            3..25 if from >= 0.0 && to > 0.0 => {
                let low = from.max(to * 1e-6);
                low * (to / low).powf(self.stream.random::<f64>())
            }
            _ => from + (to - from) * self.stream.random::<f64>(),
        })
    }

    fn integer(&mut self, schema: &Value, key: &str) -> Value {
        let least = schema["minimum"].as_u64().unwrap_or(0);
        let most = schema["maximum"].as_u64();
        if key == "seed" {
            return json!(self.stream.random::<u32>());
        }
        // Many alike are only more of the same.
        let usual = if ["count", "users"].contains(&key) { 1.0 } else { 2.5 };
        json!(match self.below(200) {
            0 => least,
            1 => most.unwrap_or(10_000_000),
            2 => most.unwrap_or(u64::MAX).min(u64::from(u32::MAX)),
            _ => (least.max(1) as f64 * self.decades(0.0, usual)).min(most.unwrap_or(u64::MAX) as f64) as u64,
        })
    }

    fn text(&mut self, schema: &Value) -> Value {
        assert!(schema.get("pattern").is_none(), "no rule for how to draw {schema}");
        if self.chance(0.02) {
            return json!("\u{1b}[31m\n");
        }
        json!(*self.pick(&["a", "b", "ü [b]", "../x", "$\\frac$", "\"'|"]))
    }

    // ---- Quantities ----

    fn time(&mut self) -> Value {
        let seconds = match self.below(200) {
            0 => 0.0,
            1 => 1e-12,
            2 | 3 => 10.0,
            // Instants that many have in common.
            4..40 => self.duration * (1 + self.below(8)) as f64 / 8.0,
            _ => self.duration * self.decades(-3.0, 0.3),
        };
        time(seconds)
    }

    fn rate(&mut self) -> Value {
        let rate = match self.below(200) {
            0 => 0.0,
            1 => 1.0,
            2 | 3 => 1e12,
            4..80 => self.rate,
            _ => self.rate * self.decades(-1.0, 0.5),
        };
        json!(format!("{} bit/s", rate.round() as u64))
    }

    fn bytes(&mut self, key: &str) -> Value {
        let bytes = match (key, self.below(100)) {
            ("packet", 0..5) => 100.0,
            ("packet", 5..10) => 65_535.0,
            ("packet", _) => self.decades(2.0, 4.0),
            // Room for a packet or more.
            ("buffer" | "send_buffer" | "receive_buffer", 1..) => self.decades(4.0, 7.0),
            (_, 0..5) => 1.0,
            (_, 5..8) => 1e12,
            _ => self.decades(0.0, 7.0),
        };
        json!(format!("{} B", bytes.round() as u64))
    }

    fn buffer(&mut self, key: &str) -> Value {
        match self.below(10) {
            0 => json!("1 packet"),
            1 => json!("10000000 packets"),
            2..8 => json!(format!("{} packets", self.decades(0.0, 3.0) as u64)),
            8 => json!(format!("{:.3}% bdp", self.decades(-1.0, 3.0))),
            _ => self.bytes(key),
        }
    }

    fn codepoint(&mut self, is_set: bool) -> Value {
        let names = ["be", "ef", "cs1", "le", "af11", "af23", "af41", "0", "63", "af", "af1"];
        json!(self.pick(&names[..if is_set { 11 } else { 9 }]))
    }

    // ---- What a schema does not say ----

    /// Names that refer to each other, and lists that must be whole.
    fn mend(&mut self, document: &mut Map<String, Value>) {
        let nodes = self.name_links(document);
        let links: Vec<String> = match document.get("link").and_then(Value::as_array) {
            Some(links) => links.iter().filter_map(|link| link["name"].as_str().map(str::to_owned)).collect(),
            None => vec!["bottleneck".into(), "bottleneck.reverse".into()],
        };
        let kinds = ["flow", "web", "arrivals", "cbr", "on_off"];
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
            }
        }
        for event in document.get_mut("event").and_then(Value::as_array_mut).into_iter().flatten() {
            event["link"] = json!(self.pick(&links));
            if self.chance(0.9) {
                event["at"] = time(self.duration * self.below(9) as f64 / 8.0);
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

    /// Links are a chain of nodes, of which some pairs have two; the number of nodes.
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

    /// Traffic goes from node to node where there are nodes, and over the dumbbell where there are none.
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

    /// Classes have names of their own, and one of them takes what no other names.
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

fn time(seconds: f64) -> Value {
    json!(format!("{} ps", (seconds * 1e12).round() as u64))
}

// ---- What becomes of them ----

/// What became of a scenario.
enum Fate {
    /// It was refused when it was loaded, whatever was left out.
    Refused,
    /// It asks for too much.
    TooLarge,
    /// It ran: events.
    Ran(u64),
}

/// What was drawn, and what became of it.
#[derive(Default)]
pub struct Tally {
    pub drawn: u64,
    /// Refused when it was loaded as it was drawn, by key; and how many were so to the last.
    pub refused: BTreeMap<String, u64>,
    pub hopeless: u64,
    pub too_large: u64,
    pub ran: u64,
    /// Of the slowest: how long it took, and its seed.
    pub slowest: (Duration, u64),
    /// Of the largest: its events, and its seed.
    pub largest: (u64, u64),
}

impl Tally {
    /// Draws the scenario of `seed` and carries it out; what is wrong with it, or with us, in words. What a scenario is refused for
    /// is left out until it is loaded or nothing is left.
    fn examine(&mut self, seed: u64) -> Result<(), String> {
        let mut document = Draw::new(seed).scenario();
        self.drawn += 1;
        let began = Instant::now();
        let fate = catch_unwind(AssertUnwindSafe(|| {
            let (mut is_refused, mut is_too_large) = (false, false);
            let (plan, estimate) = loop {
                let key = match load(&document)? {
                    Loaded::Ready(ready) => break *ready,
                    Loaded::Refused(key) => {
                        if !is_refused {
                            let names = key.split('.').filter(|part| part.parse::<u64>().is_err());
                            *self.refused.entry(names.collect::<Vec<_>>().join(".")).or_default() += 1;
                        }
                        is_refused = true;
                        key
                    }
                    Loaded::TooLarge(key) => {
                        is_too_large = true;
                        key
                    }
                };
                if !leave_out(&mut document, &key) {
                    return Ok(if is_too_large { Fate::TooLarge } else { Fate::Refused });
                }
            };
            examine(&plan, &estimate, seed)
        }));
        let took = began.elapsed();
        let wrong = match fate {
            Ok(Ok(Fate::Refused)) => {
                self.hopeless += 1;
                return Ok(());
            }
            Ok(Ok(Fate::TooLarge)) => {
                self.too_large += 1;
                return Ok(());
            }
            Ok(Ok(Fate::Ran(events))) => {
                self.ran += 1;
                self.slowest = self.slowest.max((took, seed));
                self.largest = self.largest.max((events, seed));
                return Ok(());
            }
            Ok(Err(wrong)) => wrong,
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or(panic.downcast_ref::<&str>().copied());
                format!("it panicked: {}", text.unwrap_or("without a word"))
            }
        };
        let table: toml::Table = serde_json::from_value(document).expect("a scenario is a table");
        Err(format!("scenario {seed}: {wrong}\n\n{table}"))
    }

    /// Adds what another has drawn.
    fn add(&mut self, other: Self) {
        self.drawn += other.drawn;
        self.hopeless += other.hopeless;
        self.too_large += other.too_large;
        self.ran += other.ran;
        self.slowest = self.slowest.max(other.slowest);
        self.largest = self.largest.max(other.largest);
        for (key, count) in other.refused {
            *self.refused.entry(key).or_default() += count;
        }
    }

    /// What was drawn, in a few lines.
    pub fn report(&self) -> String {
        let refused: u64 = self.refused.values().sum();
        let (slowest, largest) = (self.slowest, self.largest);
        let mut text = format!(
            "drawn {}, refused when loaded {refused} ({} still without what they were refused for), too large {}, run {}\nslowest {:.3} s (scenario {}), largest {} events \
             (scenario {})\n",
            self.drawn,
            self.hopeless,
            self.too_large,
            self.ran,
            slowest.0.as_secs_f64(),
            slowest.1,
            largest.0,
            largest.1
        );
        let mut kinds: Vec<_> = self.refused.iter().map(|(kind, count)| (count, kind)).collect();
        kinds.sort_by(|a, b| b.cmp(a));
        for (count, kind) in kinds {
            writeln!(text, "{count:>7} refused for {kind}").expect("text grows");
        }
        text
    }
}

/// Draws and carries out the scenarios of `seeds` on every core, and calls `tell` each minute. Stops at the first that does what it must
/// not: its seed, and what that was.
pub fn examine_all(seeds: Range<u64>, tell: impl Fn(&Tally)) -> (Tally, Option<(u64, String)>) {
    let next = AtomicU64::new(seeds.start);
    let (tally, wrong) = (Mutex::new(Tally::default()), Mutex::new(None));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let mut one = Tally::default();
            let fate = one.examine(seed);
            tally.lock().expect("nobody panics with it").add(one);
            if let Err(what) = fate {
                next.store(seeds.end, Ordering::Relaxed);
                wrong.lock().expect("nobody panics with it").get_or_insert((seed, what));
            }
        }
    };
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let mut told = Instant::now();
        while !workers.iter().all(thread::ScopedJoinHandle::is_finished) {
            thread::sleep(Duration::from_millis(50));
            if told.elapsed() >= Duration::from_mins(1) {
                tell(&tally.lock().expect("nobody panics with it"));
                told = Instant::now();
            }
        }
    });
    let wrong = wrong.into_inner().expect("nobody panics with it");
    (tally.into_inner().expect("nobody panics with it"), wrong)
}

/// Ends a run that has no end, or one that is to be cancelled.
struct Watch {
    began: Instant,
    /// Cancels it when it is asked for the so manieth time.
    cancels: bool,
    asked: AtomicBool,
}

impl Watch {
    fn new(cancels: bool) -> Self {
        Self { began: Instant::now(), cancels, asked: AtomicBool::new(false) }
    }
}

impl Control for Watch {
    fn goes_on(&self, _: &SoFar<'_>) -> bool {
        !self.cancels || !self.asked.swap(true, Ordering::Relaxed)
    }
    fn is_cancelled(&self) -> bool {
        self.began.elapsed() > PATIENCE
    }
    fn pcap_file(&self, _: &str) -> Option<PathBuf> {
        None
    }
}

/// The key that a scenario is refused for first. Each mistake is told of in one line.
fn refused_for(refusal: &Refusal) -> Result<&str, String> {
    for mistake in &refusal.mistakes {
        if mistake.to_string().contains('\n') {
            return Err(format!("an error has more than one line: {mistake:?}"));
        }
    }
    refusal.mistakes.first().map(|mistake| mistake.key.as_str()).ok_or("refused for no reason".to_owned())
}

/// Takes `key` out of a document, or as much of it as is there: the table that lacks it. False where that is nothing.
fn leave_out(document: &mut Value, key: &str) -> bool {
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

/// Everything that an outcome says, to the bit.
fn fingerprint(outcome: &Outcome) -> String {
    format!("{outcome:?}")
}

/// What becomes of a scenario when it is loaded.
enum Loaded {
    Ready(Box<(Plan, Estimate)>),
    /// It is refused, or asks for more than milliseconds: for this key.
    Refused(String),
    TooLarge(String),
}

/// Reads a scenario, from JSON and from the TOML and JSON that it is written as, and resolves it.
fn load(document: &Value) -> Result<Loaded, String> {
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
    let estimate = match scenario.check("drawn", false) {
        Ok(estimate) => estimate,
        Err(refusal) => return refused(&refusal),
    };
    for (bound, most) in
        [(&estimate.events, MOST_EVENTS), (&estimate.rows, MOST_ROWS), (&estimate.bytes, MOST_BYTES)]
    {
        if bound.amount > most {
            return Ok(Loaded::TooLarge(bound.key.clone()));
        }
    }
    let plan = scenario.resolve("drawn").map_err(|error| error.to_string())?;
    Ok(Loaded::Ready(Box::new((plan, estimate))))
}

/// Carries out the plan of a scenario, twice or half where it is its turn.
fn examine(plan: &Plan, estimate: &Estimate, seed: u64) -> Result<Fate, String> {
    let carry_out = |watch: &Watch| run(plan, watch);
    let outcome = carry_out(&Watch::new(false)).map_err(|error| error.to_string())?;
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
    ];
    let rows = rows.iter().sum::<usize>();
    if rows as f64 > estimate.rows.amount {
        return Err(format!("{rows} rows, where the estimate was {:?}", estimate.rows));
    }
    if seed.is_multiple_of(AGAIN) {
        let again = carry_out(&Watch::new(false)).map_err(|error| error.to_string())?;
        if fingerprint(&outcome) != fingerprint(&again) {
            return Err("two runs of one seed differ".to_owned());
        }
    }
    if seed % AGAIN == 1 && !matches!(carry_out(&Watch::new(true)), Err(Error::Cancelled)) {
        return Err("it was not cancelled".to_owned());
    }
    Ok(Fate::Ran(outcome.events_handled))
}

//! What is expected of the runs of a scenario: `[[expect]]`.
//!
//! The forms are typed here. What the texts of metrics, conditions and bounds mean is known where results are read.

use std::fmt;

use elephan_units::{Mistake, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::document::positive;

/// A sentence about the runs of a scenario, and what decides whether it holds: a metric and its bounds, or a property of the samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectFile {
    /// The sentence.
    pub says: String,
    /// What is read from a run: a metric of the run ("utilisation"), of a flow by its number or label ("goodput.2"), of a link by its
    /// name; or, over samples, "max of cwnd.1", "share of time with srtt.1 > 50 ms", "time until cwnd.1 >= 500 segments".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// The metric is divided by that of the same run with these settings, and the same seed.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub ratio_to: Map<String, Value>,
    /// That of the same run with these settings, and the same seed, is taken from the metric.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub difference_to: Map<String, Value>,
    /// The harm done to the metric by what differs from the same run with these settings, and the same seed: its loss as a share of
    /// that; for a delay or a loss rate, its rise as a share of the larger one (Ware et al. 2019). Below zero: a gain.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub harm_to: Map<String, Value>,
    /// What is bounded: the mean over repeats, their median, or the metric of every repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistic: Option<Statistic>,
    /// Least value: a number of what has no unit, a quantity, or a share of one of the scenario's keys ("90 % path.rate").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<Bound>,
    /// Greatest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<Bound>,
    /// Bound that the value exceeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<Bound>,
    /// Bound below which the value is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<Bound>,
    /// A condition that holds at every sample, such as "cwnd.1 >= 4 segments and queue.bottleneck < 100 packets".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<String>,
    /// A condition that holds at some sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eventually: Option<String>,
    /// Conditions that come to hold one after another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// The condition after whose first sample `always` applies; `eventually` applies each time that it comes to hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The condition with whose first sample `always` ends. It has to come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Time in which `eventually`, or each step of `order`, has to come: "2 s", or "3 rounds" of the flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Span>,
    /// Start of the window that is read; by default that of `measure`, for a property that of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Time>,
    /// End of the window that is read; by default that of `measure`, for a property that of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Time>,
    /// Settings of all its runs, by key.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub set: Map<String, Value>,
    /// The points at which it holds: values by key, in all combinations; also `zip` and `points`, as in `sweep`. By default those of
    /// the scenario's `sweep`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub over: Map<String, Value>,
    /// Whether it holds at every point, or at some.
    #[serde(default, skip_serializing_if = "At::is_every")]
    pub at: At,
    /// The most seeds of a point: fewer are run where these decide. By default 20; 1 for what holds in every repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u64>,
}

/// What is bounded of the metric of the repeats of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// Their mean, by Student's interval.
    Mean,
    /// The median of times, some of which may not have come, by Kaplan and Meier.
    Median,
    /// Each of them, without an interval.
    Every,
}

/// At which points an expectation holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum At {
    /// At every point.
    #[default]
    Every,
    /// At one point or more.
    Some,
}

impl At {
    #[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
    fn is_every(&self) -> bool {
        *self == Self::Every
    }
}

/// A bound.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// Of what has no unit.
    Number(f64),
    /// With a unit, or a share of one of the scenario's keys.
    Text(String),
}

impl<'de> Deserialize<'de> for Bound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Bound;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a number, or text such as \"50 Mbit/s\" or \"90 % path.rate\"")
            }
            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Bound, E> {
                Ok(Bound::Number(number))
            }
            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Bound, E> {
                Ok(Bound::Number(number as f64))
            }
            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Bound, E> {
                Ok(Bound::Number(number as f64))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Bound, E> {
                Ok(Bound::Text(text.to_owned()))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl Serialize for Bound {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl JsonSchema for Bound {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Bound".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A number, or text such as \"50 Mbit/s\" or \"90 % path.rate\"",
            "type": ["number", "string"],
        })
    }
}

/// A length of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// On the clock.
    Time(Time),
    /// In round trips of the flow of which the condition is.
    Rounds(u64),
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => time.fmt(f),
            Self::Rounds(rounds) => write!(f, "{rounds} rounds"),
        }
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if let Some(rounds) = text.trim_end_matches('s').strip_suffix("round")
            && let Ok(rounds) = rounds.trim().parse()
        {
            return Ok(Self::Rounds(rounds));
        }
        text.parse().map(Self::Time).map_err(|_| {
            serde::de::Error::invalid_value(
                serde::de::Unexpected::Str(&text),
                &"a time such as \"2 s\", or rounds such as \"3 rounds\"",
            )
        })
    }
}

impl JsonSchema for Span {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Span".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A time such as \"2 s\", or rounds such as \"3 rounds\"",
            "type": "string",
        })
    }
}

impl ExpectFile {
    /// The kinds that it is of, by their keys: it has to be of one.
    fn kinds(&self) -> Vec<&'static str> {
        let kinds = [
            ("metric", self.metric.is_some()),
            ("always", self.always.is_some()),
            ("eventually", self.eventually.is_some()),
            ("order", !self.order.is_empty()),
        ];
        kinds.into_iter().filter(|(_, is_there)| *is_there).map(|(key, _)| key).collect()
    }

    /// The keys that it has and that belong to other kinds than `kind`.
    fn foreign(&self, kind: &str) -> impl Iterator<Item = &'static str> {
        let is_metric = kind == "metric";
        let keys = [
            ("ratio_to", !self.ratio_to.is_empty(), is_metric),
            ("difference_to", !self.difference_to.is_empty(), is_metric && self.ratio_to.is_empty()),
            (
                "harm_to",
                !self.harm_to.is_empty(),
                is_metric && self.ratio_to.is_empty() && self.difference_to.is_empty(),
            ),
            ("statistic", self.statistic.is_some(), is_metric),
            ("at_least", self.at_least.is_some(), is_metric),
            ("at_most", self.at_most.is_some(), is_metric),
            ("above", self.above.is_some(), is_metric && self.at_least.is_none()),
            ("below", self.below.is_some(), is_metric && self.at_most.is_none()),
            ("after", self.after.is_some(), kind == "always" || kind == "eventually"),
            ("until", self.until.is_some(), kind == "always"),
            ("within", self.within.is_some(), kind == "eventually" || kind == "order"),
        ];
        keys.into_iter().filter(|(_, is_there, belongs)| *is_there && !belongs).map(|(key, ..)| key)
    }

    /// What is wrong in it, with keys below its own, which is `key`.
    pub(crate) fn check(&self, key: &str, mistakes: &mut Vec<Mistake>) {
        let at = |name: &str| format!("{key}.{name}");
        if self.says.trim().is_empty() {
            mistakes.push(Mistake::new(at("says"), "a sentence", "none"));
        }
        let kinds = self.kinds();
        let [kind] = kinds[..] else {
            let found = if kinds.is_empty() { "none".to_owned() } else { kinds.join(" and ") };
            mistakes.push(Mistake::new(key, "one of metric, always, eventually, order", found));
            return;
        };
        for name in self.foreign(kind) {
            let other = match name {
                "difference_to" | "harm_to" if kind == "metric" => "ratio_to or difference_to",
                "above" if kind == "metric" => "at_least",
                "below" if kind == "metric" => "at_most",
                _ => kind,
            };
            mistakes.push(Mistake::new(at(name), format_args!("none beside {other}"), "one"));
        }
        let bounds = [&self.at_least, &self.at_most, &self.above, &self.below];
        if kind == "metric" && bounds.iter().all(|bound| bound.is_none()) {
            mistakes.push(Mistake::new(key, "a bound: at_least, at_most, above or below", "none"));
        }
        if kind == "order" && self.order.len() < 2 {
            mistakes.push(Mistake::new(at("order"), "two conditions or more", self.order.len()));
        }
        if self.repeat == Some(0) {
            mistakes.push(Mistake::new(at("repeat"), "1 or more", 0));
        }
        match self.within {
            Some(Span::Time(time)) => positive(mistakes, &at("within"), time),
            Some(Span::Rounds(0)) => mistakes.push(Mistake::new(at("within"), "1 round or more", 0)),
            _ => {}
        }
        if let (Some(from), Some(to)) = (self.from, self.to)
            && from >= to
        {
            mistakes.push(Mistake::new(at("to"), format_args!("a time after from, {from}"), to));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Scenario;

    const RUN: &str = "duration = \"10 s\"\npath = { rate = \"10 Mbit/s\", rtt = \"20 ms\" }\nflow = [{ cc = \"reno\" }]\n[[expect]]\n";

    fn mistakes(expect: &str) -> Vec<String> {
        let read = Scenario::from_toml(&format!("{RUN}{expect}"), "x.toml", &[]);
        let checked = read.and_then(|scenario| scenario.resolve("x.toml").map(|_| ()));
        checked
            .err()
            .map(|error| error.mistakes.iter().map(ToString::to_string).collect())
            .unwrap_or_default()
    }

    #[test]
    fn an_expectation_is_of_one_kind_and_has_what_belongs_to_it() {
        for case in r#"
            says = "x" ; metric = "goodput" ; at_least = "5 Mbit/s" =>
            says = "x" ; order = ["a", "b"] ; within = "3 rounds" =>
            says = "x" ; eventually = "a" ; after = "b" ; within = "2 s" =>
            says = "x" ; metric = "goodput" => expect.0: expected a bound: at_least, at_most, above or below, found none
            says = "x" => expect.0: expected one of metric, always, eventually, order, found none
            says = "x" ; metric = "a" ; always = "b" => expect.0: expected one of metric, always, eventually, order, found metric and always
            says = " " ; always = "a" => expect.0.says: expected a sentence, found none
            says = "x" ; always = "a" ; at_least = 1 => expect.0.at_least: expected none beside always, found one
            says = "x" ; metric = "a" ; at_least = 1 ; above = 1 => expect.0.above: expected none beside at_least, found one
            says = "x" ; metric = "a" ; at_least = [] => expect.0.at_least: expected a number, or text such as "50 Mbit/s" or "90 % path.rate", found a list
            says = "x" ; order = ["a"] => expect.0.order: expected two conditions or more, found 1
            says = "x" ; order = ["a", "b"] ; within = "0 rounds" => expect.0.within: expected 1 round or more, found 0
            says = "x" ; order = ["a", "b"] ; within = "2 laps" => expect.0.within: expected a time such as "2 s", or rounds such as "3 rounds", found "2 laps"
            says = "x" ; always = "a" ; from = "3 s" ; to = "2 s" => expect.0.to: expected a time after from, 3 s, found 2 s
            says = "x" ; always = "a" ; repeat = 0 => expect.0.repeat: expected 1 or more, found 0
            says = "x" ; always = "a" ; over = { "path.rtt" = [] } => expect.0.over.path.rtt: expected a list of values, found []
            says = "x" ; always = "a" ; alwayz = 1 => expect.0.alwayz: expected the key always, or another of 22, found "alwayz"
        "#
        .trim()
        .lines()
        {
            let (expect, expected) = case.split_once("=>").unwrap();
            let expected = expected.trim();
            let expected: &[&str] = if expected.is_empty() { &[] } else { &[expected] };
            assert_eq!(mistakes(&expect.replace(';', "\n")), expected, "{case}");
        }
    }

    #[test]
    fn what_is_expected_is_no_part_of_a_run() {
        let text = format!("{RUN}says = \"x\"\nalways = \"a\"\nwithin = \"3 rounds\"\n")
            .replace("within", "# within");
        let scenario = Scenario::from_toml(&text, "x.toml", &[]).unwrap();
        assert!(scenario.expansion("x.toml").unwrap().point(0).unwrap().scenario.expect.is_empty());
        let again = Scenario::from_json(&serde_json::to_string(&scenario).unwrap(), "x", &[]).unwrap();
        assert_eq!(again, scenario);
    }
}

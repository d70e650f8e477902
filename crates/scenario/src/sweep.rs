//! Sweeps: one file, many scenarios.
//!
//! A `[sweep]` has three forms, which may stand together; a point has one value of each:
//!
//! - `"path.rtt" = ["16 ms", "82 ms"]`: every value with every value of the other keys (cartesian);
//! - `[sweep.zip]`, a table of lists of one length: the first values of all, the second values of all, ... (zipped);
//! - `[[sweep.points]]`, a list of tables with the same keys: each as it stands (listed).
//!
//! `repeat = 5` runs each point with the seeds `seed` to `seed + 4`.

use serde_json::{Map, Value};

use crate::document;
use crate::error::{Error, Mistake};
use crate::estimate::{Estimate, check_runs};
use crate::file::Scenario;
use crate::read::typed;

/// Keys of a sweep that are none of the scenario.
const REPEAT: &str = "repeat";
const ZIP: &str = "zip";
const POINTS: &str = "points";

/// A scenario of a sweep, and the settings that it stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The scenario, without a sweep.
    pub scenario: Scenario,
    /// Key and value of what was set, in the order of the file.
    pub settings: Map<String, Value>,
}

/// The points of a sweep: any one of them can be had without the others.
#[derive(Clone, Debug)]
pub struct Expansion {
    file: String,
    scenario: Scenario,
    /// The scenario without its sweep.
    document: Value,
    /// Groups of settings; a point has one of each axis. The last axis varies fastest.
    axes: Vec<Vec<Map<String, Value>>>,
    points: usize,
    repeats: u64,
}

impl Scenario {
    /// Reads the sweep. A scenario without one has a single point, itself. What is expected is no part of a point.
    ///
    /// The order is that of the file, the last key varying fastest.
    pub fn expansion(&self, file: &str) -> Result<Expansion, Error> {
        let error = |mistake| Error { file: file.to_owned(), mistakes: vec![mistake] };
        self.check_expectations().map_err(|mistakes| Error { file: file.to_owned(), mistakes })?;
        let mut scenario = self.clone();
        (scenario.sweep, scenario.expect) = (Map::new(), Vec::new());
        let document = serde_json::to_value(&scenario).expect("a scenario is always JSON");
        let (mut axes, mut repeats) = (Vec::new(), 1);
        for (key, values) in &self.sweep {
            match key.as_str() {
                REPEAT => repeats = repeat(values).map_err(error)?,
                ZIP => axes.push(zipped(values).map_err(error)?),
                POINTS => axes.push(listed(values).map_err(error)?),
                _ => axes.push(
                    list(&format!("sweep.{key}"), values)
                        .map_err(error)?
                        .iter()
                        .map(|value| Map::from_iter([(key.clone(), value.clone())]))
                        .collect(),
                ),
            }
        }
        let points = axes
            .iter()
            .try_fold(1_usize, |product, axis| product.checked_mul(axis.len()))
            .filter(|&points| u32::try_from(points).is_ok())
            .ok_or_else(|| error(Mistake::new("sweep", "fewer than 2^32 points", "more")))?;
        Ok(Expansion { file: file.to_owned(), scenario, document, axes, points, repeats })
    }

    /// The mistakes of `[[expect]]`: of its tables, and of the points of their populations.
    pub(crate) fn check_expectations(&self) -> Result<(), Vec<Mistake>> {
        let mut mistakes = Vec::new();
        for (number, expect) in self.expect.iter().enumerate() {
            let key = format!("expect.{number}");
            expect.check(&key, &mut mistakes);
            let mut population = self.clone();
            (population.sweep, population.expect) = (expect.over.clone(), Vec::new());
            if let Err(error) = population.expansion("") {
                let below = |name: &str| name.replacen("sweep", &format!("{key}.over"), 1);
                mistakes
                    .extend(error.mistakes.into_iter().map(|one| Mistake { key: below(&one.key), ..one }));
            }
        }
        if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
    }
}

impl Point {
    /// The point with the seed of repeat `k`: the scenario's seed plus `k`, whatever the point, so that all points
    /// draw the same random numbers.
    #[must_use]
    pub fn repeat(&self, k: u64) -> Self {
        let mut repeat = self.clone();
        repeat.scenario.seed = repeat.scenario.seed.wrapping_add(k);
        repeat
    }
}

impl Expansion {
    /// How many points there are, repeats not counted.
    pub fn points(&self) -> usize {
        self.points
    }

    /// With how many seeds each point is to be run.
    pub fn repeats(&self) -> u64 {
        self.repeats
    }

    /// The settings of point `number`, which counts from 0.
    ///
    /// # Panics
    /// Where there is no such point.
    pub fn settings(&self, number: usize) -> Map<String, Value> {
        assert!(number < self.points, "point {number} of {}", self.points);
        let mut stride = self.points;
        let mut settings = Map::new();
        for axis in &self.axes {
            stride /= axis.len();
            for (key, value) in &axis[number / stride % axis.len()] {
                settings.insert(key.clone(), value.clone());
            }
        }
        settings
    }

    /// Point `number`, which counts from 0.
    ///
    /// # Panics
    /// Where there is no such point.
    pub fn point(&self, number: usize) -> Result<Point, Error> {
        let settings = self.settings(number);
        if self.axes.is_empty() {
            return Ok(Point { scenario: self.scenario.clone(), settings });
        }
        let mut document = self.document.clone();
        settings
            .iter()
            .try_for_each(|(key, value)| document::set(&mut document, key, value))
            .and_then(|()| typed(document, ""))
            .map(|scenario| Point { scenario, settings })
            .map_err(|mistake| self.at(number, Error { file: self.file.clone(), mistakes: vec![mistake] }))
    }

    /// Checks that every point works and that, unless it may be `large`, nothing is beyond the limits of [`crate::estimate`].
    /// A point is checked when it is asked for, the first with the number of runs. Gives the estimate of each.
    pub fn check(&self, large: bool) -> impl Iterator<Item = Result<Estimate, Error>> {
        let runs = check_runs(self.points, self.repeats).filter(|_| !large);
        let refused = runs.map(|mistake| Err(Error { file: self.file.clone(), mistakes: vec![mistake] }));
        let estimate = move |number| {
            let checked = self.point(number)?.scenario.check(&self.file, large);
            checked.map(|plan| plan.estimate).map_err(|error| self.at(number, error))
        };
        refused.into_iter().chain((0..self.points).map(estimate))
    }

    /// Says at which point of a sweep a mistake is. People count from 1.
    fn at(&self, number: usize, mut error: Error) -> Error {
        if !self.axes.is_empty() {
            let settings: Vec<String> =
                self.settings(number).iter().map(|(key, value)| format!("{key} = {value}")).collect();
            let place = format!("at point {} of {}: {}", number + 1, self.points, settings.join(", "));
            error.mistakes.iter_mut().for_each(|mistake| mistake.note.clone_from(&place));
        }
        error
    }
}

fn repeat(value: &Value) -> Result<u64, Mistake> {
    value
        .as_u64()
        .filter(|&count| count > 0)
        .ok_or_else(|| Mistake::new("sweep.repeat", "a number of repeats, 1 or more", value))
}

fn list<'a>(key: &str, values: &'a Value) -> Result<&'a Vec<Value>, Mistake> {
    values
        .as_array()
        .filter(|values| !values.is_empty())
        .ok_or_else(|| Mistake::new(key, "a list of values", values))
}

fn zipped(value: &Value) -> Result<Vec<Map<String, Value>>, Mistake> {
    let table = value
        .as_object()
        .filter(|table| !table.is_empty())
        .ok_or_else(|| Mistake::new("sweep.zip", "a table of lists", value))?;
    let mut axis: Vec<Map<String, Value>> = Vec::new();
    for (key, values) in table {
        let name = format!("sweep.zip.{key}");
        let values = list(&name, values)?;
        if axis.is_empty() {
            axis.resize(values.len(), Map::new());
        }
        if values.len() != axis.len() {
            return Err(Mistake::new(
                name,
                format_args!("{} values, as many as the first list has", axis.len()),
                values.len(),
            ));
        }
        for (settings, value) in axis.iter_mut().zip(values) {
            settings.insert(key.clone(), value.clone());
        }
    }
    Ok(axis)
}

fn listed(value: &Value) -> Result<Vec<Map<String, Value>>, Mistake> {
    let mut axis: Vec<Map<String, Value>> = Vec::new();
    for (index, point) in list("sweep.points", value)?.iter().enumerate() {
        let key = format!("sweep.points.{index}");
        let settings = point
            .as_object()
            .filter(|settings| !settings.is_empty())
            .ok_or_else(|| Mistake::new(&key, "a table of keys and values", point))?;
        let keys = |settings: &Map<String, Value>| settings.keys().cloned().collect::<Vec<_>>();
        if let Some(first) = axis.first()
            && (settings.len() != first.len() || !settings.keys().all(|key| first.contains_key(key)))
        {
            return Err(Mistake::new(
                key,
                format_args!("the keys of the first point, {}", keys(first).join(", ")),
                keys(settings).join(", "),
            ));
        }
        axis.push(settings.clone());
    }
    Ok(axis)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWEPT: &str = r#"
        duration = "10 s"
        path = { rate = "10 Mbit/s", rtt = "20 ms" }
        flow = [{ cc = "reno" }, { cc = "reno" }]
        [sweep]
        "path.rtt" = ["16 ms", "82 ms"]
        "flow.1.cc" = ["scalable", "htcp", "bic"]
        repeat = 2
    "#;

    fn with_sweep(sweep: &str) -> String {
        SWEPT.split("[sweep]").next().unwrap().to_owned() + sweep
    }

    fn expansion_of(text: &str) -> Expansion {
        Scenario::from_toml(text, "x.toml", &[]).unwrap().expansion("x.toml").unwrap()
    }

    fn settings_of(text: &str) -> Vec<String> {
        let expansion = expansion_of(text);
        let points = (0..expansion.points()).map(|number| expansion.point(number).unwrap());
        points.map(|point| serde_json::to_string(&point.settings).unwrap()).collect()
    }

    fn error_of(text: &str) -> String {
        let expansion = Scenario::from_toml(text, "x.toml", &[]).unwrap().expansion("x.toml");
        expansion
            .and_then(|expansion| expansion.check(false).try_for_each(|point| point.map(|_| ())))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn all_combinations_in_the_order_of_the_file() {
        let expansion = expansion_of(SWEPT);
        assert_eq!((expansion.points(), expansion.repeats()), (6, 2));
        let point = expansion.point(1).unwrap();
        let settings = serde_json::to_string(&point.settings).unwrap();
        assert_eq!(settings, r#"{"path.rtt":"16 ms","flow.1.cc":"htcp"}"#);
        assert_eq!(point.scenario.flow[1].cc.0.name, "htcp");
        assert_eq!(point.scenario.flow[0].cc.0.name, "reno");
        assert_eq!(point.repeat(1).scenario.seed, 2);
    }

    #[test]
    fn zipped_lists_go_together_and_cross_the_others() {
        let text = with_sweep(
            r#"
            [sweep]
            "flow.cc" = ["reno", "htcp"]
            [sweep.zip]
            "path.rate" = ["10 Mbit/s", "100 Mbit/s"]
            "path.buffer" = ["20 packets", "200 packets"]
            "#,
        );
        assert_eq!(
            settings_of(&text),
            [
                r#"{"flow.cc":"reno","path.rate":"10 Mbit/s","path.buffer":"20 packets"}"#,
                r#"{"flow.cc":"reno","path.rate":"100 Mbit/s","path.buffer":"200 packets"}"#,
                r#"{"flow.cc":"htcp","path.rate":"10 Mbit/s","path.buffer":"20 packets"}"#,
                r#"{"flow.cc":"htcp","path.rate":"100 Mbit/s","path.buffer":"200 packets"}"#,
            ]
        );
    }

    #[test]
    fn listed_points_are_taken_as_they_stand() {
        let text = with_sweep(
            r#"
            [[sweep.points]]
            "path.rtt" = "16 ms"
            "flow.cc" = "reno"
            [[sweep.points]]
            "path.rtt" = "82 ms"
            "flow.cc" = "htcp"
            "#,
        );
        assert_eq!(
            settings_of(&text),
            [r#"{"path.rtt":"16 ms","flow.cc":"reno"}"#, r#"{"path.rtt":"82 ms","flow.cc":"htcp"}"#]
        );
    }

    #[test]
    fn a_scenario_without_a_sweep_is_its_only_point() {
        let scenario = Scenario::from_toml(&with_sweep(""), "x.toml", &[]).unwrap();
        let expansion = scenario.expansion("x.toml").unwrap();
        assert_eq!((expansion.points(), expansion.repeats()), (1, 1));
        assert_eq!(expansion.point(0).unwrap(), Point { scenario, settings: Map::new() });
    }

    #[test]
    fn a_wrong_value_names_its_point() {
        assert_eq!(
            error_of(&SWEPT.replace("82 ms", "82")),
            "x.toml: path.rtt: expected a time such as \"82 ms\", found \"82\" \
             (at point 4 of 6: path.rtt = \"82\", flow.1.cc = \"scalable\")"
        );
        // One that only shows when the point is resolved.
        let found = error_of(&SWEPT.replace("82 ms", "0 ms"));
        assert!(
            found.starts_with(
                "x.toml: path.rtt: expected a time above zero, found \"0 s\" \
                 (at point 4 of 6: path.rtt = \"0 ms\", flow.1.cc = \"scalable\")\n"
            ),
            "{found}"
        );
    }

    #[test]
    fn a_sweep_that_is_none_is_refused() {
        for (sweep, expected) in [
            ("sweep = { repeat = 0 }", "sweep.repeat: expected a number of repeats, 1 or more, found 0"),
            ("sweep = { zip = 3 }", "sweep.zip: expected a table of lists, found 3"),
            (
                r#"sweep.zip = { "path.rtt" = ["1 ms", "2 ms"], "flow.cc" = ["reno"] }"#,
                "sweep.zip.flow.cc: expected 2 values, as many as the first list has, found 1",
            ),
            (
                r#"sweep.points = [{ "path.rtt" = "1 ms" }, { "flow.cc" = "reno" }]"#,
                "sweep.points.1: expected the keys of the first point, path.rtt, found flow.cc",
            ),
            ("sweep.points = []", "sweep.points: expected a list of values, found []"),
            (r#"sweep."flow.5.cc" = ["reno"]"#, "flow.5.cc: expected an index below 2, found 5"),
        ] {
            let found = error_of(&with_sweep(sweep));
            assert!(found.starts_with(&format!("x.toml: {expected}")), "{found}");
        }
    }
}

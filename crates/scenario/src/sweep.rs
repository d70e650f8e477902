//! Sweeps: one file, many scenarios.

use serde_json::{Map, Value, json};

use crate::document;
use crate::error::{Error, Mistake};
use crate::file::Scenario;

/// A scenario of a sweep, and the settings that it stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The scenario, without a sweep.
    pub scenario: Scenario,
    /// Key and value of what was set, in the order of the file; `repeat` last.
    pub settings: Map<String, Value>,
}

impl Scenario {
    /// Every scenario of the sweep: all combinations, the last key varying fastest, each repeated with the seeds
    /// `seed`, `seed + 1`, ... A scenario without a sweep is its only point.
    pub fn expand(&self, file: &str) -> Result<Vec<Point>, Error> {
        let error = |mistake| Error { file: file.to_owned(), mistakes: vec![mistake] };
        let mut single = self.clone();
        single.sweep = Map::new();
        let document = serde_json::to_value(&single).expect("a scenario is always JSON");
        let mut points = vec![(document, Map::new())];
        let mut repeat = 1;
        for (key, values) in &self.sweep {
            if key == "repeat" {
                repeat = values.as_u64().filter(|&count| count > 0).ok_or_else(|| {
                    error(Mistake::new("sweep.repeat", "a number of repeats, 1 or more", values))
                })?;
                continue;
            }
            let values = values
                .as_array()
                .filter(|values| !values.is_empty())
                .ok_or_else(|| error(Mistake::new(format!("sweep.{key}"), "a list of values", values)))?;
            let mut next = Vec::with_capacity(points.len() * values.len());
            for (document, settings) in &points {
                for value in values {
                    let (mut document, mut settings): (Value, Map<String, Value>) =
                        (document.clone(), settings.clone());
                    document::set(&mut document, key, value).map_err(error)?;
                    settings.insert(key.clone(), value.clone());
                    next.push((document, settings));
                }
            }
            points = next;
        }
        let mut expanded = Vec::with_capacity(points.len() * repeat as usize);
        for (document, settings) in points {
            let scenario: Self = document::typed(document, "").map_err(|mistake| {
                let found = serde_json::to_string(&settings).unwrap_or_default();
                error(Mistake {
                    problem: format!("{} (at the point {found} of the sweep)", mistake.problem),
                    ..mistake
                })
            })?;
            for k in 0..repeat {
                let (mut scenario, mut settings) = (scenario.clone(), settings.clone());
                scenario.seed = scenario.seed.wrapping_add(k);
                if self.sweep.contains_key("repeat") {
                    settings.insert("repeat".to_owned(), json!(k));
                }
                expanded.push(Point { scenario, settings });
            }
        }
        Ok(expanded)
    }
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

    #[test]
    fn all_combinations_in_the_order_of_the_file() {
        let points = Scenario::from_toml(SWEPT, "x.toml", &[]).unwrap().expand("x.toml").unwrap();
        assert_eq!(points.len(), 12);
        let settings = serde_json::to_string(&points[3].settings).unwrap();
        assert_eq!(settings, r#"{"path.rtt":"16 ms","flow.1.cc":"htcp","repeat":1}"#);
        assert_eq!(points[3].scenario.seed, 2);
        assert_eq!(points[3].scenario.flow[1].cc.0.name, "htcp");
        assert_eq!(points[3].scenario.flow[0].cc.0.name, "reno");
    }

    #[test]
    fn a_wrong_value_names_its_point() {
        let text = SWEPT.replace("82 ms", "82");
        let error = Scenario::from_toml(&text, "x.toml", &[]).unwrap().expand("x.toml").unwrap_err();
        assert_eq!(
            error.to_string(),
            "x.toml: path.rtt: expected a time such as \"82 ms\", found \"82\" \
             (at the point {\"path.rtt\":\"82\",\"flow.1.cc\":\"scalable\"} of the sweep)"
        );
    }
}

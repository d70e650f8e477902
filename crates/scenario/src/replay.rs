//! Traces of links from files: `trace = "FILE"`, read when the scenario is, so that the scenario has all that it needs.
//!
//! A file whose first line is a whole number is a trace of mahimahi: a time in ms in each line, at which 1500 bytes may leave. Any
//! other is CSV: its first line has the names of columns, with a unit in parentheses where the cells are plain numbers.

use std::path::Path;

use elephan_units::{Rate, Time};
use serde_json::{Map, Value, json};

use crate::csv::{self, Files};
use crate::error::{Error, Mistake};
use crate::file::StepFile;

/// The key of a link that names a trace.
const KEY: &str = "trace";
/// The largest file, bytes, and the most lines: a day with an opportunity each 50 ms, or hours of a mobile network.
const MOST_BYTES: u64 = 64_000_000;
const MOST_LINES: usize = 2_000_000;
/// The most lines of a CSV file, whose rows are larger.
const MOST_ROWS: usize = 200_000;
const COLUMNS: [&str; 4] = ["time", "rate", "delay", "loss"];

/// Replaces every `trace = "FILE"` and every `trace = { file = "FILE" }` of the links of a document, and of its sweep, by a table
/// with the content of the file. Relative paths begin at the scenario's folder.
pub(crate) fn inline(document: &mut Value, scenario: &str, files: Files) -> Result<(), Error> {
    let Value::Object(table) = document else { return Ok(()) };
    // The scenario's own `trace` says what is recorded.
    let places = table.iter_mut().filter(|(name, _)| ["path", "link", "sweep"].contains(&name.as_str()));
    let reader = Reader { scenario, files };
    for (name, value) in places {
        reader.inline(value, name, false)?;
    }
    Ok(())
}

struct Reader<'a> {
    scenario: &'a str,
    files: Files,
}

impl Reader<'_> {
    /// The same for the part of a document at `key`, which `is_trace` if it is the value of such a key, or a list of values.
    fn inline(&self, document: &mut Value, key: &str, is_trace: bool) -> Result<(), Error> {
        match document {
            Value::String(path) if is_trace => *document = self.read(path, true, key)?,
            Value::Object(table) if is_trace => {
                // An empty list is no content: it is not written, either.
                let lists = ["steps", "opportunities"];
                table.retain(|name, value| {
                    !lists.contains(&name.as_str()) || value.as_array().is_none_or(|list| !list.is_empty())
                });
                let content = lists.iter().any(|name| table.contains_key(*name));
                if let (false, Some(Value::String(path))) = (content, table.get("file")) {
                    let repeats = table.get("loop").is_none_or(|value| value != &Value::Bool(false));
                    let Value::Object(read) = self.read(path, repeats, key)? else { return Ok(()) };
                    table.remove("file");
                    for (name, value) in read {
                        table.entry(name).or_insert(value);
                    }
                }
            }
            Value::Object(table) => {
                for (name, value) in table.iter_mut() {
                    let is_trace = name.rsplit('.').next() == Some(KEY);
                    self.inline(value, &format!("{key}.{name}"), is_trace)?;
                }
            }
            Value::Array(items) => {
                for (number, value) in items.iter_mut().enumerate() {
                    self.inline(value, &format!("{key}.{number}"), is_trace)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn read(&self, path: &str, repeats: bool, key: &str) -> Result<Value, Error> {
        if self.files == Files::Refused {
            let expected = "no file, but its content as steps or opportunities";
            let mistake = Mistake::new(key, expected, "a file");
            return Err(Error { file: self.scenario.to_owned(), mistakes: vec![mistake] });
        }
        let folder = Path::new(self.scenario).parent().unwrap_or(Path::new(""));
        let full = folder.join(path);
        let content = text(&full).and_then(|text| parse(&text)).map_err(|mut mistake| {
            mistake.note = format!("read for {key} of {}", self.scenario);
            Error { file: full.display().to_string(), mistakes: vec![mistake] }
        })?;
        let (name, content) = match content {
            Content::Steps(steps) => {
                ("steps", serde_json::to_value(steps).expect("times and rates are text"))
            }
            Content::Opportunities(millis) => ("opportunities", json!(millis)),
        };
        let table = [(name, content), ("loop", json!(repeats)), ("source", json!(path))];
        Ok(Value::Object(Map::from_iter(table.map(|(name, value)| (name.to_owned(), value)))))
    }
}

/// The text of a file of at most [`MOST_BYTES`].
fn text(path: &Path) -> Result<String, Mistake> {
    let expected = "a trace of a link, CSV or mahimahi's";
    let found = path.metadata().map_err(|problem| Mistake::new("", expected, problem))?;
    // A device or a pipe may have no end.
    if !found.is_file() {
        return Err(Mistake::new("", expected, "no regular file"));
    }
    if found.len() > MOST_BYTES {
        let found = format!("{} bytes", found.len());
        return Err(Mistake::new("", format_args!("a trace of at most {MOST_BYTES} bytes"), found));
    }
    csv::text(path).map_err(|problem| Mistake::new("", expected, problem))
}

/// What a file has.
#[derive(Debug, PartialEq)]
enum Content {
    Steps(Vec<StepFile>),
    Opportunities(Vec<u64>),
}

fn parse(text: &str) -> Result<Content, Mistake> {
    let first = text.lines().next().unwrap_or("").trim();
    if first.is_empty() {
        let expected = "names of columns, one of them \"time\", or a time in ms";
        return Err(Mistake::new("line 1", expected, "nothing"));
    }
    if first.bytes().all(|byte| byte.is_ascii_digit()) { opportunities(text) } else { steps(text) }
}

/// What a line has, as an error shows it: not all of a long one.
fn shown(line: &str) -> String {
    let start: String = line.chars().take(40).collect();
    if start.len() < line.len() { format!("{start:?}...") } else { format!("{start:?}") }
}

fn too_many(most: usize) -> Mistake {
    Mistake::new(format!("line {}", most + 2), format_args!("at most {most} lines"), "more")
}

fn opportunities(text: &str) -> Result<Content, Mistake> {
    let mut millis: Vec<u64> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let at = || format!("line {}", number + 1);
        if number == MOST_LINES {
            return Err(too_many(MOST_LINES));
        }
        let digits = !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
        let time = line
            .parse()
            .ok()
            .filter(|_| digits)
            .ok_or_else(|| Mistake::new(at(), "a time in whole ms", shown(line)))?;
        millis.push(time);
        check_opportunity(&millis, millis.len() - 1).map_err(|mistake| mistake.below(&at()))?;
    }
    check_end(&millis).map_err(|mistake| mistake.below(&format!("line {}", millis.len())))?;
    Ok(Content::Opportunities(millis))
}

/// Refuses an opportunity that is before the one before it, or beyond the clock.
pub(crate) fn check_opportunity(millis: &[u64], number: usize) -> Result<(), Mistake> {
    let time = millis[number];
    let before = if number == 0 { 0 } else { millis[number - 1] };
    if time < before {
        return Err(Mistake::new("", format_args!("a time of {before} ms or later"), time));
    }
    let most = Time::MAX.picos() / Time::from_millis(1).picos();
    if time > most {
        return Err(Mistake::new("", format_args!("a time of at most {most} ms"), time));
    }
    Ok(())
}

/// Refuses a trace that lasts no time.
pub(crate) fn check_end(millis: &[u64]) -> Result<(), Mistake> {
    match millis.last() {
        None | Some(0) => Err(Mistake::new("", "a last time above 0 ms", "0")),
        Some(_) => Ok(()),
    }
}

fn steps(text: &str) -> Result<Content, Mistake> {
    let mut lines = text.lines().enumerate();
    let head = lines.next().map_or("", |(_, line)| line);
    let columns = head.split(',').map(column).collect::<Result<Vec<_>, _>>()?;
    let place = |name: &str| columns.iter().position(|(found, _)| found == name);
    if place("time").is_none() || columns.len() < 2 {
        let expected = "names of columns: time, and one of rate, delay, loss";
        return Err(Mistake::new("line 1", expected, shown(head)));
    }
    if let Some((name, _)) =
        columns.iter().enumerate().find(|(number, (name, _))| place(name) != Some(*number)).map(|(_, it)| it)
    {
        return Err(Mistake::new("line 1", "each column once", format_args!("\"{name}\" again")));
    }
    let mut steps: Vec<StepFile> = Vec::new();
    for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        if steps.len() == MOST_ROWS {
            return Err(too_many(MOST_ROWS));
        }
        let step = row(line, &columns)
            .and_then(|step| {
                steps.push(step);
                check_step(&steps, steps.len() - 1)
            })
            .map_err(|mistake| mistake.below(&format!("line {}", number + 1)));
        step?;
    }
    if steps.is_empty() {
        return Err(Mistake::new("line 2", "a row", "nothing"));
    }
    Ok(Content::Steps(steps))
}

/// The name of a column and its unit: `rate (Mbit/s)`.
fn column(text: &str) -> Result<(String, String), Mistake> {
    let (name, unit) = text.split_once('(').map_or((text, ""), |(name, unit)| (name, unit));
    let (name, unit) = (name.trim(), unit.trim().trim_end_matches(')').trim());
    if !COLUMNS.contains(&name) {
        let expected = format!("a column of {}, such as \"rate (Mbit/s)\"", COLUMNS.join(", "));
        return Err(Mistake::new("line 1", expected, shown(text.trim())));
    }
    let zero = format!("0 {unit}");
    let known = match name {
        _ if unit.is_empty() => true,
        "rate" => zero.parse::<Rate>().is_ok(),
        "loss" => unit == "%",
        _ => zero.parse::<Time>().is_ok(),
    };
    if known {
        Ok((name.to_owned(), unit.to_owned()))
    } else {
        let expected = match name {
            "rate" => "a unit such as Mbit/s",
            "loss" => "the unit %, or none",
            _ => "a unit such as ms",
        };
        Err(Mistake::new("line 1", format_args!("{expected} in column {name}"), shown(unit)))
    }
}

fn row(line: &str, columns: &[(String, String)]) -> Result<StepFile, Mistake> {
    let cells: Vec<&str> = line.split(',').map(str::trim).collect();
    if cells.len() != columns.len() {
        return Err(Mistake::new("", format_args!("{} cells", columns.len()), cells.len()));
    }
    let mut step = StepFile::default();
    for ((name, unit), cell) in columns.iter().zip(cells) {
        let with_unit = format!("{cell} {unit}");
        let quantity = if unit.is_empty() { cell } else { &with_unit };
        let wrong = |expected: &str| Mistake::new(name, expected, shown(quantity));
        let is_time = name == "time";
        if cell.is_empty() && !is_time {
            continue;
        }
        let time = || quantity.parse::<Time>().map_err(|mistake| wrong(&mistake.expected));
        match name.as_str() {
            "time" => step.time = time()?,
            "delay" => step.delay = Some(time()?),
            "rate" => step.rate = Some(quantity.parse::<Rate>().map_err(|mistake| wrong(&mistake.expected))?),
            _ => {
                let (number, scale) = match cell.strip_suffix('%') {
                    Some(number) => (number.trim(), 100.0),
                    None => (cell, if unit.is_empty() { 1.0 } else { 100.0 }),
                };
                let probability = number.parse::<f64>().map(|number| number / scale);
                step.loss = Some(probability.map_err(|_| wrong("a probability from 0 to 1, or in %"))?);
            }
        }
    }
    Ok(step)
}

/// Refuses a step that is not after the one before it, and losses that cannot be.
pub(crate) fn check_step(steps: &[StepFile], number: usize) -> Result<(), Mistake> {
    let step = &steps[number];
    let time = format!("\"{}\"", step.time);
    match number.checked_sub(1).map(|before| steps[before].time) {
        None if step.time > Time::ZERO => {
            return Err(Mistake::new("time", "the time \"0 s\" first", time));
        }
        Some(before) if step.time <= before => {
            return Err(Mistake::new("time", format_args!("a time after \"{before}\""), time));
        }
        _ => {}
    }
    match step.loss {
        Some(loss) if !(0.0..=1.0).contains(&loss) => {
            Err(Mistake::new("loss", "a probability from 0 to 1", loss))
        }
        _ => Ok(()),
    }
}

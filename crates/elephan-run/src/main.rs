//! Runs a scenario on the simulator and prints its metrics, or its samples as CSV:
//!
//!     cargo run --profile edit -p elephan-run -- SCENARIO.toml [--set KEY=VALUE]... [--csv]
//!
//! This is the short way from an edit of a crate to its effect: it needs neither Python nor the extension module. The metrics are
//! those of `elephan run`. Their names, units, factors and digits are the declared ones of `elephan-metrics`.

use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::process::ExitCode;

use elephan_metrics::field::Field;
use elephan_metrics::table::{Column, Slice, Table};
use elephan_metrics::{
    CrowdSummary, FlowSummary, LinkSummary, Outcome, StreamSummary, Summary, Uncontrolled,
};
use elephan_scenario::{Engine, Files, Plan, Scenario, Syntax, parse};
use serde_json::Value;

const USAGE: &str = "expected SCENARIO.toml [--set KEY=VALUE]... [--csv]";
/// The exit code for wrong input, as of the command `elephan`.
const BAD_INPUT: u8 = 2;

/// What the command line asks for.
struct Request {
    file: String,
    settings: Vec<(String, String)>,
    csv: bool,
}

impl Request {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut file, mut settings, mut csv) = (None, Vec::new(), false);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--csv" => csv = true,
                "--set" => {
                    let text = arguments.next().ok_or("--set: expected KEY=VALUE, found nothing")?;
                    let (key, value) = text
                        .split_once('=')
                        .ok_or_else(|| format!("--set: expected KEY=VALUE, found {text:?}"))?;
                    settings.push((key.trim().to_owned(), value.trim().to_owned()));
                }
                _ if argument.starts_with('-') => {
                    return Err(format!("elephan-run: {USAGE}, found {argument}"));
                }
                _ if file.is_some() => return Err(format!("elephan-run: {USAGE}, found another {argument}")),
                _ => file = Some(argument),
            }
        }
        let file = file.ok_or_else(|| format!("elephan-run: {USAGE}, found no scenario"))?;
        Ok(Self { file, settings, csv })
    }

    fn plan(&self) -> Result<Plan, String> {
        let file = self.file.as_str();
        let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        let text_of = |error: elephan_scenario::Error| error.to_string();
        let document = parse(&text, file, Syntax::Toml).map_err(text_of)?;
        let scenario =
            Scenario::from_document(document, file, &self.settings, Files::Allowed).map_err(text_of)?;
        if scenario.engine != Engine::Sim {
            return Err(format!("{file}: expected {}, found {}", Engine::Sim, scenario.engine));
        }
        if !scenario.sweep.is_empty() {
            return Err(format!("{file}: expected a single run, found a sweep"));
        }
        scenario.check(file, false).map_err(text_of)
    }
}

fn main() -> ExitCode {
    let ran = Request::read(std::env::args().skip(1)).and_then(|request| {
        let plan = request.plan()?;
        let outcome = elephan_sim::run(&plan, &Uncontrolled).map_err(|error| error.to_string())?;
        let mut out = BufWriter::new(io::stdout().lock());
        let written = if request.csv {
            write_csv(&mut out, &outcome.flows)
        } else {
            write_tables(&mut out, &plan, &outcome)
        };
        match written.and_then(|()| out.flush()) {
            // Who reads has enough, as `head` does.
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(format!("elephan-run: {error}")),
            _ => Ok(()),
        }
    });
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // Without a reader of errors the exit code still tells.
            let _ = writeln!(io::stderr(), "{message}");
            ExitCode::from(BAD_INPUT)
        }
    }
}

/// The rows of a table, with the declared names of its columns. What is unknown is empty.
fn write_csv<T: Table>(out: &mut impl Write, table: &T) -> io::Result<()> {
    let columns: Vec<(&Column, Slice<'_>)> = table.since(0).collect();
    write_row(out, T::COLUMNS.iter().map(|column| column.name))?;
    (0..table.rows()).try_for_each(|row| write_row(out, columns.iter().map(|column| cell(*column, row))))
}

fn write_row(out: &mut impl Write, cells: impl Iterator<Item = impl Display>) -> io::Result<()> {
    for (number, cell) in cells.enumerate() {
        write!(out, "{}{cell}", if number > 0 { "," } else { "" })?;
    }
    writeln!(out)
}

fn cell((column, values): (&Column, Slice<'_>), row: usize) -> String {
    let (is_unknown, text) = match values {
        Slice::F64(values) => (values[row].is_nan(), values[row].to_string()),
        Slice::U64(values) => (values[row] == u64::MAX, values[row].to_string()),
        Slice::U32(values) => (values[row] == u32::MAX, values[row].to_string()),
        Slice::U8(values) => (values[row] == u8::MAX, values[row].to_string()),
    };
    if column.is_nullable && is_unknown { String::new() } else { text }
}

/// The metrics of the run, of each flow and of each link, and of what else the run has.
fn write_tables(out: &mut impl Write, plan: &Plan, outcome: &Outcome) -> io::Result<()> {
    let summary = serde_json::to_value(&outcome.summary).expect("a summary is always JSON");
    let algorithms: Vec<&str> = plan.flows.iter().map(|flow| flow.cc.name).collect();
    write_table(out, Summary::FIELDS, std::slice::from_ref(&summary), None)?;
    let parts = [
        ("flows", FlowSummary::FIELDS, Some(&algorithms[..])),
        ("crowds", CrowdSummary::FIELDS, None),
        ("streams", StreamSummary::FIELDS, None),
        ("links", LinkSummary::FIELDS, None),
    ];
    for (key, fields, algorithms) in parts {
        let rows = summary[key].as_array().map_or(&[][..], Vec::as_slice);
        if !rows.is_empty() {
            writeln!(out)?;
            write_table(out, fields, rows, algorithms)?;
        }
    }
    Ok(())
}

/// A line for each row: what names it, the algorithm of a flow, and the figures that tables show, and the bytes retransmitted.
fn write_table(
    out: &mut impl Write,
    fields: &[Field],
    rows: &[Value],
    algorithms: Option<&[&str]>,
) -> io::Result<()> {
    let name = fields.iter().find(|field| ["label", "name"].contains(&field.name));
    let mut columns: Vec<Vec<String>> = Vec::new();
    if let Some(field) = name {
        let texts = rows.iter().map(|row| row[field.name].as_str().unwrap_or_default().to_owned());
        columns.push([field.title.to_owned(), String::new()].into_iter().chain(texts).collect());
    }
    if let Some(algorithms) = algorithms {
        let texts = algorithms.iter().map(|&text| text.to_owned());
        columns.push(["cc".to_owned(), String::new()].into_iter().chain(texts).collect());
    }
    let left = columns.len();
    for field in fields {
        let (unit, factor, digits) = match field.shown {
            Some(shown) => (shown.unit, shown.factor, shown.digits),
            None if field.name == "retransmitted_bytes" => (field.unit, 1.0, 0),
            None => continue,
        };
        let texts = rows.iter().map(|row| match row[field.name].as_f64() {
            Some(value) => format!("{:.*}", usize::from(digits), value * factor),
            None => "-".to_owned(),
        });
        columns.push([field.title.to_owned(), unit.to_owned()].into_iter().chain(texts).collect());
    }
    let width = |column: &[String]| column.iter().map(|text| text.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = columns.iter().map(|column| width(column)).collect();
    for line in 0..rows.len() + 2 {
        let cells = columns.iter().zip(&widths).enumerate().map(|(number, (column, &width))| {
            let cell = &column[line];
            if number < left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

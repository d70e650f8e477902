//! Sizes from a CSV file, `{ csv = "sizes.csv" }`, and connection vectors from a file, `{ cvec = "trace.cvec" }`: read when the scenario
//! is, so that the scenario has all that it needs.

use std::path::Path;
use std::{fs, io};

use elephan_units::Bytes;
use serde_json::{Value, json};

use crate::cvec;
use crate::error::{Error, Mistake};

/// The column that counts.
const COLUMN: &str = "bytes";

/// Whether the files that a scenario names are read for it. A scenario from elsewhere has no business with the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// They are read: the user who runs the scenario wrote it.
    Allowed,
    /// A scenario that names one is refused.
    Refused,
}

/// Replaces every table `{ csv = "FILE" }` of a document by `{ list = [...] }`, and `{ cvec = "FILE" }` by `{ lines = [...] }`. Relative paths begin at the scenario's folder.
pub(crate) fn inline(document: &mut Value, scenario: &str, files: Files) -> Result<(), Error> {
    inline_below(document, scenario, "", files)
}

/// The same for the part of a document at `key`, which a mistake names: a sweep may have many such tables.
fn inline_below(document: &mut Value, scenario: &str, key: &str, files: Files) -> Result<(), Error> {
    let below = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
    match document {
        Value::Object(table) => {
            let only = table.iter().next().filter(|_| table.len() == 1);
            if let Some((name @ ("csv" | "cvec"), Value::String(path))) =
                only.map(|(name, value)| (name.as_str(), value))
            {
                if files == Files::Refused {
                    let expected = if name == "csv" {
                        "no file, but sizes in a list"
                    } else {
                        "no file, but vectors in lines"
                    };
                    let mistake = Mistake::new(below(name), expected, "a file");
                    return Err(Error { file: scenario.to_owned(), mistakes: vec![mistake] });
                }
                let path = Path::new(scenario).parent().unwrap_or(Path::new("")).join(path);
                let inlined = match name {
                    "csv" => read(&path).map(|sizes| json!({ "list": sizes })),
                    _ => cvec::read(&path).map(|lines| json!({ "lines": lines })),
                };
                *document = inlined.map_err(|mut error| {
                    for mistake in &mut error.mistakes {
                        mistake.note = format!("read for {key} of {scenario}");
                    }
                    error
                })?;
                return Ok(());
            }
            table.iter_mut().try_for_each(|(name, value)| inline_below(value, scenario, &below(name), files))
        }
        Value::Array(items) => items
            .iter_mut()
            .enumerate()
            .try_for_each(|(index, value)| inline_below(value, scenario, &below(&index.to_string()), files)),
        _ => Ok(()),
    }
}

/// The text of a file, without the byte order mark that spreadsheets write before it.
pub fn text(path: &Path) -> io::Result<String> {
    let text = fs::read_to_string(path)?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// The sizes in column `bytes` of a CSV file, whose first line names the columns.
fn read(path: &Path) -> Result<Vec<Bytes>, Error> {
    let error = |mistake| Error { file: path.display().to_string(), mistakes: vec![mistake] };
    // A device or a pipe may have no end.
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return Err(error(Mistake::new("", "a CSV file with a column \"bytes\"", "no regular file")));
    }
    let text = text(path)
        .map_err(|problem| error(Mistake::new("", "a CSV file with a column \"bytes\"", problem)))?;
    let mut lines = text.lines().enumerate();
    let head = lines.next().map_or("", |(_, line)| line);
    let column = head.split(',').position(|name| name.trim() == COLUMN).ok_or_else(|| {
        error(Mistake::new("line 1", "names of columns, one of them \"bytes\"", format_args!("\"{head}\"")))
    })?;
    let mut sizes = Vec::new();
    for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let cell = line.split(',').nth(column).unwrap_or("").trim();
        let size = cell.parse().ok().filter(|&size: &u64| size > 0).ok_or_else(|| {
            let expected = "a number of bytes above zero in column \"bytes\"";
            error(Mistake::new(format!("line {}", number + 1), expected, format_args!("\"{cell}\"")))
        })?;
        sizes.push(Bytes::new(size));
    }
    if sizes.is_empty() {
        return Err(error(Mistake::new("", "a size in each line after the first", "none")));
    }
    Ok(sizes)
}

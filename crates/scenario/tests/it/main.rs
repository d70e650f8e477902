//! Tests of the scenario file from outside, all in one binary.

mod bad_input;
mod drawn;
mod fuzz;
mod limits;
mod sampling;
mod traces;
mod untrusted;

use std::path::{Path, PathBuf};

/// Every scenario of the project: the examples, and those that reproduce what was published.
fn project_scenarios() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![
        root.join("scenarios"),
        root.join("python/elephan/examples"),
        root.join("python/elephan/studies/reproduce/scenarios"),
    ];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the project's scenarios") {
            let path = entry.expect("a file of the project").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// What Rust and its libraries call things, and no scenario does.
const FOREIGN: [&str; 22] = [
    "f32", "f64", "u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "bool", "str", "string",
    "struct", "enum", "variant", "field", "tuple", "sequence", "map", "Option",
];

/// Whether a message has one of these words.
fn speaks_of_rust(message: &str) -> bool {
    message.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| FOREIGN.contains(&word))
}

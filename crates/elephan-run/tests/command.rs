//! What the command prints, and how it fails.

use std::process::{Command, Output, Stdio};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_elephan-run"))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .args(arguments)
        .output()
        .expect("the command starts")
}

fn printed(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The message of a command that must fail.
fn refused(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    String::from_utf8(output.stderr).expect("UTF-8")
}

const TWO: &str = "scenarios/engines/two-20.toml";

#[test]
fn a_scenario_becomes_tables() {
    insta::assert_snapshot!(printed(&[TWO, "--set", "flow.1.cc=scalable"]));
}

#[test]
fn samples_have_the_declared_columns() {
    let text = printed(&[TWO, "--csv", "--set", "duration=5s"]);
    let lines: Vec<&str> = text.lines().take(2).collect();
    insta::assert_snapshot!(lines.join("\n"));
    // Ten times a second from the start of a flow, which the first sample is of: 5 s of one flow, 3 s of the other.
    assert_eq!(text.lines().count(), 1 + 51 + 31);
}

#[test]
fn wrong_input_is_a_line_and_code_2() {
    let not_toml = refused(&["Makefile"]);
    assert!(not_toml.starts_with("Makefile: line 3: expected TOML"), "{not_toml}");
    assert!(refused(&["nowhere.toml"]).starts_with("nowhere.toml: "));
    let unknown = refused(&[TWO, "--set", "path.rat=1Mbit/s"]);
    assert!(unknown.starts_with("scenarios/engines/two-20.toml: path.rat: expected"), "{unknown}");
    assert_eq!(unknown.lines().count(), 1);
    assert_eq!(refused(&[TWO, "--set", "path.rate"]), "--set: expected KEY=VALUE, found \"path.rate\"\n");
    assert!(refused(&[TWO, "--svc"]).contains("found --svc"));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_elephan-run"))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .args([TWO, "--csv"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    drop(command.stdout.take());
    let output = command.wait_with_output().expect("it ends");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

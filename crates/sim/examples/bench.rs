//! Speed of the simulator: delivered data segments per second of CPU time, on a single thread.
//!
//! `make bench`, or `cargo run --release -p elephan-sim --example bench [NAME] [--seconds N]`
#![expect(clippy::print_stdout, reason = "it prints a table")]

use std::fs;

use elephan_metrics::Uncontrolled;
use elephan_scenario::Scenario;
use elephan_sim::run;

/// Name, and the scenario without its duration: packets of 1500 bytes, SACK, delayed ACKs, traced at 10 Hz.
const CASES: [(&str, &str, u32); 8] = [
    (
        "one Scalable flow, 1 Gbit/s, 100 ms, buffer 100% BDP",
        r#"path = { rate = "1 Gbit/s", rtt = "100 ms", buffer = "100% bdp" }
        flow = [{ cc = "scalable" }]"#,
        100,
    ),
    (
        "the same with RED",
        r#"path = { rate = "1 Gbit/s", rtt = "100 ms", buffer = "100% bdp", queue = "red" }
        flow = [{ cc = "scalable" }]"#,
        100,
    ),
    (
        "the same with CoDel",
        r#"path = { rate = "1 Gbit/s", rtt = "100 ms", buffer = "100% bdp", queue = "codel" }
        flow = [{ cc = "scalable" }]"#,
        100,
    ),
    (
        "one Scalable flow, three hops",
        r#"path = { rate = "1 Gbit/s", rtt = "100 ms", buffer = "100% bdp", access_rate = "10 Gbit/s" }
        flow = [{ cc = "scalable" }]"#,
        100,
    ),
    (
        "two HSTCP flows, 250 Mbit/s, 162 ms, buffer 20% BDP",
        r#"path = { rate = "250 Mbit/s", rtt = "162 ms", buffer = "20% bdp" }
        flow = [{ cc = "hstcp", count = 2 }]"#,
        100,
    ),
    (
        "100 Reno flows, 1 Gbit/s, 100 ms",
        r#"path = { rate = "1 Gbit/s", rtt = "100 ms" }
        flow = [{ cc = "reno", count = 100, start = { uniform = ["0 s", "1 s"] } }]"#,
        20,
    ),
    (
        "100,000 Reno flows, 10 Gbit/s, 100 ms",
        r#"path = { rate = "10 Gbit/s", rtt = "100 ms" }
        flow = [{ cc = "reno", count = 100000, start = { uniform = ["0 s", "1 s"] } }]"#,
        10,
    ),
    (
        "4200 web users, 2.4 Gbit/s, 120 ms",
        r#"path = { rate = "2.4 Gbit/s", rtt = "120 ms", buffer = "2048 packets", access_rate = "1 Gbit/s" }
        web = [{ users = 1400, count = 3, start = { uniform = ["0 s", "1 s"] }, tcp = { initial_window = 2 } }]"#,
        1200,
    ),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted = arguments.first().filter(|first| !first.starts_with("--"));
    let limit = arguments.iter().skip_while(|a| *a != "--seconds").nth(1).and_then(|text| text.parse().ok());
    println!("{:<54} {:>12} {:>12} {:>8} {:>9}", "scenario", "Mseg/CPU s", "ns/segment", "ev/seg", "peak MB");
    for (name, body, seconds) in CASES {
        if wanted.is_some_and(|wanted| !name.contains(wanted.as_str())) {
            continue;
        }
        let seconds = limit.map_or(seconds, |limit: u32| limit.min(seconds));
        let text = format!("duration = \"{seconds} s\"\n{body}");
        let plan = Scenario::from_toml(&text, name, &[])
            .and_then(|scenario| scenario.resolve(name))
            .unwrap_or_else(|error| panic!("{error}"));
        let before = cpu_seconds();
        let outcome = run(&plan, &Uncontrolled).expect("nothing cancels it");
        let spent = cpu_seconds() - before;
        let segments = outcome.segments_delivered as f64;
        println!(
            "{name:<54} {:>12.2} {:>12.1} {:>8.2} {:>9.0}",
            segments / spent / 1e6,
            spent / segments * 1e9,
            outcome.events_handled as f64 / segments,
            peak_megabytes()
        );
    }
}

/// CPU time of this process, user and system, from /proc.
fn cpu_seconds() -> f64 {
    let text = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap_or(f64::NAN) * 1e-9
}

/// Peak resident memory of this process so far, from /proc.
fn peak_megabytes() -> f64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e3
}

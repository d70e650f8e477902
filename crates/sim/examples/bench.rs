//! Speed and memory of the simulator: delivered data segments per second of CPU time. Each case runs in a process
//! of its own.
//!
//! `make bench`, or `cargo run --release -p elephan-sim --example bench -- [NAME] [--seconds N] [--repeat N] [--threads
//! N]`. NAME selects the cases whose names contain it, `--seconds` (2 or more) bounds the simulated time, `--repeat` gives
//! medians, `--threads` is that of the run (1 if not given, 0 for all cores).
#![expect(clippy::print_stdout, reason = "it prints a table")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use elephan_abi::foreign::Object;
use elephan_abi::registered::register;
use elephan_metrics::Uncontrolled;
use elephan_scenario::Scenario;
use elephan_sim::run_on;
use rustix::time::{ClockId, clock_gettime};

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Packets of 1500 bytes, SACK, delayed ACKs, traced at the default interval.
struct Case {
    name: &'static str,
    /// What it is to reach, as the columns have it.
    aim: &'static str,
    /// The scenario without its duration.
    body: String,
    seconds: u32,
}

fn cases() -> Vec<Case> {
    let aimed = |name, aim, seconds, body: &str| Case { name, aim, body: body.to_owned(), seconds };
    let case = |name, seconds, body: &str| aimed(name, "", seconds, body);
    vec![
        case(
            "one Scalable flow, 1 Gbit/s, 100 ms, buffer 100% BDP",
            100,
            r#"path = { rate = "1 Gbit/s", rtt = "100 ms", buffer = "100% bdp" }
            flow = [{ cc = "scalable" }]"#,
        ),
        aimed(
            "one Scalable flow, whose algorithm is an object in C",
            "1.2 times the row above",
            100,
            r#"path = { rate = "1 Gbit/s", rtt = "100 ms", buffer = "100% bdp" }
            flow = [{ cc = "lib:scalable" }]"#,
        ),
        case(
            "one Scalable flow, three hops",
            100,
            r#"path = { rate = "1 Gbit/s", rtt = "100 ms", buffer = "100% bdp", access_rate = "10 Gbit/s" }
            flow = [{ cc = "scalable" }]"#,
        ),
        case(
            "two HSTCP flows, 250 Mbit/s, 162 ms, buffer 20% BDP",
            100,
            r#"path = { rate = "250 Mbit/s", rtt = "162 ms", buffer = "20% bdp" }
            flow = [{ cc = "hstcp", count = 2 }]"#,
        ),
        case("two Reno flows, 250 Mbit/s, 82 ms", 100, &two_flows("")),
        case(
            "two Reno flows, 250 Mbit/s, 82 ms, three hops",
            100,
            &two_flows(r#", access_rate = "10 Gbit/s""#),
        ),
        case("100 Reno flows, 1 Gbit/s, 100 ms", 20, &hundred_flows("droptail")),
        case("100 Reno flows, RED", 20, &hundred_flows("red")),
        aimed("100 Reno flows, CoDel", "1.3 times DropTail", 20, &hundred_flows("codel")),
        aimed("100 Reno flows, FQ-CoDel", "1.5 times DropTail", 20, &hundred_flows("fq-codel")),
        case("16 bottlenecks of 1 Gbit/s with cross traffic", 10, &chain(16)),
        aimed(
            "100,000 Reno flows, 10 Gbit/s, 100 ms",
            "300 ns, 220 MB",
            10,
            r#"path = { rate = "10 Gbit/s", rtt = "100 ms" }
            flow = [{ cc = "reno", count = 100000, start = { uniform = ["0 s", "1 s"] } }]"#,
        ),
        aimed(
            "1,000,000 Reno flows, 100 Gbit/s, 100 ms",
            "600 ns, 2100 MB",
            2,
            r#"path = { rate = "100 Gbit/s", rtt = "100 ms" }
            flow = [{ cc = "reno", count = 1000000, start = { uniform = ["0 s", "1 s"] } }]"#,
        ),
        case(
            "4200 web users, 2.4 Gbit/s, 120 ms",
            1200,
            r#"path = { rate = "2.4 Gbit/s", rtt = "120 ms", buffer = "2048 packets", access_rate = "1 Gbit/s" }
            web = [{ users = 1400, count = 3, start = { uniform = ["0 s", "1 s"] }, tcp = { initial_window = 2 } }]"#,
        ),
        case(
            "800 Mbit/s of web arrivals, 1 Gbit/s, 40 ms",
            100,
            r#"path = { rate = "1 Gbit/s", rtt = "40 ms" }
            arrivals = [{ cc = "cubic", load = "800 Mbit/s", size = { pareto = { mean = "100 kB", shape = 1.3 } } }]"#,
        ),
    ]
}

fn two_flows(access: &str) -> String {
    format!(
        r#"path = {{ rate = "250 Mbit/s", rtt = "82 ms", buffer = "341 packets"{access} }}
        flow = [{{ cc = "reno" }}, {{ cc = "reno", start = "1 s" }}]"#
    )
}

fn hundred_flows(queue: &str) -> String {
    format!(
        r#"path = {{ rate = "1 Gbit/s", rtt = "100 ms", queue = "{queue}" }}
        flow = [{{ cc = "reno", count = 100, start = {{ uniform = ["0 s", "1 s"] }} }}]"#
    )
}

/// A chain of links of 5 ms: eight flows cross all of them, and eight flows each of them.
fn chain(hops: u32) -> String {
    let mut body = String::new();
    for hop in 0..hops {
        let next = hop + 1;
        writeln!(
            body,
            r#"[[link]]
            name = "hop {next}"
            from = "{hop}"
            to = "{next}"
            rate = "1 Gbit/s"
            delay = "5 ms"
            buffer = "1000 packets"
            [[flow]]
            cc = "cubic"
            count = 8
            from = "{hop}"
            to = "{next}"
            start = {{ uniform = ["0 s", "1 s"] }}"#
        )
        .expect("a string grows");
    }
    body + &format!("[[flow]]\ncc = \"cubic\"\ncount = 8\nfrom = \"0\"\nto = \"{hops}\"\n")
}

/// What a run took.
#[derive(Clone, Copy)]
struct Figures {
    /// Delivered data segments.
    segments: f64,
    events: f64,
    cpu_seconds: f64,
    wall_seconds: f64,
    /// Peak resident memory of the process.
    megabytes: f64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |option: &str| -> Option<u32> {
        let value = arguments.iter().skip_while(|argument| *argument != option).nth(1)?;
        Some(value.parse().unwrap_or_else(|_| panic!("{option}: expected a number, found {value:?}")))
    };
    let seconds = number("--seconds").unwrap_or(u32::MAX);
    let threads = number("--threads").unwrap_or(1);
    if let Some(index) = number("--case") {
        let case = &cases()[index as usize];
        let Figures { segments, events, cpu_seconds, wall_seconds, megabytes } =
            measure(case, seconds, threads);
        println!("{segments} {events} {cpu_seconds} {wall_seconds} {megabytes}");
        return;
    }
    let wanted = arguments.first().filter(|first| !first.starts_with("--"));
    println!(
        "{:<54} {:>10} {:>10} {:>8} {:>8} {:>8} {:>8}  aim",
        "scenario", "Mseg/CPU s", "ns/segment", "CPU s", "wall s", "ev/seg", "peak MB"
    );
    for (index, Case { name, aim, .. }) in cases().into_iter().enumerate() {
        if wanted.is_some_and(|wanted| !name.contains(wanted.as_str())) {
            continue;
        }
        let runs: Vec<Figures> = (0..number("--repeat").unwrap_or(1).max(1))
            .map(|_| in_a_process(index, seconds, threads))
            .collect();
        let Figures { segments, events, .. } = runs[0];
        let cpu_seconds = median(runs.iter().map(|run| run.cpu_seconds));
        println!(
            "{name:<54} {:>10.2} {:>10.1} {cpu_seconds:>8.2} {:>8.2} {:>8.2} {:>8.0}  {aim}",
            segments / cpu_seconds / 1e6,
            cpu_seconds / segments * 1e9,
            median(runs.iter().map(|run| run.wall_seconds)),
            events / segments,
            median(runs.iter().map(|run| run.megabytes)),
        );
    }
}

/// Compiles the algorithm of one case, and registers it.
fn register_object() {
    let folder = tempfile::tempdir().expect("a folder for the object");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let object = folder.path().join("scalable.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-shared", "-fPIC", "-I"]).arg(here.join("../../python/elephan/foreign/include"));
    compiler.arg(here.join("../../python/elephan/examples/own/scalable.c")).arg("-o").arg(&object);
    assert!(compiler.status().expect("a C compiler").success(), "{compiler:?}");
    let object = Object::open(&object).unwrap_or_else(|mistake| panic!("{mistake}"));
    let description = object.description().clone();
    register("lib:scalable", description, move |values| object.build(values));
}

fn measure(case: &Case, limit: u32, threads: u32) -> Figures {
    if case.body.contains("lib:") {
        register_object();
    }
    let text = format!("duration = \"{} s\"\n{}", case.seconds.min(limit), case.body);
    let plan = Scenario::from_toml(&text, case.name, &[])
        .and_then(|scenario| scenario.resolve(case.name))
        .unwrap_or_else(|error| panic!("{error}"));
    let (wall, cpu) = (Instant::now(), cpu_seconds());
    let outcome = run_on(&plan, &Uncontrolled, threads as usize).expect("nothing cancels it");
    Figures {
        segments: outcome.segments_delivered as f64,
        events: outcome.events_handled as f64,
        cpu_seconds: cpu_seconds() - cpu,
        wall_seconds: wall.elapsed().as_secs_f64(),
        megabytes: peak_megabytes(),
    }
}

/// Runs a case in a process of its own, so that its peak memory and heap are its own.
fn in_a_process(case: usize, seconds: u32, threads: u32) -> Figures {
    let this = std::env::current_exe().expect("a program has a path");
    let child = Command::new(this)
        .args(["--case", &case.to_string(), "--seconds", &seconds.to_string()])
        .args(["--threads", &threads.to_string()])
        .stderr(Stdio::inherit())
        .output()
        .expect("a process");
    assert!(child.status.success(), "case {case}: {}", child.status);
    let text = String::from_utf8_lossy(&child.stdout);
    let figures: Vec<f64> = text.split_whitespace().map(|figure| figure.parse().expect("a number")).collect();
    let [segments, events, cpu_seconds, wall_seconds, megabytes] = figures[..] else {
        panic!("expected five figures, found {text}")
    };
    Figures { segments, events, cpu_seconds, wall_seconds, megabytes }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2])
}

/// CPU time of this process, user and system, of all threads.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Peak resident memory of this process, from /proc.
fn peak_megabytes() -> f64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e3
}

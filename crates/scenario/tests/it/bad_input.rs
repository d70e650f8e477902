//! What cannot work is refused, with file, key, expected and found; and nothing makes the reader panic.

use std::collections::BTreeSet;

use elephan_abi::linux;
use elephan_abi::registered::{self, Description};
use elephan_cc::registry;
use elephan_scenario::{Files, Scenario, Syntax, parse};
use elephan_tcp::Recovery;
use elephan_units::entry::{self, Parameter, Range};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{project_scenarios, speaks_of_rust};

const GOOD: &str = r#"
duration = "10 s"
[path]
rate = "10 Mbit/s"
rtt = "20 ms"
buffer = "20 packets"
[[flow]]
cc = "reno"
[[flow]]
cc = { name = "scalable", a = 0.02 }
start = { uniform = ["0 s", "1 s"] }
"#;

const LINKS: &str = r#"
duration = "10 s"
flow = [{ cc = "reno", from = "a", to = "b" }]
link = [{ name = "one", from = "a", to = "b", rate = "10 Mbit/s", delay = "5 ms" }]
"#;

/// The error of a scenario with one key set otherwise.
fn error_of(text: &str, key: &str, value: &str) -> String {
    let set = [(key.to_owned(), value.to_owned())];
    Scenario::from_toml(text, "x.toml", &set)
        .and_then(|scenario| {
            scenario.expansion("x.toml")?;
            scenario.resolve("x.toml")
        })
        .map_or_else(|error| error.to_string(), |_| "no error".to_owned())
}

/// Checks each line of a table, `KEY = VALUE => MESSAGE`: the scenario with this key set otherwise has an error that begins so.
fn each_has_its_message(text: &str, table: &str) {
    for case in table.trim().lines() {
        let (set, expected) = case.split_once(" => ").expect("a message");
        let (key, value) = set.trim_start().split_once(" = ").expect("a key and its value");
        let error = error_of(text, key, value);
        let told = error.lines().any(|line| line.trim_start_matches("x.toml: ").starts_with(expected));
        assert!(told, "{case}:\n  {error}");
    }
}

#[test]
fn an_application_that_contradicts_itself_is_refused() {
    for good in [
        r#"{ rate = "5 Mbit/s" }"#,
        r#"{ rate = "5 Mbit/s", chunk = "64 kB", on = "1 s", off = { exponential = "2 s" } }"#,
        r#"{ per_second = 30, chunk = { list = ["10 kB", "1 kB"] }, key_frames = { every = 60, size = { exponential = "90 kB" } } }"#,
        r#"{ chunk = "200 kB", pause = "0 s" }"#,
    ] {
        assert_eq!(error_of(GOOD, "flow.0.app", good), "no error", "{good}");
    }
    let table = r#"
        flow.0.app = { chunk = "1 kB" } => flow.0.app: expected one of rate, per_second and pause, found none
        flow.0.app = { rate = "1 Mbit/s", pause = "1 s" } => flow.0.app: expected one of rate, per_second and pause, found rate and pause
        flow.0.app = { rate = "0 bit/s" } => flow.0.app.rate: expected a rate above zero, found "0 bit/s"
        flow.0.app = { per_second = 0, chunk = "1 kB" } => flow.0.app.per_second: expected a number above 0, up to 1e9, found 0
        flow.0.app = { per_second = 30 } => flow.0.app.chunk: expected the size of a chunk, which only rate has a default for, found nothing
        flow.0.app = { rate = "1 Mbit/s", chunk = "0 B" } => flow.0.app.chunk: expected a value above zero, found "0 B"
        flow.0.app = { rate = "1 Mbit/s", on = "1 s" } => flow.0.app.off: expected the length of an off period, because on is given, found nothing
        flow.0.app = { rate = "1 Mbit/s", off = "1 s" } => flow.0.app.on: expected the length of an on period, because off is given, found nothing
        flow.0.app = { rate = "1 Mbit/s", on = "0 s", off = "1 s" } => flow.0.app.on: expected a value above zero, found "0 s"
        flow.0.app = { chunk = "1 kB", pause = "1 s", on = "1 s", off = "1 s" } => flow.0.app.on: expected none with pause, which is the silence after each chunk, found one
        flow.0.app = { rate = "1 Mbit/s", key_frames = { every = 0, size = "1 kB" } } => flow.0.app.key_frames.every: expected 1 or more, found 0
        flow.0.app = { rate = "1 Mbit/s", key_frames = { every = 2 } } => flow.0.app.key_frames.size: expected a value, found nothing
        flow.0.app = { rate = "1 Mbit/s", frame_rate = 3 } => flow.0.app.frame_rate: expected one of the keys chunk, rate, per_second, pause, on, off, key_frames, found "frame_rate"
        flow.0.tcp = { rate_limited_increase = 1 } => flow.0.tcp.rate_limited_increase: expected true or false, found 1
    "#;
    each_has_its_message(GOOD, table);
    let app = GOOD.replace("cc = \"reno\"", "cc = \"reno\"\napp = { rate = \"1 Mbit/s\" }");
    let table = r#"
        flow.0.size = "1 MB" => flow.0.size: expected none with app, which writes until the flow stops, found one
        flow.0.transfers = "repeat" => flow.0.transfers: expected none with app, which has one connection, found one
    "#;
    each_has_its_message(&app, table);
}

#[test]
fn ends_that_cannot_misbehave_so_are_refused() {
    let table = r#"
        flow.0.tcp = { misbehave = { ack_division = 0 } } => flow.0.tcp.misbehave.ack_division: expected 1 to 1448, the bytes of a segment, found 0
        flow.0.tcp = { misbehave = { ignore_marks = true } } => flow.0.tcp.misbehave.ignore_marks: expected false, because ecn is false, found true
        flow.0.tcp = { misbehave = { spoof = 3 } } => flow.0.tcp.misbehave.spoof: expected one of the keys ack_division, optimistic_acks, conceal_marks, ignore_marks, ignore_losses, found "spoof"
    "#;
    each_has_its_message(GOOD, table);
    let governed = GOOD.replace("cc = \"reno\"", "cc = \"bbr\"");
    let table = r"
        flow.0.tcp = { misbehave = { ignore_losses = true } } => flow.0.tcp.misbehave.ignore_losses: expected false, because bbr sets its window itself, found true
    ";
    each_has_its_message(&governed, table);
}

#[test]
fn the_good_ones_are_good() {
    assert_eq!(error_of(GOOD, "name", "good"), "no error");
    assert_eq!(error_of(LINKS, "name", "good"), "no error");
}

#[test]
fn a_kernel_has_a_version_from_6_1_on_and_a_sweep_can_name_several() {
    for version in ["6.1", "6.12", "6.12.117", "7.0"] {
        let text = format!("engine = \"kernel\"\nkernel = {{ version = \"{version}\" }}\n{GOOD}");
        assert_eq!(error_of(&text, "name", "good"), "no error", "{version}");
    }
    let text = format!("engine = \"kernel\"\n{GOOD}\n[sweep]\n\"kernel.version\" = [\"6.1\", \"6.12\"]");
    let scenario = Scenario::from_toml(&text, "x.toml", &[]).unwrap();
    assert_eq!(scenario.expansion("x.toml").unwrap().points(), 2);
    for (key, value, expected) in [
        ("engine", "ns3", r#"engine: expected one of sim, model, linux, kernel, found "ns3""#),
        (
            "kernel.version",
            "6.12",
            r#"kernel.version: expected engine = "kernel" with it, found engine = "sim""#,
        ),
        ("kernel", "{ release = 6 }", r#"kernel.release: expected one of the keys version, found "release""#),
        ("kernel", "{ version = 6.12 }", r#""6.12" or "6.12.117", found 6.12"#),
        ("kernel.version", "5.15", r#"kernel.version: expected a version in quotes, from "6.1" on"#),
        ("kernel.version", "6", r#", found "6""#),
        ("kernel.version", "6..12", r#", found "6..12""#),
        ("kernel.version", "6.12.1.1", r#", found "6.12.1.1""#),
        ("kernel.version", "6.+12", r#", found "6.+12""#),
        ("kernel.version", "6.99999999999", r#", found "6.99999999999""#),
    ] {
        let error = error_of(GOOD, key, value);
        assert!(error.contains(expected), "{key} = {value}:\n  {error}\n  {expected}");
    }
}

#[test]
fn algorithms_of_linux_need_an_engine_that_runs_a_kernel() {
    let names = linux::ALL.iter().map(|entry| entry.name).chain(linux::plain().map(|entry| entry.name));
    for name in names {
        let ones = ["sim", "model", "linux", "kernel"].map(|engine| {
            let error = error_of(&format!("engine = \"{engine}\"\n{GOOD}"), "flow.0.cc", name);
            (engine, error == "no error")
        });
        assert_eq!(ones, [("sim", false), ("model", false), ("linux", true), ("kernel", true)], "{name}");
    }
    let error = error_of(GOOD, "flow.0.cc", "linux:bbr");
    let expected = "flow.0.cc: expected engine = \"kernel\" or \"linux\", or \"linux:bbr\" of an imported source of Linux \
                    (apt-get install linux-source-6.1; elephan cc import PATH), found engine = \"sim\"";
    assert!(error.contains(expected), "{error}");
    assert!(error_of(GOOD, "flow.0.cc", "hybla").contains("or \"linux:hybla\" of an imported"));
    let error = error_of(GOOD, "flow.0.cc", "linux:tahoe");
    assert!(error.contains("linux:bbr, or another of an imported source of Linux"), "{error}");
    let error = error_of(GOOD, "flow.0.cc", "{ name = \"linux:bic\", beta = 0.8 }");
    assert!(error.contains("flow.0.cc.beta: expected no parameters, found \"beta\""), "{error}");
}

/// Registers an algorithm from outside, with a parameter.
fn register(name: &str) {
    let range = Range::Number { low: 1.0, high: 20.0, above: false };
    let [alpha_max, meaning, unit] = ["alpha_max", "Largest increase.", ""].map(Into::into);
    let parameters = vec![Parameter { name: alpha_max, meaning, unit, default: json!(10), range }];
    let description = Description { title: "Mine".to_owned(), source: String::new(), parameters };
    registered::register(name, description, |_| {
        registry::find("reno").expect("registered").build(&[]).expect("no settings")
    });
}

#[test]
fn algorithms_from_outside_are_named_when_they_are_registered() {
    let error = error_of(GOOD, "flow.0.cc", "lib:/a/mine.so");
    let expected = "flow.0.cc: expected an algorithm that is registered, as are those that a scenario file names, \
                    found \"lib:/a/mine.so\"";
    assert!(error.contains(expected), "{error}");
    for name in ["lib:/a/mine.so", "bpf:/a/mine.bpf.c", "python:/a/mine.py:Mine", "linux:/a/tcp_mine.c"] {
        register(name);
        let ones = ["sim", "model", "linux", "kernel"].map(|engine| {
            let error = error_of(&format!("engine = \"{engine}\"\n{GOOD}"), "flow.0.cc", name);
            (engine, error == "no error")
        });
        let linux = name.starts_with("bpf:");
        assert_eq!(ones, [("sim", true), ("model", false), ("linux", linux), ("kernel", false)], "{name}");
    }
    let error = error_of(&format!("engine = \"model\"\n{GOOD}"), "flow.0.cc", "bpf:/a/mine.bpf.c");
    let expected =
        "flow.0.cc: expected engine = \"sim\" or \"linux\" with \"bpf:mine.bpf.c\", found engine = \"model\"";
    assert!(error.contains(expected), "{error}");
    let error = error_of(GOOD, "flow.0.cc", "{ name = \"lib:/a/mine.so\", alpha_max = 21 }");
    assert!(error.contains("flow.0.cc.alpha_max: expected a number from 1 to 20, found 21"), "{error}");
    assert!(error_of(GOOD, "flow.0.slow_start", "lib:/a/mine.so").contains("expected one of standard"));

    let set = [("flow.0.cc".to_owned(), "{ name = \"lib:/a/mine.so\", alpha_max = 12 }".to_owned())];
    let plan = Scenario::from_toml(GOOD, "x.toml", &set).unwrap().resolve("x.toml").unwrap();
    assert_eq!(plan.flows[0].label, "lib:mine.so");
    assert_eq!(plan.flows[0].cc.settings(), [("alpha_max", entry::Value::Number(12.0))]);
}

#[test]
fn careful_resume_is_not_for_an_algorithm_that_sets_its_window_itself() {
    let text = GOOD.replace("cc = \"reno\"", "cc = \"bbr\"");
    let error = error_of(
        &text,
        "flow.0.slow_start",
        "{ name = \"careful-resume\", saved_cwnd = 800, saved_rtt = 0.1 }",
    );
    let expected =
        "flow.0.slow_start: expected another, because bbr sets its window itself, found \"careful-resume\"";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn each_mistake_has_its_sentence() {
    each_has_its_message(
        GOOD,
        r#"
        duration = 10 => duration: expected a time such as "82 ms", found 10
        duration = ten s => duration: expected a time such as "82 ms", found "ten s"
        duration = 0 s => duration: expected a time above zero, found "0 s"
        duration = 5000 h => duration: expected at most 200 days, found
        seed = -1 => seed: expected a whole number of 0 or more, found -1
        colour = red => colour: expected one of the keys name, engine, kernel, duration, seed, path, link, tcp, host, flow
        path.rtt = 20 => path.rtt: expected a time such as "82 ms", found 20
        path.rtt = 0 ms => path.rtt: expected a time above zero, found "0 s"
        path.rate = 0 bit/s => path.rate: expected a rate above zero, found "0 bit/s"
        path.rate = 10 MB/s => path.rate: expected a rate such as "250 Mbit/s", found "10 MB/s"
        path.bandwidth = 10 Mbit/s => path.bandwidth: expected one of the keys rate, rtt, buffer
        path.buffer = 0 packets => path.buffer: expected room for at least one packet, found "0 packets"
        path.buffer = 1% bdp => path.buffer: expected room for at least one packet, found "1% bdp"
        path.buffer = some => path.buffer: expected a size such as "20% bdp", "500 packets" or "750 kB", found "some"
        path.buffer = -5% bdp => path.buffer: expected a size such as
        path.queue = blue => path.queue: expected one of droptail, threshold, red, adaptive-red, wred, codel
        path.vary = { name = "aggregate", slot = "0 s" } => path.vary.slot: expected a time above zero, found "0 s"
        path.reverse.vary = aggregate => path.reverse.vary.slot: expected a value, found nothing
        path.vary = { name = "heavy-tail", median = "0 s", shape = 2 } => path.vary.median: expected a time above zero, found "0 s"
        path.vary = { name = "heavy-tail", median = "1 ms", shape = 1 } => path.vary.shape: expected a number above 1, with which the mean is finite, found 1
        path.ecn = keep => path.ecn: expected one of bleach, clear, found "keep"
        path.loss = { name = "random", probability = 2 } => path.loss.probability: expected a probability from 0 to 1, found 2
        path.loss = { name = "periodic", every = 0 } => path.loss.every: expected 1 or more, found 0
        path.access_rate = 0 bit/s => path.access_rate: expected a rate above zero
        flow.0.cc = warp => flow.0.cc: expected one of tahoe, reno,
        flow.1.cc.a = 2 => flow.1.cc.a: expected a number from 0 to 1, found 2
        flow.1.cc.gamma = 2 => flow.1.cc.gamma: expected one of the parameters a, b, lwnd
        flow.1.cc.a = fast => flow.1.cc.a: expected a number from 0 to 1, found "fast"
        flow.0.slow_start = quick => flow.0.slow_start: expected one of standard, limited, hystart, hystart++, search, careful-resume, found "quick"
        flow.0.slow_start = careful-resume => flow.0.slow_start.saved_cwnd: expected a value, found nothing
        flow.0.slow_start = { name = "careful-resume", saved_cwnd = 800 } => flow.0.slow_start.saved_rtt: expected a value, found nothing
        flow.0.slow_start = { name = "careful-resume", saved_cwnd = 0, saved_rtt = 0.1 } => flow.0.slow_start.saved_cwnd: expected a number from 1
        flow.0.start = 20 s => flow.0.start: expected a start before the end at "10 s", found "20 s"
        flow.0.start = { uniform = ["5 s", "1 s"] } => flow.0.start.uniform: expected a latest start of "5 s" or later
        flow.0.start = { uniform = ["5 s"] } => flow.0.start.uniform: expected a list of 2, found a list of 1
        flow.0.start = {} => flow.0.start: expected either uniform or exponential
        flow.0.stop = 0 s => flow.0.stop: expected a time after the start, found "0 s"
        flow.0.size = 0 B => flow.0.size: expected a size above zero
        flow.0.transfers = 3 => flow.0.size: expected the size of a transfer, found nothing
        flow.0.rtt = 0 s => flow.0.rtt: expected a time above zero
        flow.0.from = a => flow.0.from: expected no node on a path, found "a"
        flow.0.count = 0 => no error
        flow.count = 0 => flow: expected from 1 to 10000000 flows, found 0
        flow.0.count = 100000000 => flow: expected from 1 to 10000000 flows
        flow.0.tcp.recovery = magic => flow.0.tcp.recovery: expected one of tahoe, reno, newreno, sack, found "magic"
        tcp.initial_window = 0 => tcp.initial_window: expected 1 to 2^30 segments, found 0
        tcp.packet = 40 B => tcp.packet: expected a size from 100 to 65535 bytes, found "40 B"
        tcp.windows = 3 => tcp.windows: expected one of the keys profile, packet, recovery
        measure.from = 20 s => measure.from: expected a time before "10 s", found "20 s"
        measure.to = 20 s => measure.to: expected a time up to the end at "10 s", found "20 s"
        measure.interval = 0 s => measure.interval: expected a time above zero, within the measuring window
        trace.interval = 0 s => trace.interval: expected a time above zero
        trace.pcap = ["nowhere"] => trace.pcap: expected one of the links bottleneck, bottleneck.reverse, found "nowhere"
        sweep.repeat = 0 => sweep.repeat: expected a number of repeats, 1 or more, found 0
        sweep.path = 3 => sweep.path: expected a list of values, found 3
        path.rate = 100 Tbit/s => no error
    "#,
    );
}

const TRAFFIC: &str = r#"
duration = "10 s"
flow = [{ cc = "reno" }]
path = { rate = "10 Mbit/s", rtt = "20 ms" }
cbr = [{ rate = "1 Mbit/s" }]
web = [{ users = 10, start = "0 s" }]
arrivals = [{ cc = "reno", load = "1 Mbit/s", size = { pareto = { minimum = "10 kB", shape = 1.2 } } }]
measure = { from = "0 s" }
on_off = [{ rate = "1 Mbit/s", on = { exponential = "1 s" }, off = { pareto = { mean = "1 s", shape = 1.5 } } }]
"#;

#[test]
fn traffic_has_its_mistakes_too() {
    each_has_its_message(
        TRAFFIC,
        r#"
        name = good => no error
        host.ack = 2 => host.ack: expected a time such as "82 ms", found 2
        host.max_backlog = 0 => host.max_backlog: expected 1 packet or more, found 0
        host.txqueuelen = 100 => host.txqueuelen: expected none, or path.access_rate, which gives each sender a device
        host.nap = 3 => host.nap: expected one of the keys data, ack, sack_in_flight
        host.data = 5 us => no error
        flow.0.host.txqueuelen = 0 => flow.0.host.txqueuelen: expected 1 packet or more, found 0
        web.0.users = none => web.0.users: expected a whole number of 0 or more, found "none"
        web.0.users = 100000000 => flow: expected from 1 to 10000000 flows
        web.0.cc = warp => web.0.cc: expected one of tahoe, reno,
        web.0.think = 0 s => no error
        web.0.objects = 0 => web.0.objects: expected a value above zero, found 0
        web = [{ users = 10, think = { pareto = { minimum = "1 s", shape = 1 } } }] => web.0.start: expected a start, because time to think has no mean
        web = [{ users = 10 }] => web.0.start: expected a start before the end at "10 s", found "20 s"
        web.0.tcp.initial_window = 0 => web.0.tcp.initial_window: expected 1 to 2^30 segments, found 0
        arrivals.0.per_second = 3 => arrivals.0: expected either per_second or load, found both
        arrivals.0.load = 0 bit/s => arrivals.0.load: expected a rate above zero
        arrivals.0.size = 0 B => arrivals.0.size: expected a value above zero
        arrivals.0.size = { list = [] } => arrivals.0.size.list: expected one or more sizes above zero
        arrivals.0.size = { list = ["1 kB"] } => no error
        arrivals.0.size = { csv = "nowhere.csv" } => arrivals.0.size.csv: expected no file, but sizes in a list, found a file
        arrivals.0.size.pareto.shape = 1 => arrivals.0.size.pareto.shape: expected sizes that have a mean, because load asks for it: a Pareto shape above 1, found 1
        cbr.0.rate = 0 bit/s => cbr.0.rate: expected a rate above zero, found "0 bit/s"
        cbr.0.packet = 20 B => cbr.0.packet: expected a size from 29 to 65535 bytes
        cbr.0.burst = 0 => cbr.0.burst: expected from 1 to 1000000 packets, found 0
        cbr.0.burst = 4294967295 => cbr.0.burst: expected from 1 to 1000000 packets, found 4294967295
        cbr.0.start = 20 s => cbr.0.start: expected a start before the end
        cbr.0.stop = 0 s => cbr.0.stop: expected a time after the start
        cbr.0.rtt = 0 s => cbr.0.rtt: expected a time above zero
        cbr.0.from = a => cbr.0.from: expected no node on a path
        cbr.0.cc = reno => cbr.0.cc: expected one of the keys rate, packet, burst
        cbr.0.count = 100000000 => flow: expected from 1 to 10000000 flows
        on_off.0.on = 0 s => on_off.0.on: expected a value above zero, found "0 s"
        on_off.0.off = 0 s => no error
        on_off.0.on = { weibull = "1 s" } => on_off.0.on: expected one of exponential, uniform, pareto
        on_off.0.on = { uniform = ["2 s", "1 s"] } => on_off.0.on.uniform: expected a second value of "2 s"
        on_off.0.off.pareto.shape = 1 => on_off.0.off.pareto.shape: expected a shape above 1, because up to 1 a Pareto distribution has no mean, found 1
        on_off.0.off = { pareto = { minimum = "1 s", shape = 0.9 } } => no error
        on_off.0.off.pareto.shape = 0 => on_off.0.off.pareto.shape: expected a shape above 0, found 0
        on_off.0.off = { pareto = { shape = 2 } } => on_off.0.off.pareto: expected either minimum or mean, found neither
    "#,
    );
}

#[test]
fn queues_and_codepoints_have_theirs() {
    each_has_its_message(
        GOOD,
        r#"
        path.queue = { name = "threshold", packets = -1 } => path.queue.packets: expected a whole number of 0 or more, found -1
        path.queue = { name = "red", min_th = 20, max_th = 10 } => path.queue.max_th: expected a number above min_th = 20, found 10
        path.queue = { name = "red", max_p = 2 } => path.queue.max_p: expected a number above 0, up to 1, found 2
        path.queue = { name = "red", speed = 2 } => path.queue.speed: expected one of the keys min_th, max_th, max_p
        path.queue = { name = "codel", target = 5 } => path.queue.target: expected a time such as "82 ms", found 5
        path.queue = wred => path.queue.profile: expected at least one profile, found none
        path.queue = wrr => path.queue.class: expected at least one class, found none
        path.queue = { name = "wrr", class = [{ name = "be", weight = 0 }] } => path.queue.class: expected weights with a sum above 0, found 0
        path.queue = { name = "drr", class = [{ name = "be", weight = "x" }] } => path.queue.class.0.weight: expected a number, found "x"
        path.queue = { name = "drr", class = [{ name = "be", dscp = ["af9"] }] } => path.queue.class.0.dscp.0: expected a codepoint such as
        path.queue = { name = "priority", class = [{ name = "be", queue = { name = "pie", alpha = -1 } }] } => path.queue.class.0.queue.alpha: expected a number of 0 or more, found -1
        path.queue = { rate = 3 } => path.queue: expected the key name with the name of a queue discipline, found a table without it
        flow.0.dscp = af99 => flow.0.dscp: expected a codepoint such as "ef", "af41", "cs1", "be" or a number from 0 to 63, found "af99"
        flow.0.dscp = 64 => flow.0.dscp: expected a codepoint such as
        path.police = [{ rate = "0 bit/s", burst = "3 kB" }] => path.police.0.rate: expected a rate above zero, found "0 bit/s"
        path.police = [{ rate = "1 Mbit/s", burst = "3 kB", exceed = "shout" }] => path.police.0.exceed: expected "drop", or a codepoint such as
    "#,
    );
}

#[test]
fn a_csv_file_names_its_lines() {
    let folder = std::env::temp_dir().join(format!("elephan-csv-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let scenario = folder.join("x.toml").display().to_string();
    let set = [("arrivals.0.size".to_owned(), "{ csv = \"sizes.csv\" }".to_owned())];
    for (text, expected) in [
        ("time,bytes\n0.1,1000\n0.2, 2000\n\n", "no error"),
        ("\u{feff}bytes\n1000\n2000\n", "no error"),
        (
            "time,size\n0.1,1000\n",
            "line 1: expected names of columns, one of them \"bytes\", found \"time,size\"",
        ),
        (
            "bytes\n1000\nmany\n",
            "line 3: expected a number of bytes above zero in column \"bytes\", found \"many\"",
        ),
        ("bytes\n1000\n0\n", "line 3: expected a number of bytes above zero"),
        (
            "time,bytes\n0.1\n",
            "line 2: expected a number of bytes above zero in column \"bytes\", found \"\"",
        ),
        ("bytes\n", "expected a size in each line after the first, found none"),
        ("", "line 1: expected names of columns"),
    ] {
        std::fs::write(folder.join("sizes.csv"), text).unwrap();
        let document = parse(TRAFFIC, &scenario, Syntax::Toml).unwrap();
        let read = Scenario::from_document(document, &scenario, &set, Files::Allowed);
        let error = read.as_ref().map_or_else(ToString::to_string, |_| "no error".to_owned());
        let told = error.strip_prefix(&format!("{}: ", folder.join("sizes.csv").display())).unwrap_or(&error);
        assert!(told.starts_with(expected), "{text:?}:\n  {error}\n  {expected}");
        if let Ok(scenario) = read {
            // The sizes stand in the scenario now: it needs no file any more.
            let json = serde_json::to_value(&scenario).unwrap();
            assert_eq!(json["arrivals"][0]["size"], serde_json::json!({ "list": ["1 kB", "2 kB"] }));
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn sessions_have_theirs() {
    let drawn = format!(
        "{GOOD}[[sessions]]\ncc = \"reno\"\nload = \"1 Mbit/s\"\nepochs = 2\nrequest = \"1 kB\"\nresponse = \"9 kB\"\nthink = \"1 s\"\n"
    );
    assert_eq!(error_of(&drawn, "name", "good"), "no error");
    each_has_its_message(
        &drawn,
        r#"
        sessions.0.per_second = 3 => sessions.0: expected either per_second or load, found both
        sessions.0.load = 0 bit/s => sessions.0.load: expected a rate above zero
        sessions.0.shuffle = 1 s => sessions.0.shuffle: expected no shuffle without vectors
        sessions.0.epochs = 0 => sessions.0.epochs: expected a value above zero
        sessions.0.epochs = 1e12 => sessions.0.epochs: expected a mean of 10000 at most, found 1000000000000
        sessions.0.epochs = { pareto = { minimum = 1.0, shape = 1.0 } } => sessions.0.epochs.pareto.shape: expected a shape above 1, with which there is a mean, found 1
        sessions.0.response = { pareto = { minimum = "1 kB", shape = 0.9 } } => sessions.0.response.pareto.shape: expected sizes that have a mean, because load asks for it: a Pareto shape above 1, found 0.9
        sessions.0.request = { pareto = { minimum = "1 kB", shape = 0.8 } } => sessions.0.request.pareto.shape: expected sizes that have a mean, because load asks for it: a Pareto shape above 1, found 0.8
        sessions.0.vectors = { cvec = "nowhere.cvec" } => sessions.0.vectors.cvec: expected no file, but vectors in lines, found a file
        sessions.0.vectors = { lines = ["SEQ 0 1 1 1", "> 1"] } => sessions.0.epochs: expected no epochs beside vectors, found one
    "#,
    );
    let none = drawn.replace("epochs = 2\n", "");
    assert!(
        error_of(&none, "name", "good")
            .contains("sessions.0.epochs: expected a value, or vectors, found neither")
    );
    let listed = format!(
        "{GOOD}[[sessions]]\ncc = \"reno\"\nvectors = {{ lines = [\"SEQ 0 1 1 1\", \"> 100\", \"SEQ 1000 1 1 1\", \"< 9\"] }}\n"
    );
    assert_eq!(error_of(&listed, "sessions.0.load", "1 Mbit/s"), "no error");
    each_has_its_message(
        &listed,
        r#"
        sessions.0.shuffle = 0 s => sessions.0.shuffle: expected a time above zero, found "0 s"
        sessions.0.shuffle = 500 ps => sessions.0.shuffle: expected 0.000000001 s or more, with which there are at most a million bins, found "500 ps"
        sessions.0.load = 0 bit/s => sessions.0.load: expected a rate above zero, and vectors that start at more than one time
        sessions.0.per_second = 3 => sessions.0.per_second: expected no per_second beside vectors
        sessions.0.vectors.lines = ["SEQ 0 1 1 1", "> 5", "< 5"] => sessions.0.vectors.lines.2: expected a time t between two data units, found "< 5"
        sessions.0.vectors.lines = [] => sessions.0.vectors.lines: expected a vector that begins with SEQ, CONC, S or C, found none
    "#,
    );
}

#[test]
fn damaged_files_of_vectors_are_told_with_their_line() {
    let folder = std::env::temp_dir().join(format!("elephan-vectors-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let scenario = folder.join("x.toml");
    let file = folder.join("trace.cvec");
    let text = format!("{GOOD}[[sessions]]\ncc = \"reno\"\nvectors = {{ cvec = \"trace.cvec\" }}\n");
    let read = |vectors: Option<&[u8]>| {
        let _ = std::fs::remove_file(&file);
        if let Some(vectors) = vectors {
            std::fs::write(&file, vectors).unwrap();
        }
        let name = scenario.display().to_string();
        let document = parse(&text, &name, Syntax::Toml).unwrap();
        Scenario::from_document(document, &name, &[], Files::Allowed)
    };
    for (vectors, expected) in [
        (
            Some(&b"# a comment\nSEQ 0 1 1 1\n> 5\n> 6\n"[..]),
            ": line 4: expected a time t between two data units, found \"> 6\"",
        ),
        (Some(b""), ": expected a vector that begins with SEQ, CONC, S or C, found none"),
        (Some(b"\xff\xfe"), ": expected a file of connection vectors, found "),
        (None, ": expected a file of connection vectors, found "),
    ] {
        let error = read(vectors).unwrap_err().to_string();
        let told = error.strip_prefix(&file.display().to_string()).unwrap_or(&error);
        assert!(told.starts_with(expected) && error.lines().count() == 1, "{error}\n  {expected}");
    }
    // The vectors stand in the scenario now: it needs no file any more.
    let scenario = read(Some(b"# a comment\nSEQ 0 1 1 1   # one epoch\n\n> 5\n")).unwrap();
    let json = serde_json::to_value(&scenario).unwrap();
    assert_eq!(json["sessions"][0]["vectors"], serde_json::json!({ "lines": ["SEQ 0 1 1 1", "> 5"] }));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn events_have_theirs() {
    let text = GOOD.replace(
        "buffer = \"20 packets\"",
        "buffer = \"20 packets\"\nqueue = { name = \"wrr\", class = [{ name = \"af\", dscp = [\"af\"] }, { name = \"be\" }] }",
    );
    let good = format!("{text}[[event]]\nat = \"5 s\"\nlink = \"bottleneck\"\nweights = {{ af = 0 }}\n");
    assert_eq!(error_of(&good, "name", "good"), "no error");
    each_has_its_message(
        &good,
        r#"
        event.0.at = 11 s => event.0.at: expected a time up to the end at "10 s", found "11 s"
        event.0.at = 5 => event.0.at: expected a time such as "82 ms", found 5
        event.0.link = nowhere => event.0.link: expected one of the links bottleneck, bottleneck.reverse, found "nowhere"
        event.0.rate = 0 bit/s => event.0.rate: expected a rate above zero; up = false stops a link
        event.0.loss = { name = "random", probability = 2 } => event.0.loss.probability: expected a probability from 0 to 1, found 2
        event.0.weights = { ef = 1 } => event.0.weights: expected one of the classes af, be, found "ef"
        event.0.weights = { af = 0, be = 0 } => event.weights: expected weights with a sum above 0, found 0 at "5 s"
        event.0.weights = { af = -1 } => event.weights: expected a number of 0 or more, found -1 at "5 s"
        event.0.weights = {} => event.0: expected one of rate, delay, loss, weights, up, found none
        path.buffer = 1 packet => path.buffer: expected room for at least one packet of each of 2 classes, found "1 packets"
        event.0.every = 0 s => event.0.every: expected a time above zero, with at most 200000 changes of all events, found "0 s"
        event.0.every = 20 us => event.0.every: expected a time above zero, with at most 200000 changes of all events, found "20 us"
        event.0.every = often => event.0.every: expected a time such as "82 ms", found "often"
        event.0.up = no => event.0.up: expected true or false, found "no"
        event.0.link = bottleneck.reverse => event.0.weights: expected no weights, since "bottleneck.reverse" has no classes, found "af"
    "#,
    );
}

#[test]
fn events_that_repeat_contradict_no_other() {
    // 2, 4, 6, 8 and 10 s, and 4, 7 and 10 s.
    let two = |first: &str, second: &str| {
        let event =
            |at: &str, event: &str| format!("[[event]]\nat = \"{at}\"\nlink = \"bottleneck\"\n{event}\n");
        let text = format!("{GOOD}{}{}", event("2 s", first), event("4 s", second));
        error_of(&text, "name", "good")
    };
    let (every_2, every_3) = ("every = \"2 s\"", "every = \"3 s\"");
    let (slow, fast) = ("rate = \"1 Mbit/s\"", "rate = \"2 Mbit/s\"");
    let wrong = "event.1.rate: expected no rate when event.0 changes it, found both at \"4 s\"";
    for (first, second, expected) in [
        (format!("{every_2}\n{slow}"), format!("{every_3}\n{fast}"), wrong),
        (format!("{every_2}\n{slow}"), fast.to_owned(), wrong),
        (slow.to_owned(), format!("{every_3}\n{fast}"), "no error"),
        (format!("{every_2}\n{slow}"), format!("{every_3}\n{slow}"), "no error"),
        (format!("{every_2}\n{slow}"), format!("{every_3}\ndelay = \"1 ms\""), "no error"),
        (
            format!("{every_2}\nup = false"),
            format!("{every_3}\nup = true"),
            "event.1.up: expected no up when event.0 changes it, found both at \"4 s\"",
        ),
    ] {
        let found = two(&first, &second);
        assert!(found.contains(expected), "{first} {second}: {found}");
    }
}

#[test]
fn topologies_have_their_mistakes_too() {
    each_has_its_message(
        LINKS,
        r#"
        link.0.delay = 5 => link.0.delay: expected a time such as "82 ms", found 5
        link.0.to = a => link.0.to: expected another node, found "a" again
        flow.0.to = c => flow.0: expected a way there and back over the links, found none between "a" and "c"
        link.0.both_ways = false => flow.0: expected a way there and back over the links
        flow.0.rtt = 10 ms => flow.0: expected no rtt and no reverse
        path = { rate = "1 Mbit/s", rtt = "1 ms" } => path: expected either path or link, found both
        link = [] => path: expected either path or link, found neither
    "#,
    );
}

#[test]
fn broken_syntax_names_its_line() {
    let error = Scenario::from_toml("duration = \"1 s\"\n[path\n", "x.toml", &[]).unwrap_err().to_string();
    assert!(error.starts_with("x.toml: line 2: expected TOML, found "), "{error}");
    let error = Scenario::from_json("{\"duration\": ", "scenario", &[]).unwrap_err().to_string();
    assert!(error.starts_with("scenario: line 1: expected JSON, found "), "{error}");
    let error = Scenario::from_toml("", "x.toml", &[]).unwrap_err().to_string();
    assert_eq!(error, "x.toml: duration: expected a value, found nothing");
}

/// The places of all values in a document, as JSON pointers.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(table) => {
            for (key, value) in table {
                places(value, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(items) => {
            for (number, value) in items.iter().enumerate() {
                places(value, &format!("{at}/{number}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn no_message_speaks_of_rust() {
    let others = [
        json!(true),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!("x"),
        json!([]),
        json!([1, 2, 3]),
        json!({}),
        json!({ "name": "x" }),
        json!({ "x": 1 }),
        Value::Null,
    ];
    let mut foreign = BTreeSet::new();
    for path in project_scenarios() {
        let text = std::fs::read_to_string(&path).expect("a scenario is text");
        let document = parse(&text, "x", Syntax::Toml).expect("a scenario of the project");
        let mut all = Vec::new();
        places(&document, "", &mut all);
        for place in &all {
            for other in &others {
                let mut damaged = document.clone();
                *damaged.pointer_mut(place).expect("a place that was found") = other.clone();
                let read = Scenario::from_document(damaged, "x", &[], Files::Refused)
                    .and_then(|scenario| scenario.expansion("x").map(|_| scenario));
                let Err(error) = read.and_then(|scenario| scenario.resolve("x")) else { continue };
                for mistake in &error.mistakes {
                    if speaks_of_rust(&mistake.expected) || speaks_of_rust(&mistake.found) {
                        foreign.insert(format!("{}, {place} = {other}: {mistake}", path.display()));
                    }
                }
            }
        }
    }
    assert_eq!(foreign, BTreeSet::new());
}

#[test]
fn a_name_implies_the_recovery_that_its_entry_says() {
    let recovery = |text: &str| {
        let text = format!("{text}\nduration = \"10 s\"\npath = {{ rate = \"10 Mbit/s\", rtt = \"20 ms\" }}");
        let scenario = Scenario::from_toml(&text, "x.toml", &[]).expect("a scenario");
        scenario.resolve("x.toml").expect("a plan").flows[0].tcp.recovery
    };
    for entry in registry::ALL {
        let flow = format!("flow = [{{ cc = \"{}\" }}]", entry.name);
        let implied = match entry.implies {
            [] => Recovery::Sack,
            [("recovery", word)] => serde_json::from_value(json!(word)).expect("a recovery"),
            other => panic!("{}: {other:?}", entry.name),
        };
        assert_eq!(recovery(&flow), implied, "{}", entry.name);
        assert_eq!(recovery(&format!("{flow}\ntcp.recovery = \"reno\"")), Recovery::Reno, "{}", entry.name);
    }
}

#[test]
fn several_mistakes_are_told_at_once() {
    let text = GOOD.replace("20 ms", "0 ms").replace("20 packets", "0 packets");
    let error = Scenario::from_toml(&text, "x.toml", &[]).unwrap().resolve("x.toml").unwrap_err();
    assert!(error.mistakes.len() >= 2, "{error}");
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(cut in 0..GOOD.len(), noise in "[ -~\\n]{0,12}", drop in 0usize..20) {
        if GOOD.is_char_boundary(cut) {
            let end = (cut + drop).min(GOOD.len());
            let text = format!("{}{noise}{}", &GOOD[..cut], &GOOD[end..]);
            if let Ok(scenario) = Scenario::from_toml(&text, "x.toml", &[]) {
                let _ = scenario.resolve("x.toml");
                let _ = scenario.expansion("x.toml").map(|expansion| expansion.check(false).count());
            }
        }
    }

    #[test]
    fn what_is_resolved_can_be_written_and_read(rate in 1u64..100_000, rtt in 1u64..1000, share in 1u32..1000) {
        let set = [
            ("path.rate".to_owned(), format!("{rate} Mbit/s")),
            ("path.rtt".to_owned(), format!("{rtt} ms")),
            ("path.buffer".to_owned(), format!("{share}% bdp")),
        ];
        let scenario = Scenario::from_toml(GOOD, "x.toml", &set).unwrap();
        let json = serde_json::to_string(&scenario).unwrap();
        let again = Scenario::from_json(&json, "x.json", &[]).unwrap();
        prop_assert_eq!(scenario, again);
    }
}

//! No run exceeds its estimate.

use elephan_metrics::{Outcome, Uncontrolled};
use elephan_scenario::{Estimate, Scenario};
use elephan_sim::run;
use proptest::prelude::*;

use crate::common::plan;

const ALGORITHMS: [&str; 10] =
    ["tahoe", "reno", "sack", "hstcp", "scalable", "htcp", "bic", "fast", "ltcp", "bbr"];

const QUEUES: [&str; 8] = [
    r#""droptail""#,
    r#"{ name = "threshold", packets = 10 }"#,
    r#""red""#,
    r#""codel""#,
    r#"{ name = "fq-codel", quantum = 300 }"#,
    r#"{ name = "pie", t_update = "1 ms" }"#,
    r#""drr""#,
    r#"{ name = "wrr", class = [{ name = "af", dscp = ["af"], weight = 3 }, { name = "be", queue = "codel" }] }"#,
];

const VARIED: [&str; 5] = [
    "",
    "vary = { name = \"jitter\", max = \"3 ms\" },",
    "vary = { name = \"reorder\", probability = 0.05, extra = \"5 ms\" },",
    "vary = { name = \"aggregate\", slot = \"20 ms\" }, reverse = { vary = { name = \"aggregate\", slot = \"3 ms\" } },",
    "vary = { name = \"heavy-tail\", median = \"2 ms\", shape = 1.5 },",
];

const DEMANDS: [&str; 5] = [
    "",
    "size = \"200 kB\",",
    "size = \"30 kB\", transfers = \"repeat\",",
    "size = \"1 B\", transfers = \"repeat\",",
    "size = \"3 kB\", transfers = 7, stop = \"3 s\",",
];

const TRAFFIC: [&str; 6] = [
    "",
    "cbr = [{ rate = \"3 Mbit/s\", count = 2, burst = 3 }]",
    "cbr = [{ rate = \"200 kbit/s\", packet = \"64 B\" }]",
    "on_off = [{ rate = \"5 Mbit/s\", on = { exponential = \"20 ms\" }, off = { pareto = { minimum = \"10 ms\", shape = 1.5 } } }]",
    "web = [{ users = 20, think = \"100 ms\", between = \"0 s\", start = \"0 s\" }]",
    "arrivals = [{ cc = \"reno\", per_second = 20, size = { pareto = { minimum = \"2 kB\", shape = 1.2 } } }]",
];

const HOSTS: [&str; 3] =
    ["", "host = { data = \"20 us\", ack = \"50 us\" }", "host = { ack = \"1 ms\", max_backlog = 5 }"];

const STARTS: [&str; 5] = [
    "\"standard\"",
    "\"hystart\"",
    "\"hystart++\"",
    "\"search\"",
    "{ name = \"careful-resume\", saved_cwnd = 300, saved_rtt = 0.05 }",
];

fn one_of(items: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(items)
}

/// A random scenario of a few simulated seconds.
fn scenario() -> impl Strategy<Value = String> {
    let flow = (one_of(&ALGORITHMS), one_of(&STARTS), one_of(&DEMANDS), 1u64..200, 0u64..1000);
    let path =
        (1u64..60_000, 1u64..100_000, 2u64..150, prop::sample::select(vec![0.0, 0.001, 0.1, 0.7, 1.0]));
    let queue =
        (one_of(&QUEUES), one_of(&VARIED), prop::sample::select(vec!["", "access_rate = \"20 Mbit/s\","]));
    let stack = (
        prop::sample::select(vec!["sack", "newreno", "reno", "tahoe"]),
        any::<[bool; 4]>(),
        1u8..4,
        prop::sample::select(vec!["1 ms", "200 ms", "1 s"]),
    );
    let rest = (one_of(&TRAFFIC), one_of(&HOSTS), any::<[bool; 2]>(), any::<u32>(), any::<bool>());
    (prop::collection::vec(flow, 1..5), path, queue, stack, rest).prop_map(
        |(flows, (rate, rtt, buffer, loss), (queue, vary, access), stack, (traffic, host, [events, variables], seed, changes))| {
            let (recovery, [fack, pacing, ecn, timestamps], delayed, rto_min) = stack;
            let flows: Vec<String> = flows
                .into_iter()
                .map(|(cc, slow_start, demand, own_rtt, start)| {
                    // BBR sets its window itself.
                    let slow_start = if cc == "bbr" { STARTS[0] } else { slow_start };
                    format!("{{ cc = \"{cc}\", slow_start = {slow_start}, {demand} start = \"{start} ms\", rtt = \"{own_rtt} ms\" }}")
                })
                .collect();
            let changes = if changes {
                "event = [{ at = \"1 s\", link = \"bottleneck\", rate = \"70 Mbit/s\" }, \
                 { at = \"2 s\", link = \"bottleneck\", delay = \"100 us\" }]"
            } else {
                ""
            };
            format!(
                "duration = \"4 s\"\nseed = {seed}\nflow = [{}]\n{traffic}\n{host}\n{changes}\n\
                 path = {{ rate = \"{rate} kbit/s\", rtt = \"{rtt} us\", buffer = \"{buffer} packets\", queue = {queue}, \
                 {vary} {access} loss = {{ name = \"random\", probability = {loss} }} }}\n\
                 tcp = {{ recovery = \"{recovery}\", fack = {fack}, pacing = {pacing}, ecn = {ecn}, timestamps = {timestamps}, \
                 delayed_ack = {{ segments = {delayed} }}, rto_min = \"{rto_min}\" }}\n\
                 measure = {{ from = \"0 s\" }}\ntrace = {{ events = {events}, variables = {variables}, interval = \"50 ms\" }}",
                flows.join(", ")
            )
        },
    )
}

/// Rows of all tables.
fn rows(outcome: &Outcome) -> usize {
    outcome.flows.time_s.len()
        + outcome.crowds.time_s.len()
        + outcome.streams.time_s.len()
        + outcome.queues.time_s.len()
        + outcome.transfers.flow.len()
        + outcome.events.time_s.len()
        + outcome.variables.time_s.len()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_run_does_more_than_was_estimated(toml in scenario()) {
        let scenario = Scenario::from_toml(&toml, "test", &[]).unwrap();
        let checked = scenario.check("test", true).map_err(|error| TestCaseError::fail(format!("{error}\n{toml}")))?;
        let Estimate { events, rows: most, .. } = checked.estimate;
        let outcome = run(&plan(&toml), &Uncontrolled).unwrap();
        let (handled, rows) = (outcome.events_handled as f64, rows(&outcome) as f64);
        prop_assert!(handled <= events.amount, "{handled} events, estimated {events:?}");
        prop_assert!(rows <= most.amount, "{rows} rows, estimated {most:?}");
    }
}

#[test]
fn a_first_window_that_is_dropped_has_rows_too() {
    let toml = r#"duration = "10 s"
        path = { rate = "1 kbit/s", rtt = "60 ms", buffer = "234 packets", police = [{ rate = "2 kbit/s", burst = "2 kB" }] }
        flow = [{ cc = "sack", tcp = { packet = "309 B", initial_window = 500, rto_min = "15 s" } }]
        trace = { events = true }"#;
    let scenario = Scenario::from_toml(toml, "test", &[]).expect("a scenario");
    let estimate = scenario.check("test", false).expect("it asks for little").estimate;
    let rows = run(&plan(toml), &Uncontrolled).expect("nothing cancels it").events.time_s.len();
    assert!(rows as f64 <= estimate.rows.amount, "{rows} rows, estimated {:?}", estimate.rows);
}

//! Links that follow a trace.

use elephan_metrics::Outcome;

use crate::common::outcome;

fn run(path: &str) -> Outcome {
    outcome(&format!(
        "duration = \"20 s\"\npath = {{ rate = \"12 Mbit/s\", rtt = \"40 ms\", {path} }}\nflow = [{{ cc = \"cubic\", count = 2 }}]"
    ))
}

#[test]
fn a_trace_that_changes_nothing_leaves_the_result() {
    let without = run("buffer = \"50 packets\"");
    for trace in [
        r#"{ steps = [{ time = "0 s", rate = "12 Mbit/s" }] }"#,
        r#"{ steps = [{ time = "0 s" }, { time = "3 ms", rate = "12 Mbit/s" }, { time = "17001 us" }] }"#,
        r#"{ steps = [{ time = "0 s", delay = "20 ms" }, { time = "3 ms" }], loop = false }"#,
        r#"{ steps = [{ time = "0 s", loss = 0 }] }"#,
    ] {
        let with = run(&format!("buffer = \"50 packets\", trace = {trace}"));
        assert_eq!(with.flows, without.flows, "{trace}");
        assert_eq!(with.segments_delivered, without.segments_delivered, "{trace}");
    }
}

/// The bottleneck of a run: its utilisation, and the payload that flows got, bit/s.
fn shares(outcome: &Outcome) -> (f64, f64) {
    let link = outcome.summary.links.iter().find(|link| link.name == "bottleneck").unwrap();
    (link.utilisation.unwrap(), outcome.summary.goodput_bit_s)
}

#[test]
fn utilisation_refers_to_what_the_trace_allows() {
    // 12 Mbit/s in half of the time, and as much by opportunities: a packet each 2 ms, in pairs.
    for trace in [
        r#"{ steps = [{ time = "0 s", rate = "12 Mbit/s" }, { time = "5 ms", rate = "0 bit/s" }, { time = "10 ms" }] }"#,
        "{ opportunities = [2, 4, 4, 8, 8] }",
    ] {
        let (utilisation, goodput) = shares(&run(&format!("buffer = \"100 packets\", trace = {trace}")));
        let allowed = if trace.contains("opp") { 7.5e6 } else { 6e6 };
        assert!((0.97..=1.0).contains(&utilisation), "{trace}: {utilisation}");
        let share = goodput / (allowed * 1448.0 / 1500.0);
        assert!((0.95..=1.0).contains(&share), "{trace}: {goodput}");
    }
}

#[test]
fn the_delay_of_a_trace_is_the_delay_of_events() {
    let event = r#"event = [{ at = "3 s", link = "bottleneck", delay = "50 ms" }, { at = "9 s", link = "bottleneck", delay = "5 ms" }]"#;
    let trace = r#"trace = { loop = false, steps = [{ time = "0 s", delay = "20 ms" }, { time = "3 s", delay = "50 ms" }, { time = "9 s", delay = "5 ms" }] }"#;
    let with = |path: &str, more: &str| {
        outcome(&format!(
            "duration = \"15 s\"\n{more}\npath = {{ rate = \"12 Mbit/s\", rtt = \"40 ms\", {path} }}\nflow = [{{ cc = \"reno\" }}]"
        ))
    };
    let by_event = with("buffer = \"50 packets\"", event);
    let by_trace = with(&format!("buffer = \"50 packets\", {trace}"), "");
    assert_eq!(by_event.flows, by_trace.flows);
    assert_eq!(by_event.queues, by_trace.queues);
}

#[test]
fn losses_of_a_trace_begin_and_end() {
    let steps = r#"[{ time = "0 s", loss = 0 }, { time = "5 s", loss = 0.05 }, { time = "10 s", loss = 0 }]"#;
    let outcome = run(&format!("buffer = \"1000 packets\", trace = {{ loop = false, steps = {steps} }}"));
    let lost = |until: f64| {
        let rows = outcome.queues.time_s.iter().zip(&outcome.queues.link).zip(&outcome.queues.lost);
        rows.filter(|((time, link), _)| **time <= until && **link == 0).map(|(_, lost)| *lost).max().unwrap()
    };
    assert_eq!(lost(5.0), 0);
    assert!(lost(10.0) > 20, "{}", lost(10.0));
    // Those that were on the wire.
    assert!(lost(20.0) <= lost(10.1), "{}", lost(20.0));
}

#[test]
fn a_run_survives_a_link_that_never_serves_again() {
    for trace in [
        r#"{ loop = false, steps = [{ time = "0 s", rate = "12 Mbit/s" }, { time = "2 s", rate = "0 bit/s" }] }"#,
        "{ loop = false, opportunities = [100, 110, 120, 130, 140, 200, 300, 400, 500, 900, 1000, 1100, 5000] }",
    ] {
        let outcome = run(&format!("trace = {trace}"));
        let most = outcome.flows.delivered_bytes.iter().max();
        assert!(most > Some(&0), "{trace}");
        let timeouts = outcome.flows.timeouts.iter().max();
        assert!(timeouts > Some(&1), "{trace}: {timeouts:?}");
    }
}

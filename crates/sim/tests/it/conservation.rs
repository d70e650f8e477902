//! Invariants of every run: packets and bytes are conserved, and one seed gives one result.

use elephan_metrics::trace::EventKind;
use elephan_metrics::{Outcome, Uncontrolled};
use elephan_scenario::{Plan, Scenario};
use elephan_sim::{run, run_many};
use proptest::prelude::*;

use crate::common::{outcome, plan};

const ALGORITHMS: [&str; 20] = [
    "tahoe", "reno", "newreno", "sack", "hstcp", "hstcp-fc", "scalable", "htcp", "bic", "fast", "ltcp",
    "cubic", "vegas", "westwood", "veno", "compound", "yeah", "illinois", "dctcp", "bbr",
];

const QUEUES: [&str; 11] = [
    r#""droptail""#,
    r#"{ name = "threshold", packets = 10 }"#,
    r#""red""#,
    r#""adaptive-red""#,
    r#"{ name = "wred", profile = [{ dscp = ["af"], min_th = 5 }, { min_th = 2, max_th = 10 }] }"#,
    r#""codel""#,
    r#""fq-codel""#,
    r#""pie""#,
    r#""drr""#,
    r#"{ name = "wrr", class = [{ name = "af", dscp = ["af"], weight = 3 }, { name = "be", queue = "codel" }] }"#,
    r#"{ name = "priority", class = [{ name = "ef", dscp = ["ef"], queue = "red" }, { name = "be" }] }"#,
];

/// A random scenario of a few simulated seconds.
fn scenario() -> impl Strategy<Value = String> {
    let flows = prop::collection::vec((0..ALGORITHMS.len(), 0u64..2000, 10u64..200, 0u64..3), 1..5);
    let path = (1u64..60, 1u64..120, 4u64..150, 0.0f64..0.05, 0u64..5);
    let stack = (
        prop::sample::select(vec!["sack", "newreno", "reno", "tahoe"]),
        any::<(bool, bool, bool, bool)>(),
        1u8..4,
        prop::sample::select(vec!["none", "round_up", "round_down"]),
    );
    (flows, path, stack, any::<u32>()).prop_map(|(flows, path, stack, seed)| {
        let (rate, rtt, buffer, loss, vary) = path;
        let (recovery, (fack, prr, ecn, timestamps), delayed, quantisation) = stack;
        let vary = match vary {
            0 => String::new(),
            1 => "vary = { name = \"jitter\", max = \"3 ms\" },".to_owned(),
            2 => "vary = { name = \"aggregate\", slot = \"4 ms\" },".to_owned(),
            3 => "vary = { name = \"heavy-tail\", median = \"1 ms\", shape = 2 },".to_owned(),
            _ => "vary = { name = \"reorder\", probability = 0.01, extra = \"5 ms\" },".to_owned(),
        };
        let reduction = if prr { "prr" } else { "at_once" };
        let queue = QUEUES[seed as usize % QUEUES.len()];
        let flows: Vec<String> = flows
            .into_iter()
            .map(|(cc, start, own_rtt, demand)| {
                let demand = match demand {
                    0 => "",
                    1 => "size = \"200 kB\",",
                    _ => "size = \"30 kB\", transfers = \"repeat\",",
                };
                let cc = ALGORITHMS[cc];
                let dscp = ["be", "af11", "ef"][own_rtt as usize % 3];
                format!("{{ cc = \"{cc}\", dscp = \"{dscp}\", {demand} start = \"{start} ms\", rtt = \"{own_rtt} ms\" }}")
            })
            .collect();
        format!(
            "duration = \"4 s\"\nseed = {seed}\n\
             path = {{ rate = \"{rate} Mbit/s\", rtt = \"{rtt} ms\", buffer = \"{buffer} packets\", queue = {queue}, {vary} \
             loss = {{ name = \"random\", probability = {loss} }} }}\n\
             tcp = {{ fack = {fack}, window_reduction = \"{reduction}\", ecn = {ecn}, timestamps = {timestamps}, \
             delayed_ack = {{ segments = {delayed} }}, quantisation = \"{quantisation}\"{} }}\n\
             measure = {{ from = \"0 s\" }}\nflow = [{}]\n\
             event = [{{ at = \"1 s\", link = \"bottleneck\", rate = \"{delayed} Mbit/s\" }}, \
             {{ at = \"2 s\", link = \"bottleneck\", delay = \"{delayed} ms\" }}, \
             {{ at = \"3 s\", link = \"bottleneck\", up = {ecn} }}]",
            format_args!(", recovery = \"{recovery}\""),
            flows.join(", ")
        )
    })
}

fn go(plan: &Plan) -> Outcome {
    run(plan, &Uncontrolled).expect("nothing cancels it")
}

fn same(a: &Outcome, b: &Outcome) -> bool {
    a.summary == b.summary
        && a.flows == b.flows
        && a.queues == b.queues
        && a.transfers.start_s == b.transfers.start_s
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn nothing_appears_and_nothing_vanishes(toml in scenario()) {
        let plan = plan(&toml);
        let outcome = go(&plan);
        let limit = plan.links[0].config.limit;
        for (i, &packets) in outcome.queues.packets.iter().enumerate() {
            if outcome.queues.link[i] == 0 {
                prop_assert!(elephan_net::Limit::Packets(packets.max(1)) == limit
                    || matches!(limit, elephan_net::Limit::Packets(most) if packets <= most));
            }
            let queues = &outcome.queues;
            prop_assert!(queues.dropped[i] + queues.lost[i] <= queues.offered[i]);
            let reasons = [&queues.dropped_full, &queues.dropped_early, &queues.dropped_policed, &queues.dropped_down];
            prop_assert_eq!(queues.dropped[i], reasons.iter().map(|column| column[i]).sum::<u64>());
        }
        for link in &outcome.summary.links {
            prop_assert!(link.utilisation.is_none_or(|share| share <= 1.0 + 1e-4), "{link:?}");
        }
        let trace = &outcome.flows;
        for i in 0..trace.time_s.len() {
            // Delivered data was sent, and counts once: retransmissions carry data of other segments.
            prop_assert!(trace.delivered_bytes[i] <= trace.sent_bytes[i]);
            prop_assert!(trace.cwnd_segments[i] >= 1.0 && trace.cwnd_segments[i].is_finite());
            prop_assert!(trace.ssthresh_segments[i] >= 2.0);
        }
        for (i, &end) in outcome.transfers.end_s.iter().enumerate() {
            prop_assert!(end.is_nan() || end > outcome.transfers.start_s[i]);
        }
    }

    #[test]
    fn one_seed_one_result_on_any_number_of_threads(toml in scenario()) {
        let plans = vec![plan(&toml), plan(&toml), plan(&toml)];
        let outcomes: Vec<Outcome> =
            run_many(&plans, 2, |_| Uncontrolled).into_iter().map(|outcome| outcome.unwrap()).collect();
        let alone = go(&plans[0]);
        for outcome in &outcomes {
            prop_assert!(same(outcome, &alone));
        }
    }
}

#[test]
fn every_packet_sent_is_received_or_dropped_or_lost_or_on_its_way() {
    let toml = r#"duration = "20 s"
        path = { rate = "20 Mbit/s", rtt = "40 ms", buffer = "20 packets", loss = { name = "random", probability = 0.002 } }
        flow = [{ cc = "sack", count = 3 }]
        trace = { events = true }"#;
    let outcome = outcome(toml);
    let count =
        |kind: EventKind| outcome.events.kind.iter().map(|&k| u64::from(k == kind as u8)).sum::<u64>();
    let sent = count(EventKind::Send) + count(EventKind::Retransmit) + count(EventKind::Ack);
    let last = |column: &[u64], link: u32| {
        (0..column.len()).rev().find(|&i| outcome.queues.link[i] == link).map_or(0, |i| column[i])
    };
    let lost = last(&outcome.queues.lost, 0) + last(&outcome.queues.lost, 1);
    let gone = count(EventKind::Receive) + count(EventKind::Drop) + lost;
    // 20 Mbit/s times 40 ms, and the queues: at most 67 + 2 * 21 packets can be in transit.
    assert!(sent >= gone && sent - gone <= 120, "sent {sent}, received or gone {gone}");
}

#[test]
fn an_added_flow_leaves_the_others_draws_as_they_were() {
    let starts = |flows: u32| {
        let toml = format!(
            r#"duration = "30 s"
            path = {{ rate = "10 Mbit/s", rtt = "20 ms" }}
            flow = [{{ cc = "reno", count = {flows}, start = {{ uniform = ["0 s", "10 s"] }} }}]"#
        );
        let summary = outcome(&toml).summary;
        summary.flows.iter().map(|flow| flow.start_s).collect::<Vec<_>>()
    };
    assert_eq!(starts(3)[..], starts(5)[..3]);
}

#[test]
fn a_route_over_three_links_has_their_delays() {
    let text = r#"duration = "5 s"
        flow = [{ cc = "reno", from = "a", to = "d" }]
        [[link]]
        name = "one"
        from = "a"
        to = "b"
        rate = "100 Mbit/s"
        delay = "5 ms"
        [[link]]
        name = "two"
        from = "b"
        to = "c"
        rate = "10 Mbit/s"
        delay = "10 ms"
        [[link]]
        name = "three"
        from = "c"
        to = "d"
        rate = "100 Mbit/s"
        delay = "15 ms"
        "#;
    let plan = Scenario::from_toml(text, "test", &[]).unwrap().resolve("test").unwrap();
    assert_eq!(plan.links[plan.bottleneck as usize].name, "two");
    let outcome = go(&plan);
    assert!(outcome.summary.utilisation.unwrap() > 0.7);
    let first = outcome.flows.srtt_s.iter().copied().find(|&srtt| srtt > 0.0).unwrap();
    assert!((0.060..0.2).contains(&first), "{first}");
}

/// Payload of a flow that its receive rate tells of, bytes, up to its last sample.
fn arrived(outcome: &Outcome, flow: u32) -> f64 {
    let trace = &outcome.flows;
    let rates = trace.flow.iter().zip(&trace.receive_rate_bit_s).filter(|&(&number, _)| number == flow);
    rates.map(|(_, rate)| rate * 0.1 / 8.0).sum()
}

fn last_of(outcome: &Outcome, column: &[u64], flow: u32) -> f64 {
    let trace = &outcome.flows;
    (0..column.len()).rev().find(|&row| trace.flow[row] == flow).map_or(0.0, |row| column[row] as f64)
}

#[test]
fn on_a_path_that_loses_nothing_data_arrive_as_they_are_delivered() {
    let outcome = outcome(
        r#"duration = "10 s"
        path = { rate = "20 Mbit/s", rtt = "40 ms", buffer = "10000 packets" }
        flow = [{ cc = "cubic", count = 2, start = { uniform = ["0 s", "1 s"] } }, { cc = "reno", size = "30 kB", transfers = "repeat" }]
        arrivals = [{ cc = "reno", per_second = 5, size = "20 kB" }]"#,
    );
    assert!(outcome.flows.delivered_bytes.iter().max() > Some(&1_000_000));
    assert_eq!(outcome.flows.receive_rate_bit_s, outcome.flows.goodput_bit_s);
    assert!(outcome.crowds.goodput_bit_s.iter().any(|&rate| rate > 0.0));
    assert_eq!(outcome.crowds.receive_rate_bit_s, outcome.crowds.goodput_bit_s);
}

#[test]
fn what_arrives_is_what_the_links_deliver() {
    // Losses, reordering and retransmissions: each segment that reaches the receiver counts when it does.
    let outcome = outcome(
        r#"duration = "20 s"
        path = { rate = "20 Mbit/s", rtt = "40 ms", buffer = "20 packets", loss = { name = "random", probability = 0.002 }, vary = { name = "reorder", probability = 0.01, extra = "5 ms" } }
        flow = [{ cc = "sack", count = 3 }]
        trace = { events = true }"#,
    );
    for flow in 0..3 {
        let events = &outcome.events;
        let of_flow = (0..events.kind.len()).filter(|&row| events.flow[row] == flow);
        let received = of_flow.filter(|&row| events.kind[row] == EventKind::Receive as u8);
        let payload: u64 = received.map(|row| u64::from(events.bytes[row])).sum();
        assert!((arrived(&outcome, flow) - payload as f64).abs() < 1.0, "flow {flow}: {payload}");
        assert!(last_of(&outcome, &outcome.flows.retransmits, flow) > 10.0);
    }
}

#[test]
fn spurious_retransmissions_arrive_and_are_not_delivered() {
    // Nothing is lost and the order is kept, but the delay grows until timers expire: what is retransmitted arrives twice.
    let outcome = outcome(
        r#"duration = "20 s"
        path = { rate = "10 Mbit/s", rtt = "20 ms", buffer = "10000 packets" }
        flow = [{ cc = "reno" }]
        event = [{ at = "500 ms", link = "bottleneck", delay = "2 s" }]"#,
    );
    assert_eq!(outcome.summary.loss_rate, Some(0.0));
    let last = |column: &[u64]| last_of(&outcome, column, 0);
    let twice = arrived(&outcome, 0) - last(&outcome.flows.delivered_bytes);
    let again = last(&outcome.flows.retransmits) * 1448.0;
    assert!(twice > 1000.0 && twice < again + 1.0, "{twice} of {again}");
}

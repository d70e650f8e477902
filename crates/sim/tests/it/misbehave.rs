//! Whole runs with ends that misbehave.

use elephan_metrics::Outcome;

use crate::common::outcome;

/// Two flows of CUBIC on paths of their own, the first with these keys of its stack.
fn apart(tcp: &str) -> Outcome {
    outcome(&format!(
        r#"duration = "20 s"
        link = [
            {{ name = "first", from = "a", to = "b", rate = "20 Mbit/s", delay = "10 ms", buffer = "50% bdp", queue = "codel" }},
            {{ name = "second", from = "c", to = "d", rate = "20 Mbit/s", delay = "10 ms", buffer = "50% bdp", queue = "codel" }},
        ]
        tcp = {{ ecn = true, receive_buffer = "300 kB" }}
        flow = [
            {{ cc = "cubic", from = "a", to = "b", tcp = {{ {tcp} }} }},
            {{ cc = "cubic", from = "c", to = "d" }},
        ]"#
    ))
}

/// All figures and samples of a flow, to the bit, and its goodput, in Mbit/s.
fn of_flow(outcome: &Outcome, flow: u32) -> (String, f64) {
    let trace = &outcome.flows;
    let rows = (0..trace.time_s.len()).filter(|&row| trace.flow[row] == flow);
    let row = |row: usize| {
        (trace.cwnd_segments[row], trace.srtt_s[row], trace.sent_bytes[row], trace.delivered_bytes[row])
    };
    let summary = &outcome.summary.flows[flow as usize];
    (format!("{summary:?} {:?}", rows.map(row).collect::<Vec<_>>()), summary.goodput_bit_s / 1e6)
}

#[test]
fn an_honest_flow_is_the_same_to_the_bit_whatever_others_do_elsewhere() {
    let honest = apart("");
    let spelled = "misbehave = { ack_division = 1, optimistic_acks = 0, conceal_marks = false, ignore_marks = false, ignore_losses = false }";
    assert_eq!(format!("{honest:?}"), format!("{:?}", apart(spelled)));
    let (samples, goodput) = of_flow(&honest, 1);
    assert!(goodput > 15.0, "{goodput}");
    for cheat in [
        "ack_division = 7",
        "optimistic_acks = 20",
        "conceal_marks = true",
        "ignore_marks = true",
        "ignore_losses = true",
    ] {
        let outcome = apart(&format!("misbehave = {{ {cheat} }}"));
        assert_ne!(of_flow(&outcome, 0).0, of_flow(&honest, 0).0, "{cheat}");
        assert_eq!(of_flow(&outcome, 1).0, samples, "{cheat}");
    }
}

#[test]
fn goodput_counts_what_has_arrived_where_losses_are_concealed() {
    // Nothing is retransmitted: what is not delivered was lost, a segment of 1448 bytes each.
    let outcome = outcome(
        r#"duration = "60 s"
        path = { rate = "20 Mbit/s", rtt = "40 ms", loss = { name = "random", probability = 0.01 } }
        tcp = { receive_buffer = "80 kB", misbehave = { optimistic_acks = 5 } }
        measure = { from = "0 s" }
        flow = [{ cc = "reno", size = "14.48 MB" }]"#,
    );
    let (flow, link) = (&outcome.summary.flows[0], &outcome.summary.links[0]);
    assert!(!outcome.transfers.end_s[0].is_nan());
    assert_eq!((flow.retransmitted_bytes, link.dropped), (0, 0));
    assert!(link.lost > 50, "{}", link.lost);
    assert_eq!(outcome.flows.delivered_bytes.last(), Some(&((10_000 - link.lost) * 1448)));
}

#[test]
fn a_cheat_takes_what_an_honest_flow_leaves() {
    // Beside CUBIC, which has 10 of 20 Mbit/s beside its own kind.
    let left = |tcp: &str, rest: &str| {
        let outcome = outcome(&format!(
            r#"duration = "30 s"
            path = {{ rate = "20 Mbit/s", rtt = "40 ms", queue = "{rest}" }}
            tcp = {{ ecn = true, receive_buffer = "1 MB" }}
            measure = {{ from = "10 s" }}
            flow = [{{ cc = "cubic", tcp = {{ {tcp} }} }}, {{ cc = "cubic" }}]"#
        ));
        outcome.summary.flows[1].goodput_bit_s / 1e6
    };
    assert!(left("", "codel") > 7.0);
    for cheat in
        ["optimistic_acks = 1", "conceal_marks = true", "ignore_marks = true", "ignore_losses = true"]
    {
        let queue = if cheat.contains("marks") { "codel" } else { "droptail" };
        let honest = left(&format!("misbehave = {{ {cheat} }}"), queue);
        assert!(honest < 2.0, "{cheat}: {honest}");
    }
}

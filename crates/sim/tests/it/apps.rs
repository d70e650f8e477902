//! Applications that limit their flows.

use elephan_metrics::trace::EventKind;
use elephan_metrics::{Outcome, Uncontrolled};
use elephan_sim::{run, run_many};
use proptest::prelude::*;

use crate::common::{outcome, plan};

/// A flow with this application, on a path of 100 Mbit/s and 40 ms.
fn scenario(app: &str, more: &str) -> String {
    format!(
        r#"duration = "20 s"
        path = {{ rate = "100 Mbit/s", rtt = "40 ms" }}
        flow = [{{ cc = "cubic", app = {{ {app} }} }}]
        {more}"#
    )
}

fn last(column: &[u64]) -> u64 {
    column.last().copied().unwrap_or(0)
}

/// When chunks were written, and when acknowledged.
fn chunks(outcome: &Outcome) -> Vec<(f64, f64)> {
    let trace = &outcome.transfers;
    trace.start_s.iter().copied().zip(trace.end_s.iter().copied()).collect()
}

#[test]
fn the_mean_rate_is_that_of_the_application_to_a_chunk() {
    for (chunk, bytes) in
        [("", 1448.0), (r#"chunk = "64 kB""#, 64_000.0), (r#"chunk = { exponential = "20 kB" }"#, 250_000.0)]
    {
        let outcome =
            outcome(&scenario(&format!(r#"rate = "8 Mbit/s", {chunk}"#), "measure = { from = \"0 s\" }"));
        // 1 MB/s; what was written in the last round trip has not arrived.
        let delivered = last(&outcome.flows.delivered_bytes) as f64;
        assert!(delivered <= 20e6 + bytes && delivered >= 20e6 - bytes - 0.06 * 1e6, "{chunk}: {delivered}");
        let written: u64 = outcome.transfers.bytes.iter().sum();
        assert!((written as f64 - 20e6).abs() <= bytes, "{chunk}: {written}");
        let transfers = outcome.summary.transfers.unwrap();
        // A round trip, 200 ms of the receiver at most for a last odd segment, and the serialisation of the largest chunk.
        assert!(transfers.p50_s.unwrap() >= 0.04 && transfers.p99_s.unwrap() < 0.3, "{chunk}: {transfers:?}");
    }
}

#[test]
fn a_chunk_never_leaves_before_it_is_written() {
    let outcome = outcome(&scenario(
        r#"per_second = 10, chunk = { uniform = ["1 kB", "300 kB"] }"#,
        "trace.events = true",
    ));
    let (transfers, events) = (&outcome.transfers, &outcome.events);
    let mut ends = Vec::new();
    for (&bytes, &start) in transfers.bytes.iter().zip(&transfers.start_s) {
        ends.push((ends.last().map_or(0, |&(end, _)| end) + bytes, start));
    }
    let (mut sent, mut count) = (0, 0);
    for row in (0..events.kind.len()).filter(|&row| events.kind[row] == EventKind::Send as u8) {
        // Payload that was sent for the first time, in order.
        sent += u64::from(events.bytes[row]);
        let written: u64 =
            ends.iter().filter(|&&(_, at)| at <= events.time_s[row]).map(|&(end, _)| end).max().unwrap_or(0);
        assert!(sent <= written, "{sent} sent of {written} at {} s", events.time_s[row]);
        count += 1;
    }
    assert!(count > 10_000 && ends.len() == 201, "{count}, {}", ends.len());
}

#[test]
fn an_application_is_silent_while_it_is_off() {
    let outcome = outcome(&scenario(r#"rate = "8 Mbit/s", chunk = "10 kB", on = "1 s", off = "3 s""#, ""));
    // Chunks at 0, 10, ... 990 ms of each four seconds, and one at the end of the run.
    let chunks = chunks(&outcome);
    assert_eq!(chunks.len(), 501);
    assert!(chunks.iter().all(|&(start, end)| start % 4.0 < 0.991 && (end < start + 0.3 || start == 20.0)));
    let trace = &outcome.flows;
    for (row, &time) in trace.time_s.iter().enumerate() {
        if time % 4.0 > 1.5 {
            assert_eq!(trace.goodput_bit_s[row], 0.0, "{time}");
        }
    }
    assert!((last(&trace.delivered_bytes) as f64 - 5e6).abs() < 1.0);
}

#[test]
fn a_request_follows_the_acknowledgment_of_the_last_response() {
    // Every segment is acknowledged at once, so that a chunk takes whole round trips and its serialisation.
    let toml = scenario(r#"chunk = "14480 B", pause = "500 ms""#, "tcp.delayed_ack.segments = 1");
    let chunks = chunks(&outcome(&toml));
    assert!(chunks[0].1 > 0.08, "the handshake counts: {:?}", chunks[0]);
    assert_eq!(chunks.len(), 37);
    for pair in chunks.windows(2) {
        let [(_, end), (start, next_end)] = pair else { continue };
        assert!((start - end - 0.5).abs() < 1e-9, "{pair:?}");
        // Ten segments, which the initial window admits: 1.2 ms on the bottleneck.
        assert!(next_end.is_nan() || (next_end - start - 0.0412).abs() < 1e-3, "{pair:?}");
    }
}

#[test]
fn a_flow_that_stops_delivers_what_was_written_and_closes() {
    let toml = r#"duration = "20 s"
        path = { rate = "1 Mbit/s", rtt = "40 ms" }
        flow = [{ cc = "reno", stop = "5 s", app = { rate = "2 Mbit/s", chunk = "50 kB" } }]
        measure.from = "0 s"
        trace.events = true"#;
    let outcome = outcome(toml);
    assert_eq!(chunks(&outcome).len(), 25);
    assert!(chunks(&outcome).iter().all(|&(start, end)| start < 5.0 && end < 12.0));
    assert_eq!((outcome.summary.flows[0].goodput_bit_s * 20.0 / 8.0).round(), 25.0 * 50_000.0);
    let finished = outcome.events.kind.iter().filter(|&kind| *kind == EventKind::Finish as u8);
    assert_eq!(finished.count(), 1);
}

#[test]
fn what_the_path_does_not_carry_waits_and_its_delay_grows() {
    let toml = r#"duration = "10 s"
        path = { rate = "1 Mbit/s", rtt = "40 ms" }
        flow = [{ cc = "reno", app = { rate = "2 Mbit/s", chunk = "50 kB" } }]"#;
    let outcome = outcome(toml);
    let chunks = chunks(&outcome);
    assert_eq!(chunks.len(), 51);
    let delays: Vec<f64> =
        chunks.iter().map(|(start, end)| end - start).filter(|delay| delay.is_finite()).collect();
    assert!(delays.len() < 25 && delays.last().unwrap() > &4.0, "{delays:?}");
}

#[test]
fn a_host_that_takes_time_does_not_lose_a_turn() {
    let host = r#"host = { data = "50 us", ack = "20 us" }"#;
    let times = |more: &str| {
        let outcome =
            outcome(&scenario(r#"rate = "8 Mbit/s", chunk = "20 kB", on = "1 s", off = "1 s""#, more));
        chunks(&outcome).into_iter().map(|(start, _)| start).collect::<Vec<_>>()
    };
    assert_eq!(times(host), times(""));
}

#[test]
fn an_application_draws_the_same_beside_other_traffic() {
    let sizes = |more: &str| {
        let app = r#"per_second = 20, chunk = { pareto = { mean = "20 kB", shape = 1.5 } }, key_frames = { every = 5, size = { exponential = "60 kB" } }, on = { exponential = "1 s" }, off = { exponential = "1 s" }"#;
        let trace = outcome(&scenario(app, more)).transfers;
        let of_flow =
            trace.flow.iter().zip(trace.start_s.iter().zip(&trace.bytes)).filter(|(flow, _)| **flow == 0);
        let mut rows: Vec<(f64, u64)> = of_flow.map(|(_, (&start, &bytes))| (start, bytes)).collect();
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        rows
    };
    let alone = sizes("");
    assert!(alone.len() > 100);
    assert_eq!(alone, sizes(r#"arrivals = [{ cc = "reno", per_second = 30, size = "100 kB" }]"#));
}

/// A random application.
fn app() -> impl Strategy<Value = String> {
    let size = prop::sample::select(vec![
        r#""3 kB""#,
        r#"{ exponential = "30 kB" }"#,
        r#"{ pareto = { minimum = "2 kB", shape = 1.2 } }"#,
        r#"{ list = ["1 B", "100 kB", "1449 B"] }"#,
    ]);
    let pace =
        (1u32..20_000, 1u32..100, 0u32..300, 0u8..3).prop_map(|(kbit, chunks, pause, kind)| match kind {
            0 => format!(r#"rate = "{kbit} kbit/s""#),
            1 => format!("per_second = {chunks}"),
            _ => format!(r#"pause = {{ uniform = ["0 s", "{pause} ms"] }}"#),
        });
    (size.clone(), pace, any::<(bool, bool)>(), 1u32..500, size).prop_map(
        |(size, pace, (off, key), ms, other)| {
            let off = if off && !pace.starts_with("pause") {
                format!(r#", on = {{ exponential = "{ms} ms" }}, off = {{ exponential = "200 ms" }}"#)
            } else {
                String::new()
            };
            let key =
                if key { format!(", key_frames = {{ every = 3, size = {other} }}") } else { String::new() };
            format!("chunk = {size}, {pace}{off}{key}")
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn what_is_delivered_was_written_on_any_number_of_threads(
        apps in prop::collection::vec((app(), 0u64..500, any::<bool>()), 1..4),
        (rate, rtt, loss, profile) in (1u64..40, 2u64..100, 0.0f64..0.02, any::<bool>()),
        seed: u32,
    ) {
        let flows: Vec<String> = apps.iter().map(|(app, start, stops)| {
            let stop = if *stops { r#", stop = "2 s""# } else { "" };
            format!(r#"{{ cc = "cubic", app = {{ {app} }}, start = "{start} ms"{stop} }}"#)
        }).collect();
        let profile = if profile { "rfc" } else { "linux-6" };
        let plan = plan(&format!(
            "duration = \"3 s\"\nmeasure.from = \"0 s\"\nseed = {seed}\ntcp.profile = \"{profile}\"\n\
             path = {{ rate = \"{rate} Mbit/s\", rtt = \"{rtt} ms\", buffer = \"50 packets\", loss = {{ name = \"random\", probability = {loss} }} }}\n\
             flow = [{}]", flows.join(", "),
        ));
        let outcome = run(&plan, &Uncontrolled).unwrap();
        for flow in 0..apps.len() as u32 {
            let trace = &outcome.transfers;
            let rows = || (0..trace.flow.len()).filter(|&row| trace.flow[row] == flow);
            let bytes = |row: usize| u128::from(trace.bytes[row]);
            let written: u128 = rows().map(bytes).sum();
            let acked: u128 = rows().filter(|&row| trace.end_s[row].is_finite()).map(bytes).sum();
            let delivered = (outcome.summary.flows[flow as usize].goodput_bit_s * 3.0 / 8.0).round() as u128;
            prop_assert!(delivered <= written, "{} of {}", delivered, written);
            prop_assert!(acked <= delivered, "{} acknowledged of {}", acked, delivered);
            let numbers: Vec<u64> = rows().map(|row| trace.index[row]).collect();
            prop_assert_eq!(&numbers, &(0..numbers.len() as u64).collect::<Vec<_>>());
        }
        for other in run_many(&[plan.clone(), plan], 2, |_| Uncontrolled) {
            prop_assert_eq!(format!("{:?}", other.unwrap()), format!("{:?}", outcome));
        }
    }
}

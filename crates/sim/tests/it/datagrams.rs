//! Streams of datagrams: reception, delay, and effect on TCP.

use crate::common::outcome;

#[test]
fn a_stream_below_the_rate_loses_nothing_and_waits_for_nothing() {
    let summary = outcome(
        r#"duration = "10 s"
        path = { rate = "100 Mbit/s", rtt = "60 ms", buffer = "10 packets" }
        cbr = [{ rate = "40 Mbit/s" }]
        measure = { from = "1 s" }"#,
    )
    .summary;
    let stream = &summary.streams[0];
    assert_eq!((stream.lost, stream.reordered), (0, 0));
    // 40 Mbit/s of packets of 1500 bytes for 9 s, of which those of the last 30.12 ms are in transit; 1472
    // bytes are payload.
    assert_eq!((stream.sent, stream.received), (30_000, 30_000 - 101), "{stream:?}");
    assert!((stream.goodput_bit_s / 40e6 - 1472.0 / 1500.0).abs() < 1e-4);
    // Half of the round trip, and 120 us of serialisation.
    assert!((stream.delay_mean_s.unwrap() - 0.03012).abs() < 1e-9, "{stream:?}");
    assert!(stream.jitter_s.unwrap() < 1e-9);
}

#[test]
fn a_stream_above_the_rate_loses_the_rest_and_fills_the_queue() {
    let summary = outcome(
        r#"duration = "20 s"
        path = { rate = "10 Mbit/s", rtt = "20 ms", buffer = "50 packets" }
        cbr = [{ rate = "12.5 Mbit/s" }]
        measure = { from = "10 s" }"#,
    )
    .summary;
    let stream = &summary.streams[0];
    let share = stream.lost as f64 / (stream.received + stream.lost) as f64;
    assert!((share - 0.2).abs() < 0.002, "{stream:?}");
    // 10 ms of propagation; at most 50 packets of 1.2 ms ahead in the queue, and the packet's own service.
    assert!((stream.delay_max_s.unwrap() - (0.010 + 51.0 * 0.0012)).abs() < 0.0012, "{stream:?}");
    // Packets of the last 71 ms have not reached the receiver; a fifth of them was dropped.
    let unknown = summary.links[0].dropped - stream.lost;
    assert!(unknown.abs_diff((0.0712 * 12.5e6 / 12_000.0 / 5.0) as u64) <= 1, "{summary:?}");
}

#[test]
fn a_burst_waits_for_itself() {
    // Ten packets at once at 12 Mbit/s: they wait 0, 1, ... 9 ms for service.
    let summary = outcome(
        r#"duration = "10 s"
        path = { rate = "12 Mbit/s", rtt = "20 ms", buffer = "50 packets" }
        cbr = [{ rate = "6 Mbit/s", burst = 10 }]
        measure = { from = "1 s" }"#,
    )
    .summary;
    let stream = &summary.streams[0];
    assert!((stream.delay_mean_s.unwrap() - 0.0155).abs() < 1e-5, "{stream:?}");
    assert!((stream.delay_max_s.unwrap() - 0.020).abs() < 1e-9);
}

#[test]
fn reordering_and_losses_on_the_wire_are_told_apart() {
    let summary = outcome(
        r#"duration = "60 s"
        path = { rate = "12 Mbit/s", rtt = "20 ms", vary = { name = "reorder", probability = 0.1, extra = "5 ms" }, loss = { name = "periodic", every = 100 } }
        cbr = [{ rate = "6 Mbit/s" }]
        measure = { from = "1 s" }"#,
    )
    .summary;
    let stream = &summary.streams[0];
    let share = |count: u64| count as f64 / stream.sent as f64;
    assert!((share(stream.lost) - 0.01).abs() < 0.0005, "{stream:?}");
    // A packet each 2 ms: one that is delayed by 5 ms is late, unless those behind it are delayed too.
    assert!((share(stream.reordered) - 0.1).abs() < 0.02, "{stream:?}");
}

#[test]
fn tcp_takes_what_datagrams_leave_in_either_direction() {
    let goodput = |reverse: bool| {
        let summary = outcome(&format!(
            r#"duration = "60 s"
            path = {{ rate = "50 Mbit/s", rtt = "20 ms" }}
            flow = [{{ cc = "cubic", reverse = {reverse} }}]
            cbr = [{{ rate = "30 Mbit/s", reverse = {reverse} }}, {{ rate = "30 Mbit/s", reverse = {} }}]
            measure = {{ from = "10 s" }}"#,
            !reverse
        ))
        .summary;
        assert!(summary.streams[1].lost == 0);
        summary.flows[0].goodput_bit_s
    };
    // 20 Mbit/s are left; 1448 of 1500 bytes are payload.
    for goodput in [goodput(false), goodput(true)] {
        assert!((0.93..1.02).contains(&(goodput / 19.3e6)), "{goodput}");
    }
}

#[test]
fn a_stream_starts_and_stops_when_it_is_told_to() {
    let outcome = outcome(
        r#"duration = "10 s"
        path = { rate = "12 Mbit/s", rtt = "20 ms" }
        cbr = [{ rate = "6 Mbit/s", start = "2 s", stop = "4 s" }]
        measure = { from = "0 s" }"#,
    );
    let stream = &outcome.summary.streams[0];
    assert_eq!((stream.sent, stream.received, stream.start_s), (1000, 1000, Some(2.0)));
    assert!(outcome.streams.time_s[0] >= 2.0);
}

#[test]
fn an_added_stream_leaves_the_others_times_as_they_were() {
    let sent = |count: u32| {
        let toml = format!(
            r#"duration = "20 s"
            path = {{ rate = "100 Mbit/s", rtt = "20 ms" }}
            on_off = [{{ count = {count}, rate = "5 Mbit/s", on = {{ exponential = "200 ms" }},
                off = {{ pareto = {{ minimum = "100 ms", shape = 1.2 }} }}, start = {{ uniform = ["0 s", "1 s"] }} }}]"#
        );
        outcome(&toml).summary.streams.iter().map(|stream| (stream.start_s, stream.sent)).collect::<Vec<_>>()
    };
    let few = sent(3);
    assert!(few[0].1 != few[1].1);
    assert_eq!(few[..], sent(5)[..3]);
}

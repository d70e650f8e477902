//! Hosts whose processor takes time, whose backlog is limited, and whose device queue fills.

use elephan_metrics::trace::FlowTrace;
use elephan_metrics::{FlowSummary, Summary};

use crate::common::outcome;

/// A flow of `cc` on 100 Mbit/s and 40 ms from a host.
fn run(cc: &str, path: &str, more: &str) -> Summary {
    outcome(&format!(
        r#"duration = "30 s"
        path = {{ rate = "100 Mbit/s", rtt = "40 ms", {path} }}
        flow = [{{ cc = "{cc}" }}]
        measure = {{ from = "10 s" }}
        {more}"#
    ))
    .summary
}

fn flow(summary: &Summary) -> &FlowSummary {
    &summary.flows[0]
}

#[test]
fn a_host_without_cost_is_no_host() {
    let (without, with) = (run("htcp", "", ""), run("htcp", "", "host = { max_backlog = 1000000 }"));
    assert_eq!(with.goodput_bit_s, without.goodput_bit_s);
    let host = flow(&with).host.as_ref().unwrap();
    assert_eq!((host.busy, host.dropped), (0.0, 0));
    assert_eq!(flow(&without).host, None);
}

#[test]
fn the_processor_is_busy_for_what_it_does() {
    // 8333 packets of 10 us and 4167 ACKs of 20 us a second: 16.7 %.
    let summary = run("reno", "buffer = \"100% bdp\"", "host = { data = \"10 us\", ack = \"20 us\" }");
    let busy = flow(&summary).host.as_ref().unwrap().busy;
    assert!((busy - 0.1667).abs() < 0.004, "{summary:?}");
}

#[test]
fn a_slow_processor_limits_the_rate_and_nothing_is_lost() {
    // 200 us for a packet and 100 us for an ACK of two: 4000 packets a second, of which 1448 bytes are payload.
    // Not in slow start, which sends four packets for each ACK.
    let host = "host = { data = \"200 us\", ack = \"100 us\" }\ntcp = { initial_ssthresh = 100 }";
    let summary = run("reno", "", host);
    let flow = flow(&summary);
    assert!((flow.goodput_bit_s / (4000.0 * 1448.0 * 8.0) - 1.0).abs() < 0.01, "{flow:?}");
    assert!(flow.host.as_ref().unwrap().busy > 0.99);
    assert_eq!((summary.links[0].dropped, flow.retransmitted_bytes), (0, 0));
}

#[test]
fn a_backlog_that_is_full_drops_and_counts() {
    let host = "host = { data = \"200 us\", ack = \"100 us\", max_backlog = 5 }";
    let summary = run("reno", "", host);
    let host = flow(&summary).host.as_ref().unwrap();
    assert!(host.dropped > 0 && host.backlog_max_packets == 5, "{host:?}");
    // Cumulative ACKs compensate for it: data transfer continues.
    assert!(flow(&summary).goodput_bit_s > 20e6, "{summary:?}");
}

#[test]
fn a_full_device_queue_reduces_the_window_though_nothing_is_lost() {
    // A device of 50 Mbit/s in front of a link of 100: the host's own queue is the only one.
    let path = "access_rate = \"50 Mbit/s\"";
    let limited = run("reno", path, "host = { txqueuelen = 50 }");
    let stalls = flow(&limited).host.as_ref().unwrap().stalls;
    assert!(stalls > 0, "{limited:?}");
    assert_eq!(flow(&limited).congestion_events, stalls);
    assert_eq!((limited.links[0].dropped, flow(&limited).retransmitted_bytes), (0, 0));
    // Without a limit the queue accepts everything that the window allows, and the window grows without end.
    let free = run("reno", path, "host = {}");
    assert_eq!(flow(&free).host, None);
    assert_eq!(flow(&free).congestion_events, 0);
    assert!(flow(&free).cwnd_mean_segments > flow(&limited).cwnd_mean_segments);
    // Li 2006, section 5.2.2: a short queue costs goodput.
    let short = run("reno", path, "host = { txqueuelen = 5 }");
    assert!(flow(&short).goodput_bit_s < 0.95 * flow(&free).goodput_bit_s, "{short:?}");
}

#[test]
fn a_flow_may_have_another_host() {
    let summary = outcome(
        r#"duration = "10 s"
        path = { rate = "100 Mbit/s", rtt = "40 ms" }
        host = { data = "5 us" }
        flow = [{ cc = "reno" }, { cc = "reno", host = { data = "1 ms" } }]"#,
    )
    .summary;
    // 1 ms for a packet: 1000 of them a second.
    assert!(summary.flows[1].goodput_bit_s < 1000.0 * 1448.0 * 8.0);
    assert!(summary.flows[0].goodput_bit_s > 50e6);
}

#[test]
fn transfers_follow_each_other_on_a_host_too() {
    let summary = outcome(
        r#"duration = "30 s"
        path = { rate = "100 Mbit/s", rtt = "40 ms" }
        host = { data = "5 us", ack = "2 us" }
        flow = [{ cc = "htcp", size = "5 MB", transfers = "repeat" }]"#,
    )
    .summary;
    // 0.4 s of the rate, and some round trips of slow start each.
    assert!((30..70).contains(&summary.transfers.as_ref().unwrap().count), "{summary:?}");
}

/// The hosts of Li 2006, Table B.2, as docs/hosts.md derives them: 2.2 GHz and Linux 2.4, at a `scale` of its
/// gigabit. At half the rate all processing takes twice as long. Windows are half as large, and so is the
/// number of segments that an ACK walks, so the time for each of them is four times as long.
fn linux_2_4(scale: f64, walk: &str) -> String {
    format!(
        r#"tcp = {{ quantisation = "round_up", window_reduction = "rate_halving", rto_min = "320 ms" }}
        [host]
        data = "{0} ns"
        ack = "{0} ns"
        {walk} = "{1} ps"
        max_backlog = {2}
        throttle = true"#,
        (3600.0 / scale).round(),
        (5400.0 / scale / scale).round(),
        (3000.0 * scale).round(),
    )
}

/// The DataTAG path of section 9.1.3: the share of the rate left by `cbr` that a Scalable flow takes, its
/// timeouts, and its smallest window after the start relative to the window that fills the path.
fn datatag(cbr: u32, host: &str) -> (f64, u64, f64) {
    let outcome = outcome(&format!(
        r#"duration = "60 s"
        path = {{ rate = "1 Gbit/s", rtt = "120 ms", buffer = "20% bdp" }}
        flow = [{{ cc = "scalable", start = "1 s" }}]
        cbr = [{{ rate = "{cbr} Mbit/s" }}]
        measure = {{ from = "15 s" }}
        {host}"#
    ));
    let left = f64::from(1000 - cbr) * 1e6;
    let flow = &outcome.summary.flows[0];
    let full = left * 0.12 / 12_000.0;
    let share = flow.goodput_bit_s / (left * 1448.0 / 1500.0);
    (share, flow.timeouts.unwrap(), least_window(&outcome.flows, 15.0) / full)
}

/// The smallest window after a time, in segments.
fn least_window(trace: &FlowTrace, after_s: f64) -> f64 {
    (0..trace.time_s.len())
        .filter(|&i| trace.time_s[i] > after_s)
        .map(|i| trace.cwnd_segments[i])
        .fold(f64::INFINITY, f64::min)
}

#[test]
#[expect(clippy::print_stdout, reason = "docs/hosts.md shows these figures")]
fn the_window_collapses_under_200_mbit_of_datagrams_and_not_under_600() {
    let host = linux_2_4(1.0, "sack_in_flight");
    let (fast, slow) = (datatag(200, &host), datatag(600, &host));
    println!("share, timeouts, least window: 200 Mbit/s {fast:?}, 600 Mbit/s {slow:?}");
    assert!(fast.0 < 0.6 && fast.2 < 0.1, "{fast:?}");
    assert!(slow.0 > 0.9 && slow.1 == 0 && slow.2 > 0.5, "{slow:?}");
    // The cause is the walk over all segments in flight: a walk over the holes alone has no significant cost.
    let holes = datatag(200, &linux_2_4(1.0, "sack_lost"));
    println!("walk over holes {holes:?}");
    assert!(holes.0 > 0.95 && holes.2 > 0.5, "{holes:?}");
}

/// Assured forwarding of nine tenths beside a flood in best effort (section 9.2), at a quarter of its rate:
/// the flow's share of its assured rate, and its smallest window relative to the window that fills the class.
fn assured(cc: &str, queue: &str) -> (f64, f64) {
    let host = linux_2_4(0.25, "sack_in_flight").replacen("tcp = {", "tcp = { initial_ssthresh = 2250,", 1);
    let outcome = outcome(&format!(
        r#"duration = "80 s"
        flow = [{{ cc = "{cc}", dscp = "af11", start = "2 s" }}]
        cbr = [{{ rate = "250 Mbit/s" }}]
        measure = {{ from = "20 s" }}
        {host}
        [path]
        rate = "250 Mbit/s"
        rtt = "120 ms"
        buffer = "2083 packets"
        queue = {{ name = "wrr", class = [
            {{ name = "AF", dscp = ["af11"], weight = 90, buffer_share = 0.9, queue = {queue} }},
            {{ name = "BE", weight = 10, buffer_share = 0.1 }},
        ] }}"#
    ));
    let share = outcome.summary.flows[0].goodput_bit_s / (225e6 * 1448.0 / 1500.0);
    (share, least_window(&outcome.flows, 20.0) / 2250.0)
}

#[test]
#[expect(clippy::print_stdout, reason = "docs/hosts.md shows these figures")]
fn scalable_does_worse_than_standard_tcp_in_assured_forwarding_and_weighted_red_restores_it() {
    let (standard, scalable) = (assured("reno", r#""droptail""#), assured("scalable", r#""droptail""#));
    let profile = r#"{ name = "wred", profile = [{ min_th = 188, max_th = 1875, max_p = 0.004 }] }"#;
    let restored = assured("scalable", profile);
    println!("share, least window: reno {standard:?}, scalable {scalable:?}, with WRED {restored:?}");
    assert!(standard.0 > 0.95, "{standard:?}");
    assert!(scalable.0 < 0.7 && scalable.1 < 0.1, "{scalable:?}");
    assert!(restored.0 > scalable.0 + 0.2 && restored.1 > 0.3, "{restored:?}");
}

#[test]
fn a_backlog_that_was_full_takes_nothing_until_it_is_empty() {
    let host = |throttle| {
        format!("host = {{ data = \"200 us\", ack = \"100 us\", max_backlog = 20, throttle = {throttle} }}")
    };
    let dropped = |throttle| flow(&run("reno", "", &host(throttle))).host.as_ref().unwrap().dropped;
    assert!(dropped(true) > dropped(false) && dropped(false) > 0);
}

#[test]
fn a_busy_processor_is_not_woken_again_and_again_by_a_timer_that_is_due() {
    // Pacing releases the next segment while the processor handles an ACK.
    let outcome = outcome(
        r#"duration = "3 s"
        path = { rate = "100 Mbit/s", rtt = "20 ms" }
        tcp = { pacing = true }
        host = { ack = "10 us" }
        flow = [{ cc = "reno" }]"#,
    );
    assert!(outcome.summary.flows[0].goodput_bit_s > 80e6, "{:?}", outcome.summary);
    // For each segment: the segment, half an ACK, the processor and the pacer; about five events.
    assert!(outcome.events_handled < 8 * outcome.segments_delivered, "{} events", outcome.events_handled);
    assert!(outcome.flows.time_s.is_sorted());
}

#[test]
fn no_time_of_a_scenario_is_too_long_for_the_clock() {
    let outcome = outcome(
        r#"duration = "4800 h"
        path = { rate = "10 kbit/s", rtt = "1 h", buffer = "9 packets", queue = { name = "pie", t_update = "5000 h" } }
        tcp = { pacing = true, rto_min = "5000 h", delayed_ack = { timeout = "5000 h" } }
        host = { data = "5000 h", sack_lost = "5000 h" }
        flow = [{ cc = "reno", size = "1 MB" }, { cc = "reno", size = "1 MB", host = { data = "0 s" } }]
        trace = { interval = "2500 h" }
        measure = { from = "0 s", interval = "2500 h" }"#,
    );
    assert!(outcome.events_handled < 100_000, "{} events", outcome.events_handled);
}

#[test]
fn a_timer_that_is_due_waits_until_the_device_has_room() {
    // A SYN takes 4.8 s, and its retransmission is due after one second.
    let slow = outcome(
        r#"duration = "60 s"
        path = { rate = "100 Mbit/s", rtt = "20 ms", access_rate = "100 bit/s" }
        host = { txqueuelen = 1 }
        flow = [{ cc = "reno" }]"#,
    );
    assert!(slow.events_handled < 1000, "{} events", slow.events_handled);
    // With pacing a segment is sent when there is room for it, before the next ACK. Each stall halves the
    // window.
    let paced = outcome(
        r#"duration = "10 s"
        path = { rate = "100 Mbit/s", rtt = "20 ms", access_rate = "1 Mbit/s" }
        tcp = { pacing = true }
        host = { txqueuelen = 2 }
        flow = [{ cc = "reno" }]
        measure = { from = "2 s" }"#,
    );
    assert!(paced.summary.flows[0].goodput_bit_s > 0.85e6, "{:?}", paced.summary);
    assert!(paced.events_handled < 12 * paced.segments_delivered + 1000, "{} events", paced.events_handled);
}

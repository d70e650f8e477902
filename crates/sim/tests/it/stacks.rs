//! Settings of the stack over whole runs: none of them may stop a flow.

use crate::common::outcome;

const PATH: &str = r#"path = { rate = "50 Mbit/s", rtt = "60 ms", buffer = "100% bdp" }"#;

/// Goodput of the only flow, in Mbit/s.
fn goodput(toml: &str) -> f64 {
    outcome(toml).summary.goodput_bit_s / 1e6
}

#[test]
fn a_paced_flow_carries_what_an_unpaced_one_does() {
    // Congestion avoidance from 50 segments on a path of 1.2 ms a segment: the window must grow to fill it.
    let carried = |pacing: bool| {
        goodput(&format!(
            "duration = \"60 s\"\n{PATH}\ntcp = {{ initial_ssthresh = 50, pacing = {pacing} }}\nflow = [{{ cc = \"reno\" }}]"
        ))
    };
    let (paced, unpaced) = (carried(true), carried(false));
    assert!((paced / unpaced - 1.0).abs() < 0.02, "{paced} {unpaced}");
}

#[test]
fn after_an_outage_a_flow_recovers_within_seconds() {
    // The bottleneck is down from 5 s to 6.5 s. From 10.5 s on the flow must carry half of what fits, at least.
    for profile in ["rfc", "linux-6", "linux-2.4"] {
        for direction in ["bottleneck", "bottleneck.reverse"] {
            let carried = goodput(&format!(
                "duration = \"20 s\"\n{PATH}\ntcp.profile = \"{profile}\"\nmeasure = {{ from = \"10.5 s\" }}\n\
                 flow = [{{ cc = \"cubic\" }}]\n\
                 event = [{{ at = \"5 s\", link = \"{direction}\", up = false }}, {{ at = \"6.5 s\", link = \"{direction}\", up = true }}]"
            ));
            assert!(carried > 25.0, "{profile}, {direction} down: {carried}");
        }
    }
}

#[test]
fn acks_as_late_as_the_timeout_do_not_stop_a_flow_that_starts_with_one_segment() {
    // A minimum timeout and delayed ACKs of 200 ms.
    let carried = goodput(&format!(
        "duration = \"10 s\"\n{PATH}\ntcp = {{ initial_window = 1, rto_min = \"200 ms\" }}\nflow = [{{ cc = \"reno\" }}]"
    ));
    assert!(carried > 25.0, "{carried}");
}

#[test]
fn moderation_leaves_a_flow_its_window_where_acks_are_stretched() {
    // Each ACK covers four segments (docs/hosts.md).
    let carried = goodput(&format!(
        "duration = \"20 s\"\n{PATH}\n\
         tcp = {{ window_reduction = \"rate_halving\", moderate_cwnd = true, delayed_ack = {{ segments = 4 }} }}\n\
         flow = [{{ cc = \"scalable\" }}]"
    ));
    assert!(carried > 40.0, "{carried}");
}

#[test]
fn right_sizing_with_a_factor_near_one_holds_the_window_at_the_product() {
    // 50 Mbit/s and 60 ms hold 250 packets, which is also what the queue holds. A receiver that offers a tenth more than arrives in
    // the shortest round trip lets the sender fill the path and a tenth of the queue; one that offers twice as much, all of it.
    let peak = |factor: f64| {
        let outcome = outcome(&format!(
            "duration = \"20 s\"\n{PATH}\n\
             tcp = {{ timestamps = false, auto_tuning = true, auto_tuning_factor = {factor}, receive_buffer = \"2 MB\" }}\n\
             flow = [{{ cc = \"reno\" }}]"
        ));
        let summary = outcome.summary;
        assert!(summary.goodput_bit_s > 45e6, "{}", summary.goodput_bit_s);
        let link = &summary.links[0];
        (link.dropped, link.queue_max_packets)
    };
    let (drops, queued) = peak(1.1);
    assert!(drops == 0 && queued < 60, "{drops} {queued}");
    let (_, queued) = peak(2.0);
    assert!(queued > 200, "{queued}");
}

#[test]
fn a_kernel_s_ticks_measure_up_to_one_less_than_the_path_takes() {
    // What was lost and retransmitted is measured by timestamps; each run checks its round-trip times.
    let carried = goodput(
        "duration = \"10 s\"\ntcp.profile = \"linux-6\"\nflow = [{ cc = \"reno\", count = 8 }]\n\
         [path]\nrate = \"100 Gbit/s\"\nrtt = \"1432.288 ms\"\nbuffer = \"100% bdp\"\n\
         loss = { name = \"random\", probability = 0.5 }",
    );
    assert!(carried > 0.0, "{carried}");
}

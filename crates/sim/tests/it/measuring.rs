//! Which packets the counters of a measuring window include.

use elephan_metrics::Summary;

use crate::common::outcome;

/// A path whose delay is as long as its measuring window.
fn summary(path: &str, rest: &str) -> Summary {
    outcome(&format!(
        "duration = \"2 s\"\npath = {{ rate = \"10 Mbit/s\", rtt = \"400 ms\", {path} }}\n{rest}\n"
    ))
    .summary
}

#[test]
fn what_is_lost_was_offered() {
    // All packets sent exactly when the window opens are lost, and no others are sent for a second.
    let loss = "loss = { name = \"random\", probability = 1 }";
    for from in ["", "measure = { from = \"1 ms\" }", "measure = { from = \"50 ms\" }"] {
        let summary = summary(loss, &format!("flow = [{{ cc = \"reno\", count = 10 }}]\n{from}"));
        let link = &summary.links[0];
        assert_eq!(link.lost, link.offered, "{from} {link:?}");
        assert_eq!(summary.loss_rate, Some(1.0));
        // The first of each flow, and the same again after a second.
        assert_eq!(link.offered, if from.is_empty() { 20 } else { 10 });
    }
}

#[test]
fn a_round_trip_time_is_counted_from_its_first_sample_on() {
    // A connection for each transfer of 20 kB: nothing is measured in the first round trip of each.
    let summary = summary("", "flow = [{ cc = \"reno\", size = \"20 kB\", transfers = \"repeat\" }]");
    let mean = summary.flows[0].srtt_mean_s.unwrap();
    assert!((0.4..0.5).contains(&mean), "{mean} s");
}

#[test]
fn what_is_received_was_sent() {
    // One packet each 20 ms, the first at 0 s; half of the round-trip time and 1.2 ms in transit.
    let sent_and_received = |from: &str| {
        let cbr = "cbr = [{ rate = \"600 kbit/s\" }]";
        let summary = summary("", &format!("{cbr}\nmeasure = {{ from = \"{from}\", to = \"1.99 s\" }}"));
        let stream = &summary.streams[0];
        assert_eq!((stream.lost, stream.reordered), (0, 0));
        (stream.sent, stream.received, stream.goodput_bit_s)
    };
    assert_eq!(sent_and_received("0 s"), (100, 90, 90.0 * 1472.0 * 8.0 / 1.99));
    // Packets in transit at the opening were not sent in the window; they count as goodput, though.
    assert_eq!(sent_and_received("0.99 s"), (50, 40, 50.0 * 1472.0 * 8.0));
    // A packet that is sent exactly at the opening does not belong to the window.
    assert_eq!(sent_and_received("1 s").0, 49);
}

#[test]
fn what_is_dropped_from_a_queue_was_offered() {
    // The queue that was filled before the window opens is dropped in it, with all packets on the wire.
    for queue in ["\"codel\"", "\"fq-codel\"", "\"drr\"", "{ name = \"wrr\", class = [{ name = \"all\" }] }"]
    {
        let down = "event = [{ at = \"1 s\", link = \"bottleneck\", up = false }]";
        let rest = format!(
            "cbr = [{{ rate = \"12 Mbit/s\", stop = \"800 ms\" }}]\n{down}\nmeasure = {{ from = \"0.9 s\" }}"
        );
        let vary = "vary = { name = \"jitter\", max = \"50 ms\" }";
        let summary = summary(&format!("buffer = \"300 packets\", queue = {queue}, {vary}"), &rest);
        let link = &summary.links[0];
        assert_eq!((link.offered, link.dropped, link.dropped_down), (0, 0, 0), "{queue} {link:?}");
        for class in &link.classes {
            assert_eq!((class.offered, class.dropped), (0, 0), "{class:?}");
            // Packets that the link dropped when it went down were not served.
            assert!(class.throughput_bit_s <= 1e6 + 12_000.0, "{class:?}");
        }
    }
}

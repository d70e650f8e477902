//! Links that do more than delay, under TCP.

use elephan_metrics::Outcome;
use elephan_metrics::trace::EventKind;

use crate::common::outcome;

/// A flow whose window of 100 segments is a third of what the path holds, over such a path; all events.
fn limited(path: &str) -> Outcome {
    outcome(&format!(
        "duration = \"6 s\"\nmeasure = {{ from = \"2 s\" }}\ntrace = {{ events = true }}\n\
         path = {{ rate = \"100 Mbit/s\", rtt = \"40 ms\", buffer = \"500 packets\", {path} }}\n\
         tcp = {{ receive_buffer = \"146 kB\" }}\nflow = [{{ cc = \"reno\" }}]"
    ))
}

/// When segments reached their end of the connection in the measuring window, s: data, or acknowledgments.
fn received(outcome: &Outcome, data: bool) -> Vec<f64> {
    let events = &outcome.events;
    let rows = 0..events.time_s.len();
    let is_one = |&row: &usize| {
        events.kind[row] == EventKind::Receive as u8
            && (events.bytes[row] > 0) == data
            && events.time_s[row] > 2.0
    };
    rows.filter(is_one).map(|row| events.time_s[row]).collect()
}

fn are_ends_of_slots(times: &[f64], slot_s: f64) -> bool {
    times.iter().all(|time| (time / slot_s - (time / slot_s).round()).abs() < 1e-6)
}

#[test]
fn a_reverse_link_that_aggregates_compresses_acks() {
    let plain = limited("");
    let batched = limited(r#"reverse = { vary = { name = "aggregate", slot = "10 ms" } }"#);
    let (single, together) = (received(&plain, false), received(&batched, false));
    assert!(single.len() > 1000 && together.len() > 1000, "{} {}", single.len(), together.len());
    // A delayed ACK for each two segments, which take 0.24 ms: without aggregation no two arrive at once.
    assert!(single.windows(2).all(|acks| acks[1] - acks[0] > 0.000_2));
    // With it they do, a dozen or more at a time, at the ends of slots.
    assert!(are_ends_of_slots(&together, 0.01));
    let batches = 1 + together.windows(2).filter(|acks| acks[1] > acks[0]).count();
    assert!(together.len() > 12 * batches, "{} in {batches}", together.len());
    // So the window leaves in bursts, which wait in the queue of the data (Zhang, Shenker and Clark 1991, section 4: ACK compression).
    let most = |outcome: &Outcome| outcome.summary.links[0].queue_max_packets;
    assert!(most(&plain) <= 2, "{}", most(&plain));
    assert!(most(&batched) > 20, "{}", most(&batched));
    // Each round trip is longer by the rest of a slot.
    let rtt = |outcome: &Outcome| outcome.summary.flows[0].srtt_mean_s.unwrap();
    assert!(rtt(&batched) > rtt(&plain), "{} {}", rtt(&batched), rtt(&plain));
    let lost =
        |outcome: &Outcome| outcome.summary.links.iter().map(|link| link.dropped + link.lost).sum::<u64>();
    assert_eq!((lost(&plain), lost(&batched)), (0, 0));
}

#[test]
fn a_link_of_data_that_aggregates_delivers_in_bursts() {
    let times = received(&limited(r#"vary = { name = "aggregate", slot = "5 ms" }"#), true);
    assert!(times.len() > 1000 && are_ends_of_slots(&times, 0.005));
}

#[test]
fn bleached_marks_reach_no_sender_and_a_later_queue_drops_instead() {
    // A link that marks, and behind it a slower one with CoDel, which marks too (RFC 8289) or drops.
    let run = |ecn: &str| {
        outcome(&format!(
            r#"duration = "20 s"
            tcp = {{ ecn = true }}
            link = [
                {{ name = "first", from = "a", to = "b", rate = "24 Mbit/s", delay = "10 ms", buffer = "100 packets", {ecn} }},
                {{ name = "second", from = "b", to = "c", rate = "12 Mbit/s", delay = "10 ms", buffer = "500 packets", queue = "codel" }},
            ]
            flow = [{{ cc = "reno", from = "a", to = "c" }}]"#
        ))
        .summary
    };
    let second = |ecn: &str| {
        let summary = run(ecn);
        let link = summary.links.iter().find(|link| link.name == "second").unwrap();
        (link.marked, link.dropped_early)
    };
    let (marked, dropped) = second("");
    assert!(marked > 0 && dropped == 0, "{marked} {dropped}");
    // Nothing was marked on the first link, so there is nothing to clear.
    assert_eq!(second(r#"ecn = "clear""#), (marked, dropped));
    let (marked, dropped) = second(r#"ecn = "bleach""#);
    assert!(marked == 0 && dropped > 0, "{marked} {dropped}");
}

#[test]
fn a_sender_whose_marks_are_cleared_fills_the_buffer() {
    let run = |ecn: &str| {
        outcome(&format!(
            "duration = \"20 s\"\nmeasure = {{ from = \"2 s\" }}\ntcp = {{ ecn = true }}\n\
             path = {{ rate = \"12 Mbit/s\", rtt = \"40 ms\", buffer = \"100 packets\", {ecn} \
             queue = {{ name = \"threshold\", packets = 20 }} }}\nflow = [{{ cc = \"reno\" }}]"
        ))
        .summary
        .links
        .remove(0)
    };
    let told = run("");
    assert!(told.marked > 0 && told.dropped == 0 && told.queue_max_packets < 60, "{told:?}");
    for ecn in ["bleach", "clear"] {
        let hidden = run(&format!("ecn = \"{ecn}\","));
        assert!(
            hidden.marked > told.marked && hidden.queue_max_packets == 100 && hidden.dropped_full > 0,
            "{hidden:?}"
        );
    }
}

/// A bottleneck that takes 1 ms for a datagram, and 10 ms of delay: on one link, or on two.
const PATH: &str = r#"path = { rate = "10 Mbit/s", rtt = "20 ms", buffer = "100 packets" }"#;
const TWO_LINKS: &str = r#"link = [
    { name = "bottleneck", from = "a", to = "b", rate = "10 Mbit/s", delay = "0 s", buffer = "100 packets" },
    { name = "way", from = "b", to = "c", delay = "10 ms" },
]"#;

/// When datagrams that are sent every 10 ms arrive, ms, rounded to microseconds; and how many the bottleneck drops.
fn arrivals(links: &str, events: &str) -> (Vec<f64>, u64) {
    let ends = if links == TWO_LINKS { r#", from = "a", to = "c""# } else { "" };
    let outcome = outcome(&format!(
        "duration = \"200 ms\"\ntrace = {{ events = true }}\n{links}\n\
         cbr = [{{ rate = \"1 Mbit/s\", packet = \"1250 B\", start = \"1 ms\"{ends} }}]\nevent = [{events}]"
    ));
    let events = &outcome.events;
    let rows = (0..events.time_s.len()).filter(|&row| events.kind[row] == EventKind::Receive as u8);
    let times = rows.map(|row| (events.time_s[row] * 1e6).round() / 1e3).collect();
    (times, outcome.summary.links[0].dropped)
}

#[test]
fn a_route_flaps_as_often_as_it_says() {
    // Sent at 1, 11, 21 ms ...; 1 ms of service and 10 ms of delay later they arrive.
    let (still, dropped) = arrivals(PATH, "");
    assert_eq!((&still[..3], dropped), (&[12.0, 22.0, 32.0][..], 0));
    // At 50 and 130 ms the route is longer by 25 ms, and half as fast; at 90 and 170 ms it is the first again.
    let flap = r#"{ at = "50 ms", every = "80 ms", link = "bottleneck", rate = "5 Mbit/s", delay = "35 ms" },
        { at = "90 ms", every = "80 ms", link = "bottleneck", rate = "10 Mbit/s", delay = "10 ms" }"#;
    let (times, dropped) = arrivals(PATH, flap);
    // What was on the longer route when the route became shorter is overtaken: at 102 ms that of 91 ms arrives, at 108 ms that of 71 ms.
    let expected = [
        12.0, 22.0, 32.0, 42.0, 52.0, // the first route
        88.0, 98.0, 102.0, 108.0, 112.0, 118.0, 122.0,
        132.0, // those of 51, 61, 91, 71, 101, 81, 111 and 121 ms
        168.0, 178.0, 182.0, 188.0, 192.0, 198.0, // the same 80 ms later, until the run ends
    ];
    assert_eq!((times.as_slice(), dropped), (&expected[..], 0));
}

#[test]
fn an_outage_of_a_route_drops_what_is_on_the_link_and_not_what_is_past_it() {
    let outage = r#"{ at = "50 ms", every = "100 ms", link = "bottleneck", up = false },
        { at = "70 ms", every = "100 ms", link = "bottleneck", up = true }"#;
    // That of 41 ms is on the wire, and those of 51 and 61 ms come meanwhile.
    let (times, dropped) = arrivals(PATH, outage);
    let expected = [12.0, 22.0, 32.0, 42.0, 82.0, 92.0, 102.0, 112.0, 122.0, 132.0, 142.0, 182.0, 192.0];
    assert_eq!((times.as_slice(), dropped), (&expected[..], 6));
    // That of 41 ms is on the second link.
    let (times, dropped) = arrivals(TWO_LINKS, outage);
    let expected =
        [12.0, 22.0, 32.0, 42.0, 52.0, 82.0, 92.0, 102.0, 112.0, 122.0, 132.0, 142.0, 152.0, 182.0, 192.0];
    assert_eq!((times.as_slice(), dropped), (&expected[..], 4));
}

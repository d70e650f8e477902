//! Queue disciplines under TCP: comparison with the claims of their authors.

use elephan_metrics::Outcome;
use elephan_metrics::{LinkSummary, Summary};

use crate::common::outcome;

/// Reno flows over 100 ms, with a buffer of twice the bandwidth-delay product.
fn reno_at(rate: &str, flows: u32, queue: &str, stack: &str) -> Outcome {
    outcome(&format!(
        r#"duration = "60 s"
        path = {{ rate = "{rate}", rtt = "100 ms", buffer = "200% bdp", queue = {queue} }}
        tcp = {{ {stack} }}
        flow = [{{ cc = "reno", count = {flows}, start = {{ uniform = ["0 s", "5 s"] }} }}]
        measure = {{ from = "20 s" }}
        trace = {{ interval = "10 ms" }}"#
    ))
}

fn reno(flows: u32, queue: &str, stack: &str) -> Outcome {
    reno_at("50 Mbit/s", flows, queue, stack)
}

fn bottleneck(outcome: &Outcome) -> &LinkSummary {
    &outcome.summary.links[0]
}

#[test]
fn codel_holds_its_target_under_4_to_64_flows() {
    // RFC 8289, section 4.3: the target is the acceptable standing delay, so half of all packets wait no
    // longer. The rate of drops increases by one in an interval over the root of its number. This suffices
    // while the flows need no more than some ten drops a second; at 50 Mbit/s 64 flows need seventy, and wait
    // for 16 ms.
    for flows in [4, 16, 64] {
        let outcome = reno_at("500 Mbit/s", flows, r#""codel""#, "");
        let link = bottleneck(&outcome);
        let median = link.queue_delay_p50_s.unwrap();
        assert!(median < 0.0055, "{flows} flows: {median} s");
        assert!(link.utilisation > Some(0.9), "{flows} flows: {:?}", link.utilisation);
        assert!(link.dropped_early > 0 && link.dropped_full == 0);
    }
    // DropTail fills its buffer of 200 ms.
    let tail = reno(16, r#""droptail""#, "");
    assert!(bottleneck(&tail).queue_delay_p50_s > Some(0.1));
}

#[test]
fn pie_holds_its_reference_delay() {
    for flows in [4, 16, 64] {
        let outcome = reno(flows, r#""pie""#, "");
        let link = bottleneck(&outcome);
        let mean = link.queue_delay_mean_s.unwrap();
        assert!((0.004..0.022).contains(&mean), "{flows} flows: {mean} s");
        assert!(link.utilisation > Some(0.85), "{flows} flows: {:?}", link.utilisation);
    }
}

#[test]
fn red_keeps_its_average_between_its_thresholds() {
    // Floyd and Jacobson 1993, section 5: max_p of 1/50 and w_q of 0.002; the thresholds are adapted to this
    // larger pipe.
    for flows in [16, 32] {
        let outcome =
            reno(flows, r#"{ name = "red", min_th = 40, max_th = 120, max_p = 0.02, w_q = 0.002 }"#, "");
        let queues = &outcome.queues;
        let lengths: Vec<f64> = (0..queues.time_s.len())
            .filter(|&i| queues.link[i] == 0 && queues.time_s[i] >= 20.0)
            .map(|i| queues.packets[i] as f64)
            .collect();
        let mean = lengths.iter().sum::<f64>() / lengths.len() as f64;
        assert!((40.0..120.0).contains(&mean), "{flows} flows: {mean}");
        // The average of the trace, with RED's own weight: 4167 packets a second, 42 in a sample's 10 ms.
        let (mut average, mut between) = (mean, 0);
        for &length in &lengths {
            average += (1.0 - (1.0f64 - 0.002).powi(42)) * (length - average);
            between += u32::from((30.0..130.0).contains(&average));
        }
        assert!(
            f64::from(between) > 0.8 * lengths.len() as f64,
            "{flows} flows: {between} of {}",
            lengths.len()
        );
    }
}

#[test]
fn adaptive_red_holds_its_target_whatever_the_number_of_flows() {
    // min_th is 10.4 packets and max_th 31.25; the target lies between 18.8 and 22.9.
    for flows in [8, 32, 64] {
        let outcome = reno(flows, r#""adaptive-red""#, "");
        let mean = bottleneck(&outcome).queue_mean_packets;
        assert!((10.0..32.0).contains(&mean), "{flows} flows: {mean}");
    }
    // Plain RED with the same thresholds and max_p depends on the load.
    let spread = |queue: &str| {
        let mean = |flows| bottleneck(&reno(flows, queue, "")).queue_mean_packets;
        mean(64) / mean(8)
    };
    assert!(spread(r#""adaptive-red""#) < spread(r#"{ name = "red", max_p = 0.02 }"#));
}

#[test]
fn marks_take_the_place_of_drops() {
    for queue in ["red", "adaptive-red", "codel", "fq-codel", "pie"] {
        let outcome = reno(8, &format!("\"{queue}\""), "ecn = true");
        let link = bottleneck(&outcome);
        assert!(link.marked > 20, "{queue}: {link:?}");
        assert!(link.dropped * 10 < link.marked, "{queue}: {} drops, {} marks", link.dropped, link.marked);
    }
    let wred = r#"{ name = "wred", w_q = 0.002, gentle = true, profile = [{ min_th = 40, max_th = 120 }] }"#;
    let outcome = reno(8, wred, "ecn = true");
    let link = bottleneck(&outcome);
    assert!(link.marked > 20 && link.dropped * 10 < link.marked, "{link:?}");
}

/// An aggressive flow, a Reno flow of twice its round-trip time and a thin stream, on 20 Mbit/s.
fn unequal(queue: &str) -> Summary {
    outcome(&format!(
        r#"duration = "60 s"
        path = {{ rate = "20 Mbit/s", rtt = "40 ms", buffer = "200% bdp", queue = {queue} }}
        flow = [{{ cc = "scalable", rtt = "40 ms" }}, {{ cc = "reno", rtt = "80 ms" }}]
        cbr = [{{ rate = "500 kbit/s", packet = "250 B" }}]
        measure = {{ from = "20 s" }}"#
    ))
    .summary
}

#[test]
fn flow_queueing_makes_unequals_equal() {
    assert!(unequal(r#""droptail""#).fairness < Some(0.5));
    for queue in ["fq-codel", "drr"] {
        let summary = unequal(&format!("\"{queue}\""));
        // Under CoDel the flow with the longer round-trip time does not use its full share.
        let least = if queue == "drr" { 0.9 } else { 0.65 };
        assert!(summary.fairness > Some(least), "{queue}: {:?}", summary.fairness);
        // The stream sends less than its share: it loses nothing, and waits for at most one packet of each of
        // the others.
        let stream = &summary.streams[0];
        assert_eq!(stream.lost, 0, "{queue}");
        let waited = stream.delay_p99_s.unwrap() - 0.020;
        assert!(waited < 0.003, "{queue}: {waited} s");
    }
}

#[test]
fn classes_get_what_they_are_promised_and_change_shares_on_time() {
    // Thesis, section 9.2.1: datagrams in both classes, the allocation switched during the run.
    let toml = r#"duration = "40 s"
        path = { rate = "100 Mbit/s", rtt = "120 ms", buffer = "200 packets", queue = { name = "wrr", class = [
            { name = "af", dscp = ["af"], weight = 90 }, { name = "be", weight = 10 } ] } }
        cbr = [{ rate = "100 Mbit/s", dscp = "af11" }, { rate = "100 Mbit/s" }]
        event = [
            { at = "10 s", link = "bottleneck", weights = { af = 70, be = 30 } },
            { at = "20 s", link = "bottleneck", weights = { af = 50, be = 50 } },
            { at = "30 s", link = "bottleneck", weights = { af = 10, be = 90 } },
        ]"#;
    let outcome = outcome(toml);
    let streams = &outcome.streams;
    for (second, share) in [(9.0, 0.9), (19.0, 0.7), (29.0, 0.5), (39.0, 0.1)] {
        let rate = |flow: u32| {
            let row = (0..streams.time_s.len())
                .find(|&i| streams.flow[i] == flow && (streams.time_s[i] - second).abs() < 1e-9)
                .expect("sampled each 100 ms");
            streams.goodput_bit_s[row]
        };
        let found = rate(0) / (rate(0) + rate(1));
        assert!((found - share).abs() < 0.01, "at {second} s: {found} of {share}");
    }
    let classes = &outcome.summary.links[0].classes;
    assert_eq!(classes.iter().map(|class| class.name.as_str()).collect::<Vec<_>>(), ["af", "be"]);
    let served: f64 = classes.iter().map(|class| class.throughput_bit_s).sum();
    assert!((served / 100e6 - 1.0).abs() < 0.01, "{served}");
}

#[test]
fn a_link_that_fails_and_comes_back_accounts_for_everything() {
    let toml = r#"duration = "30 s"
        path = { rate = "20 Mbit/s", rtt = "40 ms", buffer = "100% bdp" }
        flow = [{ cc = "cubic", count = 2 }]
        trace = { events = true }
        measure = { from = "0 s" }
        event = [
            { at = "5 s", link = "bottleneck", rate = "5 Mbit/s" },
            { at = "10 s", link = "bottleneck", up = false },
            { at = "12 s", link = "bottleneck", up = true, rate = "20 Mbit/s" },
            { at = "20 s", link = "bottleneck", delay = "60 ms" },
            { at = "25 s", link = "bottleneck", loss = { name = "periodic", every = 100 } },
        ]"#;
    let outcome = outcome(toml);
    let link = bottleneck(&outcome);
    assert!(link.dropped_down > 0 && link.dropped == link.dropped_down + link.dropped_full, "{link:?}");
    assert!(link.lost > 10);
    // Every drop is an event, including drops of accepted packets; losses on the wire are not.
    let drops = (0..outcome.events.kind.len()).filter(|&i| {
        outcome.events.kind[i] == elephan_metrics::trace::EventKind::Drop as u8 && outcome.events.link[i] == 0
    });
    assert_eq!(drops.count() as u64, link.dropped);
    let queues = &outcome.queues;
    let delivered = |from: f64, to: f64| {
        let at = |time: f64| {
            let flows = &outcome.flows;
            (0..2)
                .map(|flow| {
                    (0..flows.time_s.len())
                        .rfind(|&i| flows.flow[i] == flow && flows.time_s[i] <= time + 1e-9)
                        .map_or(0, |i| flows.delivered_bytes[i])
                })
                .sum::<u64>()
        };
        (at(to) - at(from)) as f64 * 8.0 / (to - from)
    };
    // 1448 of 1500 bytes are payload.
    assert!((delivered(6.0, 10.0) / 5e6 - 0.965).abs() < 0.02, "{}", delivered(6.0, 10.0));
    assert_eq!(delivered(10.1, 12.0), 0.0);
    assert!(delivered(16.0, 20.0) > 15e6, "{}", delivered(16.0, 20.0));
    // Utilisation is relative to what the rate allowed at the time. The packet in service when the rate fell
    // was sent at the old rate; it adds 2 % in a sample of 0.1 s.
    for (time, share) in queues.time_s.iter().zip(&queues.utilisation) {
        assert!(*share <= 1.02, "at {time} s: {share}");
    }
    assert!(link.utilisation > Some(0.5) && link.utilisation < Some(1.0));
    // 20 ms one way were added in one direction: the round-trip time is then 80 ms, without queueing.
    let flows = &outcome.flows;
    let late = (0..flows.time_s.len())
        .filter(|&i| flows.time_s[i] > 21.0)
        .map(|i| flows.srtt_s[i])
        .fold(f64::MAX, f64::min);
    assert!((0.078..0.1).contains(&late), "{late}");
}

#[test]
fn a_flow_over_three_bottlenecks_gets_less_than_those_over_one() {
    let link = |name: &str, from: &str, to: &str| {
        format!(
            "[[link]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"20 Mbit/s\"\ndelay = \"10 ms\"\nqueue = \"red\"\n"
        )
    };
    let flow = |from: &str, to: &str| format!("[[flow]]\ncc = \"reno\"\nfrom = \"{from}\"\nto = \"{to}\"\n");
    let toml = [
        "duration = \"60 s\"\nmeasure = { from = \"10 s\" }\n".to_owned(),
        link("one", "a", "b"),
        link("two", "b", "c"),
        link("three", "c", "d"),
        flow("a", "d"),
        flow("a", "b"),
        flow("b", "c"),
        flow("c", "d"),
    ]
    .concat();
    let summary = outcome(&toml).summary;
    let goodputs: Vec<f64> = summary.flows.iter().map(|flow| flow.goodput_bit_s).collect();
    assert!(goodputs[1..].iter().all(|&one| one > 2.0 * goodputs[0] && goodputs[0] > 0.0), "{goodputs:?}");
    for link in summary.links.iter().filter(|link| !link.name.ends_with("reverse")) {
        assert!(link.utilisation > Some(0.7), "{link:?}");
        assert!(link.dropped_early > 0, "{link:?}");
    }
}

#[test]
fn bursts_reach_the_thresholds_of_red_at_a_lower_window() {
    // RED that acts on what waits now. Segments that leave one for one with what arrives hardly queue; a super-segment of 8 or 20 that
    // arrives at once does, and is dropped from while the path is not full.
    let run = |burst: &str| {
        outcome(&format!(
            r#"duration = "30 s"
            path = {{ rate = "200 Mbit/s", rtt = "10 ms", buffer = "60 packets",
                      queue = {{ name = "red", min_th = 5, max_th = 15, max_p = 0.1, w_q = 1.0 }} }}
            tcp = {{ profile = "linux-6", burst = {burst} }}
            flow = [{{ cc = "reno" }}]
            measure = {{ from = "5 s" }}"#
        ))
    };
    let (single, bursts) = (run("1"), run("\"tso\""));
    let per_packet = |outcome: &Outcome| {
        let link = bottleneck(outcome);
        assert!(link.dropped_early > 0 && link.dropped_full == 0);
        link.dropped_early as f64 / link.offered as f64
    };
    assert!(per_packet(&bursts) > per_packet(&single));
    assert!(bottleneck(&bursts).queue_mean_packets > 2.0 * bottleneck(&single).queue_mean_packets);
    assert!(bursts.summary.goodput_bit_s < 0.85 * single.summary.goodput_bit_s);
}

//! Links: exact times, limits, conservation, changes during a run.

use std::collections::BTreeMap;

use crate::config::{Delay, EcnRewrite, LinkConfig, Loss};
use crate::link::Times;
use crate::packet::Ecn;
use crate::policer::Policer;
use crate::queue::Queue;
use crate::testing::{Link, Parcel, parcel};
use crate::threshold::Threshold;
use crate::waiting::Limit;
use elephan_units::{Rate, Seed, Time};
use proptest::prelude::*;

/// 12 Mbit/s: a packet of 1500 bytes each millisecond.
fn config(limit: u64) -> LinkConfig {
    LinkConfig {
        rate: Some(Rate::from_bits_per_sec(12_000_000)),
        limit: Limit::Packets(limit),
        ..LinkConfig::delay_only(Time::from_millis(10))
    }
}

#[test]
fn the_packet_in_service_is_not_in_the_queue() {
    let mut link = Link::new(config(2), Seed::new(1), 0);
    let accepted: Vec<bool> = (0..4).map(|id| link.send(parcel(id), Time::ZERO)).collect();
    assert_eq!(accepted, [true, true, true, false]);
    assert_eq!(link.view().waiting(Time::ZERO).packets, 2);
    // The first leaves the transmitter at 1 ms; the second enters it, and frees a place.
    assert!(!link.send(parcel(4), Time::from_micros(999)));
    assert!(link.send(parcel(5), Time::from_millis(1)));
}

#[test]
fn a_link_is_idle_until_something_is_sent_and_again_when_all_has_arrived() {
    let mut link = Link::new(config(10), Seed::new(1), 0);
    assert!(link.is_idle());
    link.send(parcel(0), Time::ZERO);
    assert!(!link.is_idle());
    assert!(link.receive(Time::from_millis(11)).is_some());
    assert!(link.is_idle());
}

#[test]
fn arrivals_are_service_and_propagation_later() {
    let mut link = Link::new(config(10), Seed::new(1), 0);
    link.send(parcel(0), Time::ZERO);
    link.send(parcel(1), Time::ZERO);
    assert_eq!(link.next_event(), Time::from_millis(11));
    assert_eq!(link.receive(Time::from_micros(10_999)), None);
    assert_eq!(link.receive(Time::from_millis(11)).map(|p| p.id), Some(0));
    assert_eq!(link.receive(Time::from_millis(11)), None);
    assert_eq!(link.next_event(), Time::from_millis(12));
}

#[test]
fn a_threshold_marks_those_that_find_as_many_waiting() {
    let mut link = Link::new(
        LinkConfig { queue: Queue::Threshold(Threshold { packets: 2 }), ..config(10) },
        Seed::new(1),
        0,
    );
    (0..5).for_each(|id| assert!(link.send(parcel(id), Time::ZERO)));
    let marks: Vec<bool> =
        std::iter::from_fn(|| link.receive(Time::from_secs(1))).map(|p| p.ecn == Ecn::Congestion).collect();
    // In service, then 0, 1, 2 and 3 packets waiting ahead.
    assert_eq!(marks, [false, false, false, true, true]);
}

#[test]
fn a_link_that_rewrites_ecn_hides_the_marks() {
    use Ecn::{Capable0, Capable1, Congestion, NotCapable};
    for (ecn, expected) in [
        (None, [Capable0, NotCapable, Congestion, Congestion, Congestion]),
        (Some(EcnRewrite::Bleach), [NotCapable; 5]),
        (Some(EcnRewrite::Clear), [Capable0, NotCapable, Capable0, Capable0, Capable0]),
    ] {
        for vary in [None, Some(Delay::Jitter { max: Time::from_millis(1) })] {
            let queue = Queue::Threshold(Threshold { packets: 2 });
            let mut link = Link::new(LinkConfig { queue, vary, ecn, ..config(10) }, Seed::new(1), 0);
            // The third was marked before; the fourth and the fifth find two packets waiting.
            for (id, ecn) in (0..).zip([Capable0, NotCapable, Congestion, Capable0, Capable1]) {
                assert!(link.send(Parcel { ecn, ..parcel(id) }, Time::ZERO));
            }
            let found: Vec<Parcel> = std::iter::from_fn(|| link.receive(Time::from_secs(1))).collect();
            assert_eq!(found.iter().map(|packet| packet.id).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
            assert_eq!(found.iter().map(|packet| packet.ecn).collect::<Vec<_>>(), expected, "{ecn:?}");
            assert_eq!(link.view().counters().marked, 2);
        }
    }
    let mut link = Link::new(LinkConfig { ecn: Some(EcnRewrite::Clear), ..config(10) }, Seed::new(1), 0);
    assert!(link.send(Parcel { ecn: Capable1, ..parcel(0) }, Time::ZERO));
    assert_eq!(
        link.receive(Time::from_secs(1)).map(|packet| packet.ecn),
        Some(Capable1),
        "it was not marked"
    );
}

#[test]
fn littles_law_gives_the_mean_queue() {
    // Two packets at once each 2 ms at 1 ms a packet: the second of each pair waits 1 ms, so the queue holds
    // one packet half of the time.
    let mut link = Link::new(config(10), Seed::new(1), 0);
    for pair in 0..1000 {
        link.send(parcel(0), Time::from_millis(2 * pair));
        link.send(parcel(1), Time::from_millis(2 * pair));
    }
    let view = link.view();
    let statistics = view.statistics();
    assert!((statistics.mean_packets(Time::from_secs(2)) - 0.5).abs() < 1e-9);
    assert!((statistics.mean_delay_s().unwrap() - 0.5e-3).abs() < 1e-9);
    // No percentile is above the longest delay, although a bin reaches further.
    assert_eq!(statistics.delay_quantile_s(0.9), Some(1e-3));
    assert_eq!(statistics.delay_quantile_s(0.4), Some(0.0));
}

/// Times in milliseconds at which packets leave the link, with their numbers.
fn arrivals(link: &mut Link) -> Vec<(u64, u64)> {
    let mut arrivals = Vec::new();
    while link.next_event() < Time::MAX {
        let now = link.next_event();
        while let Some(packet) = link.receive(now) {
            arrivals.push((now.picos() / 1_000_000_000, packet.id));
        }
    }
    arrivals
}

#[test]
fn a_new_rate_concerns_what_waits() {
    let mut link = Link::new(LinkConfig { changes: true, ..config(10) }, Seed::new(1), 0);
    (0..4).for_each(|id| assert!(link.send(parcel(id), Time::ZERO)));
    // A tenth of the rate from 1.5 ms on, when packet 1 is in service: it ends at 2 ms, the others take 10 ms each.
    link.view().set_rate(Rate::from_bits_per_sec(1_200_000), Time::from_micros(1500));
    assert_eq!(arrivals(&mut link), [(11, 0), (12, 1), (22, 2), (32, 3)]);
    // 12 Mbit/s for 1.5 ms and 1.2 Mbit/s for 30.5.
    let allowed = link.view().allowed_bits(Time::from_millis(32)).unwrap();
    assert!((allowed - (18_000.0 + 36_600.0)).abs() < 1e-6, "{allowed}");
}

#[test]
fn a_new_delay_concerns_what_has_not_left() {
    for changes in [false, true] {
        let mut link = Link::new(LinkConfig { changes, ..config(10) }, Seed::new(1), 0);
        (0..4).for_each(|id| assert!(link.send(parcel(id), Time::ZERO)));
        // Packets 0 and 1 have left by 2.5 ms, and arrive at their original times; 2 and 3 overtake them.
        link.view().set_delay(Time::from_millis(1), Time::from_micros(2500));
        assert_eq!(arrivals(&mut link), [(4, 2), (5, 3), (11, 0), (12, 1)]);
        assert_eq!(link.view().counters().delivered, 4);
    }
}

#[test]
fn a_link_that_goes_down_drops_what_it_has_and_says_so() {
    let mut link = Link::new(LinkConfig { changes: true, ..config(10) }, Seed::new(1), 0);
    link.keep_drops();
    (0..5).for_each(|id| assert!(link.send(parcel(id), Time::ZERO)));
    assert_eq!(link.receive(Time::from_millis(11)).map(|packet| packet.id), Some(0));
    link.view().set_up(false, Time::from_millis(11));
    assert_eq!((link.view().in_transit(), link.next_event()), (0, Time::MAX));
    assert!(!link.send(parcel(5), Time::from_millis(20)));
    link.view().set_up(true, Time::from_millis(30));
    assert!(link.send(parcel(6), Time::from_millis(30)));
    assert_eq!(arrivals(&mut link), [(41, 6)]);
    let counters = link.view().counters();
    assert_eq!((counters.offered, counters.dropped, counters.dropped_down, counters.delivered), (7, 5, 5, 2));
    let dropped: Vec<u64> = link.drops().into_iter().map(|(_, packet)| packet.id).collect();
    assert_eq!(dropped, [1, 2, 3, 4]);
    // Up for 11 ms, and from 30 ms on.
    assert!((link.view().allowed_bits(Time::from_millis(41)).unwrap() - 22.0 * 12_000.0).abs() < 1e-6);
}

#[test]
fn a_policed_packet_is_counted_so() {
    let policer = Policer {
        dscp: Vec::new(),
        rate: Rate::from_bits_per_sec(1_000_000),
        burst: elephan_units::Bytes::new(3000),
        exceed: crate::Exceed::Drop,
    };
    let mut link = Link::new(LinkConfig { police: vec![policer], ..config(10) }, Seed::new(1), 0);
    (0..5).for_each(|id| _ = link.send(parcel(id), Time::ZERO));
    assert_eq!((link.view().counters().dropped, link.view().counters().dropped_policed), (3, 3));
    assert_eq!(arrivals(&mut link).len(), 2);
}

/// Every discipline, with settings that make it act within a few hundred packets.
fn queues() -> impl Strategy<Value = Queue> {
    let texts = [
        r#""droptail""#,
        r#"{ "name": "threshold", "packets": 3 }"#,
        r#"{ "name": "red", "min_th": 1, "max_th": 5, "w_q": 0.2 }"#,
        r#"{ "name": "red", "min_th": 1, "max_th": 5, "w_q": 0.2, "bytes": true, "gentle": false, "wait": false }"#,
        r#"{ "name": "adaptive-red", "min_th": 1, "max_th": 5, "w_q": 0.2, "interval": "10 ms" }"#,
        r#"{ "name": "wred", "w_q": 0.3, "profile": [{ "dscp": ["af11"], "min_th": 4, "max_th": 8 }, { "min_th": 1, "max_th": 3 }] }"#,
        r#"{ "name": "codel", "target": "1 ms", "interval": "5 ms" }"#,
        r#"{ "name": "fq-codel", "target": "1 ms", "interval": "5 ms", "flows": 4 }"#,
        r#"{ "name": "pie", "qdelay_ref": "1 ms", "t_update": "1 ms", "max_burst": "2 ms", "alpha": 50, "beta": 50 }"#,
        r#"{ "name": "drr", "flows": 4 }"#,
        r#"{ "name": "drr", "class": [{ "name": "a", "dscp": ["af11"], "weight": 3, "queue": "codel" }, { "name": "b" }] }"#,
        r#"{ "name": "wrr", "class": [{ "name": "a", "dscp": ["af11"], "weight": 0 }, { "name": "b", "queue": "pie" }] }"#,
        r#"{ "name": "priority", "class": [{ "name": "a", "dscp": ["ef"], "buffer_share": 0.2 }, { "name": "b",
             "queue": { "name": "drr", "class": [{ "name": "c", "dscp": ["af"], "queue": "fq-codel" }, { "name": "d" }] } }] }"#,
    ];
    prop::sample::select(texts.map(|text| serde_json::from_str::<Queue>(text).unwrap()).to_vec())
}

fn vary() -> impl Strategy<Value = Option<Delay>> {
    prop_oneof![
        Just(None),
        (0u64..20).prop_map(|ms| Some(Delay::Jitter { max: Time::from_millis(ms) })),
        (0.0..1.0, 1u64..20)
            .prop_map(|(probability, ms)| Some(Delay::Reorder { probability, extra: Time::from_millis(ms) })),
        (1u64..20_000).prop_map(|us| Some(Delay::Aggregate { slot: Time::from_micros(us) })),
        (1u64..20, 1.5..4.0)
            .prop_map(|(ms, shape)| Some(Delay::HeavyTail { median: Time::from_millis(ms), shape })),
    ]
}

/// What arrives before a time, and when.
fn arrive_before(link: &mut Link, until: Time) -> Vec<(Time, u64)> {
    let mut arrived = Vec::new();
    while link.next_event() < until {
        let at = link.next_event();
        arrived.extend(link.receive(at).map(|packet| (at, packet.id)));
    }
    arrived
}

proptest! {
    /// Packets that are offered as a run fare as those that are offered one by one, and a queue that nobody looks at as one that is
    /// looked at after each packet.
    #[test]
    fn a_run_fares_as_its_packets(
        queue in queues(),
        limit in 1u64..12,
        bytes_limit: bool,
        rate in prop_oneof![Just(10_000_000u64), 1_000_000u64..50_000_000],
        runs in prop::collection::vec(
            (0u64..6_000, prop_oneof![Just(0u64), 1u64..2_000], 1u64..8, prop_oneof![3 => Just(1500u32), 1 => 40u32..1501]), 1..80,
        ),
    ) {
        let limit = if bytes_limit { Limit::Bytes(limit * 1500) } else { Limit::Packets(limit) };
        let rate = Some(Rate::from_bits_per_sec(rate));
        let make = || Link::new(LinkConfig { limit, queue: queue.clone(), rate, ..config(1) }, Seed::new(1), 0);
        let (mut whole, mut single) = (make(), make());
        let (mut now, mut id) = (Time::ZERO, 1);
        let mut seen = [Vec::new(), Vec::new()];
        for &(gap, within, count, bytes) in &runs {
            now += Time::from_micros(gap);
            // Each starts where the last ended, unless a packet with a rest would be in it.
            if id % 8 + count > 8 || id % 8 == 0 {
                id = id / 8 * 8 + if id % 8 == 0 { 1 } else { 9 };
            }
            let first = Parcel { bytes, ..parcel(id) };
            let delay = Time::from_micros(within.min(3));
            let mut times = Times::at_once(1, now - delay.min(now));
            let mut last = times.first();
            for place in 1..count {
                let next = last + Time::from_micros(within) + Time::from_picos((place + 1) % 2);
                prop_assert!(times.extend(last, next));
                last = next;
            }
            seen[0].extend(arrive_before(&mut whole, times.first() + delay));
            whole.send_run(first, &times, delay);
            for (place, at) in times.iter(delay) {
                seen[1].extend(arrive_before(&mut single, at));
                single.send(Parcel { id: id + u64::from(place), ..first }, at);
                single.view().waiting(at);
                now = at;
            }
            id += count;
        }
        let transmitted = (whole.view().transmitted(now), single.view().transmitted(now));
        prop_assert_eq!(transmitted.0, transmitted.1);
        prop_assert_eq!(whole.view().waiting(now), single.view().waiting(now));
        seen[0].extend(arrive_before(&mut whole, Time::MAX));
        seen[1].extend(arrive_before(&mut single, Time::MAX));
        prop_assert_eq!(&seen[0], &seen[1]);
        prop_assert_eq!(whole.view().counters(), single.view().counters());
        let statistics = |link: &mut Link| format!("{:?}", link.view().statistics());
        prop_assert_eq!(statistics(&mut whole), statistics(&mut single));
    }

    #[test]
    fn every_packet_is_accounted_for(
        seed: u64,
        queue in queues(),
        changes: bool,
        limit in 8u64..20,
        bytes_limit: bool,
        loss in prop_oneof![Just(None), (0.0..0.5).prop_map(|p| Some(Loss::Random { probability: p }))],
        vary in vary(),
        packets in prop::collection::vec((0u64..3_000, 40u32..1501, 0u64..5, 0u8..4), 1..400),
    ) {
        let limit = if bytes_limit { Limit::Bytes(limit * 1500) } else { Limit::Packets(limit) };
        prop_assert_eq!(queue.mistakes(), []);
        let in_order = !queue.reorders() && !matches!(vary, Some(Delay::Reorder { .. }));
        let mut link = Link::new(LinkConfig { limit, queue, loss, vary, changes, ..config(1) }, Seed::new(seed), 0);
        let (mut now, mut received) = (Time::ZERO, Vec::new());
        for (id, &(gap, bytes, flow, kind)) in packets.iter().enumerate() {
            // A quarter of the gaps are zero, and the queue fills and empties.
            now += Time::from_micros(gap.saturating_sub(1500));
            while let Some(packet) = link.receive(now) {
                received.push(packet);
            }
            let ecn = if kind % 2 == 0 { Ecn::NotCapable } else { Ecn::Capable0 };
            let dscp = [0, 10, 46, 12][usize::from(kind)];
            let before = link.view().waiting(now).packets;
            let accepted = link.send(Parcel { id: id as u64, bytes, ecn, dscp, flow }, now);
            let waiting = link.view().waiting(now);
            match limit {
                Limit::Packets(packets) => prop_assert!(waiting.packets <= packets),
                Limit::Bytes(bytes) => prop_assert!(waiting.bytes <= bytes),
            }
            // The link is work-conserving: a waiting packet waits for a packet in service.
            prop_assert!(waiting.packets == 0 || link.view().transmitter_is_busy(now));
            prop_assert!(accepted || before > 0 || waiting.packets == before);
            let c = link.view().counters();
            prop_assert_eq!(c.offered, c.dropped + c.lost + c.delivered + link.view().in_transit());
            prop_assert_eq!(c.dropped, c.dropped_full + c.dropped_early + c.dropped_policed + c.dropped_down);
        }
        while link.next_event() < Time::MAX {
            now = link.next_event();
            while let Some(packet) = link.receive(now) {
                received.push(packet);
            }
        }
        let bits: u64 = received.iter().map(|p: &Parcel| u64::from(p.bytes) * 8).sum();
        // Never above its rate: all packets were served between the start and the last arrival.
        prop_assert!(bits as f64 <= 12e6 * now.secs_f64());
        let c = link.view().counters();
        prop_assert_eq!(c.offered, c.dropped + c.lost + c.delivered);
        prop_assert_eq!(c.delivered, received.len() as u64);
        let mut ids: Vec<u64> = received.iter().map(|p| p.id).collect();
        prop_assert!(!in_order || ids.is_sorted(), "order kept");
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), received.len(), "no packet twice");
        for class in link.view().classes(now) {
            prop_assert_eq!(class.offered, class.dropped + class.served);
        }
    }

    #[test]
    fn a_varied_delay_is_never_shorter_and_loses_nothing(
        seed: u64,
        vary in vary(),
        gaps in prop::collection::vec(0u64..3_000_000_000, 1..200),
    ) {
        let arrivals = |vary: Option<Delay>| {
            let mut link = Link::new(LinkConfig { vary, ..config(1000) }, Seed::new(seed), 0);
            let mut now = Time::ZERO;
            for (id, &gap) in (0..).zip(&gaps) {
                now += Time::from_picos(gap);
                assert!(link.send(parcel(id), now));
            }
            arrive_before(&mut link, Time::MAX)
        };
        let plain = arrivals(None);
        let mut varied = arrivals(vary);
        prop_assert!(varied.is_sorted(), "as events, in the order of time");
        if !matches!(vary, Some(Delay::Reorder { .. })) {
            prop_assert!(varied.iter().map(|&(_, id)| id).eq(0..gaps.len() as u64), "order kept");
        }
        if let Some(Delay::Aggregate { slot }) = vary {
            prop_assert!(varied.iter().all(|(at, _)| at.picos() % slot.picos() == 0));
            prop_assert!(varied.iter().zip(&plain).all(|((at, _), (end, _))| at.since(*end) < slot));
        }
        varied.sort_unstable_by_key(|&(_, id)| id);
        prop_assert_eq!(varied.len(), plain.len());
        for ((at, id), (end, plain)) in varied.into_iter().zip(plain) {
            prop_assert_eq!(id, plain);
            prop_assert!(at >= end, "packet {} at {} and without at {}", id, at, end);
        }
    }

    #[test]
    fn what_a_store_does_with_droptail_the_ring_does_too(
        limit in 1u64..10, gaps in prop::collection::vec((0u64..3_000, 40u32..1501), 1..200),
    ) {
        let run = |changes: bool| {
            let mut link = Link::new(LinkConfig { changes, ..config(limit) }, Seed::new(1), 0);
            let (_, mut seen) = link.watched(&gaps);
            seen.extend(arrivals(&mut link).into_iter().map(|(ms, id)| (Time::from_millis(ms), id)));
            let view = link.view();
            let (counters, statistics) = (view.counters(), view.statistics());
            (seen, counters, statistics.mean_delay_s(), statistics.most_packets(), statistics.packets())
        };
        prop_assert_eq!(run(false), run(true));
    }

    #[test]
    fn changes_lose_nothing_silently(
        queue in queues(),
        steps in prop::collection::vec((0u64..3_000, 0u8..12, 1u64..30), 1..300),
    ) {
        let mut link = Link::new(LinkConfig { queue, changes: true, ..config(10) }, Seed::new(1), 0);
        let (mut now, mut received) = (Time::ZERO, 0);
        for (id, &(gap, step, value)) in steps.iter().enumerate() {
            now += Time::from_micros(gap);
            while link.receive(now).is_some() {
                received += 1;
            }
            match step {
                0 => link.view().set_rate(Rate::from_bits_per_sec(value * 1_000_000), now),
                1 => link.view().set_delay(Time::from_millis(value), now),
                2 => link.view().set_up(value % 3 > 0, now),
                3 => link.view().set_loss(Some(Loss::Periodic { every: value })),
                4 => link.view().set_weights(&BTreeMap::from([("a".to_owned(), value as f64)]), now),
                _ => _ = link.send(Parcel { dscp: [0, 10, 46][id % 3], flow: value, ..parcel(id as u64) }, now),
            }
            let c = link.view().counters();
            prop_assert_eq!(c.offered, c.dropped + c.lost + c.delivered + link.view().in_transit());
        }
        received += arrivals(&mut link).len();
        let c = link.view().counters();
        prop_assert_eq!(c.offered, c.dropped + c.lost + c.delivered);
        prop_assert_eq!(c.delivered, received as u64);
    }
}

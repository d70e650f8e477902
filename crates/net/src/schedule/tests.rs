//! Schedules: exact times, opportunities as in mahimahi, conservation.

use std::sync::Arc;

use elephan_units::{Rate, Seed, Time};
use proptest::prelude::*;

use super::{OPPORTUNITY_BYTES, Opportunities, Rates, Schedule};
use crate::config::LinkConfig;
use crate::testing::{Link, Parcel, parcel};
use crate::waiting::Limit;

fn config(schedule: Option<Schedule>) -> LinkConfig {
    LinkConfig {
        rate: Some(mbit(12)),
        limit: Limit::Packets(1000),
        schedule,
        ..LinkConfig::delay_only(Time::from_millis(10))
    }
}

fn mbit(rate: u64) -> Rate {
    Rate::from_bits_per_sec(rate * 1_000_000)
}

fn rates(steps: &[(u64, u64)], period: Option<u64>) -> Schedule {
    let steps: Vec<(Time, Rate)> =
        steps.iter().map(|&(ms, rate)| (Time::from_millis(ms), mbit(rate))).collect();
    Schedule::Rates(Arc::new(Rates::new(&steps, period.map(Time::from_millis))))
}

fn opportunities(millis: &[u64], repeats: bool) -> Schedule {
    Schedule::Opportunities(Arc::new(Opportunities::new(millis.to_vec(), repeats)))
}

fn link(schedule: Schedule) -> Link {
    Link::new(config(Some(schedule)), Seed::new(1), 0)
}

/// Every time in us at which a packet arrives until `end`, in ms, with its number; the link is looked at each 500 us.
fn arrivals(link: &mut Link, end: u64) -> Vec<(u64, u64)> {
    let mut arrivals = Vec::new();
    for now in (0..=end * 2).map(|half| Time::from_micros(half * 500)) {
        while let Some(packet) = link.receive(now) {
            arrivals.push((now.picos() / 1_000_000, packet.id));
        }
    }
    arrivals
}

#[test]
fn a_packet_in_service_goes_on_at_the_new_rate() {
    // 12 Mbit/s for 1.5 ms, a twelfth from 2 ms on: the third packet has 500 us of its ms left when the rate falls.
    let mut link = link(rates(&[(0, 12), (2, 1), (8, 12)], None));
    (0..3).for_each(|id| assert!(link.send(parcel(id), Time::from_micros(id.min(1) * 500))));
    assert_eq!(arrivals(&mut link, 30), [(11_000, 0), (12_000, 1), (12_000 + 6_000 + 500, 2)]);
}

#[test]
fn packets_wait_out_an_outage() {
    let mut link = link(rates(&[(0, 12), (3, 0), (20, 12)], Some(40)));
    assert!(link.send(parcel(0), Time::from_micros(2_500)));
    assert!(link.send(parcel(1), Time::from_millis(10)));
    assert_eq!(link.view().waiting(Time::from_millis(12)).packets, 1);
    // Half of the first leaves before, the rest after the outage. The second is in the queue until then.
    assert_eq!(link.view().transmitted(Time::from_millis(12)), 750);
    assert_eq!(arrivals(&mut link, 60), [(30_500, 0), (31_500, 1)]);
    // 3 ms and 20 ms of a period of 40 ms; then another 3 ms.
    let allowed = link.view().allowed_bits(Time::from_millis(50)).unwrap();
    assert!((allowed - 26.0 * 12_000.0).abs() < 1e-6, "{allowed}");
}

#[test]
fn a_link_that_never_serves_again_keeps_its_packets() {
    for schedule in [rates(&[(0, 12), (3, 0)], None), opportunities(&[1, 3], false)] {
        let mut link = link(schedule);
        assert!(link.send(parcel(0), Time::from_millis(5)));
        assert_eq!(arrivals(&mut link, 1000), []);
        assert_eq!(link.view().waiting(Time::from_secs(1)).packets, 1);
    }
}

#[test]
fn opportunities_are_shared_and_carried_over_as_mahimahi_does() {
    let mut link = link(opportunities(&[0, 5, 5, 7, 10], true));
    let mut send = |id, bytes, ms| assert!(link.send(Parcel { bytes, ..parcel(id) }, Time::from_millis(ms)));
    // The opportunity at 0 is over when they arrive. Those at 5 ms carry 3000 bytes: 600, 600, 1000 and 800 of the last.
    send(0, 600, 0);
    send(1, 600, 0);
    send(2, 1000, 0);
    send(3, 1500, 0);
    assert_eq!(link.view().waiting(Time::from_millis(4)).packets, 4);
    assert_eq!(link.view().transmitted(Time::from_millis(4)), 0);
    assert_eq!(link.view().waiting(Time::from_millis(5)).packets, 0);
    assert_eq!(link.view().transmitted(Time::from_millis(5)), 3000);
    assert_eq!(arrivals(&mut link, 30), [(15_000, 0), (15_000, 1), (15_000, 2), (17_000, 3)]);
}

#[test]
fn an_opportunity_without_a_packet_is_lost_and_all_begin_again() {
    let mut link = link(opportunities(&[3, 4, 10], true));
    // That at 10 ms is over; the next are at 13 and 14 ms.
    (0..3).for_each(|id| assert!(link.send(parcel(id), Time::from_millis(10))));
    assert_eq!(arrivals(&mut link, 40), [(23_000, 0), (24_000, 1), (30_000, 2)]);
    // Seven opportunities until 23 ms: 3, 4, 10, 13, 14, 20, 23.
    let allowed = link.view().allowed_bits(Time::from_millis(23)).unwrap();
    assert!((allowed - 7.0 * 12_000.0).abs() < 1e-6, "{allowed}");
}

#[test]
fn what_is_left_of_an_opportunity_serves_no_packet_that_comes_later() {
    let mut link = link(opportunities(&[5, 9], true));
    assert!(link.send(Parcel { bytes: 100, ..parcel(0) }, Time::ZERO));
    assert!(link.send(Parcel { bytes: 100, ..parcel(1) }, Time::from_millis(5)));
    assert_eq!(arrivals(&mut link, 30), [(15_000, 0), (19_000, 1)]);
}

/// Mahimahi's rule, opportunity by opportunity, for packets of (arrival in ms, bytes): when each leaves.
fn as_mahimahi(millis: &[u64], packets: &[(u64, u32)]) -> Vec<u64> {
    let period = millis[millis.len() - 1];
    let (mut departures, mut in_transit) = (Vec::new(), 0);
    let mut queue = packets.iter().peekable();
    for (number, at) in (0..).flat_map(|n| millis.iter().map(move |ms| n * period + ms)).enumerate() {
        let mut left = OPPORTUNITY_BYTES;
        while left > 0 {
            if in_transit == 0 {
                let Some((_, bytes)) = queue.next_if(|&&(arrival, _)| arrival < at) else { break };
                in_transit = *bytes;
            }
            let sent = left.min(in_transit);
            (left, in_transit) = (left - sent, in_transit - sent);
            if in_transit == 0 {
                departures.push(at);
            }
        }
        if departures.len() == packets.len() {
            break;
        }
        assert!(number < 1_000_000, "it ends");
    }
    departures
}

proptest! {
    #[test]
    fn packets_leave_when_mahimahi_lets_them(
        gaps in prop::collection::vec(0u64..20, 1..30),
        packets in prop::collection::vec((0u64..12, 40u32..4000), 1..80),
        looks in prop::collection::vec(0u64..400, 0..20),
    ) {
        let mut millis: Vec<u64> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
        millis.push(millis[millis.len() - 1] + 1);
        let mut now = 0;
        let packets: Vec<(u64, u32)> = packets.iter().map(|&(gap, bytes)| { now += gap; (now, bytes) }).collect();
        let mut link = link(opportunities(&millis, true));
        let mut sent = 0;
        let mut left = Vec::new();
        // Looks at other times change nothing.
        let mut steps: Vec<(u64, Option<u32>)> = packets.iter().map(|&(at, bytes)| (at, Some(bytes))).collect();
        steps.extend(looks.iter().map(|&at| (at, None)));
        steps.sort_by_key(|step| step.0);
        for (at, bytes) in steps {
            let now = Time::from_millis(at);
            match bytes {
                Some(bytes) => {
                    let accepted = link.send(Parcel { bytes, ..parcel(sent) }, now);
                    prop_assert!(accepted);
                    sent += 1;
                }
                None => _ = link.view().transmitted(now),
            }
        }
        let expected = as_mahimahi(&millis, &packets);
        let end = expected[expected.len() - 1];
        for at in 0..=end + 10 {
            while link.receive(Time::from_millis(at)).is_some() {
                left.push(at - 10);
            }
        }
        prop_assert_eq!(left, expected);
        let bytes: u64 = packets.iter().map(|&(_, bytes)| u64::from(bytes)).sum();
        prop_assert_eq!(link.view().transmitted(Time::from_millis(end)), bytes);
    }

    #[test]
    fn a_schedule_of_one_rate_is_a_link_of_that_rate(
        cuts in prop::collection::btree_set(1u64..1_000_000_000, 0..8),
        looped: bool,
        rate in 1_000_000u64..50_000_000,
        packets in prop::collection::vec((0u64..3_000, 40u32..1501), 1..200),
    ) {
        let rate = Rate::from_bits_per_sec(rate);
        let mut times: Vec<Time> = std::iter::once(0).chain(cuts).map(Time::from_picos).collect();
        let period = if looped && times.len() > 1 { times.pop() } else { None };
        let steps: Vec<(Time, Rate)> = times.into_iter().map(|at| (at, rate)).collect();
        let schedule = Schedule::Rates(Arc::new(Rates::new(&steps, period)));
        let run = |schedule: Option<Schedule>| {
            let mut link = Link::new(
                LinkConfig { rate: Some(rate), limit: Limit::Packets(5), ..config(schedule) }, Seed::new(1), 0);
            let (now, seen) = link.watched(&packets);
            let allowed = link.view().allowed_bits(now);
            (seen, allowed, link.view().counters())
        };
        prop_assert_eq!(run(None), run(Some(schedule)));
    }

    #[test]
    fn times_and_amounts_of_rates_belong_together(
        steps in prop::collection::vec((1u64..1_000_000_000_000, prop_oneof![Just(0u64), 1u64..400_000_000_000]), 1..20),
        looped: bool,
        at in 0u64..20_000_000_000_000,
    ) {
        let mut time = 0;
        let mut rates: Vec<(Time, Rate)> = Vec::new();
        for (span, rate) in &steps {
            rates.push((Time::from_picos(time), Rate::from_bits_per_sec(*rate)));
            time += span;
        }
        let rates = Rates::new(&rates, looped.then_some(Time::from_picos(time)));
        let at = Time::from_picos(at);
        let work = rates.work(at);
        prop_assert!(rates.work(at + Time::from_picos(1)) >= work);
        let next = rates.next_service(at);
        prop_assert!(next >= at);
        if next < Time::MAX {
            prop_assert!(rates.at(next).bits_per_sec() > 0);
            prop_assert_eq!(rates.work(next), work);
            let soon = rates.when(work + 1);
            prop_assert!(soon >= next && rates.work(soon) <= work + 1 && rates.work(soon + Time::from_picos(1)) > work);
        }
        if work > 0 {
            let first = rates.when(work);
            prop_assert!(first <= at && rates.work(first) <= work);
            prop_assert!(rates.work(first + Time::from_picos(1)) >= work);
        }
    }

    #[test]
    fn opportunities_are_counted_as_they_are_timed(
        gaps in prop::collection::vec(0u64..20, 1..30), repeats: bool, number in 0u64..200, at in 0u64..1000,
    ) {
        let mut millis: Vec<u64> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
        millis.push(millis[millis.len() - 1] + 1);
        let opportunities = Opportunities::new(millis, repeats);
        let at = Time::from_millis(at);
        let next = opportunities.count(at);
        prop_assert!(opportunities.time(next) > at);
        prop_assert!(next == 0 || opportunities.time(next - 1) <= at);
        let time = opportunities.time(number);
        prop_assert!(time == Time::MAX || opportunities.count(time) > number);
    }
}

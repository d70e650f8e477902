//! Both ends over the links of a scenario, to the nanosecond.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use elephan_scenario::{Plan, Scenario};

use super::{FAR_EPOCH_NS, KEYS, NEAR_EPOCH_NS, NearHost, PATIENCE, SESSION, VirtualClient};
use crate::Error;
use crate::client::Stream;
use crate::datagram::{Datagram, HEADER_BYTES};
use crate::limits::Limits;
use crate::message::{Answer, Ask, BYTES_PER_ARRIVAL, BYTES_PER_TEST};
use crate::registry::lock;

const LIMITS: Limits = Limits { bytes: 20_000_000, millis: 60_000, rate: u64::MAX };
const LINGER: Duration = Duration::from_millis(200);
const MS: u64 = 1_000_000;
/// 1500 bytes take 1 ms, and a way 5 ms; a question and its answer take 0.1 ms each on top.
const PATH: &str = r#""rate": "12 Mbit/s", "rtt": "10 ms""#;
const WAY_NS: u64 = 5 * MS;
const EXCHANGE_NS: u64 = 2 * (WAY_NS + 100_000);
/// The first stream begins after two of them.
const FIRST_NS: u64 = 2 * EXCHANGE_NS;

/// The plan of a path.
fn plan(path: &str) -> Plan {
    let text = format!(
        r#"{{ "name": "known", "duration": "1 s", "path": {{ {path} }}, "flow": [{{ "cc": "reno" }}] }}"#
    );
    Scenario::from_json(&text, "known", &[])
        .and_then(|scenario| scenario.resolve("known"))
        .expect("a scenario")
}

fn client_of(path: &str, near: NearHost, limits: Limits) -> VirtualClient {
    VirtualClient::over(&plan(path), near, LIMITS, limits).expect("a path")
}

fn client(path: &str) -> VirtualClient {
    client_of(path, NearHost::default(), LIMITS)
}

fn go() -> bool {
    false
}

fn evenly(count: u64, gap_ns: u64) -> Vec<u64> {
    (0..count).map(|index| index * gap_ns).collect()
}

/// The delay of each packet that arrived, in order of arrival, ns.
fn delays(seen: &Stream) -> Vec<u64> {
    let arrived = seen.arrived.at_ns.iter().zip(&seen.arrived.sequence);
    arrived.map(|(at, &index)| (at - FAR_EPOCH_NS) - (seen.sent_ns[index as usize] - NEAR_EPOCH_NS)).collect()
}

/// The packets that did not arrive.
fn lost(seen: &Stream) -> Vec<u32> {
    (0..seen.sent_ns.len() as u32).filter(|index| !seen.arrived.sequence.contains(index)).collect()
}

/// Many packets of 1500 bytes at one and a half times the rate of the path.
fn overload(path: &str, count: u64) -> Stream {
    let mut client = client(path);
    let gaps = evenly(count, 2 * MS / 3);
    client.stream(&vec![1500; count as usize], &gaps, false, Duration::from_secs(2), &go).expect("a stream")
}

#[test]
fn packets_leave_when_they_are_due_and_echoes_come_back() {
    let mut client = client(PATH);
    let (sizes, due) = ([150, 1500, 1500, 60, 600], [0, 2 * MS, 2 * MS, 2 * MS, 70 * MS]);
    let seen = client.stream(&sizes, &due, true, LINGER, &go).expect("a stream");
    assert!(seen.stamped);
    let began = NEAR_EPOCH_NS + FIRST_NS;
    assert_eq!(seen.sent_ns, due.map(|due| began + due));
    assert_eq!(seen.arrived.sequence, [0, 1, 2, 3, 4]);
    // The third waits for the second, and the fourth for both.
    let waits_us = [100, 1000, 2000, 2040, 400];
    assert_eq!(delays(&seen), waits_us.map(|us| WAY_NS + us * 1000));
    assert_eq!(seen.arrived.echoed_ns, seen.arrived.at_ns);
    assert_eq!(seen.echoes.sequence, [0, 1, 2, 3, 4]);
    // On the way back packets of equal size have their distance already; the short one waits for the one before it.
    for (index, us) in [100, 1000, 1000, 1000, 400].into_iter().enumerate() {
        let back =
            (seen.echoes.at_ns[index] - NEAR_EPOCH_NS) - (seen.arrived.echoed_ns[index] - FAR_EPOCH_NS);
        assert_eq!(back, WAY_NS + us * 1000, "{index}");
    }
    assert_eq!(seen.bytes, 2 * sizes.iter().map(|&size| u64::from(size)).sum::<u64>());
    // All echoes are there: it does not wait for longer. The client looks each millisecond.
    let ended = client.elapsed().as_nanos() as u64;
    let last = seen.echoes.at_ns[4] - NEAR_EPOCH_NS;
    assert!((last..last + MS).contains(&(ended - EXCHANGE_NS)), "{ended} {last}");
    // Another stream of the same session, without echoes.
    let seen = client.stream(&sizes, &due, false, LINGER, &go).expect("a stream");
    assert_eq!((seen.arrived.sequence.len(), seen.echoes.sequence.len(), seen.bytes), (5, 0, 3810));
    assert_eq!(seen.arrived.echoed_ns, [0; 5]);
    client.finish().expect("the end");
}

#[test]
fn the_devices_rate_spaces_a_train() {
    let near = NearHost { rate: 1_000_000_000, ..NearHost::default() };
    let mut client = client_of(PATH, near, LIMITS);
    let seen = client.stream(&[1500; 100], &[0; 100], false, LINGER, &go).expect("a stream");
    assert!(seen.stamped);
    assert!(seen.sent_ns.windows(2).all(|pair| pair[1] - pair[0] == 12_000), "{:?}", seen.sent_ns);
}

#[test]
fn a_sender_that_was_kept_from_running_shifts_its_schedule_and_a_short_stall_does_not() {
    let due = evenly(10, 10 * MS);
    let sent = |at_ns: u64, lasting_ns: u64| {
        let stall = (Duration::from_nanos(FIRST_NS + at_ns), Duration::from_nanos(lasting_ns));
        let mut client = client_of(PATH, NearHost { stalls: vec![stall], ..NearHost::default() }, LIMITS);
        let seen = client.stream(&[100; 10], &due, false, LINGER, &go).expect("a stream");
        seen.sent_ns.into_iter().map(|at| at - NEAR_EPOCH_NS - FIRST_NS).collect::<Vec<_>>()
    };
    let shifted = |at: u64| if at < 40 * MS { at } else { at + 29 * MS };
    assert_eq!(sent(39 * MS, 30 * MS), due.iter().map(|&at| shifted(at)).collect::<Vec<_>>());
    let mut late = due.clone();
    late[4] += MS / 2;
    assert_eq!(sent(40 * MS - MS / 10, 6 * MS / 10), late);
}

#[test]
fn what_is_without_the_code_of_the_session_is_neither_recorded_nor_echoed() {
    let mut client = client(PATH);
    let world = Arc::clone(&client.wire().0);
    let attacks = AtomicU32::new(0);
    // The wire is free while the sender asks whether to stop.
    let attack = || {
        let mut world = lock(&world);
        for length in [0, 7, HEADER_BYTES - 1, HEADER_BYTES, 1400] {
            let mut bytes = vec![0; length];
            for (session, stream, key) in
                [(SESSION, 1, [9; 32]), (SESSION, 1, KEYS[1]), (SESSION + 1, 1, KEYS[0])]
            {
                if length >= HEADER_BYTES {
                    Datagram { session, stream, sequence: 3, due_ns: 1 }.write(&key, &mut bytes);
                }
                let now_ns = world.now_ns;
                assert!(world.far.receive(now_ns, &bytes, 1428, 5).is_none());
                attacks.fetch_add(1, Ordering::Relaxed);
            }
        }
        false
    };
    let seen = client.stream(&[100; 20], &evenly(20, 20 * MS), true, LINGER, &attack).expect("a stream");
    assert!(attacks.load(Ordering::Relaxed) > 100);
    assert_eq!(seen.arrived.sequence, (0..20).collect::<Vec<_>>());
    assert_eq!(seen.echoes.sequence, seen.arrived.sequence);
    // With the code the same is recorded; a number is echoed once.
    let due_ns = evenly(2, 20 * MS);
    let answered = AtomicU32::new(0);
    let repeat = || {
        let mut bytes = vec![0; 72];
        Datagram { session: SESSION, stream: 2, sequence: 1, due_ns: 1 }.write(&KEYS[0], &mut bytes);
        let (mut world, now_ns) = (lock(&world), 0);
        let echo = world.far.receive(now_ns, &bytes, 100, 5);
        answered.fetch_add(u32::from(echo.is_some()), Ordering::Relaxed);
        false
    };
    let seen = client.stream(&[100; 2], &due_ns, true, LINGER, &repeat).expect("a stream");
    assert_eq!(answered.load(Ordering::Relaxed), 1);
    assert!(seen.arrived.sequence.len() > 2, "{:?}", seen.arrived.sequence);
    assert_eq!(seen.echoes.sequence, [0]);
}

#[test]
fn the_smaller_limits_hold_and_what_is_refused_costs_nothing() {
    let permitted = Limits { bytes: 300_000, ..LIMITS };
    let wanted = Limits { rate: 8_000_000, ..LIMITS };
    let mut client =
        VirtualClient::over(&plan(PATH), NearHost::default(), permitted, wanted).expect("a path");
    assert_eq!(client.limits(), Limits { bytes: 300_000, millis: 60_000, rate: 8_000_000 });
    let (spent, elapsed) = (client.spent(), client.elapsed());
    let many = client.stream(&[1000; 300], &evenly(300, MS), false, LINGER, &go);
    assert!(matches!(many, Err(Error::Budget { unit: "bytes", .. })), "{many:?}");
    let fast = client.stream(&[1000; 10], &evenly(10, MS - 1), false, LINGER, &go);
    assert!(matches!(fast, Err(Error::Wrong(_))), "{fast:?}");
    let long = client.stream(&[1000; 2], &[0, 60_000 * MS], false, LINGER, &go);
    assert!(matches!(long, Err(Error::Budget { unit: "ms", .. })), "{long:?}");
    assert_eq!((client.spent(), client.elapsed()), (spent, elapsed));
    let seen = client.stream(&[1000; 10], &evenly(10, MS), false, LINGER, &go).expect("a stream");
    assert_eq!(seen.arrived.sequence.len(), 10);
    assert_eq!(client.spent(), spent + 10_000 + BYTES_PER_TEST + 10 * BYTES_PER_ARRIVAL);
}

#[test]
fn a_stream_fits_the_budget_to_the_byte_and_the_millisecond() {
    let cost = 2 * 10_000 + BYTES_PER_TEST + 10 * BYTES_PER_ARRIVAL;
    for (more, fits) in [(0, true), (-1, false)] {
        let bytes = (BYTES_PER_TEST + cost).saturating_add_signed(more);
        let mut client = client_of(PATH, NearHost::default(), Limits { bytes, ..LIMITS });
        let seen = client.stream(&[1000; 10], &[0; 10], true, LINGER, &go);
        assert_eq!(seen.is_ok(), fits, "{bytes}");
        if fits {
            assert_eq!(client.spent(), bytes);
        }
    }
    // The session began with an exchange of 10.2 ms.
    for (millis, fits) in [(11, false), (10, false), (9, true), (8, true)] {
        let mut client = client_of(PATH, NearHost::default(), Limits { millis: 1000, ..LIMITS });
        let seen = client.stream(&[100], &[0], false, Duration::from_millis(980 + millis), &go);
        assert_eq!(seen.is_ok(), fits, "{millis}");
    }
}

#[test]
fn a_server_refuses_what_exceeds_the_budget_whatever_the_client_says() {
    let client = client_of(PATH, NearHost::default(), Limits { bytes: 50_000, ..LIMITS });
    let mut world = lock(&client.wire().0);
    let mut ask = |count, bytes| {
        let ask = Ask::Stream { stream: 1, echo: true, count, bytes, millis: 1000 };
        let now_ns = world.now_ns;
        world.far.answer(now_ns, &ask).expect("the session goes on")
    };
    assert!(matches!(ask(10, 25_000), Answer::Refused(_)));
    assert!(matches!(ask(0, 1000), Answer::Refused(_)));
    assert!(matches!(ask(10, 319), Answer::Refused(_)));
    // What is left after this is less than for another.
    assert!(matches!(ask(10, 15_000), Answer::Ready));
    assert!(matches!(ask(10, 6_000), Answer::Refused(_)));
}

/// The client's host may stand still. What it measured within its time is not lost by that.
#[test]
fn a_client_that_is_late_gets_its_arrivals_unless_it_is_silent_for_too_long() {
    let limits = Limits { millis: 1000, ..LIMITS };
    let stream = |lasting| {
        let stall = (Duration::from_nanos(FIRST_NS + 5 * MS), Duration::from_secs(lasting));
        let mut client = client_of(PATH, NearHost { stalls: vec![stall], ..NearHost::default() }, limits);
        let seen = client.stream(&[100; 2], &[0, 2 * MS], false, LINGER, &go);
        let next = client.stream(&[100; 2], &[0, MS], false, LINGER, &go);
        assert!(matches!(next, Err(Error::Budget { unit: "ms", .. })), "{next:?}");
        seen
    };
    assert_eq!(stream(PATIENCE.as_secs() - 1).expect("in time").arrived.sequence, [0, 1]);
    let silent = stream(PATIENCE.as_secs() + 2);
    assert!(matches!(silent, Err(Error::Session(elephan_session::Error::Closed))), "{silent:?}");
}

#[test]
fn nothing_is_sent_after_the_end_of_the_session() {
    let stall = (Duration::from_nanos(FIRST_NS + 5 * MS), Duration::from_secs(2));
    let near = NearHost { stalls: vec![stall], ..NearHost::default() };
    let mut client = client_of(PATH, near, Limits { millis: 1000, ..LIMITS });
    let due = [0, 2 * MS, 20 * MS, 40 * MS];
    let seen = client.stream(&[100; 4], &due, false, LINGER, &go).expect("a stream");
    // The packet that it waited for when the host stood still is the last.
    assert_eq!((seen.sent_ns[2] > 0, seen.sent_ns[3], seen.bytes), (true, 0, 300));
}

#[test]
fn a_stream_can_be_cancelled() {
    let mut client = client(PATH);
    let wire = Arc::clone(&client.wire().0);
    let stop = || lock(&wire).now_ns > 300 * MS;
    let cancelled = client.stream(&[100, 100], &[0, 30_000 * MS], false, LINGER, &stop);
    assert!(matches!(cancelled, Err(Error::Cancelled)), "{cancelled:?}");
    // It looks each 50 ms, and then waits for what is under way.
    assert!(client.elapsed() < Duration::from_millis(300 + 50) + 2 * LINGER, "{:?}", client.elapsed());
}

#[test]
fn a_session_that_has_ended_is_noticed() {
    let mut client = client(PATH);
    lock(&client.wire().0).far.end();
    let gone = client.stream(&[100], &[0], true, LINGER, &go);
    assert!(matches!(gone, Err(Error::Session(elephan_session::Error::Closed))), "{gone:?}");
}

#[test]
fn a_plain_queue_drops_what_it_has_no_room_for() {
    // Ten packets wait, and one is sent.
    let mut client = client(&format!(r#"{PATH}, "buffer": "15000 B""#));
    let seen = client.stream(&[1500; 40], &[0; 40], false, LINGER, &go).expect("a stream");
    assert_eq!(seen.arrived.sequence, (0..11).collect::<Vec<_>>());
    assert_eq!(delays(&seen), (1..=11).map(|place| WAY_NS + place * MS).collect::<Vec<_>>());
}

#[test]
fn codel_drops_after_an_interval_above_its_target_although_there_is_room() {
    let seen = overload(&format!(r#"{PATH}, "buffer": "1 MB", "queue": "codel""#), 600);
    let lost = lost(&seen);
    assert!(lost.len() > 3, "{lost:?}");
    // Of three packets in 2 ms one waits. The target of 5 ms is reached after 15 ms, and the first drop comes 100 ms later: of a
    // packet that has waited for a third of that time.
    let (first, queue) = (seen.sent_ns[lost[0] as usize] - seen.sent_ns[0], delays(&seen));
    assert!((75 * MS..79 * MS).contains(&first), "{first}");
    // The buffer has room for 660 ms.
    let longest = queue.iter().max().expect("some arrived") - WAY_NS;
    assert!(longest < 300 * MS, "{longest}");
}

#[test]
fn red_drops_before_it_is_full() {
    let path = format!(
        r#"{PATH}, "buffer": "1 MB", "queue": {{ "name": "red", "min_th": 5, "max_th": 15, "w_q": 0.02 }}"#
    );
    let seen = overload(&path, 600);
    let longest = delays(&seen).into_iter().max().expect("some arrived") - WAY_NS;
    assert!(lost(&seen).len() > 100, "{:?}", lost(&seen));
    assert!(longest < 60 * MS, "{longest}");
}

#[test]
fn a_policer_passes_its_burst_and_then_its_rate_without_a_queue() {
    let path =
        r#""rate": "120 Mbit/s", "rtt": "10 ms", "police": [{ "rate": "12 Mbit/s", "burst": "30 kB" }]"#;
    let seen = overload(path, 600);
    // Of 1500 bytes each 1/1.5 ms, two of three pass.
    assert!(delays(&seen).iter().all(|&delay| delay == WAY_NS + MS / 10));
    let first = lost(&seen)[0];
    // The bucket gains 1000 bytes for each packet, and loses 1500.
    assert!((55..=60).contains(&first), "{first}");
    let after = seen.arrived.sequence.iter().filter(|&&index| index >= first).count();
    assert!((after as f64 / f64::from(600 - first) - 2.0 / 3.0).abs() < 5e-3, "{after}");
}

#[test]
fn what_the_wire_loses_is_missing_and_a_lost_question_is_asked_again() {
    let path = format!(r#"{PATH}, "loss": {{ "name": "periodic", "every": 10 }}"#);
    let mut client = client(&path);
    let seen = client.stream(&[100; 50], &evenly(50, MS), true, LINGER, &go).expect("a stream");
    // Two questions came before the first packet.
    assert_eq!(lost(&seen), [7, 17, 27, 37, 47]);
    assert_eq!(seen.echoes.sequence, seen.arrived.sequence);
    let path = format!(r#"{PATH}, "loss": {{ "name": "periodic", "every": 2 }}"#);
    let mut client = self::client(&path);
    let seen = client.stream(&[100], &[0], false, LINGER, &go).expect("a stream");
    // The first attempt of the question has left the link when it is lost.
    let again = seen.sent_ns[0] - NEAR_EPOCH_NS - FIRST_NS;
    assert!((200 * MS..200 * MS + EXCHANGE_NS).contains(&again), "{again}");
}

#[test]
fn random_losses_are_as_many_as_the_scenario_says_and_the_same_again() {
    let path = r#""rate": "1 Gbit/s", "rtt": "10 ms", "loss": { "name": "random", "probability": 0.02 }"#;
    let run = || lost(&overload(path, 5000));
    let first = run();
    // 100, give or take three standard deviations.
    assert!((70..=130).contains(&first.len()), "{}", first.len());
    assert_eq!(first, run());
}

#[test]
fn jitter_keeps_the_order_and_reordering_does_not() {
    let mut client =
        client(r#""rate": "1.2 Gbit/s", "rtt": "10 ms", "vary": { "name": "jitter", "max": "2 ms" }"#);
    let seen = client.stream(&[1500; 500], &evenly(500, MS / 2), false, LINGER, &go).expect("a stream");
    assert_eq!(seen.arrived.sequence, (0..500).collect::<Vec<_>>());
    let (delays, base) = (delays(&seen), WAY_NS + 10_000);
    assert!(delays.iter().all(|delay| (base..=base + 2 * MS).contains(delay)), "{delays:?}");
    assert!(delays.iter().any(|&delay| delay > base + 19 * MS / 10));

    let path = r#""rate": "1.2 Gbit/s", "rtt": "10 ms",
        "vary": { "name": "reorder", "probability": 0.1, "extra": "5 ms" }"#;
    let mut client = self::client(path);
    let seen = client.stream(&[1500; 500], &evenly(500, MS), false, LINGER, &go).expect("a stream");
    assert!(lost(&seen).is_empty());
    let delays = self::delays(&seen);
    let held = delays.iter().filter(|&&delay| delay == base + 5 * MS).count();
    assert_eq!(delays.iter().filter(|&&delay| delay == base).count(), 500 - held);
    assert!((30..=70).contains(&held), "{held}");
    assert!(!seen.arrived.sequence.is_sorted());
}

#[test]
fn long_packets_do_not_leave_the_host_or_vanish_on_the_path() {
    let near = NearHost { mtu: 4000, path_mtu: 1500, ..NearHost::default() };
    let mut client = client_of(PATH, near, LIMITS);
    let sizes = [1500, 1501, 4000, 4001, 1500];
    let seen = client.stream(&sizes, &evenly(5, 10 * MS), true, LINGER, &go).expect("a stream");
    assert_eq!(seen.arrived.sequence, [0, 4]);
    assert_eq!(seen.sent_ns.iter().map(|&at| at > 0).collect::<Vec<_>>(), [true, true, true, false, true]);
    // A refused packet may have taken a number: the times are then the program's.
    assert!(!seen.stamped);
    assert_eq!(seen.bytes, 1500 + 1501 + 4000 + 1500 + 2 * 1500);
}

#[test]
fn the_clock_of_the_far_host_may_be_fast() {
    let mut client = client_of(PATH, NearHost { drift_ppm: 100, ..NearHost::default() }, LIMITS);
    let seen = client.stream(&[1500; 2], &[0, 1000 * MS], false, LINGER, &go).expect("a stream");
    assert_eq!(seen.arrived.at_ns[1] - seen.arrived.at_ns[0], 1000 * MS + MS / 10);
}

/// Waiting takes no time in reality, so an hour of it is a test.
#[test]
fn a_quiet_hour_is_waited_for() {
    let limits = Limits { millis: 4_000_000, ..LIMITS };
    let mut client = VirtualClient::over(&plan(PATH), NearHost::default(), limits, limits).expect("a path");
    let seen = client.stream(&[100; 2], &[0, 3_600_000 * MS], false, LINGER, &go).expect("a stream");
    assert_eq!(seen.sent_ns[1] - seen.sent_ns[0], 3_600_000 * MS);
    assert!(client.elapsed() > Duration::from_hours(1));
}

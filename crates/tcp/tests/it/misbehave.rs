//! Ends that misbehave (Savage, Cardwell, Wetherall and Anderson 1999; RFC 9743, section 7.6).

use crate::common::pipe::{Faults, Pipe};
use crate::common::{IRS, MSS, Script, config, controller, eager, ms};
use elephan_cc::State;
use elephan_tcp::{ByteCounting, Config, DelayedAck, Flags, Misbehave, Recovery, Segment, WindowReduction};
use elephan_units::Time;
use proptest::prelude::*;

fn with(misbehave: Misbehave, config: Config) -> Config {
    Config { misbehave, ..config }
}

fn divided(ack_division: u16, config: Config) -> Config {
    with(Misbehave { ack_division, ..Misbehave::default() }, config)
}

fn early(optimistic_acks: u32, config: Config) -> Config {
    with(Misbehave { optimistic_acks, ..Misbehave::default() }, config)
}

/// What the ACKs sent since the last call acknowledge, and where the windows that they offer end, in bytes.
fn acks(tcp: &mut Script) -> (Vec<u32>, Vec<u32>) {
    let offset = |segment: &Segment| segment.ack.wrapping_sub(IRS.wrapping_add(1));
    let all = tcp.take_all_bare();
    let edges = all.iter().map(|segment| offset(segment) + (u32::from(segment.window) << 14));
    (all.iter().map(offset).collect(), edges.collect())
}

#[test]
fn each_segment_is_acknowledged_in_pieces() {
    let mut tcp = Script::receiver(divided(4, eager()));
    assert_eq!(acks(tcp.data(0)).0, [250, 500, 750, 1000]);
    // Every second segment is acknowledged, in eight pieces; a third of 1000 bytes is no whole number.
    let mut tcp = Script::receiver(divided(4, config()));
    assert_eq!(acks(tcp.data(0).data(1)).0, [250, 500, 750, 1000, 1250, 1500, 1750, 2000]);
    let mut tcp = Script::receiver(divided(3, eager()));
    assert_eq!(acks(tcp.data(0)).0, [334, 667, 1000]);
    // At most one for each byte; the FIN and reports of data beyond a hole are in the last.
    let mut tcp = Script::receiver(divided(1000, eager()));
    assert_eq!(acks(tcp.data(0)).0, (1..=1000).collect::<Vec<_>>());
    let mut tcp = Script::receiver(divided(2, eager()));
    tcp.data(0).data(2);
    let blocks: Vec<_> = tcp.take_bare(3).iter().map(|segment| segment.sack.as_slice().len()).collect();
    assert_eq!(blocks, [0, 0, 1]);
    let fin = Segment { len: 1000, flags: Flags::ACK | Flags::FIN, ..tcp.segment_at(1000) };
    assert_eq!(acks(tcp.receive(fin)).0, [1500, 2000, 2500, 3000]);
}

#[test]
fn pieces_offer_one_window() {
    let mut tcp = Script::receiver(divided(4, eager()));
    let (_, edges) = acks(tcp.data(0));
    assert!(edges.windows(2).all(|pair| pair[1].wrapping_sub(pair[0]) < 1 << 14), "{edges:?}");
}

#[test]
fn divided_acks_grow_the_window_of_a_stack_that_counts_them() {
    // One segment arrives, and is acknowledged in 1, 2, 4 or 8 pieces. In slow start the window of 10 grows by 1 for each ACK where parts
    // count, and by 1 for the segment with ABC (RFC 3465, section 2) and where only a whole segment counts (Linux). In
    // congestion avoidance it grows by 1/cwnd for each, and by 1/10.
    let grown = |byte_counting, ssthresh, pieces: u64| {
        let mut tcp = Script::sending(Config { byte_counting, initial_ssthresh: ssthresh, ..config() }, 1000);
        tcp.until(100);
        for piece in 1..=pieces {
            tcp.sack_bytes(piece * MSS / pieces, &[]);
        }
        tcp.cwnd() - 10.0
    };
    for pieces in [1, 2, 4, 8] {
        let each = pieces as f64;
        assert_eq!(grown(ByteCounting::PerAnyAck, None, pieces), each);
        let mut avoiding = 10.0;
        for _ in 0..pieces {
            avoiding += 1.0 / avoiding;
        }
        assert!((grown(ByteCounting::PerAnyAck, Some(10), pieces) - (avoiding - 10.0)).abs() < 1e-12);
        for honest in [ByteCounting::PerAck, ByteCounting::Delivered, ByteCounting::Abc { limit: 2 }] {
            assert_eq!(grown(honest, None, pieces), 1.0, "{honest:?}");
            assert!((grown(honest, Some(10), pieces) - 0.1).abs() < 1e-12, "{honest:?}");
        }
    }
}

#[test]
fn a_slow_start_whose_acks_are_divided_is_as_many_times_as_fast() {
    // Ten segments of the first window, and a segment for each ACK: after a round trip 20, or 10 + 10 N.
    let window = |pieces: u16| {
        let counting =
            Config { byte_counting: ByteCounting::PerAnyAck, initial_ssthresh: Some(1000), ..eager() };
        let mut pipe = Pipe::new("reno", [&counting, &divided(pieces, counting)], Faults::none(ms(50)), 1);
        pipe.ends[0].write(u64::MAX);
        while pipe.now < Time::from_millis(240) && pipe.step(&mut |_, _, _| ()) {}
        pipe.ends[0].snapshot().cwnd
    };
    assert_eq!([1, 2, 4, 10].map(window), [20.0, 30.0, 50.0, 110.0]);
}

#[test]
fn early_acks_go_ahead_of_what_arrives_and_conceal_what_is_lost() {
    // The first three let it go ahead. Segment 3 is lost, and its place is acknowledged without a report.
    let mut tcp = Script::receiver(early(3, eager()));
    for (number, next, arrived) in [(0, 2000, 1000), (1, 4000, 2000), (2, 6000, 3000), (4, 8000, 4000)] {
        tcp.data(number).acks(next, &[]);
        assert_eq!(tcp.end.bytes_delivered(), arrived);
    }
    // What was retransmitted shows that the sender takes no such ACKs: what has arrived is acknowledged, and it begins again.
    tcp.data(1).acks(5000, &[]).data(5).acks(7000, &[]);
    // The lost segment arrives late, and is delivered, once.
    tcp.data(3).acks(6000, &[]).data(3).acks(6000, &[]);
    assert_eq!((tcp.end.bytes_delivered(), tcp.end.bytes_arrived()), (6000, 8000));
}

#[test]
fn early_acks_end_at_the_fin() {
    let fin = |tcp: &Script, number: u32, len: u16| Segment {
        len,
        flags: Flags::ACK | Flags::FIN,
        ..tcp.segment_at(number * 1000)
    };
    // With data, and alone where more was acknowledged before it arrived.
    for len in [1000, 0] {
        let mut tcp = Script::receiver(early(100, eager()));
        assert_eq!(acks(tcp.data(0).data(1)).0, [2000, 4000]);
        let end = 2000 + u64::from(len);
        let segment = fin(&tcp, 2, len);
        tcp.receive(segment).acks(end + 1, &[]);
        assert!(tcp.end.peer_is_finished());
        assert_eq!(tcp.end.bytes_delivered(), end);
        tcp.receive(segment).acks(end + 1, &[]).data(0).acks(end + 1, &[]);
    }
}

#[test]
fn early_acks_are_divided_too() {
    let misbehave = Misbehave { ack_division: 2, optimistic_acks: 1, ..Misbehave::default() };
    let mut tcp = Script::receiver(with(misbehave, eager()));
    assert_eq!(acks(tcp.data(0)).0, [500, 1000, 1500, 2000]);
    assert_eq!(acks(tcp.data(2)).0, [2500, 3000, 3500, 4000]);
}

#[test]
fn an_early_ack_shortens_the_round_trip_that_the_sender_measures() {
    // 100 ms, and a segment of 1 ms for each of 40 that are acknowledged early: of 100 in flight.
    let faults = Faults { service: Time::from_millis(1), ..Faults::none(ms(50)) };
    let srtt = |lead: u32| {
        let sender = Config { send_buffer: Some(elephan_units::Bytes::new(60_000)), ..config() };
        let mut pipe = Pipe::new("reno", [&sender, &early(lead, sender)], faults, 1);
        pipe.ends[0].write(u64::MAX);
        while pipe.now < Time::from_secs(5) && pipe.step(&mut |_, _, _| ()) {}
        pipe.ends[0].snapshot().srtt.secs_f64() * 1e3
    };
    let (honest, ahead) = (srtt(0), srtt(40));
    assert!((100.0..106.0).contains(&honest), "{honest}");
    assert!((58.0..66.0).contains(&ahead), "{ahead}");
}

#[test]
fn acks_are_withheld_by_their_delay() {
    let delayed_ack = DelayedAck { segments: 8, timeout: ms(500), ..DelayedAck::default() };
    let mut tcp = Script::receiver(Config { delayed_ack, ..config() });
    for number in 0..7 {
        tcp.data(number).silent();
    }
    tcp.data(7).acks(8000, &[]).until(100).data(8).until(599).silent();
    tcp.until(600).acks(9000, &[]);
}

#[test]
fn concealed_marks_are_not_echoed() {
    let conceals = Misbehave { conceal_marks: true, ..Misbehave::default() };
    for (algorithm, ecn) in [("reno", true), ("dctcp", false)] {
        for (misbehave, echoes) in [(conceals, false), (Misbehave::default(), true)] {
            let config = with(misbehave, Config { ecn, ..eager() });
            let mut tcp = Script::receiver_controlled(controller(algorithm, &config), config);
            tcp.marked = true;
            let ack = tcp.data(0).take_bare(1)[0];
            assert_eq!(ack.flags.contains(Flags::ECE), echoes, "{algorithm}");
        }
    }
}

#[test]
fn ignored_marks_change_nothing_at_the_sender() {
    let window = |ignore_marks, ece| {
        let misbehave = Misbehave { ignore_marks, ..Misbehave::default() };
        let mut tcp = Script::sending(with(misbehave, Config { ecn: true, ..config() }), 100);
        tcp.sent();
        tcp.ece = ece;
        tcp.until(100).ack(2).ack(4);
        let tells = tcp.take_data().iter().any(|segment| segment.flags.contains(Flags::CWR));
        (tcp.cwnd(), tcp.end.counters().reductions, tells)
    };
    assert_eq!(window(true, true), (14.0, 0, false));
    assert_eq!(window(false, false), (14.0, 0, false));
    assert_eq!(window(false, true).1, 1);
}

#[test]
fn ignored_losses_are_repaired_and_leave_the_window() {
    // Of a window of 10, segment 0 is lost and 1 to 3 arrive: 6 are in flight, so 0 and three new ones leave. The window stays, and the
    // slow start without a threshold has ended. An honest sender halves it, and sends only 0.
    let losing = |ignore_losses, config: Config| {
        let misbehave = Misbehave { ignore_losses, ..Misbehave::default() };
        let mut tcp = Script::sending(with(misbehave, config), 1000);
        tcp.until(100);
        tcp
    };
    for window_reduction in [WindowReduction::AtOnce, WindowReduction::Prr, WindowReduction::RateHalving] {
        let config = Config { window_reduction, limited_transmit: false, ..config() };
        let mut tcp = losing(true, config);
        tcp.sack(0, &[1..4]).sends([0, 10, 11, 12]);
        assert_eq!((tcp.cwnd(), tcp.ssthresh(), tcp.snapshot().state), (10.0, 10.0, State::Recovery));
        // The next, too, and the end of the recovery.
        tcp.sack(0, &[1..4, 5..8]).sack(0, &[1..4, 5..10]).until(200).ack(10).until(201).ack(13);
        assert!(tcp.cwnd() >= 10.0 && !tcp.snapshot().in_recovery, "{:?}", tcp.snapshot());
        assert_eq!((tcp.end.counters().reductions, tcp.end.counters().loss_events), (0, 0));
    }
    let mut honest = losing(false, config());
    honest.sack(0, &[1..4]).sends([0]);
    assert_eq!((honest.cwnd(), honest.ssthresh()), (5.0, 5.0));
    // A threshold stays as well.
    let mut tcp = losing(true, Config { initial_ssthresh: Some(50), ..config() });
    tcp.sack(0, &[1..4]);
    assert_eq!((tcp.cwnd(), tcp.ssthresh()), (10.0, 50.0));
    // Without SACK the third duplicate repairs it, and the window is inflated by what has left the network.
    let mut tcp = losing(true, Config { recovery: Recovery::NewReno, limited_transmit: false, ..config() });
    tcp.dupacks(0, 3).sends([0, 10, 11, 12]).until(200).ack(10);
    assert_eq!(tcp.cwnd(), 10.0);
}

#[test]
fn a_timeout_is_not_ignored() {
    let misbehave = Misbehave { ignore_losses: true, ..Misbehave::default() };
    let mut tcp = Script::sending(with(misbehave, config()), 100);
    tcp.expire().sent();
    assert_eq!((tcp.cwnd(), tcp.ssthresh(), tcp.end.counters().reductions), (1.0, 5.0, 1));
}

#[test]
fn what_contradicts_itself_is_named() {
    let ecn = Config { ecn: true, ..Config::default() };
    let default = Misbehave::default();
    let marks = Misbehave { conceal_marks: true, ignore_marks: true, ..default };
    for (misbehave, config, expected) in [
        (
            Misbehave { ack_division: 0, ..default },
            ecn,
            "misbehave.ack_division: expected 1 to 1448, the bytes of a segment, found 0",
        ),
        (
            Misbehave { ack_division: 1449, ..default },
            ecn,
            "misbehave.ack_division: expected 1 to 1448, the bytes of a segment, found 1449",
        ),
        (
            Misbehave { optimistic_acks: 741_535, ..default },
            ecn,
            "misbehave.optimistic_acks: expected at most 741534, a window of 2^30 bytes, found 741535",
        ),
        (
            marks,
            Config::default(),
            "misbehave.conceal_marks: expected false, because ecn is false, found true",
        ),
        (
            Misbehave { ignore_losses: true, ..default },
            Config { recovery: Recovery::Tahoe, ..ecn },
            "misbehave.ignore_losses: expected false, because recovery is tahoe, which repairs by slow start, found true",
        ),
    ] {
        assert_eq!(with(misbehave, config).mistakes()[0].to_string(), expected);
    }
    assert_eq!(with(marks, Config::default()).mistakes().len(), 2);
    let all = Misbehave { ack_division: 1448, optimistic_acks: 741_534, ignore_losses: true, ..marks };
    assert_eq!(with(all, ecn).mistakes(), []);
    assert_eq!(all.asked().len(), 5);
    assert_eq!(default.asked(), []);
}

prop_compose! {
    fn misbehaviour()(
        ack_division in prop_oneof![Just(1u16), 1u16..6], optimistic_acks in prop_oneof![Just(0u32), 1u32..5, 1u32..500],
        [conceal_marks, ignore_marks, ignore_losses] in any::<[bool; 3]>(),
    ) -> Misbehave {
        Misbehave { ack_division, optimistic_acks, conceal_marks, ignore_marks, ignore_losses }
    }
}

prop_compose! {
    fn faults()(
        lost in prop_oneof![Just(0u32), 0u32..200], doubled in prop_oneof![Just(0u32), 0u32..100],
        delayed in prop_oneof![Just(0u32), 0u32..300], marked in prop_oneof![Just(0u32), 0u32..200],
        delay in 1u64..200, jitter in 0u64..400, service in 0u64..3000, buffer in 1u64..100,
    ) -> Faults {
        Faults {
            lost, doubled, delayed, marked, buffer,
            delay: ms(delay), jitter: ms(jitter), service: Time::from_micros(service),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// However an end misbehaves, a transfer ends, and no more is delivered than was written and has arrived; all of it, unless ACKs were early.
    #[test]
    fn a_transfer_ends_however_an_end_misbehaves(
        misbehave in misbehaviour(), faults in faults(), seed: u64, size in 0u64..300_000,
        [sack, timestamps, rack, auto_tuning] in any::<[bool; 4]>(),
        algorithm in prop::sample::select(&["reno", "cubic", "htcp", "fast"][..]),
    ) {
        let config = with(misbehave, Config {
            ecn: true, timestamps, auto_tuning, rack: rack && sack, tlp: rack && sack,
            recovery: if sack { Recovery::Sack } else { Recovery::NewReno },
            receive_buffer: Some(elephan_units::Bytes::new(100_000)),
            rto_min: ms(200),
            ..Config::default()
        });
        prop_assert_eq!(config.mistakes(), []);
        let mut pipe = Pipe::new(algorithm, [&config, &config], faults, seed);
        pipe.ends[0].write(size);
        pipe.ends[0].close();
        pipe.ends[1].close();
        let mut before = 0;
        while !pipe.is_done() && pipe.step(&mut |_, _, _| ()) {
            prop_assert!(!pipe.is_dead());
            pipe.faulty = pipe.now < Time::from_secs(120);
            let delivered = pipe.ends[1].bytes_delivered();
            prop_assert!((before..=size).contains(&delivered), "{delivered} of {size}, after {before}");
            prop_assert!(delivered <= pipe.ends[1].bytes_arrived());
            before = delivered;
        }
        prop_assert!(pipe.is_done(), "stuck at {}", pipe.now);
        let delivered = pipe.ends[1].bytes_delivered();
        prop_assert!(delivered == size || misbehave.optimistic_acks > 0, "{delivered} of {size}");
    }
}

//! Properties that must hold over any path: every byte arrives once and in order, and the connection ends.

use crate::common::pipe::{Faults, Pipe, is_data};
use crate::common::{undo, window_reduction};
use elephan_cc::Quantisation;
use elephan_tcp::{AfterIdle, BurstSize, ByteCounting, Config, DelayedAck, Recovery, WindowReduction};
use elephan_units::{Bytes, Time};
use proptest::prelude::*;

const ALGORITHMS: [&str; 6] = ["reno", "hstcp", "scalable", "htcp", "bic", "cubic"];

fn recovery() -> impl Strategy<Value = Recovery> {
    prop_oneof![
        1 => Just(Recovery::Tahoe),
        1 => Just(Recovery::Reno),
        1 => Just(Recovery::NewReno),
        3 => Just(Recovery::Sack)
    ]
}

prop_compose! {
    fn switches()(bits in any::<[bool; 15]>(), kind: u8, initial_ssthresh in prop::option::of(1u32..50)) -> Config {
        let [fack, lost_retransmission, proportional, limited_transmit, timestamps, dsack, ecn, auto_tuning, pacing,
             moderate_cwnd, per_ack, other, reduce_again, compress, send_buffer_tuning] = bits;
        Config {
            fack, lost_retransmission, limited_transmit, timestamps, dsack, ecn, auto_tuning, pacing,
            moderate_cwnd, initial_ssthresh, reduce_again, send_buffer_tuning,
            delayed_ack: DelayedAck { compress, ..DelayedAck::default() },
            window_reduction: window_reduction(proportional, other), undo: undo(kind),
            after_idle: if kind >= 128 { AfterIdle::Validate } else { AfterIdle::Restart },
            abe: ecn && kind % 2 == 0,
            rate_limited_increase: kind & 64 > 0,
            byte_counting: if per_ack { ByteCounting::PerAck } else { ByteCounting::Abc { limit: 2 } },
            ..Config::default()
        }
    }
}

fn burst() -> impl Strategy<Value = BurstSize> {
    prop_oneof![
        2 => Just(BurstSize::Segments(1)),
        1 => Just(BurstSize::Tso),
        1 => (2u32..6).prop_map(BurstSize::Segments),
    ]
}

prop_compose! {
    fn config()(
        switches in switches(),
        [rack, tlp, frto, eifel] in any::<[bool; 4]>(),
        recovery in recovery(),
        packet in 100u64..2000,
        segments in 1u8..4,
        quick in 0u16..20,
        initial_window in 1u32..20,
        buffers in prop::collection::vec(prop::option::of(2000u64..200_000), 3),
        burst_limit in prop::option::of(1u32..6),
        burst in burst(),
        quantisation in prop_oneof![Just(Quantisation::None), Just(Quantisation::RoundUp)],
    ) -> Config {
        Config {
            packet: Bytes::new(packet),
            recovery,
            fack: switches.fack && !rack,
            rack: rack && recovery == Recovery::Sack,
            tlp: tlp && rack && recovery == Recovery::Sack,
            frto,
            eifel: eifel && switches.timestamps,
            delayed_ack: DelayedAck { segments, quick, ..switches.delayed_ack },
            initial_window,
            send_buffer: buffers[0].map(Bytes::new),
            receive_buffer: buffers[1].map(Bytes::new),
            first_receive_window: buffers[2].map(Bytes::new),
            burst_limit,
            burst,
            quantisation,
            rto_min: Time::from_millis(200),
            ..switches
        }
    }
}

prop_compose! {
    fn faults()(
        lost in prop_oneof![Just(0u32), 0u32..200],
        doubled in prop_oneof![Just(0u32), 0u32..100],
        delayed in prop_oneof![Just(0u32), 0u32..300],
        marked in prop_oneof![Just(0u32), 0u32..200],
        delay in 1u64..200,
        jitter in 0u64..400,
        service in 0u64..3000,
        buffer in 1u64..100,
    ) -> Faults {
        Faults {
            lost, doubled, delayed, marked, buffer,
            delay: Time::from_millis(delay),
            jitter: Time::from_millis(jitter),
            service: Time::from_micros(service),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Both ends write, close, and stop reading for a while. Every byte is delivered once and in order, and
    /// the connection ends. The receiver counts the bytes that it delivers, and a FIN is in order only after
    /// all data.
    #[test]
    fn every_byte_arrives_once_and_the_connection_ends(
        a in config(), b in config(), faults in faults(), seed: u64,
        sizes in prop::collection::vec(0u64..300_000, 2),
        algorithm in prop::sample::select(&ALGORITHMS[..]),
        pause in prop::option::of((0u64..3000, 0u64..5000)),
    ) {
        let mut pipe = Pipe::new(algorithm, [&a, &b], faults, seed);
        for (end, &size) in sizes.iter().enumerate() {
            pipe.ends[end].write(size);
            pipe.ends[end].close();
        }
        while !pipe.is_done() && pipe.step(&mut |_, _, _| ()) {
            prop_assert!(!pipe.is_dead());
            pipe.faulty = pipe.now < Time::from_secs(120);
            for end in [0, 1] {
                prop_assert!(pipe.ends[end].counters().bytes_delivered <= sizes[1 - end]);
            }
            if let Some((from, span)) = pause {
                let (from, to) = (Time::from_millis(from), Time::from_millis(from + span));
                pipe.ends[1].set_reading(pipe.now < from || pipe.now >= to);
            }
        }
        // The remaining bytes are unread.
        pipe.ends[1].set_reading(true);
        while !pipe.is_done() && pipe.step(&mut |_, _, _| ()) {}
        prop_assert!(pipe.is_done(), "stuck at {}", pipe.now);
        for end in [0, 1] {
            prop_assert_eq!(pipe.ends[end].counters().bytes_delivered, sizes[1 - end]);
            prop_assert_eq!(pipe.ends[end].counters().bytes_acked, sizes[end]);
        }
    }

    /// Over a path that only delays and loses, two reductions are at least a round trip apart, because data
    /// sent after the first cannot be known to be lost or marked sooner; and no new data is sent beyond the
    /// window.
    #[test]
    fn one_reduction_in_a_round_trip_and_nothing_beyond_the_window(
        a in config(), b in config(), faults in faults(), seed: u64,
        algorithm in prop::sample::select(&ALGORITHMS[..]),
    ) {
        let faults = Faults { doubled: 0, delayed: 0, ..faults };
        let a = Config { window_reduction: WindowReduction::AtOnce, dsack: false, frto: false, eifel: false, ..a };
        let mut pipe = Pipe::new(algorithm, [&a, &b], faults, seed);
        pipe.ends[0].write(2_000_000);
        pipe.ends[0].close();
        pipe.ends[1].close();
        let (mut reductions, mut last) = (0, None::<Time>);
        let mut highest = 0u64;
        let mut beyond = None;
        while !pipe.is_done() && pipe.now < Time::from_secs(60) {
            let more = pipe.step(&mut |pipe, end, segment| {
                let new = pipe.ends[0].counters().bytes_sent - pipe.ends[0].counters().bytes_retransmitted;
                if end != 0 || !is_data(segment) || new <= highest {
                    return;
                }
                highest = new;
                let options = if a.timestamps && b.timestamps { 52 } else { 40 };
                let mss = a.packet.get().min(b.packet.get()) as u32 - options;
                let snapshot = pipe.ends[0].snapshot();
                // Fast recovery without SACK uses inflation instead.
                let sack = a.recovery == Recovery::Sack && b.recovery == Recovery::Sack;
                // A tail loss probe is sent regardless of the window.
                let by_pipe = (sack || !snapshot.in_recovery) && !a.tlp;
                let allowed = (snapshot.cwnd + if a.limited_transmit { 2.0 } else { 0.0 }) * f64::from(mss);
                if by_pipe && snapshot.pipe as f64 > allowed + 1.0 {
                    beyond = Some((pipe.now, snapshot));
                }
            });
            prop_assert_eq!(beyond, None);
            prop_assert!(more);
            let counters = pipe.ends[0].counters();
            if counters.reductions > reductions {
                prop_assert_eq!(counters.reductions, reductions + 1);
                reductions = counters.reductions;
                if let Some(last) = last {
                    prop_assert!(pipe.now - last >= faults.delay * 2, "{} after {}", pipe.now, last);
                }
                last = Some(pipe.now);
            }
            let counters = pipe.ends[0].counters();
            prop_assert!(counters.loss_events + counters.ecn_events + counters.timeouts >= counters.reductions);
        }
    }
}

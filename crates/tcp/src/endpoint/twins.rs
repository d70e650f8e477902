//! Compares the fast paths with the rules for any segment: two connections live through the same history, one with
//! the fast paths and one without, and must send the same segments from the same state.

use std::collections::BTreeMap;

use elephan_cc::governor::{Event, Fault, Governor, Limits, Report};
use elephan_cc::registry::AnyAlgorithm;
use elephan_cc::{Cause, Quantisation, registry, slow_start};
use elephan_units::Bytes;
use proptest::prelude::*;

use super::*;
use crate::config::{AfterIdle, BurstSize, ByteCounting, Config, DelayedAck, Misbehave, WindowReduction};
use crate::segment::{Burst, Flags, Header};

/// What a path does to segments, in each direction: chances in 1000, times in microseconds.
#[derive(Clone, Copy, Debug)]
struct Path {
    lost: u64,
    doubled: u64,
    delayed: u64,
    marked: u64,
    delay: u64,
    jitter: u64,
    /// Time that a segment takes at the bottleneck, and how many may wait there.
    service: u64,
    buffer: u64,
}

/// A small generator that needs no library: xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(2_685_821_657_736_338_717) >> 16) % bound.max(1)
    }
}

/// One end of both connections: with the fast paths, and without.
struct Twin {
    fast: Endpoint,
    slow: Endpoint,
    /// How many arriving segments took the fast path, and how many were sent in bursts.
    plain: u64,
    bursts: u64,
}

impl Twin {
    fn new(make: impl Fn() -> Endpoint) -> Self {
        Self { fast: make(), slow: make(), plain: 0, bursts: 0 }
    }

    fn both(&mut self, act: impl Fn(&mut Endpoint)) {
        act(&mut self.fast);
        act(&mut self.slow);
    }

    fn receive(&mut self, segment: &Segment, marked: bool, now: Time) {
        let before = describe(&self.fast);
        let header = &segment.header();
        let is_plain = segment.sack.is_empty() && !marked;
        if is_plain && (self.fast.on_next_ack(header, now) || self.fast.on_next_data(header, now)) {
            self.plain += 1;
        } else {
            assert_eq!(describe(&self.fast), before, "a fast path that is not taken changes nothing");
            self.fast.on_any_segment(segment, marked, now);
        }
        self.slow.on_any_segment(segment, marked, now);
        self.compare();
    }

    /// The segments that are sent now, and whether each is ECN-capable.
    fn transmit(&mut self, now: Time) -> Vec<(Segment, bool)> {
        let poll = |end: &mut Endpoint| {
            std::iter::from_fn(|| end.poll_transmit(now).map(|segment| (segment, end.ecn_capable())))
                .collect::<Vec<_>>()
        };
        let mut sent = Vec::new();
        let before = describe(&self.fast);
        if let Some(Burst { first, count, ecn_capable, is_all }) = self.fast.poll_burst(now) {
            self.bursts += u64::from(count);
            for number in 0..count {
                let seq = first.seq.wrapping_add(u32::from(number) * u32::from(first.len));
                sent.push((Header { seq, ..first }.into(), ecn_capable));
            }
            if is_all {
                // A call that returns nothing leaves this.
                self.fast.capable = false;
                let after = describe(&self.fast);
                assert_eq!(self.fast.poll_transmit(now), None);
                assert_eq!(describe(&self.fast), after, "nothing follows");
            }
        } else {
            assert_eq!(describe(&self.fast), before, "a fast path that is not taken changes nothing");
        }
        let before = describe(&self.fast);
        match self.fast.poll_ack(now) {
            Some(ack) => sent.push((ack.into(), self.fast.ecn_capable())),
            None => assert_eq!(describe(&self.fast), before, "a fast path that is not taken changes nothing"),
        }
        sent.extend(poll(&mut self.fast));
        assert_eq!(sent, poll(&mut self.slow));
        self.compare();
        sent
    }

    fn compare(&self) {
        assert!([Usual::Unknown, self.fast.find_usual()].contains(&self.fast.usual));
        assert_eq!(describe(&self.fast), describe(&self.slow));
        assert_eq!(self.fast.snapshot(), self.slow.snapshot());
        assert_eq!(self.fast.poll_timeout(), self.slow.poll_timeout());
    }
}

/// All state of an endpoint but that of its controller, of which the snapshot tells.
fn describe(end: &Endpoint) -> String {
    let Endpoint { state, receiver, sending, handshake, echo, ts_recent, ts_recent_at, last_ack, .. } = end;
    let options = (end.sack, end.timestamps, end.ecn, end.capable, &end.rare, end.send_reset);
    let sending = sending.as_ref().map(|sending| (sending.sender.describe(), sending.counters));
    format!("{:?}", (sending, receiver, handshake, state, echo, ts_recent, ts_recent_at, last_ack, options))
}

/// A governor whose window depends on everything that it was told.
#[derive(Clone)]
struct Attentive {
    heard: u64,
    needs_rate: bool,
    needs_ecn: bool,
}

impl Attentive {
    fn hear(&mut self, limits: &mut Limits, report: &Report, call: &str) {
        for byte in format!("{call} {report:?}").bytes() {
            self.heard = (self.heard ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        limits.cwnd = 2.0 + (self.heard >> 40) as f64 % 20.0;
        // Now and then.
        limits.requests = u64::from((self.heard >> 20).is_multiple_of(50));
    }
}

impl Governor for Attentive {
    fn needs_rate(&self) -> bool {
        self.needs_rate
    }
    fn needs_ecn(&self) -> bool {
        self.needs_ecn
    }
    fn start(&mut self, limits: &mut Limits, report: &Report) -> Result<(), Fault> {
        self.hear(limits, report, "start");
        Ok(())
    }
    fn ack(&mut self, limits: &mut Limits, report: &Report) -> Result<(), Fault> {
        self.hear(limits, report, "ack");
        Ok(())
    }
    fn congestion(&mut self, limits: &mut Limits, report: &Report, cause: Cause) -> Result<(), Fault> {
        self.hear(limits, report, &format!("{cause:?}"));
        limits.ssthresh = limits.cwnd;
        Ok(())
    }
    fn state(&mut self, limits: &mut Limits, report: &Report) -> Result<(), Fault> {
        self.hear(limits, report, "state");
        Ok(())
    }
    fn event(&mut self, limits: &mut Limits, report: &Report, event: Event) -> Result<(), Fault> {
        self.hear(limits, report, &format!("{event:?}"));
        Ok(())
    }
    fn fresh(&self, seed: u64) -> Box<dyn Governor> {
        Box::new(Self { heard: seed, ..self.clone() })
    }
    fn boxed(&self) -> Box<dyn Governor> {
        Box::new(self.clone())
    }
}

fn algorithm(name: &str) -> AnyAlgorithm {
    if !name.starts_with("attentive") {
        return registry::find(name).expect("registered").build(&[]).expect("no settings");
    }
    let governor = Attentive { heard: 0, needs_rate: name.contains("rate"), needs_ecn: name.contains("ecn") };
    AnyAlgorithm::Governor(Box::new(governor))
}

fn endpoint(name: &str, config: &Config, iss: u32, connects: bool) -> Endpoint {
    let algorithm = algorithm(name);
    let start = slow_start::find("standard").expect("registered").build(&[]).expect("no settings");
    let controller = Controller::new(algorithm, start, config.quantisation, f64::from(config.initial_window));
    let stack = Stack::new(config, controller);
    if connects { Endpoint::connect(&stack, iss) } else { Endpoint::listen(&stack, iss) }
}

/// Lives through a history in which the ends write this much and close, or do neither; how many segments arrived, and the twins.
fn live(
    algorithm: &str,
    configs: [&Config; 2],
    path: Path,
    sizes: [Option<u64>; 2],
    seed: u64,
) -> (u64, [Twin; 2]) {
    let mut random = Random(seed | 1);
    let mut ends = [0, 1].map(|end| {
        let iss = random.below(1 << 32) as u32;
        let mut twin = Twin::new(|| endpoint(algorithm, configs[end], iss, end == 0));
        twin.both(|endpoint| {
            let Some(size) = sizes[end] else { return };
            endpoint.write(size);
            if size < u64::MAX {
                endpoint.close();
            }
        });
        twin
    });
    // By time of arrival and a serial number: the receiving end, the segment, and whether it is marked.
    let mut flying = BTreeMap::new();
    let mut free = [Time::ZERO; 2];
    let (mut now, mut serial, mut arrived) = (Time::ZERO, 0u64, 0);
    while arrived < 1500 && now < Time::from_secs(100) {
        for end in [0, 1] {
            for (segment, capable) in ends[end].transmit(now) {
                let begins = free[end].max(now);
                let service = Time::from_micros(path.service);
                if begins.since(now) > service * path.buffer || random.below(1000) < path.lost {
                    continue;
                }
                free[end] = begins + service;
                for _ in 0..=u64::from(random.below(1000) < path.doubled) {
                    let late = if random.below(1000) < path.delayed { random.below(path.jitter) } else { 0 };
                    let arrival = free[end] + Time::from_micros(path.delay + late);
                    serial += 1;
                    flying.insert(
                        (arrival, serial),
                        (1 - end, segment, capable && random.below(1000) < path.marked),
                    );
                }
            }
        }
        let arrival = flying.first_key_value().map_or(Time::MAX, |(&(at, _), _)| at);
        let due = [0, 1].map(|end: usize| ends[end].fast.poll_timeout());
        let next = arrival.min(due[0]).min(due[1]);
        if next == Time::MAX {
            break;
        }
        now = next.max(now);
        for end in [0, 1] {
            if due[end] <= now {
                ends[end].both(|endpoint| endpoint.on_timer(now));
            }
        }
        if arrival <= now
            && let Some((_, (to, segment, marked))) = flying.pop_first()
        {
            arrived += 1;
            ends[to].receive(&segment, marked, now);
            // The application stops reading now and then, and reads on.
            if random.below(200) == 0 {
                let reading = random.below(3) > 0;
                ends[to].both(|endpoint| endpoint.set_reading(reading));
            }
        }
    }
    (arrived, ends)
}

prop_compose! {
    fn misbehaviour()(
        ack_division in 1u16..4, optimistic_acks in 0u32..4, [conceal_marks, ignore_marks, ignore_losses] in any::<[bool; 3]>(),
    ) -> Misbehave {
        Misbehave { ack_division, optimistic_acks, conceal_marks, ignore_marks, ignore_losses }
    }
}

prop_compose! {
    fn config()(
        bits in any::<[bool; 20]>(),
        recovery in prop::sample::select(&[Recovery::Tahoe, Recovery::Reno, Recovery::NewReno, Recovery::Sack,
                                           Recovery::Sack, Recovery::Sack][..]),
        packet in 200u64..1600,
        (segments, quick, initial_window) in (1u8..4, 0u16..10, 1u32..20),
        buffers in prop::collection::vec(prop::option::of(2000u64..100_000), 4),
        burst_limit in prop::option::of(1u32..6),
        burst in prop::sample::select(&[BurstSize::Segments(1), BurstSize::Segments(1), BurstSize::Tso, BurstSize::Segments(4)][..]),
        initial_ssthresh in prop::option::of(2u32..40),
        counting in 0u8..4,
        misbehave in prop_oneof![3 => Just(Misbehave::default()), 1 => misbehaviour()],
    ) -> Config {
        let [rack, tlp, fack, lost_retransmission, frto, eifel, proportional, other, reduce_again, limited_transmit,
             timestamps, dsack, ecn, compress, send_buffer_tuning, auto_tuning, pacing, moderate_cwnd, whole,
             odd] = bits;
        let rack = rack && odd && recovery == Recovery::Sack;
        Config {
            packet: Bytes::new(packet),
            recovery, lost_retransmission, frto, reduce_again, limited_transmit, timestamps, dsack, ecn,
            send_buffer_tuning, moderate_cwnd, initial_window, burst_limit, burst, initial_ssthresh, rack,
            tlp: tlp && rack,
            fack: fack && !rack,
            eifel: eifel && timestamps,
            window_reduction: match (proportional, other) {
                (false, false) => WindowReduction::AtOnce,
                (true, false) => WindowReduction::Prr,
                (true, true) => WindowReduction::PrrRfc6937,
                (false, true) => WindowReduction::RateHalving,
            },
            byte_counting: match counting {
                0 => ByteCounting::PerAck,
                1 => ByteCounting::Delivered,
                2 => ByteCounting::PerAnyAck,
                _ => ByteCounting::Abc { limit: 2 },
            },
            delayed_ack: DelayedAck { segments, quick, compress, read: tlp, ..DelayedAck::default() },
            confirm_alone: eifel,
            unsent: buffers[3].filter(|_| whole).map(Bytes::new),
            send_buffer: buffers[0].filter(|_| odd).map(Bytes::new),
            receive_buffer: buffers[1].map(Bytes::new),
            first_receive_window: buffers[2].filter(|_| odd).map(Bytes::new),
            auto_tuning,
            pacing: pacing && odd,
            after_idle: if odd { AfterIdle::Decay } else { AfterIdle::Restart },
            quantisation: if whole { Quantisation::RoundUp } else { Quantisation::None },
            rto_min: Time::from_millis(200),
            misbehave,
            ..Config::default()
        }
    }
}

prop_compose! {
    fn path()(
        lost in prop_oneof![2 => Just(0u64), 2 => 0u64..30, 1 => 0u64..200],
        doubled in prop_oneof![2 => Just(0u64), 1 => 0u64..50],
        delayed in prop_oneof![2 => Just(0u64), 1 => 0u64..100],
        marked in prop_oneof![2 => Just(0u64), 1 => 0u64..100],
        (delay, jitter, service, buffer) in (100u64..100_000, 1u64..50_000, 0u64..2000, 1u64..60),
    ) -> Path {
        Path { lost, doubled, delayed, marked, delay, jitter, service, buffer }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn fast_paths_change_nothing(
        a in config(), b in config(), path in path(), seed: u64,
        algorithm in prop::sample::select(
            &["reno", "scalable", "cubic", "htcp", "attentive", "attentive ecn", "attentive rate"][..]
        ),
        sizes in prop_oneof![
            Just([Some(u64::MAX), None]),
            Just([Some(u64::MAX), Some(0)]),
            (0u64..1_000_000, prop::option::of(Just(0))).prop_map(|(size, back)| [Some(size), back]),
            [0u64..200_000, 0u64..200_000].prop_map(|sizes| sizes.map(Some)),
        ],
    ) {
        live(algorithm, [&a, &b], path, sizes, seed);
    }
}

#[test]
fn most_of_a_transfer_takes_the_fast_paths() {
    let path = Path {
        lost: 0,
        doubled: 0,
        delayed: 0,
        marked: 0,
        delay: 50_000,
        jitter: 0,
        service: 1000,
        buffer: 100,
    };
    let config = Config { initial_ssthresh: Some(20), ..Config::default() };
    let (arrived, [a, b]) = live("reno", [&config, &config], path, [Some(u64::MAX), None], 1);
    assert!(a.plain + b.plain > arrived * 9 / 10, "{arrived} {} {}", a.plain, b.plain);
    let sent = a.fast.counters().segments_sent;
    assert!(a.bursts > sent * 8 / 10, "{sent} {}", a.bursts);
    // A lone segment with a flag is none of theirs.
    assert!(!Header { flags: Flags::ACK | Flags::FIN, ..Header::default() }.is_plain());
}

//! Passes an endpoint arbitrary header fields, in any order and at any time. The endpoint must never panic
//! and never send without end, and its counters must stay consistent. `make fuzz` draws other cases, for longer.

use crate::common::{controller, undo, window_reduction};
use crate::drawn::drawn;
use bolero::{TypeGenerator, check};
use elephan_tcp::{
    AfterIdle, BurstSize, ByteCounting, Config, Counters, DelayedAck, Endpoint, Flags, Recovery, SackBlocks,
    Segment, Stack,
};
use elephan_units::{Bytes, Time};
use proptest::prelude::*;

const ALGORITHMS: [&str; 20] = [
    "tahoe", "reno", "newreno", "sack", "hstcp", "hstcp-fc", "scalable", "htcp", "bic", "fast", "ltcp",
    "cubic", "vegas", "westwood", "veno", "compound", "yeah", "illinois", "dctcp", "bbr",
];
const ISS: u32 = u32::MAX - 70_000;
const IRS: u32 = 1_000;
/// Limit of segments sent at once: more than a window of 1 GiB holds. An endpoint that respects its peer's
/// window sends fewer here.
const MOST_AT_ONCE: u32 = 100_000;

/// An operation on an endpoint. Numbers are mostly near significant values.
#[derive(Clone, Debug, TypeGenerator)]
enum Step {
    Wait {
        micros: u32,
    },
    Timer,
    Write {
        bytes: u32,
    },
    Close,
    Stop,
    Reading {
        on: bool,
    },
    LocalCongestion,
    Segment {
        header: Header,
        marked: bool,
    },
    /// An acknowledgment of a share of the sent data, in 256ths, and SACK blocks above it.
    Acknowledge {
        share: u8,
        blocks: [(u8, u8); 3],
        echo: bool,
        window: u16,
    },
}

/// A segment from the peer.
#[derive(Clone, Debug, TypeGenerator)]
struct Header {
    is_far: bool,
    seq: u32,
    ack: u32,
    len: u16,
    window: u16,
    ts_val: u32,
    ts_ecr: u32,
    sack: [(u32, u32); 4],
    blocks: u8,
    flags: u8,
    timestamps: bool,
    mss: u16,
    scale: u8,
    sack_permitted: bool,
}

#[derive(Clone, Debug, TypeGenerator)]
struct Setup {
    algorithm: u8,
    recovery: u8,
    switches: [bool; 15],
    detectors: [bool; 4],
    packet: u16,
    initial_window: u8,
    burst_limit: Option<u8>,
    buffer: Option<u16>,
    listens: bool,
    opens: bool,
}

fn config(setup: &Setup) -> Config {
    let [
        fack,
        lost_retransmission,
        proportional,
        other,
        timestamps,
        dsack,
        ecn,
        auto_tuning,
        pacing,
        moderate_cwnd,
        per_ack,
        limited,
        compress,
        growing,
        send_buffer_tuning,
    ] = setup.switches;
    let packet = u64::from(setup.packet).max(100);
    let recovery = [Recovery::Tahoe, Recovery::Reno, Recovery::NewReno, Recovery::Sack];
    Config {
        packet: Bytes::new(packet),
        recovery: recovery[usize::from(setup.recovery) % 4],
        fack,
        lost_retransmission,
        rack: setup.detectors[0],
        tlp: setup.detectors[0] && setup.detectors[1],
        frto: setup.detectors[2],
        eifel: setup.detectors[3],
        window_reduction: window_reduction(proportional, other),
        reduce_again: !per_ack,
        undo: undo(setup.recovery),
        timestamps,
        dsack,
        ecn,
        auto_tuning,
        pacing,
        moderate_cwnd,
        limited_transmit: limited,
        byte_counting: if per_ack { ByteCounting::PerAck } else { ByteCounting::Abc { limit: 2 } },
        initial_window: u32::from(setup.initial_window).max(1),
        delayed_ack: DelayedAck { compress, quick: u16::from(setup.recovery), ..DelayedAck::default() },
        first_receive_window: growing.then(|| Bytes::new(packet)),
        send_buffer: setup.buffer.map(|buffer| Bytes::new(3 * u64::from(buffer).max(packet))),
        send_buffer_tuning,
        abe: ecn && limited,
        after_idle: if setup.detectors[1] { AfterIdle::Validate } else { AfterIdle::Restart },
        burst: match (growing, limited) {
            (true, true) => BurstSize::Tso,
            (true, false) => BurstSize::Segments(3),
            _ => BurstSize::Segments(1),
        },
        burst_limit: setup.burst_limit.map(|limit| u32::from(limit).max(1)),
        receive_buffer: setup.buffer.map(|buffer| Bytes::new(u64::from(buffer).max(packet))),
        ..Config::default()
    }
}

/// Makes a segment of the header fields; near values are counted from both ends' initial sequence numbers.
fn segment(header: &Header) -> Segment {
    let near =
        |number: u32, from: u32| if header.is_far { number } else { from.wrapping_add(number % 200_000) };
    let mut sack = SackBlocks::default();
    for &(left, right) in header.sack.iter().take(usize::from(header.blocks % 5)) {
        sack.push(near(left, ISS), near(right, ISS));
    }
    let mut flags = Flags::default();
    // The ACK flag is set more often than not; the other flags are set by their bits.
    for (bit, flag) in
        [Flags::FIN, Flags::SYN, Flags::RST, Flags::PSH, Flags::ECE, Flags::CWR].into_iter().enumerate()
    {
        if header.flags & 3 << bit == 3 << bit {
            flags |= flag;
        }
    }
    if header.flags & 0xc0 != 0 {
        flags |= Flags::ACK;
    }
    Segment {
        seq: near(header.seq, IRS),
        ack: near(header.ack, ISS),
        len: if header.len.is_multiple_of(3) { 0 } else { header.len },
        window: header.window,
        ts_val: header.ts_val,
        ts_ecr: header.ts_ecr,
        sack,
        flags,
        timestamps: header.timestamps,
        mss: header.mss,
        window_scale_plus_one: header.scale % 16,
        sack_permitted: header.sack_permitted,
    }
}

/// An endpoint under test.
struct Watched {
    end: Endpoint,
    now: Time,
    /// Highest sequence number sent and one past it, counted from ISS.
    sent_to: u32,
    before: Counters,
    is_over: bool,
}

impl Watched {
    /// Sends everything that the endpoint offers, and checks its state.
    fn look(&mut self) {
        let mut segments = 0;
        while let Some(segment) = self.end.poll_transmit(self.now) {
            segments += 1;
            assert!(segments < MOST_AT_ONCE, "it sends without end");
            let end = segment.seq.wrapping_add(segment.seq_len()).wrapping_sub(ISS);
            if end < 1 << 31 {
                self.sent_to = self.sent_to.max(end);
            }
        }
        let (counters, snapshot) = (self.end.counters(), self.end.snapshot());
        let before = &self.before;
        assert!(counters.bytes_sent >= before.bytes_sent && counters.bytes_acked >= before.bytes_acked);
        assert!(counters.bytes_delivered >= before.bytes_delivered && counters.timeouts >= before.timeouts);
        assert!(counters.bytes_retransmitted <= counters.bytes_sent);
        assert!(counters.bytes_acked + counters.bytes_retransmitted <= counters.bytes_sent, "{counters:?}");
        assert!(
            counters.segments_retransmitted <= counters.segments_sent + counters.timeouts,
            "{counters:?}"
        );
        assert!(
            counters.loss_events + counters.ecn_events + counters.timeouts + counters.stalls
                >= counters.reductions
        );
        assert!(snapshot.cwnd.is_finite() && snapshot.cwnd >= 1.0, "{snapshot:?}");
        assert!(snapshot.ssthresh >= 1.0, "{snapshot:?}");
        assert!(snapshot.rto > Time::ZERO, "{snapshot:?}");
        assert!(snapshot.pipe <= counters.bytes_sent, "{snapshot:?} {counters:?}");
        self.before = counters;
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Wait { micros } => self.now += Time::from_micros(u64::from(micros % 3_000_000)),
            Step::Timer => {
                let due = self.end.poll_timeout();
                if due < Time::from_secs(1_000_000) {
                    self.now = self.now.max(due);
                    self.end.on_timer(self.now);
                }
            }
            Step::Write { bytes } if !self.is_over => self.end.write(u64::from(bytes % 1_000_000)),
            Step::Close if !self.is_over => {
                self.end.close();
                self.is_over = true;
            }
            Step::Stop if !self.is_over => {
                self.end.stop();
                self.is_over = true;
            }
            Step::Write { .. } | Step::Close | Step::Stop => {}
            Step::Reading { on } => self.end.set_reading(*on),
            Step::LocalCongestion => self.end.on_local_congestion(self.now),
            Step::Segment { header, marked } => self.end.on_segment(&segment(header), *marked, self.now),
            Step::Acknowledge { share, blocks, echo, window } => {
                let part = |share: u8| (u64::from(self.sent_to) * u64::from(share) / 255) as u32;
                let mut sack = SackBlocks::default();
                for &(left, right) in blocks.iter().filter(|(left, right)| left < right && left >= share) {
                    sack.push(ISS.wrapping_add(part(left)), ISS.wrapping_add(part(right)));
                }
                let flags = if *echo { Flags::ACK | Flags::ECE } else { Flags::ACK };
                let ack = ISS.wrapping_add(part(*share));
                let acknowledgment = Segment {
                    seq: IRS.wrapping_add(1),
                    ack,
                    window: *window,
                    sack,
                    flags,
                    ..Segment::default()
                };
                self.end.on_segment(&acknowledgment, false, self.now);
            }
        }
        self.look();
    }
}

/// An endpoint lives through these operations.
fn survives((setup, steps): &(Setup, Vec<Step>)) {
    let config = config(setup);
    let controller = controller(ALGORITHMS[usize::from(setup.algorithm) % ALGORITHMS.len()], &config);
    let end = if setup.listens {
        Endpoint::listen(&Stack::new(&config, controller), ISS)
    } else {
        Endpoint::connect(&Stack::new(&config, controller), ISS)
    };
    let mut watched =
        Watched { end, now: Time::ZERO, sent_to: 0, before: Counters::default(), is_over: false };
    watched.look();
    if setup.opens {
        // The peer's part of a handshake, so that the following operations find an open connection.
        let syn = Segment {
            seq: IRS,
            window: 65_535,
            mss: 1460,
            window_scale_plus_one: 8,
            sack_permitted: true,
            timestamps: config.timestamps,
            ..Segment::default()
        };
        let ack = ISS.wrapping_add(1);
        let opening = if setup.listens {
            vec![
                Segment { flags: Flags::SYN, ..syn },
                Segment { seq: IRS + 1, ack, flags: Flags::ACK, mss: 0, ..syn },
            ]
        } else {
            vec![Segment { ack, flags: Flags::SYN | Flags::ACK, ..syn }]
        };
        for segment in opening {
            watched.now += Time::from_millis(50);
            watched.end.on_segment(&segment, false, watched.now);
            watched.look();
        }
        watched.step(&Step::Write { bytes: 500_000 });
    }
    for step in steps {
        watched.step(step);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn whatever_arrives_is_survived(case in drawn::<(Setup, Vec<Step>)>()) {
        survives(&case);
    }
}

#[test]
#[ignore = "fresh seeds"]
fn whatever_else_arrives_is_survived() {
    check!().with_type().with_max_len(64 * 1024).for_each(survives);
}

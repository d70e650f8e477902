//! Scripted packet exchanges, in the manner of packetdrill: one end of a connection, and a test that plays
//! the other end and the clock.
//!
//! Segments carry 1000 bytes and are referred to by number, counted from 0. Times are in milliseconds since
//! the end of the handshake, which measured a round-trip time of 100 ms.

pub mod pipe;

use std::ops::Range;

use elephan_cc::governor::Governor;
use elephan_cc::{Controller, Undo, registry, slow_start};
use elephan_tcp::{
    Config, DelayedAck, Endpoint, Flags, SackBlocks, Segment, Snapshot, Stack, WindowReduction,
};
use elephan_units::{Bytes, Time};

pub const MSS: u64 = 1000;
/// Our initial sequence number, and the peer's, chosen so that every script crosses the wrap.
pub const ISS: u32 = u32::MAX - 3_500;
pub const IRS: u32 = u32::MAX - 1_500;
/// Duration of the handshake.
const RTT: Time = Time::from_millis(100);
/// The shift of the peer's window field.
const SHIFT: u8 = 7;

pub fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// Standard TCP with SACK and 1000-byte segments; without timestamps unless a test enables them.
pub fn config() -> Config {
    Config { packet: Bytes::new(1040), timestamps: false, ..Config::default() }
}

/// Standard TCP with SACK, timestamps and 1000-byte segments.
pub fn stamped() -> Config {
    Config { packet: Bytes::new(1052), timestamps: true, ..Config::default() }
}

/// One of the four reductions of the window.
pub fn window_reduction(proportional: bool, other: bool) -> WindowReduction {
    match (proportional, other) {
        (false, false) => WindowReduction::AtOnce,
        (true, false) => WindowReduction::Prr,
        (true, true) => WindowReduction::PrrRfc6937,
        (false, true) => WindowReduction::RateHalving,
    }
}

/// One of the three undos.
pub fn undo(number: u8) -> Undo {
    [Undo::State, Undo::Windows, Undo::TwiceSsthresh][usize::from(number) % 3]
}

/// Standard TCP whose receiver acknowledges every segment at once.
pub fn eager() -> Config {
    Config { delayed_ack: DelayedAck { segments: 1, ..DelayedAck::default() }, ..config() }
}

pub fn controller(algorithm: &str, config: &Config) -> Controller {
    starting(algorithm, "standard", config)
}

/// A controller with this slow start.
pub fn starting(algorithm: &str, start: &str, config: &Config) -> Controller {
    let algorithm = registry::find(algorithm).expect("registered").build(&[]).expect("no settings");
    let start = slow_start::find(start).expect("registered").build(&[]).expect("no settings");
    Controller::new(algorithm, start, config.quantisation, f64::from(config.initial_window))
}

/// One end, and the segments that it sent and the test has not read yet.
pub struct Script {
    pub end: Endpoint,
    pub now: Time,
    /// Data segments, and segments without data, in the order of sending.
    data: Vec<(Time, Segment)>,
    bare: Vec<(Time, Segment)>,
    /// The window, in bytes, and the ECN echo of the peer's next segments.
    pub window: u64,
    pub ece: bool,
    /// The timestamp that the peer echoes: that of the segment that last moved its left edge, unless the test
    /// sets it. Our own value is in the segments.
    pub echo: u32,
    pub timestamps: bool,
    /// Whether our next data segments carry the congestion mark.
    pub marked: bool,
}

impl Script {
    /// An end that has connected, with Reno's window rules, at time zero of the script.
    pub fn sender(config: Config) -> Self {
        Self::controlled(controller("reno", &config), config)
    }

    /// A connected end whose application wrote this number of segments, and that sent those that its window allows.
    pub fn sending(config: Config, segments: u64) -> Self {
        let mut script = Self::sender(config);
        script.write(segments).sent();
        script
    }

    /// An end that has connected, with this controller.
    pub fn controlled(controller: Controller, config: Config) -> Self {
        let end = Endpoint::connect(&Stack::new(&config, controller), ISS);
        let mut script = Self::opening(end, Time::ZERO);
        script.pump();
        let syn = script.take_bare(1)[0];
        script.now = RTT;
        script.echo = syn.ts_val;
        script.timestamps = syn.timestamps;
        let flags = if syn.flags.contains(Flags::ECE) { Flags::ECE } else { Flags::default() };
        script.receive(Segment {
            flags: Flags::SYN | Flags::ACK | flags,
            window: 65_535,
            window_scale_plus_one: SHIFT + 1,
            sack_permitted: true,
            ..script.syn_ack()
        });
        assert!(script.end.is_established());
        script.take_bare(1);
        // The window of a SYN is not scaled; this opens it.
        script.receive(script.bare_segment());
        script
    }

    /// An end that was connected to, at time zero of the script.
    pub fn receiver(config: Config) -> Self {
        Self::receiver_controlled(controller("reno", &config), config)
    }

    /// An end that was connected to, with this controller.
    pub fn receiver_controlled(controller: Controller, config: Config) -> Self {
        let uses_ecn = config.ecn || controller.governor().is_some_and(Governor::needs_ecn);
        let end = Endpoint::listen(&Stack::new(&config, controller), ISS);
        let mut script = Self::opening(end, Time::ZERO);
        script.timestamps = config.timestamps;
        let flags = if uses_ecn { Flags::ECE | Flags::CWR } else { Flags::default() };
        script.receive(Segment {
            flags: Flags::SYN | flags,
            window: 65_535,
            window_scale_plus_one: SHIFT + 1,
            sack_permitted: true,
            ..script.syn()
        });
        let answer = script.take_bare(1)[0];
        script.now = RTT;
        script.echo = answer.ts_val;
        script.receive(script.bare_segment());
        assert!(script.end.is_established());
        assert!(script.take_bare(0).is_empty());
        script
    }

    /// An end that has sent its SYN, at time zero.
    pub fn connecting(config: &Config) -> Self {
        let end = Endpoint::connect(&Stack::new(config, controller("reno", config)), ISS);
        let mut script = Self::opening(end, Time::ZERO);
        script.pump();
        script
    }

    /// An end that waits for a SYN from the given time on, with this initial sequence number.
    pub fn listening(config: &Config, iss: u32, now: Time) -> Self {
        Self::opening(Endpoint::listen(&Stack::new(config, controller("reno", config)), iss), now)
    }

    /// An end before its handshake.
    pub fn opening(end: Endpoint, now: Time) -> Self {
        Self {
            end,
            now,
            data: Vec::new(),
            bare: Vec::new(),
            window: 1 << 22,
            ece: false,
            echo: 0,
            timestamps: false,
            marked: false,
        }
    }

    /// Polls the segments that the end sends now.
    pub fn pump(&mut self) {
        while let Some(segment) = self.end.poll_transmit(self.now) {
            if segment.len > 0 || segment.flags.contains(Flags::FIN) {
                self.data.push((self.now, segment));
            } else {
                self.bare.push((self.now, segment));
            }
        }
    }

    // ---- What happens ----

    /// The application writes this number of full segments.
    pub fn write(&mut self, segments: u64) -> &mut Self {
        self.write_bytes(segments * MSS)
    }

    pub fn write_bytes(&mut self, bytes: u64) -> &mut Self {
        self.end.write(bytes);
        self.pump();
        self
    }

    /// Advances time to `at`; timers run when they are due.
    pub fn until(&mut self, at: u64) -> &mut Self {
        let at = RTT + ms(at);
        assert!(at >= self.now, "time goes forward");
        for _ in 0..100_000 {
            let due = self.end.poll_timeout();
            if due > at {
                self.now = at;
                return self;
            }
            self.now = due.max(self.now);
            self.end.on_timer(self.now);
            self.pump();
        }
        panic!("the end wants to be woken for ever at {}", self.now);
    }

    /// Advances time to the next timer, which runs out.
    pub fn expire(&mut self) -> &mut Self {
        self.now = self.end.poll_timeout();
        self.end.on_timer(self.now);
        self.pump();
        self
    }

    /// The peer's SYN.
    pub fn syn(&self) -> Segment {
        Segment { seq: IRS, ack: 0, flags: Flags::SYN, mss: 1460, ..self.bare_segment() }
    }

    /// The peer's answer to our SYN.
    pub fn syn_ack(&self) -> Segment {
        Segment { seq: IRS, flags: Flags::SYN | Flags::ACK, mss: 1460, ..self.bare_segment() }
    }

    /// An ACK without data whose sequence number is this many bytes beyond the peer's first data.
    pub fn segment_at(&self, bytes: u32) -> Segment {
        Segment { seq: IRS.wrapping_add(1).wrapping_add(bytes), ..self.bare_segment() }
    }

    /// An ACK without data, as the peer would send it now.
    pub fn bare_segment(&self) -> Segment {
        Segment {
            seq: IRS.wrapping_add(1),
            ack: ISS.wrapping_add(1),
            window: (self.window >> SHIFT) as u16,
            flags: if self.ece { Flags::ACK | Flags::ECE } else { Flags::ACK },
            timestamps: self.timestamps,
            ts_val: (self.now.picos() / 1_000_000_000) as u32 + 500,
            ts_ecr: if self.timestamps { self.echo } else { 0 },
            ..Segment::default()
        }
    }

    /// Delivers exactly this segment.
    pub fn receive(&mut self, segment: Segment) -> &mut Self {
        self.end.on_segment(&segment, self.marked, self.now);
        self.pump();
        self
    }

    /// The peer acknowledges all segments below number `next`.
    pub fn ack(&mut self, next: u64) -> &mut Self {
        self.sack(next, &[])
    }

    /// The peer sends the ACK of `next` this many times.
    pub fn dupacks(&mut self, next: u64, times: u64) -> &mut Self {
        for _ in 0..times {
            self.ack(next);
        }
        self
    }

    /// The peer acknowledges all below `next`, and these runs of segments selectively.
    pub fn sack(&mut self, next: u64, runs: &[Range<u64>]) -> &mut Self {
        self.sack_bytes(next * MSS, &runs.iter().map(|r| r.start * MSS..r.end * MSS).collect::<Vec<_>>())
    }

    pub fn sack_bytes(&mut self, next: u64, runs: &[Range<u64>]) -> &mut Self {
        let wire = |offset: u64| ISS.wrapping_add(1).wrapping_add(offset as u32);
        let mut sack = SackBlocks::default();
        for run in runs {
            assert!(sack.push(wire(run.start), wire(run.end)), "four blocks at most");
        }
        self.receive(Segment { ack: wire(next), sack, ..self.bare_segment() })
    }

    /// The peer's data segment `number` arrives.
    pub fn data(&mut self, number: u64) -> &mut Self {
        self.data_bytes(number * MSS..(number + 1) * MSS)
    }

    pub fn data_bytes(&mut self, bytes: Range<u64>) -> &mut Self {
        let len = (bytes.end - bytes.start) as u16;
        self.receive(Segment { len, ..self.segment_at(bytes.start as u32) })
    }

    // ---- What the end did ----

    /// The numbers of the data segments sent since the last call.
    #[track_caller]
    pub fn sent(&mut self) -> Vec<u64> {
        let first = ISS.wrapping_add(1);
        self.take_data().iter().map(|s| u64::from(s.seq.wrapping_sub(first)) / MSS).collect()
    }

    /// Asserts which data segments were sent since the last call.
    #[track_caller]
    pub fn sends(&mut self, numbers: impl AsRef<[u64]>) -> &mut Self {
        assert_eq!(self.sent(), numbers.as_ref());
        self
    }

    /// The data segments sent since the last call.
    pub fn take_data(&mut self) -> Vec<Segment> {
        self.data.drain(..).map(|(_, segment)| segment).collect()
    }

    /// The number of each data segment sent since the last call, and its time, in milliseconds of the script.
    pub fn sent_at(&mut self) -> Vec<(u64, f64)> {
        let first = ISS.wrapping_add(1);
        let entry = |(at, s): (Time, Segment)| {
            (u64::from(s.seq.wrapping_sub(first)) / MSS, (at - RTT).secs_f64() * 1e3)
        };
        self.data.drain(..).map(entry).collect()
    }

    /// The segments without data sent since the last call, of which there must be `count`.
    #[track_caller]
    pub fn take_bare(&mut self, count: usize) -> Vec<Segment> {
        assert_eq!(self.bare.len(), count, "segments without data: {:?}", self.bare);
        self.bare.drain(..).map(|(_, segment)| segment).collect()
    }

    /// The segments without data sent since the last call.
    pub fn take_all_bare(&mut self) -> Vec<Segment> {
        self.bare.drain(..).map(|(_, segment)| segment).collect()
    }

    /// The only ACK sent since the last call: the next byte that it expects, and its SACK blocks in bytes.
    #[track_caller]
    pub fn acked(&mut self) -> (u64, Vec<Range<u64>>) {
        let segment = self.take_bare(1)[0];
        let offset = |wire: u32| u64::from(wire.wrapping_sub(IRS.wrapping_add(1)));
        let blocks = segment.sack.as_slice().iter().map(|&(l, r)| offset(l)..offset(r)).collect();
        (offset(segment.ack), blocks)
    }

    /// Asserts that one ACK was sent since the last call: the next byte that it expects, and its SACK blocks.
    #[track_caller]
    pub fn acks(&mut self, next: u64, blocks: &[Range<u64>]) -> &mut Self {
        assert_eq!(self.acked(), (next, blocks.to_vec()));
        self
    }

    /// Asserts that the end sent nothing since the last call.
    #[track_caller]
    pub fn silent(&mut self) -> &mut Self {
        self.sends([]).take_bare(0);
        self
    }

    pub fn snapshot(&self) -> Snapshot {
        self.end.snapshot()
    }

    pub fn cwnd(&self) -> f64 {
        self.snapshot().cwnd
    }

    pub fn ssthresh(&self) -> f64 {
        self.snapshot().ssthresh
    }

    /// RFC 6675's pipe, in segments.
    pub fn pipe(&self) -> u64 {
        self.snapshot().pipe / MSS
    }
}

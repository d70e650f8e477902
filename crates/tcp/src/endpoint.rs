//! One end of a connection: the two halves wired together. How it opens is in `handshake.rs`.

use elephan_cc::Controller;
use elephan_units::Time;

use crate::config::{Config, Recovery};
use crate::handshake::Handshake;
use crate::receiver::Receiver;
use crate::segment::{Flags, Segment};
use crate::sender::{Acknowledgment, Sender, TICK, Transmission, ticks};
use crate::sequence;

/// What an endpoint has counted since it began; all only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Segments retransmitted.
    pub segments_retransmitted: u64,
    /// Payload bytes retransmitted.
    pub bytes_retransmitted: u64,
    /// Payload bytes of ours that the peer acknowledged cumulatively.
    pub bytes_acked: u64,
    /// Payload bytes of the peer's that were handed to the application, once and in order.
    pub bytes_delivered: u64,
    /// Reductions for a loss found by duplicate or selective ACKs: at most one for each window of data.
    pub loss_events: u64,
    /// Reductions for an ECN echo.
    pub ecn_events: u64,
    /// Reductions because the host's own device queue was full (Web100's SendStalls).
    pub stalls: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Times that the controller was told of congestion, whatever the cause.
    pub reductions: u64,
    /// Reductions undone.
    pub undos: u64,
}

/// What a trace samples of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Snapshot {
    /// Congestion window, in segments.
    pub cwnd: f64,
    /// Slow-start threshold, in segments; infinite until the first congestion event.
    pub ssthresh: f64,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Time,
    /// Smallest round-trip time; zero before the first sample.
    pub min_rtt: Time,
    /// Retransmission timeout.
    pub rto: Time,
    /// RFC 6675's pipe: bytes thought to be in flight.
    pub pipe: u64,
    /// Whether the sender repairs a loss.
    pub in_recovery: bool,
}

/// Where the connection stands (RFC 9293, section 3.3.2). Its end is kept by the two halves: a FIN
/// is acknowledged like data. There is no TIME-WAIT: a late segment is answered as long as the
/// endpoint lives, and nobody reuses its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Listen,
    SynSent,
    SynReceived,
    Established,
    /// Reset by the peer, or given up.
    Reset,
}

/// One end of a TCP connection.
pub struct Endpoint {
    pub(crate) state: State,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) handshake: Handshake,
    counters: Counters,
    /// Initial sequence numbers: ours, and the peer's.
    pub(crate) iss: u32,
    pub(crate) irs: u32,
    /// Shift of the window fields that we read, and that we write.
    pub(crate) peer_shift: u8,
    pub(crate) our_shift: u8,
    /// Options that we offer, and after the handshake that both ends use.
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    pub(crate) ecn: bool,
    /// A congestion mark is to be echoed until the peer says that it reduced.
    echo: bool,
    /// Whether the segment that was polled last is to be sent ECN-capable.
    capable: bool,
    /// RFC 7323's TS.Recent, and the acknowledgment that was sent last.
    pub(crate) ts_recent: u32,
    last_ack: u64,
    /// The connection was given up, and the peer is to be told.
    send_reset: bool,
}

impl Endpoint {
    fn new(config: &Config, controller: Controller, iss: u32, state: State) -> Self {
        let controller = match config.initial_ssthresh {
            Some(segments) => controller.with_ssthresh(f64::from(segments)),
            None => controller,
        };
        let receiver = Receiver::new(config);
        Self {
            state,
            our_shift: receiver.shift(),
            sender: Sender::new(config, controller),
            receiver,
            handshake: Handshake::new(config, state == State::SynSent),
            counters: Counters::default(),
            iss,
            irs: 0,
            peer_shift: 0,
            sack: config.recovery == Recovery::Sack,
            timestamps: config.timestamps,
            ecn: config.ecn,
            echo: false,
            capable: false,
            ts_recent: 0,
            last_ack: 0,
            send_reset: false,
        }
    }

    /// An endpoint that opens the connection: its SYN is ready to be sent.
    ///
    /// `iss` is the initial sequence number.
    pub fn connect(config: &Config, controller: Controller, iss: u32) -> Self {
        Self::new(config, controller, iss, State::SynSent)
    }

    /// An endpoint that waits for a SYN.
    pub fn listen(config: &Config, controller: Controller, iss: u32) -> Self {
        Self::new(config, controller, iss, State::Listen)
    }

    /// The application has `bytes` more to send; `u64::MAX` means that it never ends.
    pub fn write(&mut self, bytes: u64) {
        self.sender.write(bytes);
    }

    /// The application will write no more: a FIN follows the last byte.
    pub fn close(&mut self) {
        self.sender.close();
    }

    /// The application drops what was not sent yet, and closes: how an endless writer ends.
    pub fn stop(&mut self) {
        self.sender.stop();
    }

    /// The application begins or stops reading what arrives; it reads at once unless told otherwise.
    pub fn set_reading(&mut self, reading: bool) {
        self.receiver.set_reading(reading);
        self.counters.bytes_delivered = self.receiver.delivered();
    }

    /// A segment arrived. `congestion_experienced` is the IP header's mark.
    pub fn on_segment(&mut self, segment: &Segment, congestion_experienced: bool, now: Time) {
        if segment.flags.contains(Flags::RST) {
            self.on_reset(segment);
            return;
        }
        match self.state {
            State::Established => self.on_established(segment, congestion_experienced, now),
            State::Listen | State::SynSent | State::SynReceived => {
                if self.on_handshake(segment, now) {
                    self.on_established(segment, congestion_experienced, now);
                }
            }
            State::Reset => {}
        }
    }

    /// A reset counts only where it names the byte that is due (RFC 5961, section 3.2).
    fn on_reset(&mut self, segment: &Segment) {
        let counts = match self.state {
            State::Listen | State::Reset => false,
            State::SynSent => segment.flags.contains(Flags::ACK) && segment.ack == self.iss.wrapping_add(1),
            State::SynReceived | State::Established => segment.seq == self.due(),
        };
        if counts {
            self.state = State::Reset;
        }
    }

    /// The peer's sequence number that is due.
    fn due(&self) -> u32 {
        sequence::wire(self.receiver.next(), self.irs.wrapping_add(1))
    }

    fn on_established(&mut self, segment: &Segment, congestion_experienced: bool, now: Time) {
        if segment.flags.contains(Flags::SYN) {
            // The peer did not get our last ACK of the handshake.
            self.receiver.ack_now = true;
            return;
        }
        let origin = self.irs.wrapping_add(1);
        let is_ack_alone = segment.seq_len() == 0;
        let last_ack = sequence::wire(self.last_ack, origin);
        if self.timestamps && segment.timestamps {
            let age = self.ts_recent.wrapping_sub(segment.ts_val).cast_signed();
            if age > 0 && !(is_ack_alone && self.may_be_reordered(age)) {
                // PAWS (RFC 7323, section 5.3): a segment from a window long past.
                let left = sequence::expand(segment.seq, origin, self.receiver.next());
                self.receiver.report_duplicate(left, left + u64::from(segment.seq_len()));
                return;
            }
            if age <= 0 && segment.seq.wrapping_sub(last_ack).cast_signed() <= 0 {
                self.ts_recent = segment.ts_val;
            }
        }
        if segment.flags.contains(Flags::ACK) && !self.says_nothing(segment) {
            self.on_ack(segment, now);
        }
        if !is_ack_alone {
            self.on_data(segment, origin, congestion_experienced, now);
        } else if segment.seq.wrapping_sub(last_ack).cast_signed() < 0 {
            // A zero-window probe, or an old duplicate: say where we are.
            self.receiver.ack_now = true;
        }
    }

    /// ACKs without data overtake each other harmlessly; Linux too takes them for up to a timeout
    /// (net/ipv4/tcp_input.c, `tcp_disordered_ack`).
    fn may_be_reordered(&self, age: i32) -> bool {
        TICK * u64::from(age.unsigned_abs()) <= self.sender.rtt().rto()
    }

    fn on_data(&mut self, segment: &Segment, origin: u32, marked: bool, now: Time) {
        // RFC 3168, section 6.1.3: echo until the sender says that it reduced.
        if segment.flags.contains(Flags::CWR) {
            self.echo = false;
        }
        self.echo |= marked && self.ecn;
        let echo = (self.timestamps && segment.ts_ecr > 0)
            .then(|| TICK * u64::from(ticks(now).wrapping_sub(segment.ts_ecr)));
        let left = sequence::expand(segment.seq, origin, self.receiver.next());
        let fin = segment.flags.contains(Flags::FIN);
        self.receiver.receive(left, left + u64::from(segment.len), fin, echo, now);
        self.counters.bytes_delivered = self.receiver.delivered();
    }

    /// Whether an acknowledgment leaves the sending half as it is: most data that a mere receiver gets.
    #[inline]
    fn says_nothing(&self, segment: &Segment) -> bool {
        let window = u64::from(segment.window) << self.peer_shift;
        self.sender.is_silent()
            && segment.ack == sequence::wire(self.sender.space().una, self.iss.wrapping_add(1))
            && self.sender.space().una + window == self.sender.space().window_edge
            && segment.sack.is_empty()
            && !segment.flags.contains(Flags::ECE)
    }

    #[inline(never)]
    fn on_ack(&mut self, segment: &Segment, now: Time) {
        let origin = self.iss.wrapping_add(1);
        let una = self.sender.space().una;
        let mut blocks = [(0, 0); 4];
        let mut count = 0;
        if self.sack {
            for &(left, right) in segment.sack.as_slice() {
                let left = sequence::expand(left, origin, una);
                blocks[count] = (left, left + u64::from(right.wrapping_sub(sequence::wire(left, origin))));
                count += 1;
            }
        }
        let ack = Acknowledgment {
            offset: sequence::expand(segment.ack, origin, una),
            window: u64::from(segment.window) << self.peer_shift,
            blocks: &blocks[..count],
            has_data: segment.len > 0,
            ece: self.ecn && segment.flags.contains(Flags::ECE),
            echoed: (self.timestamps && segment.timestamps).then_some(segment.ts_ecr),
        };
        self.sender.on_ack(&ack, &mut self.counters, now);
    }

    /// The time that [`Endpoint::poll_timeout`] asked for has come; harmless when it has not.
    pub fn on_timer(&mut self, now: Time) {
        match self.state {
            State::Established => {
                self.receiver.on_timer(now);
                self.sender.on_timer(&mut self.counters, now);
                if self.sender.is_hopeless() {
                    self.give_up();
                }
            }
            State::Listen | State::SynSent | State::SynReceived => self.on_handshake_timer(now),
            State::Reset => {}
        }
    }

    /// Too many timeouts in a row: the connection ends, and the peer is told (RFC 9293, section 3.8.3).
    pub(crate) fn give_up(&mut self) {
        self.state = State::Reset;
        self.send_reset = true;
    }

    /// The next segment to send, until there is none.
    #[inline(always)]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        self.capable = false;
        if self.state != State::Established {
            return self.poll_unestablished(now);
        }
        if !self.sender.is_silent()
            && let Some(transmission) = self.sender.poll(&mut self.counters, now)
        {
            return Some(self.data(transmission, now));
        }
        if self.sender.take_probe() {
            // An old sequence number, for which the peer must answer; as Linux probes.
            let mut probe = self.acknowledgment(now);
            probe.seq = sequence::wire(self.sender.space().una, self.iss);
            return Some(probe);
        }
        if self.receiver.ack_now {
            let mut segment = self.acknowledgment(now);
            if self.sack {
                // 40 bytes of options: four blocks, or three beside timestamps (RFC 2018, section 3).
                let blocks = if self.timestamps { 3 } else { 4 };
                segment.sack = self.receiver.take_blocks(self.irs.wrapping_add(1), blocks);
            }
            self.receiver.acknowledged();
            return Some(segment);
        }
        None
    }

    #[inline(never)]
    fn poll_unestablished(&mut self, now: Time) -> Option<Segment> {
        if self.state != State::Reset {
            return self.poll_handshake(now);
        }
        std::mem::take(&mut self.send_reset).then(|| {
            let mut segment = self.acknowledgment(now);
            // What the peer expects, as far as we know: a reset counts nowhere else.
            segment.seq = sequence::wire(self.sender.space().una, self.iss.wrapping_add(1));
            segment.flags |= Flags::RST;
            segment
        })
    }

    /// A segment without data that acknowledges what arrived.
    #[inline(always)]
    fn acknowledgment(&mut self, now: Time) -> Segment {
        let window = self.receiver.advertise() >> self.our_shift;
        self.last_ack = self.receiver.next();
        let mut flags = Flags::ACK;
        if self.echo {
            flags |= Flags::ECE;
        }
        Segment {
            seq: sequence::wire(self.sender.space().next, self.iss.wrapping_add(1)),
            ack: self.due(),
            window: window.min(65_535) as u16,
            flags,
            ts_val: ticks(now),
            ts_ecr: self.ts_recent,
            timestamps: self.timestamps,
            ..Segment::default()
        }
    }

    #[inline(always)]
    fn data(&mut self, transmission: Transmission, now: Time) -> Segment {
        let mut segment = self.acknowledgment(now);
        // SACK blocks would not fit beside a full segment: they go in an ACK of their own.
        if !(self.sack && self.receiver.has_blocks()) {
            self.receiver.acknowledged();
        }
        segment.seq = sequence::wire(transmission.offset, self.iss.wrapping_add(1));
        segment.len = transmission.len;
        if transmission.push {
            segment.flags |= Flags::PSH;
        }
        if transmission.fin {
            segment.flags |= Flags::FIN;
        }
        if transmission.cwr {
            segment.flags |= Flags::CWR;
        }
        self.capable = self.ecn && !transmission.again && transmission.len > 0;
        segment
    }

    /// Whether the segment that [`Endpoint::poll_transmit`] returned last is to be sent ECN-capable
    /// (ECT(0)): data that is sent for the first time, where the handshake agreed on ECN (RFC 3168,
    /// sections 6.1.4 and 6.1.5).
    pub fn ecn_capable(&self) -> bool {
        self.capable
    }

    /// When the endpoint wants [`Endpoint::on_timer`]; `Time::MAX` when it waits for nothing.
    pub fn poll_timeout(&self) -> Time {
        match self.state {
            State::Established => self.receiver.deadline.min(self.sender.deadline()),
            State::Listen | State::SynSent | State::SynReceived => self.handshake.deadline(),
            State::Reset => Time::MAX,
        }
    }

    /// Whether [`Endpoint::poll_transmit`] would give a data segment.
    pub fn would_send(&self, now: Time) -> bool {
        self.state == State::Established && self.sender.would_send(now)
    }

    /// The host's own device queue has no room for what would be sent: nothing was lost, but the window is reduced as for a
    /// mark, once for each window of data (Linux, net/ipv4/tcp_output.c, `tcp_enter_cwr` in `tcp_transmit_skb`).
    pub fn on_local_congestion(&mut self, now: Time) {
        self.sender.on_local_congestion(&mut self.counters, now);
    }

    /// What a stack that keeps segments in a list would pass by to take in the SACK blocks of `segment`: for each block those that are not
    /// acknowledged cumulatively, from the oldest to the block's end (Linux 2.4, net/ipv4/tcp_input.c, `tcp_sacktag_write_queue`), and
    /// for each block those that wait to be sent again.
    pub fn sack_walk(&self, segment: &Segment) -> (u64, u64) {
        let una = sequence::wire(self.sender.space().una, self.iss.wrapping_add(1));
        let blocks = segment.sack.as_slice();
        let below =
            |&(_, right): &(u32, u32)| self.sender.segments_below(right.wrapping_sub(una).cast_signed());
        (blocks.iter().map(below).sum(), self.sender.waiting() * blocks.len() as u64)
    }

    /// Whether everything written was acknowledged, the FIN too where there was one.
    pub fn is_finished(&self) -> bool {
        self.sender.space().is_finished()
    }

    /// Whether the peer's FIN, and all before it, has arrived.
    pub fn peer_is_finished(&self) -> bool {
        self.receiver.is_finished()
    }

    /// Whether the application has closed.
    pub fn is_closed(&self) -> bool {
        self.sender.space().closed
    }

    /// Whether the handshake is over.
    pub fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// Whether the connection was reset by the peer, or given up after too many timeouts.
    pub fn is_reset(&self) -> bool {
        self.state == State::Reset
    }

    /// What was counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What a trace samples.
    pub fn snapshot(&self) -> Snapshot {
        let rtt = self.sender.rtt();
        Snapshot {
            cwnd: self.sender.controller.cwnd(),
            ssthresh: self.sender.controller.ssthresh(),
            srtt: rtt.srtt(),
            min_rtt: rtt.min(),
            rto: rtt.rto(),
            pipe: self.sender.pipe(),
            in_recovery: self.sender.in_recovery(),
        }
    }

    /// The congestion controller.
    pub fn controller(&self) -> &Controller {
        &self.sender.controller
    }
}

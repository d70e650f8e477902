//! One end of a connection: handshake, options, and the two halves wired together.

use elephan_cc::Controller;
use elephan_units::Time;

use crate::config::Config;
use crate::receiver::Receiver;
use crate::rtt::Rtt;
use crate::segment::{Flags, SackBlocks, Segment};
use crate::sender::{Acknowledgment, Sender, TICK, Transmission};
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
    /// Losses found by duplicate or selective ACKs: at most one for each window of data.
    pub loss_events: u64,
    /// Reductions for an ECN echo.
    pub ecn_events: u64,
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
enum State {
    Listen,
    SynSent,
    SynReceived,
    Established,
    /// Reset by the peer.
    Reset,
}

/// One end of a TCP connection.
pub struct Endpoint {
    state: State,
    sender: Sender,
    receiver: Receiver,
    counters: Counters,
    /// Initial sequence numbers: ours, and the peer's.
    iss: u32,
    irs: u32,
    /// Shift of the window fields that we read, and that we write.
    peer_shift: u8,
    our_shift: u8,
    offer_sack: bool,
    sack: bool,
    timestamps: bool,
    offer_ecn: bool,
    ecn: bool,
    /// A congestion mark is to be echoed until the peer says that it reduced.
    echo: bool,
    /// RFC 7323's TS.Recent, and the acknowledgment that was sent last.
    ts_recent: u32,
    last_ack: u64,
    right_sizing_rtt: Option<Rtt>,
    /// The SYN or SYN-ACK is to be sent.
    send_syn: bool,
    syn_sent_at: Time,
    syn_tries: u32,
    syn_deadline: Time,
}

impl Endpoint {
    fn new(config: &Config, controller: Controller, iss: u32, state: State) -> Self {
        let controller = match config.initial_ssthresh {
            Some(segments) => controller.with_ssthresh(f64::from(segments)),
            None => controller,
        };
        let receiver = Receiver::new(config, config.mss());
        Self {
            state,
            our_shift: receiver.shift(),
            sender: Sender::new(config, controller),
            receiver,
            counters: Counters::default(),
            iss,
            irs: 0,
            peer_shift: 0,
            offer_sack: config.recovery == crate::Recovery::Sack,
            sack: false,
            timestamps: config.timestamps,
            offer_ecn: config.ecn,
            ecn: false,
            echo: false,
            ts_recent: 0,
            last_ack: 0,
            right_sizing_rtt: config.auto_tuning.then(|| Rtt::new(config.rto_min)),
            send_syn: state == State::SynSent,
            syn_sent_at: Time::ZERO,
            syn_tries: 0,
            syn_deadline: Time::MAX,
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
        self.receiver.set_reading(reading, self.sender.mss());
        self.counters.bytes_delivered = self.receiver.delivered();
    }

    /// A segment arrived. `congestion_experienced` is the IP header's mark.
    pub fn on_segment(&mut self, segment: &Segment, congestion_experienced: bool, now: Time) {
        if segment.flags.contains(Flags::RST) {
            self.on_reset(segment);
            return;
        }
        match self.state {
            State::Listen if segment.flags.contains(Flags::SYN) => self.on_syn(segment, now),
            State::SynSent if segment.flags.contains(Flags::SYN) => self.on_syn_ack(segment, now),
            State::SynReceived if segment.flags.contains(Flags::SYN) => self.send_syn = true,
            State::SynReceived => self.on_handshake_ack(segment, congestion_experienced, now),
            State::Established => self.on_established(segment, congestion_experienced, now),
            State::Listen | State::SynSent | State::Reset => {}
        }
    }

    /// A reset counts only where it names the byte that is due (RFC 5961, section 3.2).
    fn on_reset(&mut self, segment: &Segment) {
        let due = sequence::wire(self.receiver.next(), self.irs.wrapping_add(1));
        let refused = self.state == State::SynSent && segment.ack == self.iss.wrapping_add(1);
        if refused || (self.state != State::SynSent && self.state != State::Listen && segment.seq == due) {
            self.state = State::Reset;
            self.syn_deadline = Time::MAX;
        }
    }

    /// Takes the options of the peer's SYN.
    fn agree(&mut self, segment: &Segment) {
        self.irs = segment.seq;
        self.timestamps &= segment.timestamps;
        self.ts_recent = segment.ts_val;
        self.sack = self.offer_sack && segment.sack_permitted;
        if segment.window_scale_plus_one == 0 {
            self.our_shift = 0;
        } else {
            self.peer_shift = (segment.window_scale_plus_one - 1).min(14);
        }
        let ours = self.sender.mss();
        // The MSS option leaves room for options that this stack always sends (RFC 6691).
        let theirs = u32::from(segment.mss).saturating_sub(if self.timestamps { 12 } else { 0 });
        let mss = if segment.mss == 0 { ours } else { ours.min(theirs) };
        self.sender.agree(mss.max(1), self.sack, self.timestamps, u64::from(segment.window));
    }

    fn on_syn(&mut self, segment: &Segment, now: Time) {
        self.agree(segment);
        self.ecn = self.offer_ecn && segment.flags.contains(Flags::ECE | Flags::CWR);
        self.state = State::SynReceived;
        self.send_syn = true;
        self.syn_deadline = now;
    }

    fn on_syn_ack(&mut self, segment: &Segment, now: Time) {
        if !segment.flags.contains(Flags::ACK) || segment.ack != self.iss.wrapping_add(1) {
            return;
        }
        self.agree(segment);
        self.ecn =
            self.offer_ecn && segment.flags.contains(Flags::ECE) && !segment.flags.contains(Flags::CWR);
        self.establish(now);
        self.receiver.ack_now = true;
    }

    fn on_handshake_ack(&mut self, segment: &Segment, congestion_experienced: bool, now: Time) {
        if segment.flags.contains(Flags::ACK) && segment.ack == self.iss.wrapping_add(1) {
            self.establish(now);
            self.on_established(segment, congestion_experienced, now);
        }
    }

    fn establish(&mut self, now: Time) {
        self.state = State::Established;
        self.send_syn = false;
        self.syn_deadline = Time::MAX;
        if self.syn_tries == 1 {
            self.sender.sample_rtt(now - self.syn_sent_at);
        }
    }

    fn on_established(&mut self, segment: &Segment, congestion_experienced: bool, now: Time) {
        if segment.flags.contains(Flags::SYN) {
            // The peer did not get our last ACK of the handshake.
            self.receiver.ack_now = true;
            return;
        }
        let origin = self.irs.wrapping_add(1);
        let due = sequence::wire(self.receiver.next(), origin);
        if self.timestamps && segment.timestamps {
            let age = self.ts_recent.wrapping_sub(segment.ts_val).cast_signed();
            if age > 0 {
                // PAWS (RFC 7323, section 5.3): a segment from a window long past.
                self.receiver.ack_now = true;
                return;
            }
            let last_ack = sequence::wire(self.last_ack, origin);
            if segment.seq.wrapping_sub(last_ack).cast_signed() <= 0 {
                self.ts_recent = segment.ts_val;
            }
        }
        if segment.flags.contains(Flags::ACK) {
            self.on_ack(segment, now);
        }
        let fin = segment.flags.contains(Flags::FIN);
        if segment.len > 0 || fin {
            self.on_data(segment, origin, fin, congestion_experienced, now);
        } else if segment.seq.wrapping_sub(due).cast_signed() < 0 {
            // A zero-window probe, or an old duplicate: say where we are.
            let last_ack = sequence::wire(self.last_ack, origin);
            self.receiver.ack_now |= segment.seq.wrapping_sub(last_ack).cast_signed() < 0;
        }
    }

    fn on_data(&mut self, segment: &Segment, origin: u32, fin: bool, marked: bool, now: Time) {
        // RFC 3168, section 6.1.3: echo until the sender says that it reduced.
        if segment.flags.contains(Flags::CWR) {
            self.echo = false;
        }
        self.echo |= marked && self.ecn;
        let mut rtt = Time::ZERO;
        if let Some(estimate) = &mut self.right_sizing_rtt {
            if self.timestamps && segment.ts_ecr > 0 {
                estimate.sample(now.since(TICK * u64::from(segment.ts_ecr)));
            }
            rtt = estimate.srtt();
        }
        let left = sequence::expand(segment.seq, origin, self.receiver.next());
        self.receiver.receive(left, left + u64::from(segment.len), fin, rtt, now);
        self.counters.bytes_delivered = self.receiver.delivered();
    }

    fn on_ack(&mut self, segment: &Segment, now: Time) {
        let origin = self.iss.wrapping_add(1);
        let una = self.sender.una();
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
            echoed: (self.timestamps && segment.timestamps).then(|| TICK * u64::from(segment.ts_ecr)),
        };
        self.sender.on_ack(&ack, &mut self.counters, now);
    }

    /// The time that [`Endpoint::poll_timeout`] asked for has come; harmless when it has not.
    pub fn on_timer(&mut self, now: Time) {
        if now >= self.syn_deadline {
            self.send_syn = true;
        }
        self.receiver.on_timer(now);
        if self.state == State::Established {
            self.sender.on_timer(&mut self.counters, now);
        }
    }

    /// The next segment to send, until there is none.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        if self.state != State::Established {
            return self.poll_syn(now);
        }
        if let Some(transmission) = self.sender.poll(&mut self.counters, now) {
            return Some(self.data(transmission, now));
        }
        if self.sender.take_probe() {
            let mut probe = self.acknowledgment(now);
            probe.seq = probe.seq.wrapping_sub(1 + (self.sender.next() - self.sender.una()) as u32);
            return Some(probe);
        }
        if self.receiver.ack_now {
            let mut segment = self.acknowledgment(now);
            // 40 bytes of options: four blocks, or three beside timestamps.
            let blocks = if self.timestamps { 3 } else { 4 };
            if self.sack {
                segment.sack = self.receiver.take_blocks(self.irs.wrapping_add(1), blocks);
            }
            return Some(segment);
        }
        None
    }

    fn poll_syn(&mut self, now: Time) -> Option<Segment> {
        if !self.send_syn {
            return None;
        }
        self.send_syn = false;
        self.syn_tries += 1;
        self.syn_sent_at = now;
        // RFC 6298: one second, doubled for each try.
        self.syn_deadline = now + Time::from_secs(1 << (self.syn_tries - 1).min(6));
        let answers = self.state == State::SynReceived;
        let mut flags = Flags::SYN;
        let mut ack = 0;
        if answers {
            flags |= Flags::ACK;
            ack = self.irs.wrapping_add(1);
            if self.ecn {
                flags |= Flags::ECE;
            }
        } else if self.offer_ecn {
            flags |= Flags::ECE | Flags::CWR;
        }
        let window = self.receiver.advertise(self.sender.mss()).min(65_535);
        Some(Segment {
            seq: self.iss,
            ack,
            window: window as u16,
            flags,
            ts_val: ticks(now),
            ts_ecr: self.ts_recent,
            timestamps: self.timestamps,
            mss: (self.sender.mss() + if self.timestamps { 12 } else { 0 }) as u16,
            window_scale_plus_one: if answers && self.peer_shift == 0 && self.our_shift == 0 {
                0
            } else {
                self.our_shift + 1
            },
            sack_permitted: if answers { self.sack } else { self.offer_sack },
            len: 0,
            sack: SackBlocks::default(),
        })
    }

    /// A segment without data that acknowledges what arrived.
    #[inline]
    fn acknowledgment(&mut self, now: Time) -> Segment {
        let window = self.receiver.advertise(self.sender.mss()) >> self.our_shift;
        self.receiver.acknowledged();
        self.last_ack = self.receiver.next();
        let mut flags = Flags::ACK;
        if self.echo {
            flags |= Flags::ECE;
        }
        Segment {
            seq: sequence::wire(self.sender.next(), self.iss.wrapping_add(1)),
            ack: sequence::wire(self.receiver.next(), self.irs.wrapping_add(1)),
            window: window.min(65_535) as u16,
            flags,
            ts_val: ticks(now),
            ts_ecr: self.ts_recent,
            timestamps: self.timestamps,
            ..Segment::default()
        }
    }

    #[inline]
    fn data(&mut self, transmission: Transmission, now: Time) -> Segment {
        let mut segment = self.acknowledgment(now);
        segment.seq = sequence::wire(transmission.offset, self.iss.wrapping_add(1));
        segment.len = transmission.len;
        if transmission.fin {
            segment.flags |= Flags::FIN;
        }
        if transmission.cwr {
            segment.flags |= Flags::CWR;
        }
        segment
    }

    /// Whether data segments are sent ECN-capable (ECT(0)): agreed in the handshake.
    pub fn ecn_capable(&self) -> bool {
        self.ecn
    }

    /// When the endpoint wants [`Endpoint::on_timer`]; `Time::MAX` when it waits for nothing.
    pub fn poll_timeout(&self) -> Time {
        match self.state {
            State::Established => {
                self.receiver.deadline.min(self.sender.deadline(self.sender.is_paced_out()))
            }
            State::Reset => Time::MAX,
            State::Listen | State::SynSent | State::SynReceived => self.syn_deadline,
        }
    }

    /// Whether everything written was acknowledged, the FIN too where there was one.
    pub fn is_finished(&self) -> bool {
        self.sender.is_finished()
    }

    /// Whether the peer's FIN, and all before it, has arrived.
    pub fn peer_is_finished(&self) -> bool {
        self.receiver.is_finished()
    }

    /// Whether the application has closed.
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Whether the handshake is over.
    pub fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// Whether the peer reset the connection.
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

/// The timestamp clock: milliseconds, starting at one, because an echo of zero says nothing.
fn ticks(now: Time) -> u32 {
    (now.picos() / TICK.picos()) as u32
}

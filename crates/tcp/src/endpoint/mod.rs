//! One end of a connection, which joins the two halves. The opening is in `handshake.rs`, the processing of
//! arriving segments in `receive.rs`, and the selection of the next segment in `transmit.rs`.

mod handshake;
#[cfg(test)]
mod memory;
mod misbehave;
mod receive;
mod transmit;
#[cfg(test)]
mod twins;

use std::sync::Arc;

use elephan_cc::Controller;
use elephan_units::Time;

use crate::config::{Recovery, SsthreshBase};
use crate::receiver::Receiver;
use crate::report::{Counters, Snapshot};
use crate::segment::Segment;
use crate::sender::Sender;
use crate::sequence;
use crate::stack::Stack;

use handshake::Handshake;
use misbehave::Optimism;

/// The state of the connection (RFC 9293, section 3.3.2). The two halves keep the state of its closing: a FIN
/// is acknowledged like data. There is no TIME-WAIT: the endpoint answers late segments for as long as it
/// exists, and its ports are not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Listen,
    SynSent,
    SynReceived,
    Established,
    /// Reset by the peer, or aborted after too many timeouts.
    Reset,
}

/// What is so most of the time while nothing is lost: then the fast paths ask for little more than this. Each method that may change
/// anything by other rules makes it unknown, and the next fast path finds it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Usual {
    /// An established end that has sent data and received none, to which [`Sender::is_usual`] applies.
    Sender,
    /// An established end that has sent none, to which [`Receiver::is_usual`] applies, and which echoes no mark.
    Receiver,
    /// Any other.
    Neither,
    /// Not found out yet.
    Unknown,
}

/// One end of a TCP connection. What a segment touches while nothing is missing comes first, here and in each of its parts: it is in few
/// cache lines so.
#[repr(C)]
pub struct Endpoint {
    usual: Usual,
    state: State,
    timestamps: bool,
    /// Whether a congestion mark is to be echoed until the peer signals its reduction.
    echo: bool,
    /// Whether the last polled segment is to be sent ECN-capable.
    capable: bool,
    ecn: bool,
    /// Shift of the window fields that we receive, and of those that we send.
    peer_shift: u8,
    our_shift: u8,
    /// Initial sequence numbers: ours, and the peer's.
    iss: u32,
    irs: u32,
    /// RFC 7323's TS.Recent, when it was set, and the last acknowledgment sent.
    ts_recent: u32,
    window: u32,
    ts_recent_at: Time,
    last_ack: u64,
    /// The sending half: none as long as the application writes nothing and each ACK says what the handshake
    /// said. An end that only receives needs it for its FIN.
    sending: Option<Box<Sending>>,
    receiver: Receiver,
    /// What the sending half is made from: the stack, and what the handshake gave: the peer's window, the number of
    /// tries and the round-trip time, which counts after a single try.
    stack: Arc<Stack>,
    rtt: Time,
    /// None once the connection is established.
    handshake: Option<Box<Handshake>>,
    /// None as long as none of it is needed.
    rare: Option<Box<Rare>>,
    tries: u32,
    /// Options that we offer; after the handshake, those that both ends use.
    sack: bool,
    /// Whether the connection was aborted and the peer is to be notified.
    send_reset: bool,
    /// Whether it acknowledges what has not arrived, and whether it divides its ACKs.
    is_optimistic: bool,
    divides: bool,
}

/// What few connections need.
#[derive(Debug)]
struct Rare {
    /// The challenge ACKs of the current span, and when it began.
    challenges: (u32, Time),
    /// What an end that acknowledges early knows.
    optimism: Option<Optimism>,
}

/// The sending half of an endpoint, and its counters.
#[repr(C)]
struct Sending {
    counters: Counters,
    sender: Sender,
}

impl Endpoint {
    fn new(stack: &Arc<Stack>, iss: u32, state: State) -> Self {
        let config = &stack.config;
        let receiver = Receiver::new(config);
        Self {
            state,
            usual: Usual::Unknown,
            our_shift: receiver.shift(),
            receiver,
            sending: None,
            stack: Arc::clone(stack),
            window: 0,
            tries: 0,
            rtt: Time::ZERO,
            handshake: Some(Box::new(Handshake::new(config, state == State::SynSent))),
            iss,
            irs: 0,
            peer_shift: 0,
            sack: config.recovery == Recovery::Sack,
            timestamps: config.timestamps,
            ecn: config.ecn || stack.needs_ecn,
            echo: false,
            capable: false,
            ts_recent: 0,
            ts_recent_at: Time::ZERO,
            last_ack: 0,
            rare: None,
            send_reset: false,
            is_optimistic: config.misbehave.optimistic_acks > 0,
            divides: config.misbehave.ack_division > 1,
        }
    }

    /// An endpoint that opens the connection: its SYN is ready to be sent.
    ///
    /// `iss` is the initial sequence number.
    pub fn connect(stack: &Arc<Stack>, iss: u32) -> Self {
        Self::new(stack, iss, State::SynSent)
    }

    /// An endpoint that waits for a SYN.
    pub fn listen(stack: &Arc<Stack>, iss: u32) -> Self {
        Self::new(stack, iss, State::Listen)
    }

    /// The sending half as the handshake leaves it, or has left it so far.
    fn first_sending(&self) -> Sending {
        // The initial sequence number is random.
        let mut sender = Sender::new(&self.stack, self.iss.into());
        sender.agree(&self.agreement());
        if self.handshake.is_none() {
            self.establish_sender(&mut sender);
        }
        Sending { sender, counters: Counters::default() }
    }

    #[cold]
    fn begin_sending(&mut self) {
        self.sending = Some(Box::new(self.first_sending()));
    }

    /// The sending half, which is made if there is none.
    #[inline]
    fn sending(&mut self) -> &mut Sending {
        if self.sending.is_none() {
            self.begin_sending();
        }
        self.sending.as_mut().expect("made above")
    }

    /// Whether this is what is so now.
    #[inline(always)]
    fn is_usual(&mut self, usual: Usual) -> bool {
        self.usual == usual || self.usual == Usual::Unknown && self.note_usual() == usual
    }

    #[inline(never)]
    fn note_usual(&mut self) -> Usual {
        self.usual = self.find_usual();
        self.usual
    }

    fn find_usual(&self) -> Usual {
        match &self.sending {
            _ if self.state != State::Established => Usual::Neither,
            Some(sending)
                if sending.sender.is_usual()
                    && self.last_ack == self.receiver.next()
                    && self.receiver.is_still() =>
            {
                Usual::Sender
            }
            None if self.receiver.is_usual()
                && !self.echo
                && !self.echoes_each_mark()
                && !self.is_optimistic
                && !self.divides =>
            {
                Usual::Receiver
            }
            _ => Usual::Neither,
        }
    }

    fn sender(&self) -> Option<&Sender> {
        self.sending.as_ref().map(|sending| &sending.sender)
    }

    /// Everything below this was acknowledged by the peer.
    #[inline]
    fn una(&self) -> u64 {
        self.sender().map_or(0, |sender| sender.space().una)
    }

    /// The application writes `bytes` more; `u64::MAX` means without end.
    pub fn write(&mut self, bytes: u64) {
        self.sending().sender.write(bytes);
        self.usual = Usual::Unknown;
    }

    /// The application closes: a FIN follows the last byte.
    pub fn close(&mut self) {
        let reports = self.receiver.acknowledges_at_once();
        let sender = &mut self.sending().sender;
        if reports && sender.space().closes_apart() {
            // What is acknowledged at once is so before the application is awake.
            sender.hold_once();
        }
        sender.close();
        self.usual = Usual::Unknown;
    }

    /// The application discards unsent data, and closes. This is how an endless writer ends.
    pub fn stop(&mut self) {
        self.sending().sender.stop();
        self.usual = Usual::Unknown;
    }

    /// The application starts or stops reading; by default it reads at once.
    pub fn set_reading(&mut self, reading: bool) {
        self.receiver.set_reading(reading);
        self.usual = Usual::Unknown;
    }

    /// The application, which does not read by itself, reads at most this number of bytes; returns how many.
    pub fn read(&mut self, most: u64) -> u64 {
        let read = self.receiver.read(most);
        self.usual = Usual::Unknown;
        read
    }

    /// Payload received in order that the application has not read, in bytes.
    pub fn unread(&self) -> u64 {
        self.receiver.unread()
    }

    /// The time returned by [`Endpoint::poll_timeout`] has come. A call before that time has no effect.
    pub fn on_timer(&mut self, now: Time) {
        match self.state {
            State::Established => {
                self.receiver.on_timer(now);
                if let Some(Sending { sender, counters }) = self.sending.as_deref_mut()
                    && now >= sender.timeout_at()
                {
                    // What the timer sends does not wake the application.
                    sender.make_room();
                    sender.on_timer(counters, now);
                    if sender.is_hopeless() {
                        self.give_up();
                    }
                }
            }
            State::Listen | State::SynSent | State::SynReceived => self.on_handshake_timer(now),
            State::Reset => {}
        }
        self.usual = Usual::Unknown;
    }

    /// The next sequence number expected from the peer.
    fn due(&self) -> u32 {
        sequence::wire(self.receiver.next(), self.irs.wrapping_add(1))
    }

    /// Too many consecutive timeouts: the connection ends, and the peer is notified (RFC 9293, section
    /// 3.8.3).
    fn give_up(&mut self) {
        self.state = State::Reset;
        self.send_reset = true;
    }

    /// When [`Endpoint::on_timer`] is to be called; `Time::MAX` for never.
    #[inline(always)]
    pub fn poll_timeout(&self) -> Time {
        match self.state {
            State::Established => match self.sender() {
                Some(sender) => self.receiver.deadline.min(sender.deadline()),
                None => self.receiver.deadline,
            },
            State::Listen | State::SynSent | State::SynReceived => self.handshake_deadline(),
            State::Reset => Time::MAX,
        }
    }

    /// The same without timers due at `now`: for a caller that has handled them and cannot send the resulting
    /// segments yet.
    pub fn poll_timeout_after(&self, now: Time) -> Time {
        let timers = match self.state {
            State::Established => {
                [self.receiver.deadline, self.sender().map_or(Time::MAX, Sender::timeout_at)]
            }
            State::Listen | State::SynSent | State::SynReceived => [self.handshake_deadline(), Time::MAX],
            State::Reset => [Time::MAX; 2],
        };
        timers.into_iter().filter(|&timer| timer > now).min().unwrap_or(Time::MAX)
    }

    /// Whether [`Endpoint::poll_transmit`] would return a data segment.
    pub fn would_send(&self, now: Time) -> bool {
        self.state == State::Established && self.sender().is_some_and(|sender| sender.would_send(now))
    }

    /// The host's device queue has no room for the next segment. Nothing was lost, but the window is reduced
    /// as for a mark, once for each window of data (Linux, net/ipv4/tcp_output.c, `tcp_enter_cwr` in
    /// `tcp_transmit_skb`).
    pub fn on_local_congestion(&mut self, now: Time) {
        let Sending { sender, counters } = self.sending();
        sender.on_local_congestion(counters, now);
        self.usual = Usual::Unknown;
    }

    /// Number of segments that a stack that keeps segments in a list would walk to process the SACK blocks of
    /// `segment`. The first number counts, for each block, the segments not acknowledged cumulatively, from
    /// the oldest to the block's end (Linux 2.4, net/ipv4/tcp_input.c, `tcp_sacktag_write_queue`). The second
    /// counts, for each block, the segments that wait to be retransmitted.
    pub fn sack_walk(&self, segment: &Segment) -> (u64, u64) {
        let Some(sender) = self.sender() else { return (0, 0) };
        let una = sequence::wire(sender.space().una, self.iss.wrapping_add(1));
        let blocks = segment.sack.as_slice();
        let below = |&(_, right): &(u32, u32)| sender.segments_below(right.wrapping_sub(una).cast_signed());
        (blocks.iter().map(below).sum(), sender.waiting() * blocks.len() as u64)
    }

    /// Whether everything written was acknowledged, including the FIN if there is one.
    pub fn is_finished(&self) -> bool {
        self.sender().is_none_or(|sender| sender.space().is_finished())
    }

    /// Whether the peer's FIN, and everything before it, has arrived.
    pub fn peer_is_finished(&self) -> bool {
        self.receiver.is_finished()
    }

    /// Whether the application has closed.
    pub fn is_closed(&self) -> bool {
        self.sender().is_some_and(|sender| sender.space().closed)
    }

    /// Whether the handshake is complete.
    pub fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// Whether the connection was reset by the peer, or aborted after too many timeouts.
    pub fn is_reset(&self) -> bool {
        self.state == State::Reset
    }

    /// Payload bytes received from the peer and handed to the application, once and in order. Where they are acknowledged early, in the order
    /// of arrival: what is missing stays so.
    #[inline]
    pub fn bytes_delivered(&self) -> u64 {
        let optimism = self.rare.as_ref().and_then(|rare| rare.optimism.as_ref());
        optimism.map_or_else(|| self.receiver.delivered(), |optimism| optimism.bytes)
    }

    /// Payload bytes of all data segments that have arrived from the peer: in any order, duplicates and discarded ones included.
    #[inline]
    pub fn bytes_arrived(&self) -> u64 {
        self.receiver.arrived()
    }

    /// The counters.
    #[inline]
    pub fn counters(&self) -> Counters {
        let bytes_delivered = self.bytes_delivered();
        match &self.sending {
            Some(sending) => Counters { bytes_delivered, ..sending.counters },
            None => Counters { bytes_delivered, ..Counters::default() },
        }
    }

    /// Number of reductions of the window so far.
    #[inline]
    pub fn reductions(&self) -> u64 {
        self.sending.as_ref().map_or(0, |sending| sending.counters.reductions)
    }

    /// The state that a trace samples.
    pub fn snapshot(&self) -> Snapshot {
        let first;
        let sender = if let Some(sender) = self.sender() {
            sender
        } else {
            first = self.first_sending();
            &first.sender
        };
        let rtt = sender.rtt();
        Snapshot {
            cwnd: sender.cwnd(),
            ssthresh: sender.controller.ssthresh(),
            srtt: rtt.srtt(),
            min_rtt: rtt.min(),
            rto: rtt.rto(),
            pipe: sender.pipe(),
            in_recovery: sender.in_recovery(),
            state: sender.state(),
            unacked: sender.board().len(),
            sacked: sender.board().sacked(),
            lost: sender.board().lost(),
            retransmitted: sender.board().retransmitted(),
            reordering: sender.reordering(),
        }
    }

    /// The congestion window, in segments: that of congestion control, or where reductions begin with the window, as in Linux, what a
    /// proportional reduction leaves of it.
    #[inline]
    pub fn cwnd(&self) -> f64 {
        match self.sender() {
            Some(sender) if self.stack.config.ssthresh_base == SsthreshBase::Cwnd => sender.cwnd(),
            _ => self.controller().cwnd(),
        }
    }

    /// Smoothed round-trip time; `None` before the first sample.
    #[inline]
    pub fn srtt(&self) -> Option<Time> {
        let srtt = match self.sender() {
            Some(sender) => sender.rtt().srtt(),
            None => self.snapshot().srtt,
        };
        (srtt > Time::ZERO).then_some(srtt)
    }

    /// The congestion controller.
    #[inline]
    pub fn controller(&self) -> &Controller {
        self.sender().map_or(&self.stack.controller, |sender| &sender.controller)
    }
}

//! Processes an arriving segment for both halves.

use elephan_cc::governor::Event;
use elephan_units::Time;

use super::{Endpoint, Sending, State, Usual};
use crate::segment::{Flags, Header, Segment};
use crate::sender::{Acknowledgment, TICK, ticks};
use crate::sequence;

/// RFC 7323, section 5.5: TS.Recent is no longer valid after 24 days, because the peer's clock may wrap.
const TS_RECENT_VALID: Time = Time::from_secs(24 * 86_400);
/// Segments that Linux acknowledges at once when an echo begins (net/ipv4/tcp_input.c, `__tcp_ecn_check_ce`).
const QUICK_AFTER_MARK: u16 = 2;
/// RFC 5961, section 7: at most this number of challenge ACKs in this time.
const CHALLENGES: (u32, Time) = (10, Time::from_secs(5));

impl Endpoint {
    /// A segment arrived. `congestion_experienced` is the congestion mark in its IP header.
    #[inline]
    pub fn on_segment(&mut self, segment: &Segment, congestion_experienced: bool, now: Time) {
        let may_be_next =
            !self.is_usual(Usual::Neither) && segment.sack.is_empty() && !congestion_experienced;
        let header = &segment.header();
        if !(may_be_next && (self.on_next_ack(header, now) || self.on_next_data(header, now))) {
            self.on_any_segment(segment, congestion_experienced, now);
        }
    }

    /// The fast path of [`Endpoint::on_segment`] for an ACK of new data that arrives while nothing is lost, without data, mark or
    /// other options than timestamps. Returns false, with nothing changed, unless:
    ///
    /// - the connection [`is usual`](Usual::Sender);
    /// - the segment has no flags but ACK and PSH;
    /// - its sequence number is the next expected, and its timestamp is not older than the last;
    /// - [`Sender::on_usual_ack`] takes it.
    ///
    /// [`Sender::on_usual_ack`]: crate::sender::Sender::on_usual_ack
    #[inline(always)]
    pub fn on_next_ack(&mut self, header: &Header, now: Time) -> bool {
        if !self.is_usual(Usual::Sender)
            || !header.is_plain()
            || header.len > 0
            || header.seq != self.due()
            || !header.timestamps
            || self.ts_recent.wrapping_sub(header.ts_val).cast_signed() > 0
        {
            return false;
        }
        let Some(Sending { sender, counters }) = self.sending.as_deref_mut() else { return false };
        let (origin, una) = (self.iss.wrapping_add(1), sender.space().una);
        let offset = una + u64::from(header.ack.wrapping_sub(sequence::wire(una, origin)));
        let window = u64::from(header.window) << self.peer_shift;
        if !sender.on_usual_ack(offset, window, header.ts_ecr, counters, now) {
            return false;
        }
        // RFC 7323, section 4.3: nothing that would be acknowledged came before.
        (self.ts_recent, self.ts_recent_at) = (header.ts_val, now);
        sender.make_room();
        if !sender.stays_usual() {
            self.usual = Usual::Unknown;
        }
        true
    }

    /// The fast path of [`Endpoint::on_segment`] for the next data, without mark or other options than timestamps, at an end that
    /// sends none. Returns false, with nothing changed, unless:
    ///
    /// - the connection [`is usual`](Usual::Receiver);
    /// - the segment has no flags but ACK and PSH, and says what the handshake said to our sending half;
    /// - its sequence number is the next expected, and its timestamp is not older than the last;
    /// - [`Receiver::receive_next`] takes it.
    ///
    /// [`Receiver::receive_next`]: crate::receiver::Receiver::receive_next
    #[inline(always)]
    pub fn on_next_data(&mut self, header: &Header, now: Time) -> bool {
        if !self.is_usual(Usual::Receiver)
            || !header.is_plain()
            || header.len == 0
            || header.seq != self.due()
            || header.ack != self.iss.wrapping_add(1)
            || u32::from(header.window) << self.peer_shift != self.window
            || header.timestamps != self.timestamps
            || self.timestamps && self.ts_recent.wrapping_sub(header.ts_val).cast_signed() > 0
        {
            return false;
        }
        self.on_more_data(header, now)
    }

    /// The same for a segment that follows at once in the order of sequence on one for which it returned true, and differs from that in
    /// nothing else.
    #[inline(always)]
    pub fn on_more_data(&mut self, header: &Header, now: Time) -> bool {
        debug_assert_eq!(self.usual, Usual::Receiver);
        // RFC 7323, section 4.3, rule 2: a delayed acknowledgment echoes the earliest segment that it covers.
        let is_first = self.last_ack == self.receiver.next();
        if !self.receiver.receive_next(header.len.into(), now) {
            return false;
        }
        if is_first && self.timestamps {
            (self.ts_recent, self.ts_recent_at) = (header.ts_val, now);
        }
        true
    }

    /// Data arrived where what was read is acknowledged. Linux does so unless the two ends answer each other (pingpong).
    #[inline(never)]
    fn note_push(&mut self, segment: &Header) {
        let is_answered = self.sender().is_some_and(|sender| sender.space().next > 0);
        let ends = segment.flags.contains(Flags::PSH) || u32::from(segment.len) < self.receiver.mss();
        if ends && !is_answered {
            self.receiver.on_push();
        }
    }

    /// What [`Endpoint::on_segment`] does, by the rules for any segment.
    #[inline(never)]
    pub(super) fn on_any_segment(&mut self, segment: &Segment, congestion_experienced: bool, now: Time) {
        self.receiver.count(segment.len.into());
        if segment.flags.contains(Flags::RST) {
            self.on_reset(segment, now);
        } else if self.state == State::Established || self.on_handshake(segment, now) {
            self.on_established(segment, congestion_experienced, now);
        }
        self.usual = Usual::Unknown;
    }

    /// A reset is valid only if it has the next expected sequence number; another one in the window is
    /// challenged (RFC 5961, section 3.2).
    #[inline(never)]
    fn on_reset(&mut self, segment: &Segment, now: Time) {
        let counts = match self.state {
            State::Listen | State::Reset => false,
            State::SynSent => segment.flags.contains(Flags::ACK) && segment.ack == self.iss.wrapping_add(1),
            State::SynReceived | State::Established => {
                let next = self.receiver.next();
                let offset = next + u64::from(segment.seq.wrapping_sub(self.due()));
                if offset != next && self.receiver.is_in_window(offset) {
                    self.challenge(now);
                }
                offset == next
            }
        };
        if counts {
            self.state = State::Reset;
        }
    }

    /// Sends an ACK of the current state, so that a peer that meant the segment can do better (RFC 5961).
    #[cold]
    fn challenge(&mut self, now: Time) {
        let (count, since) = &mut self.rare(now).challenges;
        if now.since(*since) >= CHALLENGES.1 {
            (*count, *since) = (0, now);
        }
        if *count < CHALLENGES.0 {
            *count += 1;
            self.receiver.ack_now = true;
        }
    }

    fn on_established(&mut self, segment: &Segment, congestion_experienced: bool, now: Time) {
        if segment.flags.contains(Flags::SYN) {
            // RFC 5961, section 4.2; or the peer did not receive our last ACK of the handshake.
            self.challenge(now);
            return;
        }
        let origin = self.irs.wrapping_add(1);
        let is_ack_alone = segment.seq_len() == 0;
        let last_ack = sequence::wire(self.last_ack, origin);
        let has_stamp = self.timestamps && segment.timestamps;
        let mut is_newest = has_stamp;
        if has_stamp {
            let age = self.ts_recent.wrapping_sub(segment.ts_val).cast_signed();
            if age > 0 && now.since(self.ts_recent_at) <= TS_RECENT_VALID {
                if !(self.is_within_tick(age) || is_ack_alone && self.may_be_reordered(age)) {
                    // PAWS (RFC 7323, section 5.3): a segment from an earlier window.
                    let left = sequence::expand(segment.seq, origin, self.receiver.next());
                    self.receiver.report_duplicate(left, left + u64::from(segment.seq_len()));
                    return;
                }
                is_newest = false;
            }
        }
        let says_nothing = segment.sack.is_empty() && self.says_nothing(&segment.header());
        if !says_nothing && !self.is_acceptable(segment, now) {
            return;
        }
        // What lies below the window is not recorded (RFC 7323, section 5.3, R2 and R3); the window begins at the last
        // acknowledgment, as in Linux (`tcp_sequence`). An end that acknowledges early echoes the newest.
        let is_in_window = last_ack.wrapping_sub(segment.seq) < segment.seq_len().max(1);
        if is_newest && (is_in_window || self.is_optimistic) {
            (self.ts_recent, self.ts_recent_at) = (segment.ts_val, now);
        }
        if !says_nothing {
            self.on_ack(segment, now);
        }
        if !is_ack_alone {
            self.on_data(segment, origin, congestion_experienced, now);
        } else if segment.seq.wrapping_sub(last_ack).cast_signed() < 0 {
            // A zero-window probe, or an old duplicate: acknowledge it with the current state.
            self.receiver.ack_now = true;
        }
    }

    /// Whether a segment has an acknowledgment, of data that was sent. A segment without one is dropped; one of
    /// data never sent, or from long ago, is challenged (RFC 9293, section 3.10.7.4, fifth check; RFC 5961,
    /// section 5.2).
    fn is_acceptable(&mut self, segment: &Segment, now: Time) -> bool {
        if !segment.flags.contains(Flags::ACK) {
            return false;
        }
        let origin = self.iss.wrapping_add(1);
        let space = self.sending().sender.space();
        let una = sequence::wire(space.una, origin);
        let acceptable = space.may_be_acknowledged(segment.ack.wrapping_sub(una).cast_signed());
        if !acceptable {
            self.challenge(now);
        }
        acceptable
    }

    /// Whether a timestamp is of the tick before that of the newest one, and ticks are as coarse as a kernel's (Linux,
    /// include/net/tcp.h, `TCP_PAWS_WINDOW`).
    fn is_within_tick(&self, age: i32) -> bool {
        age == 1 && self.stack.config.is_coarse()
    }

    /// Reordered ACKs without data are harmless. Linux also accepts them, if they are at most a timeout old
    /// (net/ipv4/tcp_input.c, `tcp_disordered_ack`).
    fn may_be_reordered(&mut self, age: i32) -> bool {
        TICK * u64::from(age.unsigned_abs()) <= self.sending().sender.rtt().rto()
    }

    fn on_data(&mut self, segment: &Segment, origin: u32, marked: bool, now: Time) {
        let marked = marked && !self.stack.config.misbehave.conceal_marks;
        if self.echoes_each_mark() {
            self.echo_this(marked, now);
        } else {
            // RFC 3168, section 6.1.3: echo until the sender signals its reduction (CWR).
            let quick = self.stack.config.delayed_ack.quick_marks;
            if segment.flags.contains(Flags::CWR) {
                self.echo = false;
                self.receiver.ack_now |= quick;
            }
            if marked && self.ecn && !self.echo {
                self.echo = true;
                self.receiver.hurry(if quick { QUICK_AFTER_MARK } else { 0 });
            }
        }
        let echo = self.age_of_echo(segment.ts_ecr, now);
        let left = sequence::expand(segment.seq, origin, self.receiver.next());
        let fin = segment.flags.contains(Flags::FIN);
        let right = left + u64::from(segment.len);
        if self.is_optimistic {
            self.receive_early(left, right, fin, echo, now);
        } else {
            self.receiver.receive(left, right, fin, echo, now);
        }
        if self.receiver.hurries_reads && segment.len > 0 {
            self.note_push(&segment.header());
        }
    }

    /// Whether ACKs echo whether the last segment was marked, instead of that any was.
    #[inline]
    pub(super) fn echoes_each_mark(&self) -> bool {
        self.ecn && self.stack.needs_ecn
    }

    /// Echoes each mark (RFC 8257, section 3.2): a change is told at once.
    fn echo_this(&mut self, marked: bool, now: Time) {
        if marked == self.echo {
            return;
        }
        self.echo = marked;
        self.receiver.ack_now = true;
        if let Some(Sending { sender, .. }) = self.sending.as_deref_mut() {
            sender.tell_event(if marked { Event::Ce } else { Event::NoCe }, now);
        }
    }

    /// How old the timestamp `ts_ecr` is that a segment echoes, where the receiver measures round-trip times.
    #[inline]
    fn age_of_echo(&self, ts_ecr: u32, now: Time) -> Option<Time> {
        (self.receiver.is_tuned() && self.timestamps && ts_ecr > 0)
            .then(|| TICK * u64::from(ticks(now).wrapping_sub(ts_ecr)))
    }

    /// Whether an acknowledgment without SACK blocks leaves the sending half unchanged. This is so for most data that a pure
    /// receiver gets.
    #[inline(always)]
    fn says_nothing(&self, segment: &Header) -> bool {
        let window = u64::from(segment.window) << self.peer_shift;
        let (una, edge) = match self.sender() {
            None => (0, u64::from(self.window)),
            Some(sender) if sender.is_silent() => (sender.space().una, sender.space().window_edge),
            Some(_) => return false,
        };
        segment.flags.contains(Flags::ACK)
            && segment.ack == sequence::wire(una, self.iss.wrapping_add(1))
            && una + window == edge
            && !segment.flags.contains(Flags::ECE)
    }

    #[inline(never)]
    fn on_ack(&mut self, segment: &Segment, now: Time) {
        let origin = self.iss.wrapping_add(1);
        let una = self.una();
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
            ece: self.ecn && segment.flags.contains(Flags::ECE) && !self.stack.config.misbehave.ignore_marks,
            echoed: (self.timestamps && segment.timestamps).then_some(segment.ts_ecr),
        };
        let Sending { sender, counters } = self.sending();
        sender.on_ack(&ack, counters, now);
        sender.make_room();
    }
}

//! The opening of a connection: SYN, SYN-ACK, ACK, and the options negotiated (RFC 9293, section 3.5).

use elephan_units::Time;

use super::{Endpoint, State};
use crate::config::Config;
use crate::segment::{Flags, Segment, TIMESTAMPS};
use crate::sender::{Agreement, Sender, in_wheel, ticks};

/// RFC 6298, section 2.1, doubled for each try.
const FIRST_TIMEOUT: Time = Time::from_secs(1);
/// RFC 6298, section 2.5.
const MAX_TIMEOUT: Time = Time::from_secs(60);
/// RFC 9293, section 3.8.3: a SYN is given up after 3 minutes or more. 1 + 2 + ... + 32 + 2 * 60 s are 183 s.
const MAX_TRIES: u32 = 8;

/// The state of a handshake in progress.
#[derive(Clone, Copy, Debug)]
pub struct Handshake {
    /// Whether the SYN or SYN-ACK is to be sent.
    send: bool,
    /// Whether windows are scaled: first offered, then negotiated.
    scaling: bool,
    /// Payload of our full segment without options, as advertised in the MSS option (RFC 6691).
    mss: u16,
    /// The sequence number of a reset to be sent: the peer acknowledged what was never sent.
    refused: Option<u32>,
    tries: u32,
    sent_at: Time,
    deadline: Time,
}

impl Handshake {
    /// No SYN was sent yet; one is ready if the end `connects`.
    pub fn new(config: &Config, connects: bool) -> Self {
        let mss = config.mss() + if config.timestamps { TIMESTAMPS } else { 0 };
        Self {
            send: connects,
            scaling: true,
            mss: mss as u16,
            refused: None,
            tries: 0,
            sent_at: Time::ZERO,
            deadline: Time::MAX,
        }
    }
}

impl Endpoint {
    /// The handshake, which is in progress.
    fn handshake(&mut self) -> &mut Handshake {
        self.handshake.as_mut().expect("a handshake is in progress until the connection is established")
    }

    /// When a SYN or SYN-ACK is to be retransmitted; `Time::MAX` for never.
    pub(super) fn handshake_deadline(&self) -> Time {
        self.handshake.as_ref().map_or(Time::MAX, |handshake| handshake.deadline)
    }

    /// What both ends agreed on, or what this end offers.
    pub(super) fn agreement(&self) -> Agreement {
        Agreement {
            mss: self.receiver.mss(),
            sack: self.sack,
            timestamps: self.timestamps,
            window: u64::from(self.window),
        }
    }

    /// Processes a segment before the connection is established. Returns whether the connection is now
    /// established, and the segment is then to be processed as one of it.
    #[inline(never)]
    pub(super) fn on_handshake(&mut self, segment: &Segment, now: Time) -> bool {
        let syn = segment.flags.contains(Flags::SYN);
        let acknowledges_us = segment.flags.contains(Flags::ACK) && segment.ack == self.iss.wrapping_add(1);
        match self.state {
            State::SynSent if syn && acknowledges_us => {
                self.agree(segment, now);
                self.ecn &= segment.flags.contains(Flags::ECE) && !segment.flags.contains(Flags::CWR);
                self.establish(now);
                self.receiver.ack_now = true;
                if self.stack.config.confirm_alone
                    && let Some(sending) = &mut self.sending
                {
                    sending.sender.hold_once();
                }
            }
            // If we sent a SYN of our own, this is a simultaneous open.
            State::Listen | State::SynSent if syn && !segment.flags.contains(Flags::ACK) => {
                self.answer(segment, now);
            }
            State::SynReceived if acknowledges_us => {
                self.establish(now);
                // The window of the SYN, which is not scaled, counts no more, also where it was larger (RFC 9293, section 3.10.7.4).
                self.window = u32::from(segment.window) << self.peer_shift;
                if let Some(sending) = &mut self.sending {
                    sending.sender.set_window(u64::from(self.window));
                }
                return true;
            }
            // RFC 9293, sections 3.10.7.3 and 3.10.7.4: the segment is of another connection, and a reset tells its sender.
            State::SynSent | State::SynReceived if segment.flags.contains(Flags::ACK) && !acknowledges_us => {
                self.handshake().refused = Some(segment.ack);
            }
            State::SynReceived if syn => self.handshake().send = true,
            _ => {}
        }
        false
    }

    /// A SYN arrived; a SYN-ACK is the answer.
    fn answer(&mut self, segment: &Segment, now: Time) {
        self.agree(segment, now);
        self.ecn &= segment.flags.contains(Flags::ECE | Flags::CWR);
        self.state = State::SynReceived;
        self.handshake().send = true;
    }

    /// Processes the options of the peer's SYN.
    fn agree(&mut self, segment: &Segment, now: Time) {
        self.irs = segment.seq;
        self.timestamps &= segment.timestamps;
        (self.ts_recent, self.ts_recent_at) = (segment.ts_val, now);
        self.sack &= segment.sack_permitted;
        let handshake = self.handshake.as_mut().expect("the handshake is in progress");
        handshake.scaling &= segment.window_scale_plus_one > 0;
        if handshake.scaling {
            // RFC 7323, section 2.3: no shift above 14.
            self.peer_shift = (segment.window_scale_plus_one - 1).min(14);
        } else {
            self.our_shift = 0;
        }
        // RFC 9293, section 3.7.1: 536 if the option is absent.
        let theirs = if segment.mss == 0 { 536 } else { segment.mss };
        let options = if self.timestamps { TIMESTAMPS } else { 0 };
        let mss = u32::from(handshake.mss.min(theirs)).saturating_sub(options).max(1);
        self.receiver.agree(mss, handshake.scaling, self.sack);
        self.window = u32::from(segment.window);
        let agreement = self.agreement();
        if let Some(sending) = &mut self.sending {
            sending.sender.agree(&agreement);
        }
    }

    fn establish(&mut self, now: Time) {
        let Handshake { tries, sent_at, .. } = *self.handshake();
        self.state = State::Established;
        self.handshake = None;
        (self.tries, self.rtt) = (tries, now - sent_at);
        self.receiver.establish(self.handshake_rtt(), now);
        if let Some(mut sending) = self.sending.take() {
            self.establish_sender(&mut sending.sender);
            self.sending = Some(sending);
        }
    }

    /// The round-trip time of the handshake. Karn: a SYN that was sent more than once gives none.
    fn handshake_rtt(&self) -> Option<Time> {
        (self.tries == 1).then_some(self.rtt)
    }

    /// The handshake is complete: tells the sending half.
    pub(super) fn establish_sender(&self, sender: &mut Sender) {
        sender.establish(self.handshake_rtt(), self.tries, self.ecn);
        sender.tune_buffer();
    }

    pub(super) fn on_handshake_timer(&mut self, now: Time) {
        let handshake = self.handshake();
        if now < handshake.deadline {
            return;
        }
        if handshake.tries >= MAX_TRIES {
            // RFC 9293, section 3.10.5: the peer is told, except in SYN-SENT, where nothing is known of it.
            self.send_reset = self.state == State::SynReceived;
            self.state = State::Reset;
        } else {
            handshake.send = true;
        }
    }

    /// The SYN or SYN-ACK, if one is to be sent.
    pub(super) fn poll_handshake(&mut self, now: Time) -> Option<Segment> {
        let is_coarse = self.stack.config.is_coarse();
        let handshake = self.handshake();
        if let Some(seq) = handshake.refused.take() {
            return Some(Segment { seq, flags: Flags::RST, ..Segment::default() });
        }
        if !std::mem::take(&mut handshake.send) {
            return None;
        }
        let timeout = (FIRST_TIMEOUT * (1 << handshake.tries.min(6))).min(MAX_TIMEOUT);
        handshake.tries += 1;
        handshake.sent_at = now;
        handshake.deadline = if is_coarse { in_wheel(timeout, now) } else { now + timeout };
        let (mss, scaling) = (handshake.mss, handshake.scaling);
        let mut flags = Flags::SYN;
        let mut ack = 0;
        if self.state == State::SynReceived {
            flags |= Flags::ACK;
            ack = self.irs.wrapping_add(1);
            if self.ecn {
                flags |= Flags::ECE;
            }
        } else if self.ecn {
            flags |= Flags::ECE | Flags::CWR;
        }
        Some(Segment {
            seq: self.iss,
            ack,
            window: self.receiver.first_window(),
            flags,
            ts_val: ticks(now),
            ts_ecr: self.ts_recent,
            timestamps: self.timestamps,
            mss,
            window_scale_plus_one: if scaling { self.our_shift + 1 } else { 0 },
            sack_permitted: self.sack,
            ..Segment::default()
        })
    }
}

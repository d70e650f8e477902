//! Selects the segment to send next, and fills in its header.

use elephan_units::Time;

use super::{Endpoint, Sending, State, Usual};
use crate::segment::{Burst, Flags, Header, Segment};
use crate::sender::{Transmission, ticks};
use crate::sequence;

impl Endpoint {
    /// A short cut of [`Endpoint::poll_transmit`] for a caller that need not see the state between two segments:
    /// as many new full segments as this would return next, or some of them, with the checks that they share made
    /// once. `None`, with nothing changed, where each is to be polled: before the connection is established, in
    /// a recovery, and in general where there is more to decide than how many fit.
    #[inline(always)]
    pub fn poll_burst(&mut self, now: Time) -> Option<Burst> {
        if !self.is_usual(Usual::Sender) {
            return None;
        }
        let Sending { sender, counters } = self.sending.as_deref_mut()?;
        let (first, count, is_all) = sender.poll_burst(counters, now)?;
        self.capable = self.ecn;
        // The acknowledgment is that of the last segment: nothing has arrived since.
        let window = self.receiver.advertised_window();
        let header = Header { len: first.len, ..self.header(first.offset, window, now) };
        Some(Burst { first: header, count, ecn_capable: self.capable, is_all })
    }

    /// Whether [`Endpoint::poll_transmit`] would return nothing, as is known without it: an end that only receives
    /// has nothing to acknowledge now.
    #[inline(always)]
    pub fn is_quiet(&self) -> bool {
        self.state == State::Established && self.sending.is_none() && !self.receiver.ack_now
    }

    /// A short cut of [`Endpoint::poll_transmit`] for an end that only receives, while nothing is missing: an ACK; `None`, with
    /// nothing changed, if it has none to send now, or another segment.
    #[inline(always)]
    pub fn poll_ack(&mut self, now: Time) -> Option<Header> {
        if !self.is_usual(Usual::Receiver) || !self.receiver.ack_now {
            return None;
        }
        self.capable = false;
        let header = self.acknowledgment(now);
        self.receiver.acknowledged();
        Some(header)
    }

    /// The next segment to send; `None` when there are no more.
    #[inline(always)]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        (self.usual, self.capable) = (Usual::Unknown, false);
        if self.state != State::Established {
            return self.poll_unestablished(now);
        }
        if let Some(Sending { sender, counters }) = self.sending.as_deref_mut() {
            if !sender.is_silent()
                && let Some(transmission) = sender.poll(counters, now)
            {
                return Some(self.data(transmission, now).into());
            }
            if sender.take_probe() {
                if let Some(transmission) = sender.poll_override(counters, now) {
                    return Some(self.data(transmission, now).into());
                }
                // An old sequence number, which the peer must acknowledge; Linux probes in the same way.
                let mut probe = Segment::from(self.acknowledgment(now));
                probe.seq = sequence::wire(self.una(), self.iss);
                return Some(probe);
            }
        }
        if self.receiver.ack_now {
            if self.divides
                && let Some(piece) = self.poll_piece(now)
            {
                return Some(piece);
            }
            let mut segment = Segment::from(self.acknowledgment(now));
            if self.sack && self.receiver.has_blocks() {
                // 40 bytes of options: four blocks, or three beside timestamps (RFC 2018, section 3).
                let blocks = if self.timestamps { 3 } else { 4 };
                let origin = self.irs.wrapping_add(1);
                segment.sack = match self.receiver.take_early(origin, blocks) {
                    Some(early) => early,
                    None => self.receiver.take_blocks(origin, blocks),
                };
            }
            self.receiver.acknowledged();
            return Some(segment);
        }
        None
    }

    #[inline(never)]
    fn poll_unestablished(&mut self, now: Time) -> Option<Segment> {
        if self.state != State::Reset {
            let segment = self.poll_handshake(now);
            // A challenge ACK, if there is nothing else to send.
            return segment.or_else(|| {
                std::mem::take(&mut self.receiver.ack_now).then(|| self.acknowledgment(now).into())
            });
        }
        std::mem::take(&mut self.send_reset).then(|| {
            let mut segment = self.acknowledgment(now);
            // The sequence number that the peer expects, as far as known: it accepts a reset with no other.
            segment.seq = sequence::wire(self.una(), self.iss.wrapping_add(1));
            segment.flags |= Flags::RST;
            segment.into()
        })
    }

    /// The application gives the connection up: the reset that tells the peer so (RFC 9293, section 3.10.5). Nothing of this end
    /// is of use afterwards.
    #[cold]
    pub fn abort(&mut self, now: Time) -> Segment {
        let mut segment = self.acknowledgment(now);
        segment.flags |= Flags::RST;
        segment.into()
    }

    /// The header of a segment without data that acknowledges the received data.
    #[inline(always)]
    fn acknowledgment(&mut self, now: Time) -> Header {
        let window = self.receiver.advertise();
        let next = self.sender().map_or(0, |sender| sender.space().next);
        self.last_ack = self.receiver.next();
        self.header(next, window, now)
    }

    /// The header of a segment without data at this offset, that advertises a window of so many bytes.
    #[inline(always)]
    pub(super) fn header(&self, offset: u64, window: u64, now: Time) -> Header {
        Header {
            seq: sequence::wire(offset, self.iss.wrapping_add(1)),
            ack: self.due(),
            len: 0,
            window: (window >> self.our_shift).min(65_535) as u16,
            flags: if self.echo { Flags::ACK | Flags::ECE } else { Flags::ACK },
            ts_val: ticks(now),
            ts_ecr: self.ts_recent,
            timestamps: self.timestamps,
        }
    }

    #[inline(always)]
    fn data(&mut self, transmission: Transmission, now: Time) -> Header {
        let mut segment = self.acknowledgment(now);
        // SACK blocks do not fit beside a full segment: they are sent in a separate ACK.
        if !(self.sack && self.receiver.has_blocks()) {
            self.receiver.acknowledged();
        }
        segment.seq = sequence::wire(transmission.offset, self.iss.wrapping_add(1));
        segment.len = transmission.len;
        if transmission.push && transmission.len > 0 {
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

    /// Whether the segment that [`Endpoint::poll_transmit`] returned last is to be sent ECN-capable (ECT(0)).
    /// This applies to data sent for the first time, if ECN was negotiated in the handshake (RFC 3168,
    /// sections 6.1.4 and 6.1.5).
    pub fn ecn_capable(&self) -> bool {
        self.capable
    }
}

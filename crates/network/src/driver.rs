//! Forwarding of packets along their routes, independent of the clock.

use elephan_net::Packet;
use elephan_units::Time;

use crate::part::{End, Part};
use crate::paths::END;

/// A packet that knows its position on its route.
pub trait Routed: Packet {
    /// Its position: that of [`Network::start`] at first, and one more after each link.
    fn position(&self) -> u32;
    /// The packet one link further on its route.
    #[must_use]
    fn onward(&self) -> Self;
}

/// What advances a part of a network: it provides the clock, and the endpoints of the routes.
pub trait Driver {
    /// What the links carry.
    type Packet: Routed;
    /// Whether [`Driver::crosses`], [`Driver::dropped`] and [`Driver::lost`] are called. It is a compile-time
    /// constant, so these calls cost nothing on the packet path if it is false.
    const FOLLOWS: bool;

    /// The part.
    fn part(&mut self) -> &mut Part<Self::Packet>;
    /// A packet has reached the end of its route.
    fn deliver(&mut self, packet: &Self::Packet, now: Time);

    /// A packet is about to be given to a link.
    #[inline]
    fn steps(&mut self) {}
    /// A packet from a link has been forwarded. Returns false if the links must be left as they are, because
    /// the run ends.
    #[inline]
    fn goes_on(&mut self, _packet: &Self::Packet, _now: Time) -> bool {
        true
    }
    /// A link has accepted a packet.
    #[inline]
    fn crosses(&mut self, _link: u32, _packet: &Self::Packet, _now: Time) {}
    /// A link drops a packet, or dropped an accepted packet at this earlier time.
    #[inline]
    fn dropped(&mut self, _link: u32, _packet: &Self::Packet, _at: Time) {}
    /// The wire of a link has lost a packet.
    #[inline]
    fn lost(&mut self, _link: u32, _packet: &Self::Packet) {}

    /// Packets reach a far end, and the next link or the end of their routes; returns their
    /// number. To be called at the time and for the far end that [`Part::next_arrival`] returns.
    #[inline]
    fn arrive(&mut self, far: usize, now: Time) -> usize {
        let mut packets = 0;
        let next = loop {
            let next = self.part().next_at(far);
            if next > now {
                break next;
            }
            // Bound by reference: a move would copy all its bytes.
            let received = self.part().receive(far, now);
            self.tell_gone(End::Far(far as u32));
            let Some(packet) = &received else { continue };
            packets += 1;
            self.forward(packet, now);
            if !self.goes_on(packet, now) {
                return packets;
            }
        };
        self.part().arrivals.schedule(far, next);
        packets
    }

    /// A packet that a far end has received goes to the next link, or has reached the end of its route.
    #[inline]
    fn forward(&mut self, packet: &Self::Packet, now: Time) {
        match self.part().hops[packet.position() as usize + 1] {
            END => self.deliver(packet, now),
            next => self.send(next, &packet.onward(), now),
        }
    }

    /// A packet begins its route.
    #[inline]
    fn enter(&mut self, packet: &Self::Packet, now: Time) {
        let first = self.part().hops[packet.position() as usize];
        self.send(first, packet, now);
    }

    /// A packet arrives at a near end.
    #[inline]
    fn send(&mut self, near: u32, packet: &Self::Packet, now: Time) {
        self.steps();
        let accepted = self.part().send(near as usize, packet, now);
        if Self::FOLLOWS {
            let link = self.part().nears[near as usize].link;
            if accepted {
                self.crosses(link, packet, now);
            } else {
                self.dropped(link, packet, now);
            }
            self.tell_gone(End::Near(near));
        }
    }

    /// Reports packets that a link dropped after it had accepted them, and those that its wire lost.
    #[inline]
    fn tell_gone(&mut self, end: End) {
        if !Self::FOLLOWS {
            return;
        }
        let (link, drops, lost) = self.part().gone(end);
        for (at, packet) in &drops {
            self.dropped(link, packet, *at);
        }
        for packet in &lost {
            self.lost(link, packet);
        }
    }
}

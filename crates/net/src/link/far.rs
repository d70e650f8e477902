//! The far end of a link: losses on the wire, delays of single packets, rewritten ECN fields, arrivals.

use elephan_units::{Seed, Time};

use super::run::Run;
use super::wire::Wire;
use crate::config::{EcnRewrite, LinkConfig};
use crate::loss::Losses;
use crate::packet::{Ecn, Head, Packet};
use crate::vary::Varied;

/// The far end of a link.
pub struct FarEnd<P> {
    pub(super) delay: Time,
    pub(super) losses: Losses,
    pub(super) varied: Option<Box<Varied<P>>>,
    ecn: Option<EcnRewrite>,
    /// Packets that reached the far end, and packets that the wire lost.
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// Of the lost packets, those offered before the measuring window, since it began.
    pub(super) lost_earlier: u64,
    /// Packets with numbers below this were offered before the measuring window; so were those that the wire
    /// lists.
    pub(super) earlier: u64,
    /// Packets that the wire lost, if they are requested.
    pub(super) kept: Option<Vec<P>>,
}

impl<P: Packet> FarEnd<P> {
    /// The far end of link number `index` of a run.
    pub fn new(config: &LinkConfig, seed: Seed, index: u64) -> Self {
        Self {
            delay: config.delay,
            losses: Losses::new(config.loss, seed, index),
            varied: config.vary.map(|vary| Box::new(Varied::new(Some(vary), seed, index))),
            ecn: config.ecn,
            delivered: 0,
            lost: 0,
            lost_earlier: 0,
            earlier: 0,
            kept: None,
        }
    }

    /// When the first packet of the wire reaches its end.
    #[inline(always)]
    fn first(&self, wire: &Wire<P>) -> Time {
        wire.front().map_or(Time::MAX, |run| run.times.first().saturating_add(self.delay))
    }

    /// When [`FarEnd::receive`] is to be called next; `Time::MAX` if no packet is on the link.
    #[inline]
    pub fn next_event(&self, wire: &Wire<P>) -> Time {
        match &self.varied {
            None => self.first(wire),
            Some(varied) => self.first(wire).min(varied.next()),
        }
    }

    /// Lends the first packets of a wire on which nothing is sent meanwhile, and the place of the first run of them; each arrives
    /// [`FarEnd::delay`] after its service. `None` if each is to be received by [`FarEnd::receive`], because the wire may lose it,
    /// delay it further or rewrite it, and if there is no packet.
    #[inline]
    pub fn lend(&self, wire: &mut Wire<P>) -> Option<(Vec<Run<P::Head>>, usize)> {
        let is_plain = self.varied.is_none() && self.is_transparent();
        (is_plain && !wire.is_empty()).then(|| wire.lend())
    }

    /// Whether each packet leaves the wire as it was sent.
    #[inline(always)]
    fn is_transparent(&self) -> bool {
        matches!(self.losses, Losses::None) && self.ecn.is_none()
    }

    /// Takes back the packets that were lent, of which all runs before place `taken` have arrived, and `arrived` packets in all.
    #[inline]
    pub fn give_back(&mut self, wire: &mut Wire<P>, chunk: Vec<Run<P::Head>>, taken: usize, arrived: u64) {
        self.delivered += arrived;
        wire.give_back(chunk, taken);
    }

    /// The propagation delay.
    #[inline]
    pub fn delay(&self) -> Time {
        self.delay
    }

    /// The next packet that has reached the far end by `now`; call it while [`FarEnd::next_event`] is not later than `now`.
    #[inline(always)]
    pub fn receive(&mut self, wire: &mut Wire<P>, now: Time) -> Option<P> {
        if self.varied.is_some() {
            return self.receive_varied(wire, now);
        }
        if !self.is_transparent() {
            return self.receive_spared(wire, now);
        }
        if self.first(wire) > now {
            return None;
        }
        self.delivered += 1;
        wire.pop()
    }

    #[inline(never)]
    fn receive_spared(&mut self, wire: &mut Wire<P>, now: Time) -> Option<P> {
        while self.first(wire) <= now {
            let packet = self.off_the_wire(wire);
            if packet.is_some() {
                self.delivered += 1;
                return packet;
            }
        }
        None
    }

    #[inline(never)]
    fn receive_varied(&mut self, wire: &mut Wire<P>, now: Time) -> Option<P> {
        loop {
            let arrival = self.first(wire);
            let varied = self.varied.as_mut()?;
            if let Some(packet) = varied.take(now.min(arrival)) {
                self.delivered += 1;
                return Some(packet);
            }
            if arrival > now {
                return None;
            }
            let number = self.number();
            if let Some(packet) = self.off_the_wire(wire) {
                self.varied.as_mut()?.hold(packet, number, arrival);
            }
        }
    }

    /// The number of the wire's first packet: the number of packets that have left the wire since the link
    /// last went down.
    pub(super) fn number(&self) -> u64 {
        self.delivered + self.lost + self.varied.as_ref().map_or(0, |varied| varied.len()) as u64
    }

    /// How many packets have come off the wire, and how many have reached the far end since: it grows with either.
    pub fn progress(&self) -> u64 {
        self.number() + self.delivered
    }

    /// Whether packet `number` was offered before the measuring window.
    pub(super) fn is_earlier(&self, wire: &Wire<P>, number: u64) -> bool {
        number < self.earlier || wire.earlier.binary_search(&number).is_ok()
    }

    /// Takes the first packet off the wire, when its time has come; `None` if the wire lost it.
    pub(super) fn off_the_wire(&mut self, wire: &mut Wire<P>) -> Option<P> {
        wire.front()?;
        let is_lost = self.losses.loses();
        if is_lost {
            self.lost_earlier += u64::from(self.is_earlier(wire, self.number()));
            self.lost += 1;
        }
        let packet = wire.pop()?;
        if is_lost && let Some(kept) = &mut self.kept {
            kept.push(packet);
        }
        (!is_lost).then(|| self.rewritten(packet))
    }

    /// The packet with the ECN field that it has behind the link.
    fn rewritten(&self, packet: P) -> P {
        let mut head = *packet.head();
        let ecn = match (self.ecn, head.ecn()) {
            (Some(EcnRewrite::Bleach), Ecn::Capable0 | Ecn::Capable1 | Ecn::Congestion) => Ecn::NotCapable,
            (Some(EcnRewrite::Clear), Ecn::Congestion) => Ecn::Capable0,
            _ => return packet,
        };
        head.set_ecn(ecn);
        P::join(&head, packet.rest())
    }

    /// From now on, keeps the packets that the wire loses, for [`FarEnd::lost`].
    pub fn keep_lost(&mut self) {
        self.kept = Some(Vec::new());
    }

    /// The packets that the wire has lost since the last call.
    pub fn lost(&mut self) -> Vec<P> {
        self.kept.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

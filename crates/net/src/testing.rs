//! Shared helpers for the tests of queues.

use elephan_units::{Seed, Time};

use crate::config::LinkConfig;
use crate::ledger::Ledger;
use crate::link::{FarEnd, NearEnd, Times, View, Wire};
use crate::packet::{Ecn, Head, Packet};

/// A packet with a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parcel {
    pub id: u64,
    pub bytes: u32,
    pub ecn: Ecn,
    pub dscp: u8,
    pub flow: u64,
}

/// Every eighth has a rest, and others may form runs.
impl Packet for Parcel {
    type Head = Self;
    type Rest = u64;

    fn head(&self) -> &Self {
        self
    }
    fn rest(&self) -> Option<u64> {
        self.has_rest().then_some(self.id)
    }
    fn join(head: &Self, rest: Option<u64>) -> Self {
        assert_eq!(rest, head.has_rest().then_some(head.id), "the rest is its own");
        *head
    }
}

impl Head for Parcel {
    fn has_rest(&self) -> bool {
        self.id.is_multiple_of(8)
    }
    fn behind(&self, places: u32) -> Self {
        Self { id: self.id + u64::from(places), ..*self }
    }
    fn has_behind(&mut self, places: u32, next: &Self) -> bool {
        *next == self.behind(places)
    }
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }
    fn mark(&mut self) {
        assert_ne!(self.ecn, Ecn::NotCapable, "only capable packets are marked");
        self.ecn = Ecn::Congestion;
    }
    fn dscp(&self) -> u8 {
        self.dscp
    }
    fn set_dscp(&mut self, dscp: u8) {
        self.dscp = dscp;
    }
    fn flow(&self) -> u64 {
        self.flow
    }
}

/// An ECN-capable packet of 1500 bytes.
pub fn parcel(id: u64) -> Parcel {
    Parcel { id, bytes: 1500, ecn: Ecn::Capable0, dscp: 0, flow: 0 }
}

impl Ledger<Parcel> {
    /// Keeps a packet that arrives at time zero; returns its place.
    pub fn put(&mut self, packet: Parcel) -> u32 {
        self.packets.insert(&packet, packet.rest(), Time::ZERO)
    }

    /// Takes the packet at this place.
    pub fn take(&mut self, place: u32) -> Parcel {
        let (stored, rest) = self.packets.remove(place);
        Parcel::join(&stored.head, rest)
    }
}

/// A link with both ends in one place.
pub struct Link {
    near: NearEnd<Parcel>,
    wire: Wire<Parcel>,
    far: FarEnd<Parcel>,
}

impl Link {
    pub fn new(config: LinkConfig, seed: Seed, index: u64) -> Self {
        let far = FarEnd::new(&config, seed, index);
        Self { near: NearEnd::new(config, seed, index), wire: Wire::default(), far }
    }

    pub fn view(&mut self) -> View<'_, Parcel> {
        View { near: &mut self.near, wire: &mut self.wire, far: &mut self.far }
    }

    pub fn send(&mut self, packet: Parcel, now: Time) -> bool {
        self.near.send(&packet, &mut self.wire, now)
    }

    /// Sends packets that have no rest, of which this is the first, each so much later than at its time.
    pub fn send_run(&mut self, first: Parcel, times: &Times, delay: Time) {
        self.near.send_run(first.bytes, times, delay, &first, &mut self.wire);
    }

    pub fn receive(&mut self, now: Time) -> Option<Parcel> {
        self.near.serve(&mut self.wire, now);
        self.far.receive(&mut self.wire, now)
    }

    /// Sends packets, each so many us after the one before it and with so many bytes. Returns the last time, and what was seen:
    /// arrivals by their names, and after each packet what waits, with one more if it was accepted, and what was transmitted.
    pub fn watched(&mut self, packets: &[(u64, u32)]) -> (Time, Vec<(Time, u64)>) {
        let (mut now, mut seen) = (Time::ZERO, Vec::new());
        for (id, &(gap, bytes)) in packets.iter().enumerate() {
            now += Time::from_micros(gap);
            while self.next_event() <= now {
                let at = self.next_event();
                seen.extend(self.receive(at).map(|packet| (at, packet.id)));
            }
            let accepted = self.send(Parcel { bytes, ..parcel(id as u64) }, now);
            seen.push((now, self.view().waiting(now).bytes + u64::from(accepted)));
            seen.push((now, self.view().transmitted(now)));
        }
        (now, seen)
    }

    pub fn next_event(&self) -> Time {
        self.far.next_event(&self.wire)
    }

    pub fn is_idle(&self) -> bool {
        self.wire.is_empty()
    }

    pub fn keep_drops(&mut self) {
        self.near.keep_drops();
    }

    pub fn drops(&mut self) -> Vec<(Time, Parcel)> {
        self.near.drops()
    }
}

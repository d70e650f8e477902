//! A link in one direction: a queue, a transmitter, a wire.
//!
//! Where the discipline decides when a packet arrives and serves in order, the end of a packet's service is known when it
//! arrives: packets that wait and packets that propagate stand in one ring, in order, and a cursor tells them apart.
//!
//! A discipline that decides when a packet leaves (CoDel), or in which order (fair queueing), keeps its packets in a `PacketQueue`, and
//! so does a link that changes during the run. The ring then has the packets in service and behind it. Which packet is served
//! next is decided when somebody looks, as of the moment when the transmitter became free: nothing has arrived since that was
//! not known then. A link needs one event at a time, the arrival of its head, in either case: as long as something waits, the
//! packet in service is in the ring.
//!
//! A new rate concerns the packets that wait; the one in service keeps its time. Before a new delay, what has left the transmitter
//! moves to the side heap with its old one. A link that goes down drops what waits and what is on the wire.

use std::collections::{BTreeMap, VecDeque};

use elephan_units::{Rate, Seed, Time};

use crate::aqm::{EnqueueAqm, Moment, Verdict, Waiting};
use crate::classes::ClassCounters;
use crate::config::{LinkConfig, Loss};
use crate::ledger::{Ledger, LinkCounters, Reason};
use crate::loss::Losses;
use crate::packet::Packet;
use crate::packet_queue::PacketQueue;
use crate::policer::Bucket;
use crate::serializer::{PICOS_BITS, Serializer};
use crate::statistics::QueueStatistics;
use crate::vary::Varied;

#[derive(Clone, Copy, Debug)]
struct Entry<P> {
    /// When the transmitter ends with it.
    finish: Time,
    packet: P,
}

/// What stands before the queue, where anything does.
#[derive(Default)]
struct Ingress {
    buckets: Vec<Bucket>,
    down: bool,
}

/// A link in one direction.
pub struct Link<P> {
    /// Packets in order of service; those before `served` have begun to be served.
    ring: VecDeque<Entry<P>>,
    served: usize,
    /// When the last of these leaves the transmitter, and the next begins.
    next_start: Time,
    /// When the transmitter has nothing more to do.
    free_at: Time,
    waiting: Waiting,
    /// Decides on packets that join the ring; none for DropTail.
    aqm: Option<Box<EnqueueAqm>>,
    /// Packets that wait, where they do not in the ring.
    queue: Option<Box<PacketQueue<P>>>,
    ingress: Option<Box<Ingress>>,
    serializer: Option<Serializer>,
    losses: Losses,
    varied: Option<Box<Varied<P>>>,
    ledger: Ledger<P>,
    statistics: QueueStatistics,
    config: LinkConfig,
    /// The rate of the packet in service, which a new one does not concern.
    service_rate: Option<Rate>,
    /// What the rate has allowed until it last changed, and when that was; bits times the picoseconds in a second.
    allowed: u128,
    allowed_until: Time,
    seed: Seed,
    index: u64,
    /// Changes of the losses so far: each has random streams of its own.
    loss_changes: u64,
    /// Numbers of packets of the ring that were offered before the measuring window: all below the first, and those of the
    /// second, which waited in the `PacketQueue` when it began.
    earlier: (u64, Vec<u64>),
}

impl<P: Packet> Link<P> {
    /// Link number `index` of a run.
    pub fn new(config: LinkConfig, seed: Seed, index: u64) -> Self {
        let rate = config.rate.unwrap_or(Rate::from_bits_per_sec(u64::MAX));
        let keeps_packets = config.changes || PacketQueue::<P>::is_needed(&config.queue);
        let queue =
            keeps_packets.then(|| Box::new(PacketQueue::new(&config.queue, config.limit, rate, seed, index)));
        let aqm = if keeps_packets {
            None
        } else {
            EnqueueAqm::new(&config.queue, rate, seed, index).map(Box::new)
        };
        let buckets: Vec<Bucket> = config.police.iter().map(Bucket::new).collect();
        let ingress = (!buckets.is_empty()).then(|| Box::new(Ingress { buckets, down: false }));
        Self {
            ring: VecDeque::new(),
            served: 0,
            next_start: Time::ZERO,
            free_at: Time::ZERO,
            waiting: Waiting::default(),
            aqm,
            queue,
            ingress,
            serializer: config.rate.map(Serializer::new),
            losses: Losses::new(config.loss, seed, index),
            varied: config.vary.map(|vary| Box::new(Varied::new(Some(vary), seed, index))),
            ledger: Ledger::new(),
            statistics: QueueStatistics::default(),
            service_rate: config.rate,
            config,
            allowed: 0,
            allowed_until: Time::ZERO,
            seed,
            index,
            loss_changes: 0,
            earlier: (0, Vec::new()),
        }
    }

    /// Offers `packet` to the queue; returns whether it was accepted.
    #[inline(always)]
    pub fn send(&mut self, mut packet: P, now: Time) -> bool {
        self.ledger.counters.offered += 1;
        if self.ingress.is_some() && !self.admits(&mut packet, now) {
            return false;
        }
        if self.queue.is_some() {
            return self.keep(packet, now);
        }
        self.serve_ring(now);
        let bytes = packet.bytes();
        if let Some(aqm) = &mut self.aqm {
            match aqm.judge(&packet, &Moment { now, waiting: self.waiting, busy_until: self.free_at }) {
                Verdict::Accept => {}
                Verdict::Mark if self.waiting.fills(self.config.limit, bytes) => {}
                Verdict::Mark => {
                    packet.mark();
                    self.ledger.counters.marked += 1;
                }
                Verdict::Drop => {
                    self.ledger.counters.drop(Reason::Early);
                    return false;
                }
            }
        }
        if self.waiting.fills(self.config.limit, bytes) {
            self.ledger.counters.drop(Reason::Full);
            return false;
        }
        self.ledger.counters.bytes_accepted += u64::from(bytes);
        let start = self.free_at.max(now);
        let service = self.serializer.as_mut().map_or(Time::ZERO, |serializer| serializer.next(bytes));
        let finish = start.saturating_add(service);
        self.free_at = finish;
        if start > now {
            self.waiting.add(bytes);
        } else {
            self.served += 1;
            self.next_start = finish;
        }
        self.statistics.record(start - now, self.waiting.packets, now);
        self.ring.push_back(Entry { finish, packet });
        true
    }

    /// Whether a packet may join the queue: the link is up, and its tokens suffice.
    #[inline(never)]
    fn admits(&mut self, packet: &mut P, now: Time) -> bool {
        let Some(ingress) = &mut self.ingress else { return true };
        if ingress.down {
            self.ledger.counters.drop(Reason::Down);
            return false;
        }
        let admitted = ingress.buckets.iter_mut().all(|bucket| bucket.admits(packet, now));
        if !admitted {
            self.ledger.counters.drop(Reason::Policed);
        }
        admitted
    }

    /// Puts a packet into the `PacketQueue`.
    #[inline(never)]
    fn keep(&mut self, packet: P, now: Time) -> bool {
        self.advance(now);
        let Some(queue) = &mut self.queue else { return false };
        if queue.waiting().packets == 0 {
            // Idle until now, unless the transmitter is still busy.
            self.free_at = self.free_at.max(now);
        }
        let accepted = queue.enqueue(packet, now, &mut self.ledger);
        if accepted {
            self.ledger.counters.bytes_accepted += u64::from(packet.bytes());
        }
        self.waiting = queue.waiting();
        self.advance(now);
        self.statistics.record_length(self.waiting.packets, now);
        accepted
    }

    /// Moves from the `PacketQueue` to the ring what has begun to be served by `now`.
    #[inline]
    fn advance(&mut self, now: Time) {
        if self.free_at > now {
            return;
        }
        let Some(queue) = &mut self.queue else { return };
        while self.free_at <= now
            && queue.waiting().packets > 0
            && let Some(stored) = queue.dequeue(self.free_at, &mut self.ledger)
        {
            let start = self.free_at;
            let bytes = stored.packet.bytes();
            let service = self.serializer.as_mut().map_or(Time::ZERO, |serializer| serializer.next(bytes));
            let finish = start.saturating_add(service);
            self.statistics.record(start.since(stored.arrived), 0, stored.arrived);
            if self.ledger.is_earlier(stored.arrived) {
                let held = self.varied.as_ref().map_or(0, |varied| varied.len());
                let counters = &self.ledger.counters;
                self.earlier.1.push(counters.delivered + counters.lost + (held + self.ring.len()) as u64);
            }
            (self.free_at, self.next_start, self.service_rate) = (finish, finish, self.config.rate);
            self.ring.push_back(Entry { finish, packet: stored.packet });
            self.served += 1;
        }
        self.waiting = queue.waiting();
    }

    /// Takes out of the queue what has begun to be served by `now`.
    fn serve(&mut self, now: Time) {
        if self.queue.is_some() { self.advance(now) } else { self.serve_ring(now) }
    }

    #[inline]
    fn serve_ring(&mut self, now: Time) {
        while self.next_start <= now
            && let Some(entry) = self.ring.get(self.served)
        {
            self.waiting.remove(entry.packet.bytes());
            self.next_start = entry.finish;
            self.served += 1;
        }
    }

    /// When the head of the ring comes to the end of the wire.
    #[inline]
    fn head(&self) -> Time {
        self.ring.front().map_or(Time::MAX, |entry| entry.finish.saturating_add(self.config.delay))
    }

    /// Whether a packet that is sent now brings the next event forward.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.ring.is_empty()
    }

    /// When [`Link::receive`] is to be called next; `Time::MAX` when nothing is on its way.
    #[inline]
    pub fn next_event(&self) -> Time {
        match &self.varied {
            None => self.head(),
            Some(varied) => self.head().min(varied.next()),
        }
    }

    /// The next packet that has reached the far end by `now`; call it while [`Link::next_event`] is not later than `now`.
    #[inline(always)]
    pub fn receive(&mut self, now: Time) -> Option<P> {
        if self.queue.is_some() {
            self.advance(now);
        }
        if self.varied.is_some() {
            return self.receive_varied(now);
        }
        while self.head() <= now {
            let packet = self.off_the_wire();
            if packet.is_some() {
                self.ledger.counters.delivered += 1;
                return packet;
            }
        }
        None
    }

    #[inline(never)]
    fn receive_varied(&mut self, now: Time) -> Option<P> {
        loop {
            let arrival = self.head();
            let varied = self.varied.as_mut()?;
            if let Some(packet) = varied.take(now.min(arrival)) {
                self.ledger.counters.delivered += 1;
                return Some(packet);
            }
            if arrival > now {
                return None;
            }
            let number = self.number();
            if let Some(packet) = self.off_the_wire() {
                self.varied.as_mut()?.hold(packet, number, arrival);
            }
        }
    }

    /// The number of the ring's head: so many packets have left the ring before it since the link last went down.
    fn number(&self) -> u64 {
        let counters = &self.ledger.counters;
        counters.delivered + counters.lost + self.varied.as_ref().map_or(0, |varied| varied.len()) as u64
    }

    /// Whether packet `number` of the ring was offered before the measuring window.
    fn is_earlier(&self, number: u64) -> bool {
        number < self.earlier.0 || self.earlier.1.binary_search(&number).is_ok()
    }

    /// Takes the head of the ring off the wire, when its time has come; none where the wire lost it.
    #[inline(always)]
    fn off_the_wire(&mut self) -> Option<P> {
        let entry = self.ring.front()?;
        if self.served > 0 {
            self.served -= 1;
        } else {
            // It has been served by now, though nobody looked since.
            self.waiting.remove(entry.packet.bytes());
            self.next_start = entry.finish;
        }
        // Copied once: what popping returns would be copied again.
        let packet = if self.losses.loses() {
            self.ledger.earlier.lost += u64::from(self.is_earlier(self.number()));
            self.ledger.counters.lost += 1;
            if let Some(lost) = &mut self.ledger.lost {
                lost.push(entry.packet);
            }
            None
        } else {
            Some(entry.packet)
        };
        self.ring.pop_front();
        packet
    }

    /// What waits in the queue at `now`.
    pub fn waiting(&mut self, now: Time) -> Waiting {
        self.serve(now);
        self.waiting
    }

    /// When the packet in service leaves the transmitter and the next begins; not after `now` where nothing is in service.
    pub fn next_start(&mut self, now: Time) -> Time {
        self.serve(now);
        self.next_start
    }

    /// Bytes that the transmitter has put on the wire by `now`: none of what waits, and of the packet in service what
    /// has left, to the nearest byte.
    pub fn transmitted(&mut self, now: Time) -> u64 {
        self.serve(now);
        let counters = &self.ledger.counters;
        let begun = counters.bytes_accepted - counters.bytes_discarded - self.waiting.bytes;
        let Some(rate) = self.service_rate else { return begun };
        let left = u128::from(self.next_start.since(now).picos()) * u128::from(rate.bits_per_sec());
        begun - ((left + PICOS_BITS / 2) / PICOS_BITS) as u64
    }

    /// Packets on the link: waiting, in service or propagating, those included that the wire will lose.
    pub fn in_transit(&self) -> u64 {
        let stored = self.queue.as_ref().map_or(0, |queue| queue.waiting().packets);
        (self.ring.len() + self.varied.as_ref().map_or(0, |varied| varied.len())) as u64 + stored
    }

    /// What was counted.
    pub fn counters(&self) -> &LinkCounters {
        &self.ledger.counters
    }

    /// Bits that the rate has allowed by `now`, while the link was up; none where it has no rate.
    pub fn allowed_bits(&self, now: Time) -> Option<f64> {
        self.config.rate.map(|_| (self.allowed + self.allowed_since_change(now)) as f64 * 1e-12)
    }

    fn allowed_since_change(&self, now: Time) -> u128 {
        let is_up = self.ingress.as_ref().is_none_or(|ingress| !ingress.down);
        let rate = self.config.rate.filter(|_| is_up).map_or(0, Rate::bits_per_sec);
        u128::from(now.since(self.allowed_until).picos()) * u128::from(rate)
    }

    #[cfg(test)]
    fn transmitter_is_busy(&mut self, now: Time) -> bool {
        self.serve(now);
        self.next_start > now
    }

    /// What each class of a scheduler counted; empty for other disciplines.
    pub fn classes(&mut self, now: Time) -> Vec<ClassCounters> {
        self.serve(now);
        let mut classes = Vec::new();
        if let Some(queue) = &self.queue {
            queue.count_classes(&mut classes);
        }
        classes
    }

    /// From now on, keeps the packets that are dropped after they were accepted, for [`Link::drops`].
    pub fn keep_drops(&mut self) {
        self.ledger.drops = Some(Vec::new());
    }

    /// When which packets were dropped after they had been accepted, since this was last asked.
    pub fn drops(&mut self) -> Vec<(Time, P)> {
        self.ledger.drops.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// From now on, keeps the packets that the wire loses, for [`Link::lost`].
    pub fn keep_lost(&mut self) {
        self.ledger.lost = Some(Vec::new());
    }

    /// Which packets the wire has lost since this was last asked.
    pub fn lost(&mut self) -> Vec<P> {
        self.ledger.lost.as_mut().map(std::mem::take).unwrap_or_default()
    }

    // ---- Changes during a run; the link is told of them beforehand, by `LinkConfig::changes` ----

    /// A new rate: the packet in service keeps the old one.
    pub fn set_rate(&mut self, rate: Rate, now: Time) {
        debug_assert!(self.config.changes, "a link that changes is told so beforehand");
        self.advance(now);
        self.allowed += self.allowed_since_change(now);
        self.allowed_until = now;
        self.config.rate = Some(rate);
        self.serializer = Some(Serializer::new(rate));
        if let Some(queue) = &mut self.queue {
            queue.tune(rate);
        }
    }

    /// A new propagation delay, for what has not left the transmitter yet. What has keeps the old one, and may be overtaken.
    pub fn set_delay(&mut self, delay: Time, now: Time) {
        self.advance(now);
        let (seed, index) = (self.seed, self.index);
        while let Some(entry) = self.ring.front().filter(|entry| entry.finish <= now) {
            let arrival = entry.finish.saturating_add(self.config.delay);
            let number = self.number();
            if let Some(packet) = self.off_the_wire() {
                self.varied
                    .get_or_insert_with(|| Box::new(Varied::new(None, seed, index)))
                    .hold(packet, number, arrival);
            }
        }
        self.config.delay = delay;
    }

    /// New losses on the wire.
    pub fn set_loss(&mut self, loss: Option<Loss>) {
        self.loss_changes += 1;
        self.losses = Losses::new(loss, self.seed, self.index | self.loss_changes << 32);
        self.config.loss = loss;
    }

    /// New weights for classes of a scheduler, by name.
    pub fn set_weights(&mut self, weights: &BTreeMap<String, f64>, now: Time) {
        self.advance(now);
        if let Some(queue) = &mut self.queue {
            queue.set_weights(weights);
            if let Some(rate) = self.config.rate {
                queue.tune(rate);
            }
        }
    }

    /// The link goes down, and drops all that it has, or comes up again.
    pub fn set_up(&mut self, up: bool, now: Time) {
        debug_assert!(self.config.changes, "a link that changes is told so beforehand");
        self.advance(now);
        self.allowed += self.allowed_since_change(now);
        self.allowed_until = now;
        self.ingress.get_or_insert_default().down = !up;
        if up {
            return;
        }
        if let Some(queue) = &mut self.queue {
            queue.clear(now, &mut self.ledger);
            self.waiting = queue.waiting();
        }
        // What had left the transmitter stays transmitted.
        let transmitted = self.transmitted(now);
        let ring: Vec<_> = (self.number()..).zip(self.ring.drain(..).map(|entry| entry.packet)).collect();
        let varied = self.varied.as_mut().map(|varied| varied.clear()).unwrap_or_default();
        for (number, packet) in ring.into_iter().chain(varied) {
            self.ledger.counters.drop(Reason::Down);
            if self.is_earlier(number) {
                self.ledger.earlier.drop(Reason::Down);
            }
            if let Some(drops) = &mut self.ledger.drops {
                drops.push((now, packet));
            }
        }
        (self.served, self.free_at, self.next_start) = (0, now, now);
        self.earlier = (0, Vec::new());
        self.ledger.counters.bytes_discarded += self.transmitted(now) - transmitted;
    }

    /// What packets met in the queue.
    pub fn statistics(&self) -> &QueueStatistics {
        &self.statistics
    }

    /// The measuring window begins: [`Link::statistics`] and [`Link::earlier`] start anew. Its packets are those that are offered
    /// from `first` on; all that was offered until now was so before.
    pub fn measure(&mut self, first: Time) {
        self.statistics = QueueStatistics::new(first);
        self.ledger.first = first;
        self.ledger.earlier = LinkCounters::default();
        self.earlier = (self.number() + self.ring.len() as u64, Vec::new());
    }

    /// What the counters have of drops, losses and marks, since the measuring window began, of packets that had been offered
    /// before it.
    pub fn earlier(&self) -> &LinkCounters {
        &self.ledger.earlier
    }

    /// The link's settings.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }
}

#[cfg(test)]
mod tests;

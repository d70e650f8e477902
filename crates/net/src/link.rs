//! A link in one direction: a queue, a transmitter, a wire.
//!
//! If the discipline decides when a packet arrives, and packets are served in order, the end of a packet's
//! service is known at its arrival. Waiting packets and propagating packets are then in one ring, in order,
//! and a cursor separates them.
//!
//! A discipline that decides when a packet leaves (CoDel), or in which order (fair queueing), keeps its
//! packets in a `PacketQueue`, and so does a link that changes during the run. The ring then has the packets
//! in service and behind it. The choice of the next packet is made at the next call, as of the time when the
//! transmitter became free: no packet that arrived later is considered. In either case a link needs one event
//! at a time, the arrival of its head: as long as a packet waits, the packet in service is in the ring.
//!
//! A new rate affects the waiting packets; the packet in service keeps its service time. Before a new delay
//! takes effect, the packets that have left the transmitter move to the side heap with their old delay. A
//! link that goes down drops all waiting packets and those on the wire.

mod changes;
mod report;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use elephan_units::{Rate, Seed, Time};

use crate::config::LinkConfig;
use crate::ledger::{Ledger, Reason};
use crate::loss::Losses;
use crate::packet::Packet;
use crate::packet_queue::PacketQueue;
use crate::policer::Bucket;
use crate::queue::EnqueueAqm;
use crate::serializer::Serializer;
use crate::statistics::QueueStatistics;
use crate::vary::Varied;
use crate::verdict::{Moment, Verdict};
use crate::waiting::Waiting;

#[derive(Clone, Copy, Debug)]
struct Entry<P> {
    /// When the transmitter finishes it.
    finish: Time,
    packet: P,
}

/// The elements before the queue, if there are any.
#[derive(Default)]
struct Ingress {
    buckets: Vec<Bucket>,
    down: bool,
}

/// A link in one direction.
pub struct Link<P> {
    /// Packets in order of service; for those before `served`, service has begun.
    ring: VecDeque<Entry<P>>,
    served: usize,
    /// When the last of these leaves the transmitter, and the next begins.
    next_start: Time,
    /// When the transmitter becomes idle.
    free_at: Time,
    waiting: Waiting,
    /// Decides on packets that join the ring; `None` for DropTail.
    aqm: Option<Box<EnqueueAqm>>,
    /// Waiting packets, unless they wait in the ring.
    queue: Option<Box<PacketQueue<P>>>,
    ingress: Option<Box<Ingress>>,
    serializer: Option<Serializer>,
    losses: Losses,
    varied: Option<Box<Varied<P>>>,
    ledger: Ledger<P>,
    statistics: QueueStatistics,
    config: LinkConfig,
    /// The rate of the packet in service, which a new rate does not affect.
    service_rate: Option<Rate>,
    /// The amount that the rate had allowed at its last change, and the time of that change; bits times the
    /// picoseconds in a second.
    allowed: u128,
    allowed_until: Time,
    seed: Seed,
    index: u64,
    /// Number of changes of the loss model so far: each has its own random streams.
    loss_changes: u64,
    /// Packets of the ring that were offered before the measuring window, by number: all below the first
    /// number, and those in the second field, which waited in the `PacketQueue` when the window began.
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

    /// Whether a packet may join the queue: the link is up, and there are enough tokens.
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

    /// Moves packets whose service has begun by `now` from the `PacketQueue` to the ring.
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

    /// Takes packets whose service has begun by `now` out of the queue.
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

    /// When the head of the ring reaches the end of the wire.
    #[inline]
    fn head(&self) -> Time {
        self.ring.front().map_or(Time::MAX, |entry| entry.finish.saturating_add(self.config.delay))
    }

    /// Whether a packet that is sent now would make the next event earlier.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.ring.is_empty()
    }

    /// When [`Link::receive`] is to be called next; `Time::MAX` if no packet is on the link.
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

    /// The number of the ring's head: the number of packets that have left the ring since the link last went
    /// down.
    fn number(&self) -> u64 {
        let counters = &self.ledger.counters;
        counters.delivered + counters.lost + self.varied.as_ref().map_or(0, |varied| varied.len()) as u64
    }

    /// Whether packet `number` of the ring was offered before the measuring window.
    fn is_earlier(&self, number: u64) -> bool {
        number < self.earlier.0 || self.earlier.1.binary_search(&number).is_ok()
    }

    /// Takes the head of the ring off the wire, when its time has come; `None` if the wire lost it.
    #[inline(always)]
    fn off_the_wire(&mut self) -> Option<P> {
        let entry = self.ring.front()?;
        if self.served > 0 {
            self.served -= 1;
        } else {
            // Its service has ended by now, even if no call has recorded it.
            self.waiting.remove(entry.packet.bytes());
            self.next_start = entry.finish;
        }
        // Copied once: a popped value would be copied again.
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

    /// The packets that wait in the queue at `now`.
    pub fn waiting(&mut self, now: Time) -> Waiting {
        self.serve(now);
        self.waiting
    }

    /// When the packet in service leaves the transmitter and the next begins; not after `now` if none is in
    /// service.
    pub fn next_start(&mut self, now: Time) -> Time {
        self.serve(now);
        self.next_start
    }

    /// The link's settings.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }
}

//! The near end of a link: policers, queue and transmitter.

use std::collections::VecDeque;

use elephan_units::{Rate, Seed, Time};

use super::run::{Run, Times};
use super::wire::Wire;
use crate::class_states::ClassQueue;
use crate::config::LinkConfig;
use crate::ledger::{Ledger, Reason};
use crate::packet::{Head, Packet};
use crate::packet_queue::PacketQueue;
use crate::packets::Queued;
use crate::policer::Bucket;
use crate::queue::EnqueueAqm;
use crate::schedule::Server;
use crate::serializer::Serializer;
use crate::statistics::QueueStatistics;
use crate::verdict::{Moment, Verdict};
use crate::waiting::{Limit, Waiting};

/// The elements before the queue, if there are any.
#[derive(Default)]
pub(super) struct Ingress {
    buckets: Vec<Bucket>,
    pub down: bool,
}

/// What is known of a waiting packet that is on the wire already.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// When the transmitter finishes it.
    finish: Time,
    bytes: u32,
}

/// The near end of a link.
pub struct NearEnd<P: Packet> {
    /// Whether a packet that finds room joins the queue, in order, without further ado.
    is_plain: bool,
    /// When the packet in service leaves the transmitter, and the next begins.
    pub(super) next_start: Time,
    /// When the transmitter becomes idle.
    pub(super) free_at: Time,
    /// What waits, as of the last call of [`NearEnd::serve`], and what has joined it since.
    pub(super) waiting: Waiting,
    /// Below this number of waiting packets another finds room, and does not make the queue the longest so far: so nobody needs to know
    /// what has been served.
    pub(super) unchecked: u64,
    /// The waiting packets, unless they are in the `PacketQueue`.
    places: VecDeque<Place>,
    /// Decides on packets that join the wire; `None` for DropTail.
    aqm: Option<Box<EnqueueAqm>>,
    /// Waiting packets, unless they are on the wire.
    pub(super) queue: Option<Box<PacketQueue>>,
    pub(super) ingress: Option<Box<Ingress>>,
    pub(super) serializer: Option<Serializer>,
    /// In place of the serializer.
    pub(super) server: Option<Box<Server>>,
    pub(super) statistics: QueueStatistics,
    pub(super) ledger: Ledger<P>,
    /// Number of packets given to the wire since the link last went down, on top of those counted then.
    pub(super) entered: u64,
    pub(super) config: LinkConfig,
    /// The rate of the packet in service, which a new rate does not affect.
    pub(super) service_rate: Option<Rate>,
    /// The amount that the rate had allowed at its last change, and the time of that change; bits times the
    /// picoseconds in a second.
    pub(super) allowed: u128,
    pub(super) allowed_until: Time,
    pub(super) seed: Seed,
    pub(super) index: u64,
    /// Number of changes of the loss model so far: each has its own random streams.
    pub(super) loss_changes: u64,
}

impl<P: Packet> NearEnd<P> {
    /// The near end of link number `index` of a run.
    pub fn new(config: LinkConfig, seed: Seed, index: u64) -> Self {
        let rate = config.rate.unwrap_or(Rate::from_bits_per_sec(u64::MAX));
        let keeps_packets =
            config.changes || config.schedule.is_some() || PacketQueue::is_needed(&config.queue);
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
            is_plain: ingress.is_none() && queue.is_none() && aqm.is_none(),
            next_start: Time::ZERO,
            free_at: Time::ZERO,
            waiting: Waiting::default(),
            unchecked: 0,
            places: VecDeque::new(),
            aqm,
            queue,
            ingress,
            serializer: config.rate.map(Serializer::new),
            server: config.schedule.clone().map(|schedule| Box::new(Server::new(schedule))),
            statistics: QueueStatistics::default(),
            ledger: Ledger::new(),
            entered: 0,
            service_rate: config.rate,
            config,
            allowed: 0,
            allowed_until: Time::ZERO,
            seed,
            index,
            loss_changes: 0,
        }
    }

    /// Offers a packet to the queue; returns whether it was accepted.
    #[inline(always)]
    pub fn send(&mut self, packet: &P, wire: &mut Wire<P>, now: Time) -> bool {
        if !self.is_plain {
            return self.send_any(*packet.head(), packet.rest(), wire, now);
        }
        let last = self.free_at;
        let Some(finish) = self.offer(packet.head().bytes(), now) else { return false };
        wire.push(last, finish, packet.head(), packet.rest());
        true
    }

    /// Offers packets of `bytes` that have no rest, of which the first has this head, and the others are [`behind`](Head::behind)
    /// it: each so much later than at its time in `times`.
    #[inline(always)]
    pub fn send_run(&mut self, bytes: u32, times: &Times, delay: Time, head: &P::Head, wire: &mut Wire<P>) {
        if !self.is_plain {
            for (place, now) in times.iter(delay) {
                self.send_any(head.behind(place), None, wire, now);
            }
            return;
        }
        let last = self.free_at;
        if let Some(times) = self.pass(bytes, times, delay) {
            wire.push_run(last, Run { times, head: *head });
            return;
        }
        // Whether the packet before is the last on the wire.
        let mut follows = false;
        for (place, now) in times.iter(delay) {
            let last = self.free_at;
            let finish = self.offer(bytes, now);
            if let Some(finish) = finish
                && !(follows && wire.extend(last, finish))
            {
                wire.push_run(last, Run::new(finish, head.behind(place)));
            }
            follows = finish.is_some();
        }
    }

    /// Packets arrive, so much later than at `times`: returns when the transmitter finishes them, if each finds it idle and takes the
    /// same time. Otherwise nothing has changed.
    #[inline(always)]
    fn pass(&mut self, bytes: u32, times: &Times, delay: Time) -> Option<Times> {
        let first = times.first().saturating_add(delay);
        let is_idle = self.free_at <= first && self.statistics.counts(first);
        if !is_idle || Waiting::default().fills(self.config.limit, bytes) {
            return None;
        }
        let service = match &mut self.serializer {
            Some(serializer) => serializer.next_alike(bytes, times.count(), times.least_gap())?,
            None => Time::ZERO,
        };
        let finished = times.later(delay.saturating_add(service));
        let count = u64::from(times.count());
        self.ledger.counters.offered += count;
        self.ledger.counters.bytes_accepted += count * u64::from(bytes);
        self.statistics.record_none(count);
        self.entered += count;
        self.idle_until(finished.last());
        Some(finished)
    }

    /// The transmitter was idle, and finishes what has arrived at this time.
    #[inline(always)]
    fn idle_until(&mut self, finish: Time) {
        (self.next_start, self.free_at) = (finish, finish);
        if self.waiting.packets > 0 {
            self.places.clear();
            self.waiting = Waiting::default();
        }
    }

    /// A packet arrives at a queue in which each joins the others that finds room: returns when the transmitter finishes it, if it
    /// does.
    #[inline(always)]
    fn offer(&mut self, bytes: u32, now: Time) -> Option<Time> {
        self.ledger.counters.offered += 1;
        let joins = self.waiting.packets < self.unchecked || self.has_room(bytes, now);
        joins.then(|| self.accept(bytes, now))
    }

    /// Finds out what waits at `now`, and whether another packet finds room there.
    #[inline(never)]
    fn has_room(&mut self, bytes: u32, now: Time) -> bool {
        self.serve_places(now);
        if self.waiting.fills(self.config.limit, bytes) {
            self.ledger.counters.drop(Reason::Full);
            return false;
        }
        if self.free_at > now {
            self.statistics.record_length(self.waiting.packets + 1, now);
        }
        self.unchecked = match self.config.limit {
            Limit::Packets(packets) => self.statistics.most_packets().min(packets),
            Limit::Bytes(_) => 0,
        };
        true
    }

    /// The same if policers, or more than the room in the queue, decide.
    #[inline(never)]
    fn send_any(&mut self, mut head: P::Head, rest: Option<P::Rest>, wire: &mut Wire<P>, now: Time) -> bool {
        self.ledger.counters.offered += 1;
        if self.ingress.is_some() && !self.admits(&mut head, now) {
            return false;
        }
        if self.queue.is_some() {
            return self.keep(&head, rest, wire, now);
        }
        self.serve_places(now);
        let bytes = head.bytes();
        if let Some(aqm) = &mut self.aqm {
            match aqm.judge(&head, &Moment { now, waiting: self.waiting, busy_until: self.free_at }) {
                Verdict::Accept => {}
                Verdict::Mark if self.waiting.fills(self.config.limit, bytes) => {}
                Verdict::Mark => {
                    head.mark();
                    self.ledger.counters.marked += 1;
                }
                Verdict::Drop => {
                    self.ledger.counters.drop(Reason::Early);
                    return false;
                }
            }
        }
        if !self.has_room(bytes, now) {
            return false;
        }
        let last = self.free_at;
        let finish = self.accept(bytes, now);
        wire.push(last, finish, &head, rest);
        true
    }

    /// A packet joins the queue; returns when the transmitter finishes it.
    #[inline(always)]
    fn accept(&mut self, bytes: u32, now: Time) -> Time {
        self.ledger.counters.bytes_accepted += u64::from(bytes);
        let service = self.serializer.as_mut().map_or(Time::ZERO, |serializer| serializer.next(bytes));
        let finish;
        if self.free_at > now {
            let delay = self.free_at - now;
            finish = self.free_at.saturating_add(service);
            self.waiting.add(bytes);
            self.places.push_back(Place { finish, bytes });
            self.statistics.record(delay, now);
        } else {
            finish = now.saturating_add(service);
            self.idle_until(finish);
            self.statistics.record(Time::ZERO, now);
        }
        self.free_at = finish;
        self.entered += 1;
        finish
    }

    /// Whether a packet may join the queue: the link is up, and there are enough tokens.
    #[inline(never)]
    fn admits(&mut self, head: &mut P::Head, now: Time) -> bool {
        let Some(ingress) = &mut self.ingress else { return true };
        if ingress.down {
            self.ledger.counters.drop(Reason::Down);
            return false;
        }
        let admitted = ingress.buckets.iter_mut().all(|bucket| bucket.admits(head, now));
        if !admitted {
            self.ledger.counters.drop(Reason::Policed);
        }
        admitted
    }

    /// Puts a packet into the `PacketQueue`.
    #[inline(never)]
    fn keep(&mut self, head: &P::Head, rest: Option<P::Rest>, wire: &mut Wire<P>, now: Time) -> bool {
        self.advance(wire, now);
        self.follow_schedule(now);
        let Some(queue) = &mut self.queue else { return false };
        if self.waiting.packets == 0 && self.free_at <= now {
            // Idle until now.
            self.free_at = self.server.as_mut().map_or(now, |server| server.begin(now));
        }
        let place = self.ledger.packets.insert(head, rest, now);
        let accepted = queue.enqueue(place, now, &mut self.ledger);
        if accepted {
            self.ledger.counters.bytes_accepted += u64::from(head.bytes());
        } else {
            self.ledger.packets.remove(place);
        }
        self.waiting = queue.waiting();
        self.advance(wire, now);
        self.statistics.record_length(self.waiting.packets, now);
        accepted
    }

    /// Moves packets whose service has begun by `now` from the `PacketQueue` to the wire.
    #[inline(always)]
    pub(super) fn advance(&mut self, wire: &mut Wire<P>, now: Time) {
        if self.free_at <= now && self.waiting.packets > 0 {
            self.serve_kept(wire, now);
        }
    }

    #[inline(never)]
    fn serve_kept(&mut self, wire: &mut Wire<P>, now: Time) {
        while self.free_at <= now && self.waiting.packets > 0 {
            if self.server.is_some() {
                self.follow_schedule(self.free_at);
            }
            let Some(queue) = &mut self.queue else { return };
            let place = queue.dequeue(self.free_at, &mut self.ledger);
            self.waiting = queue.waiting();
            let Some(place) = place else { return };
            let (&Queued { arrived, ref head, .. }, rest) = self.ledger.packets.remove(place);
            let start = self.free_at;
            let bytes = head.bytes();
            let (finish, free_at) = if let Some(server) = &mut self.server {
                server.serve(start, bytes)
            } else {
                let service =
                    self.serializer.as_mut().map_or(Time::ZERO, |serializer| serializer.next(bytes));
                let finish = start.saturating_add(service);
                (finish, finish)
            };
            self.statistics.record(start.since(arrived), arrived);
            if arrived < self.ledger.first {
                wire.earlier.push(self.entered);
            }
            wire.push(self.next_start, finish, head, rest);
            (self.free_at, self.next_start, self.service_rate) = (free_at, finish, self.config.rate);
            self.entered += 1;
        }
    }

    /// Tells the queue the rate that the schedule has at `now`.
    fn follow_schedule(&mut self, now: Time) {
        let Some(rate) = self.server.as_mut().and_then(|server| server.new_rate(now)) else { return };
        self.config.rate = Some(rate);
        if let Some(queue) = &mut self.queue {
            queue.tune(rate);
        }
    }

    /// Whether packets wait here until their service begins, so that [`NearEnd::serve`] is needed for them to get
    /// on the wire in time.
    #[inline]
    pub fn keeps_packets(&self) -> bool {
        self.queue.is_some()
    }

    /// When the service of the next packet that is kept here begins; `Time::MAX` if none is.
    #[inline]
    pub fn next_service(&self) -> Time {
        if self.queue.is_some() && self.waiting.packets > 0 { self.free_at } else { Time::MAX }
    }

    /// Takes packets whose service has begun by `now` out of the queue.
    #[inline]
    pub fn serve(&mut self, wire: &mut Wire<P>, now: Time) {
        if self.queue.is_some() { self.advance(wire, now) } else { self.serve_places(now) }
    }

    #[inline]
    fn serve_places(&mut self, now: Time) {
        while self.next_start <= now
            && let Some(place) = self.places.front()
        {
            self.waiting.remove(place.bytes);
            self.next_start = place.finish;
            self.places.pop_front();
        }
    }

    /// The packets that wait in the queue at `now`.
    pub fn waiting(&mut self, wire: &mut Wire<P>, now: Time) -> Waiting {
        self.serve(wire, now);
        self.waiting
    }

    /// When the packet in service leaves the transmitter and the next begins; not after `now` if none is in
    /// service.
    pub fn next_start(&mut self, wire: &mut Wire<P>, now: Time) -> Time {
        self.serve(wire, now);
        self.next_start
    }

    /// The link's settings.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// From now on, keeps the packets that are dropped after they were accepted, for [`NearEnd::drops`].
    pub fn keep_drops(&mut self) {
        self.ledger.drops = Some(Vec::new());
    }

    /// The accepted packets that were dropped since the last call, with the times of the drops.
    pub fn drops(&mut self) -> Vec<(Time, P)> {
        self.ledger.drops.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

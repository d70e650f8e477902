//! The life of a segment on the fast path: it leaves a wire, and goes to the next link or to its connection, which sends
//! what it lets leave.
//!
//! Each function here does what the rules for any packet do (`packets.rs`, `transport.rs`), for packets that follow each other on a
//! wire, or nothing at all.

use elephan_net::Times;
use elephan_network::{Driver, Lent, Part};
use elephan_units::Time;

use crate::engine::site::Running;
use crate::engine::source::Source;
use crate::error::Error;
use crate::packet::{Head, Packet};
use crate::report::{Key, Rank};
use crate::state::connection::{Half, RECEIVER, SENDER, Sending};
use crate::state::steps::Steps;
use crate::state::timers::{Timer, Timers};

impl<const DETAILED: bool> Running<'_, '_, DETAILED> {
    /// Packets reach a far end, up to `until` or another event of this site that is due before: that is, the
    /// events of this far end that follow each other.
    #[inline]
    pub(super) fn arrivals(&mut self, far: usize, until: Time) -> Result<(), Error> {
        let link = self.part.link_of(far);
        let first = self.part.next_at(far);
        let mut before = self.part.progress(far);
        self.site.current = Key { at: first, rank: Rank::Arrival(link) };
        self.begin_event(link, first)?;
        loop {
            let now = self.site.current.at;
            if let Some(mut lent) = self.part.lend(far) {
                let stopped = self.lent_arrivals(far, &mut lent, until);
                self.part.give_back(far, lent);
                stopped?;
            } else if let Some(packet) = &self.part.receive(far, now) {
                self.forward(packet, now);
                self.check_steps(packet, now)?;
            }
            let (now, next) = (self.site.current.at, self.part.next_at(far));
            if next > now {
                if before.is_some() {
                    before = self.count_progress(far, before);
                }
                if next > self.bound(far, until) {
                    self.part.reschedule(far);
                    return Ok(());
                }
                self.begin_event(link, next)?;
            }
        }
    }

    /// The last time at which an arrival at a far end comes before any other event, and not after `until`.
    #[inline(always)]
    fn bound(&self, far: usize, until: Time) -> Time {
        self.site.timers.next_time().min(until).min(self.part.bound(far))
    }

    /// The same for packets that the wire has lent, the first of which is due.
    #[inline]
    fn lent_arrivals(&mut self, far: usize, lent: &mut Lent<Packet>, until: Time) -> Result<(), Error> {
        let link = self.part.link_of(far);
        while let Some((run, delay)) = lent.front() {
            let (head, at) = (&run.head, run.times.first().saturating_add(delay));
            if at > self.site.current.at {
                if at > self.bound(far, until) {
                    break;
                }
                self.begin_event(link, at)?;
            }
            let is_taken = match self.part.near_at(head.position + 1) {
                None if head.is_plain_ack() => self.acknowledgments(far, lent, until),
                None if head.is_plain_data() => self.data(far, lent, until),
                Some(near) if head.is_all() && self.part.leads_out(near) => {
                    self.pass(near, far, lent, until);
                    true
                }
                _ => false,
            };
            if is_taken {
                if !self.site.steps.are_left() {
                    self.look(Source::Link(link as usize), self.site.current.at)?;
                }
            } else if let Some((run, _)) = lent.front() {
                let packet = &self.part.join(far, &run.head);
                self.forward(packet, at);
                self.check_steps(packet, at)?;
                lent.take();
            }
        }
        Ok(())
    }

    /// The event of an arrival at a far end begins, unless another comes before.
    #[inline(always)]
    fn goes_on(&mut self, far: usize, at: Time, until: Time) -> bool {
        if at > self.site.current.at {
            if at > self.bound(far, until) {
                return false;
            }
            self.site.current.at = at;
            self.site.handled += 1;
        }
        true
    }

    /// Packets go on to another link: the first run, whose event has begun, and those that follow it there before other events.
    #[inline(never)]
    fn pass(&mut self, near: usize, far: usize, lent: &mut Lent<Packet>, until: Time) {
        let bound = self.bound(far, until);
        let mut now = self.site.current.at;
        let (mut events, mut packets) = (0, 0);
        let (end, wire, hops) = self.part.exit(near);
        while let Some((run, delay)) = lent.front() {
            let (head, at) = (&run.head, run.times.first().saturating_add(delay));
            let goes_on = packets == 0
                || at <= bound && head.is_all() && hops[head.position as usize + 1] as usize == near;
            if !goes_on {
                break;
            }
            events += u64::from(at > now);
            now = at;
            let len = run.times.count();
            let count =
                if len == 1 { 1 } else { count_events(&run.times, delay, bound, &mut now, &mut events) };
            packets += count;
            // As it is stored: a copy that is changed takes longer than the change and the copy.
            run.head.position += 1;
            end.send_run(run.head.bytes.into(), &run.times.up_to(count), delay, &run.head, wire);
            if count < len {
                run.head.position -= 1;
                lent.take_many(count);
                break;
            }
            lent.take_many(count);
        }
        self.site.current.at = now;
        self.site.handled += events;
        self.site.steps.take_many(packets);
    }

    /// Data segments reach the receiving halves of their connections: the first run, whose event has begun, and those that follow
    /// it before other events, as far as they need no other rules. Returns whether there was any.
    #[inline(never)]
    fn data(&mut self, far: usize, lent: &mut Lent<Packet>, until: Time) -> bool {
        let mut any = false;
        while let Some((run, delay)) = lent.front() {
            let (head, first) = (&run.head, run.times.first().saturating_add(delay));
            if any && !(head.is_plain_data() && self.part.near_at(head.position + 1).is_none()) {
                break;
            }
            if !self.goes_on(far, first, until) {
                break;
            }
            let mut bound = self.bound(far, until);
            let Self { site, part } = self;
            let (number, place) = (head.flow, site.place(head.flow));
            let Some(half) = site.sinks[place].connection.as_deref_mut() else { break };
            let Some(back) = part.near_at(half.start) else { break };
            if half.number as u16 != head.connection {
                break;
            }
            if !part.leads_out(back) {
                // An ACK may have an event here before the next segment arrives.
                bound = first;
            }
            let (header, len) = (&head.header, run.times.count());
            let (mut taken, mut last, mut is_quiet) = (0, first, true);
            for (place, at) in run.times.iter(delay) {
                let endpoint = &mut half.endpoint;
                let is_next = if place == 0 {
                    endpoint.on_next_data(header, at)
                } else {
                    at <= bound && endpoint.on_more_data(header, at)
                };
                if !is_next {
                    break;
                }
                site.handled += u64::from(at > last);
                last = at;
                taken += 1;
                send_ack(half, number, back, part, at);
                is_quiet = half.endpoint.is_quiet();
                if !is_quiet {
                    break;
                }
                let due = half.endpoint.poll_timeout();
                bound = bound.min(set_timer(half, number, RECEIVER, due, &mut site.timers, at));
            }
            if taken == 0 {
                break;
            }
            any = true;
            site.steps.take_many(taken);
            site.current.at = last;
            if !is_quiet {
                self.pump_any(number, RECEIVER, last);
            }
            lent.take_many(taken);
            if taken < len {
                break;
            }
        }
        any
    }

    /// ACKs reach the sending halves of their connections, which send what they let leave: the first one, whose event has begun, and
    /// those that follow it before other events, as far as they need no other rules. Returns whether there was any.
    #[inline(never)]
    fn acknowledgments(&mut self, far: usize, lent: &mut Lent<Packet>, until: Time) -> bool {
        let mut any = false;
        while let Some((run, delay)) = lent.front() {
            let (head, now) = (&run.head, run.times.first().saturating_add(delay));
            if any && !(head.is_plain_ack() && self.part.near_at(head.position + 1).is_none()) {
                break;
            }
            if !self.goes_on(far, now, until) {
                break;
            }
            let Self { site, part } = self;
            let (number, place) = (head.flow, site.place(head.flow));
            let Some(connection) = site.slots[place].connection.as_deref_mut() else { break };
            if connection.half.number as u16 != head.connection
                || !site.hosts.is_empty()
                || !connection.half.endpoint.on_next_ack(&head.header, now)
            {
                break;
            }
            any = true;
            lent.take();
            if !send_burst(connection, number, part, (&mut site.timers, &mut site.steps), now) {
                self.pump_any(number, SENDER, now);
                break;
            }
        }
        any
    }

    /// Sends the pending segments of an end, if nothing else happens to the connection, and sets its next timer; returns false if
    /// there is more to do.
    #[inline]
    pub(super) fn send<const END: usize>(&mut self, number: u32, now: Time) -> bool {
        let Self { site, part } = self;
        let place = site.place(number);
        if END == SENDER {
            let Some(connection) = site.slots[place].connection.as_deref_mut() else { return false };
            return site.hosts.is_empty()
                && send_burst(connection, number, part, (&mut site.timers, &mut site.steps), now);
        }
        let Some(half) = site.sinks[place].connection.as_deref_mut() else { return false };
        let Some(back) = part.near_at(half.start) else { return false };
        if !send_ack(half, number, back, part, now) {
            return false;
        }
        site.steps.take();
        let is_done = site.steps.are_left() && half.endpoint.is_quiet();
        if is_done {
            set_timer(half, number, RECEIVER, half.endpoint.poll_timeout(), &mut site.timers, now);
        }
        is_done
    }
}

/// Counts the events of packets that arrive one after the other up to `bound`, the first of which has been counted: returns the
/// number of these packets.
#[inline]
fn count_events(times: &Times, delay: Time, bound: Time, now: &mut Time, events: &mut u64) -> u32 {
    for (place, at) in times.iter(delay) {
        if place > 0 && at > bound {
            return place;
        }
        *events += u64::from(at > *now);
        *now = at;
    }
    times.count()
}

/// Sends the segments of a sender that may leave now, if all are new and alike, and sets its timer. Returns false if there is more to
/// do for the connection.
#[inline(always)]
fn send_burst(
    connection: &mut Sending,
    number: u32,
    part: &mut Part<Packet>,
    (timers, steps): (&mut Timers, &mut Steps),
    now: Time,
) -> bool {
    let half = &mut connection.half;
    let Some(near) = part.near_at(half.start) else { return false };
    let Some(burst) = half.endpoint.poll_burst(now) else { return false };
    let head = Head::new(burst.first, half.address(number, SENDER), burst.ecn_capable);
    part.send_run(near, head.bytes.into(), &Times::at_once(burst.count, now), &head);
    steps.take_many(burst.count.into());
    let endpoint = &half.endpoint;
    let is_done = burst.is_all
        && !connection.has_app
        && steps.are_left()
        && endpoint.reductions() == u64::from(connection.reductions)
        && !endpoint.is_finished();
    if is_done {
        let due = connection.due();
        set_timer(&mut connection.half, number, SENDER, due, timers, now);
    }
    is_done
}

/// Sends the ACK of a receiver, if it has one without SACK blocks to send, to the link `back`; returns false, with nothing changed, if
/// not.
#[inline(always)]
fn send_ack(half: &mut Half, number: u32, back: usize, part: &mut Part<Packet>, now: Time) -> bool {
    let Some(header) = half.endpoint.poll_ack(now) else { return false };
    let head = Head::new(header, half.address(number, RECEIVER), false);
    part.send_run(back, head.bytes.into(), &Times::at_once(1, now), &head);
    true
}

/// Wakes an end when it is due, if that is before it is woken anyway; returns when it is, or `Time::MAX`. Timers are lazy: when the due
/// time moves to later, the timer stays, fires early, and is then set to the new time.
#[inline(always)]
fn set_timer(half: &mut Half, number: u32, end: usize, due: Time, timers: &mut Timers, now: Time) -> Time {
    if due >= half.wake {
        return Time::MAX;
    }
    half.wake = due.max(now);
    timers.schedule(Timer::End(number, end), half.wake);
    half.wake
}

//! The two ends of a connection: what they send, and when their timers run.

use elephan_metrics::trace::EventKind;
use elephan_units::Time;

use crate::engine::site::Running;
use crate::packet::Packet;
use crate::report::Report;
use crate::state::connection::{Half, RECEIVER, SENDER};
use crate::state::timers::Timer;

impl<const DETAILED: bool> Running<'_, '_, DETAILED> {
    /// An end of the current connection of a slot.
    #[inline]
    pub(super) fn half(&mut self, slot: u32, end: usize) -> Option<&mut Half> {
        let place = self.site.place(slot);
        if end == SENDER {
            self.site.slots[place].connection.as_mut().map(|connection| &mut connection.half)
        } else {
            self.site.sinks[place].connection.as_deref_mut()
        }
    }

    /// When an end wants to be woken.
    #[inline]
    fn due(&self, slot: u32, end: usize) -> Option<Time> {
        let place = self.site.place(slot);
        if end == SENDER {
            self.site.slots[place].connection.as_ref().map(|connection| connection.due())
        } else {
            self.site.sinks[place].connection.as_ref().map(|half| half.endpoint.poll_timeout())
        }
    }

    /// Sends all pending segments of an end, and sets its next timer.
    #[inline]
    pub(super) fn pump<const END: usize>(&mut self, number: u32, now: Time) {
        if DETAILED || !self.pump_plainly::<END>(number, now) {
            self.pump_any(number, END, now);
        }
    }

    /// The same with the checks that are not for every packet.
    #[inline(never)]
    fn pump_any(&mut self, number: u32, end: usize, now: Time) {
        if end == SENDER && matches!(self.site.hosts.get(self.site.place(number)), Some(Some(_))) {
            self.work(number, now);
        } else {
            self.transmit_all(number, end, now);
        }
        if end == SENDER && self.watch(number, now) {
            return;
        }
        // Timers are lazy: when the due time moves to later, the timer stays, fires early, and is then set to
        // the new time.
        let Some(due) = self.due(number, end) else { return };
        if self.half(number, end).is_some_and(|half| due < half.wake) {
            // The due time of segments that a busy host held back is in the past.
            self.set_timer(number, end, due.max(now));
        }
    }

    /// The same, if nothing else happens to the connection; returns false if there is more to do, before or after
    /// segments were sent.
    #[inline]
    fn pump_plainly<const END: usize>(&mut self, number: u32, now: Time) -> bool {
        let Self { site, part } = self;
        let place = site.place(number);
        let (half, stop) = if END == SENDER {
            if !site.hosts.is_empty() {
                return false;
            }
            let Some(connection) = &mut site.slots[place].connection else { return false };
            (&mut connection.half, connection.stop)
        } else {
            let Some(half) = &mut site.sinks[place].connection else { return false };
            (&mut **half, Time::MAX)
        };
        let near = part.near_at(half.start);
        let (serial, start, dscp) = (half.number as u16, half.start, half.dscp);
        let mut is_all = false;
        if END == SENDER
            && let Some(burst) = half.endpoint.poll_burst(now)
        {
            let (capable, count) = (burst.ecn_capable, burst.count);
            let first = Packet::new(&burst.first, number, serial, start, END == RECEIVER, capable, dscp);
            let (bytes, len) = (first.wire_bytes(), u32::from(burst.first.len));
            for place in 0..count {
                part.send(near, bytes, || first.plain_at(place * len), now);
            }
            is_all = burst.is_all;
            site.steps.take_many(count);
            if !site.steps.are_left() {
                return false;
            }
        }
        while !is_all && let Some(segment) = &half.endpoint.poll_transmit(now) {
            let capable = half.endpoint.ecn_capable();
            let packet = Packet::new(segment, number, serial, start, END == RECEIVER, capable, dscp);
            if packet.is_plain() {
                part.send(near, packet.wire_bytes(), || packet.plain_at(0), now);
            } else {
                part.send(near, packet.wire_bytes(), || packet, now);
            }
            site.steps.take();
            if !site.steps.are_left() {
                return false;
            }
            is_all = END == RECEIVER && half.endpoint.is_quiet();
        }
        let due = half.endpoint.poll_timeout().min(stop);
        let is_earlier = due < half.wake;
        if END == SENDER {
            let Some(connection) = &site.slots[place].connection else { return false };
            let endpoint = &connection.half.endpoint;
            if endpoint.reductions() > connection.reductions || endpoint.is_finished() {
                return false;
            }
        }
        if is_earlier {
            self.set_timer(number, END, due.max(now));
        }
        true
    }

    /// Sets the timer of an end.
    fn set_timer(&mut self, number: u32, end: usize, due: Time) {
        if let Some(half) = self.half(number, end) {
            half.wake = due;
            self.site.timers.schedule(Timer::End(number, end), due);
        }
    }

    /// Detects that a window was reduced, that a transfer has ended, or that a connection is closed; in the
    /// last case nothing is left to do for the connection.
    #[inline]
    fn watch(&mut self, number: u32, now: Time) -> bool {
        let Some(connection) = &mut self.site.slot(number).connection else { return true };
        let sender = &connection.half.endpoint;
        let ends = sender.is_finished();
        let reductions = sender.reductions();
        if reductions > connection.reductions {
            connection.reductions = reductions;
            if (number as usize) < self.site.plan.flows.len() {
                self.report(Report::Congestion(number));
            }
            if DETAILED {
                self.tell_of_slot(EventKind::Congestion, number, None, now);
            }
        }
        ends && self.finish(number, now)
    }

    /// A timer of an end, or the start of a flow.
    pub(super) fn wake(&mut self, number: u32, end: usize, now: Time) {
        let timer = Timer::End(number, end);
        self.site.timers.schedule(timer, Time::MAX);
        let Some(half) = self.half(number, end) else {
            if end == SENDER {
                self.begin(number, now);
            }
            return;
        };
        half.wake = Time::MAX;
        if !(end == SENDER && self.stop(number, now)) {
            let due = self.due(number, end).unwrap_or(Time::MAX);
            if due > now {
                self.half(number, end).into_iter().for_each(|half| half.wake = due);
                self.site.timers.schedule(timer, due);
                return;
            }
        }
        let Some(half) = self.half(number, end) else { return };
        let endpoint = &mut half.endpoint;
        let timeouts = endpoint.counters().timeouts;
        endpoint.on_timer(now);
        if DETAILED && endpoint.counters().timeouts > timeouts {
            self.tell_of_slot(EventKind::Timeout, number, None, now);
        }
        if end == SENDER {
            self.pump::<SENDER>(number, now);
            self.hold(number, now);
            self.give_up(number, now);
        } else {
            self.pump::<RECEIVER>(number, now);
        }
    }

    /// Stops the application of a sender, if it is time; returns whether it was.
    fn stop(&mut self, number: u32, now: Time) -> bool {
        let Some(connection) = &mut self.site.slot(number).connection else { return false };
        if connection.stop > now {
            return false;
        }
        connection.stop = Time::MAX;
        connection.half.endpoint.stop();
        true
    }
}

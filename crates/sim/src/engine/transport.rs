//! The two ends of a connection: what they send, and when they are woken.

use elephan_metrics::trace::EventKind;
use elephan_units::Time;

use crate::engine::Engine;
use crate::engine::steps::Source;
use crate::observer::Observer;
use crate::state::connection::SENDER;
use crate::state::timers::Timer;

impl<O: Observer> Engine<'_, O> {
    /// Lets an end send what it has to send, and sees when it wants to be woken.
    #[inline]
    pub(super) fn pump(&mut self, number: u32, end: usize, now: Time) {
        if end == SENDER && matches!(self.state.hosts.get(number as usize), Some(Some(_))) {
            self.work(number, now);
        } else {
            while self.transmit(number, end, now) {
                if !self.steps.are_left() && self.stops(Source::Slot(number), now) {
                    break;
                }
            }
        }
        if end == SENDER && self.watch(number, now) {
            return;
        }
        let Some(connection) = &mut self.state.slots[number as usize].connection else { return };
        // Timers are lazy: one that moved back stays, fires early, and finds its new time then.
        let due = connection.due(end);
        if due < connection.wakes[end] {
            // What a busy host did not let go is past its time.
            let due = due.max(now);
            connection.wakes[end] = due;
            self.state.timers.schedule(Timer::End(number, end), due);
        }
    }

    /// Notices that a window was reduced, that a transfer has ended, or that a connection is closed; in the last case there is
    /// nothing left to do for it.
    #[inline]
    fn watch(&mut self, number: u32, now: Time) -> bool {
        let Some(connection) = &mut self.state.slots[number as usize].connection else { return true };
        let sender = &connection.ends[SENDER];
        let ends = sender.is_finished();
        let reductions = sender.counters().reductions;
        if reductions > connection.reductions {
            connection.reductions = reductions;
            if (number as usize) < self.state.plan.flows.len() {
                self.observer.congestion(number, now);
            }
            if O::DETAILED {
                self.tell_of_slot(EventKind::Congestion, number, None, now);
            }
        }
        ends && self.finish(number, now)
    }

    /// A timer of an end, or the start of a flow.
    pub(super) fn wake(&mut self, number: u32, end: usize, now: Time) {
        let timer = Timer::End(number, end);
        self.state.timers.schedule(timer, Time::MAX);
        let Some(connection) = &mut self.state.slots[number as usize].connection else {
            self.begin(number, now);
            return;
        };
        connection.wakes[end] = Time::MAX;
        if end == SENDER && connection.stop <= now {
            connection.stop = Time::MAX;
            connection.ends[SENDER].stop();
        } else {
            let due = connection.due(end);
            if due > now {
                connection.wakes[end] = due;
                self.state.timers.schedule(timer, due);
                return;
            }
        }
        let endpoint = &mut connection.ends[end];
        let timeouts = endpoint.counters().timeouts;
        endpoint.on_timer(now);
        if O::DETAILED && endpoint.counters().timeouts > timeouts {
            self.tell_of_slot(EventKind::Timeout, number, None, now);
        }
        self.pump(number, end, now);
        if end == SENDER {
            self.hold(number, now);
        }
        self.give_up(number, now);
    }
}

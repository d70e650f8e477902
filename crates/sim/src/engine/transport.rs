//! The two ends of a connection: what they send, and when their timers run.

use elephan_metrics::trace::EventKind;
use elephan_units::Time;

use crate::engine::Engine;
use crate::engine::steps::Source;
use crate::observer::Observer;
use crate::state::connection::SENDER;
use crate::state::timers::Timer;

impl<O: Observer> Engine<'_, O> {
    /// Sends all pending segments of an end, and sets its next timer.
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
        // Timers are lazy: when the due time moves to later, the timer stays, fires early, and is then set to
        // the new time.
        let due = connection.due(end);
        if due < connection.wakes[end] {
            // The due time of segments that a busy host held back is in the past.
            let due = due.max(now);
            connection.wakes[end] = due;
            self.state.timers.schedule(Timer::End(number, end), due);
        }
    }

    /// Detects that a window was reduced, that a transfer has ended, or that a connection is closed; in the
    /// last case nothing is left to do for the connection.
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

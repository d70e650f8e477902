//! The two ends of a connection: what they send, and when their timers run.

use elephan_metrics::trace::EventKind;
use elephan_units::Time;

use crate::engine::site::Running;
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
            let turn = self.turn_to_speak(slot, end);
            self.site.sinks[place].connection.as_ref().map(|half| half.endpoint.poll_timeout().min(turn))
        }
    }

    /// Sends all pending segments of an end, and sets its next timer.
    #[inline]
    pub(super) fn pump<const END: usize>(&mut self, number: u32, now: Time) {
        let is_done = !DETAILED && self.send::<END>(number, now);
        if !is_done {
            self.pump_any(number, END, now);
        }
    }

    /// The same with the checks that are not for every packet.
    #[inline(never)]
    pub(super) fn pump_any(&mut self, number: u32, end: usize, now: Time) {
        if end == SENDER && matches!(self.site.hosts.get(self.site.place(number)), Some(Some(_))) {
            self.work(number, now);
        } else {
            self.transmit_all(number, end, now);
        }
        if DETAILED && end == SENDER {
            self.note_variables(number, now);
        }
        if end == SENDER {
            if self.watch(number, now) {
                return;
            }
        } else if !self.site.talkers[RECEIVER].is_empty() {
            self.listen(number, RECEIVER, now);
        }
        // Timers are lazy: when the due time moves to later, the timer stays, fires early, and is then set to
        // the new time.
        let Some(due) = self.due(number, end) else { return };
        if self.half(number, end).is_some_and(|half| due < half.wake) {
            // The due time of segments that a busy host held back is in the past.
            self.set_timer(number, end, due.max(now));
        }
    }

    /// Sets the timer of an end.
    fn set_timer(&mut self, number: u32, end: usize, due: Time) {
        if let Some(half) = self.half(number, end) {
            half.wake = due;
            self.site.timers.schedule(Timer::End(number, end), due);
        }
    }

    /// Records the variables of a flow if its state has changed, and the plan asks for them.
    fn note_variables(&mut self, number: u32, now: Time) {
        if !self.site.plan.trace.variables || number as usize >= self.site.plan.flows.len() {
            return;
        }
        let place = self.site.place(number);
        if let Some(detail) = &mut self.site.detail
            && let Some(sender) = self.site.slots[place].sender()
        {
            detail.variables.note(number, sender.controller(), now);
        }
    }

    /// Detects that a window was reduced, that a transfer or a chunk has ended, or that a connection is closed; in the
    /// last case nothing is left to do for the connection.
    #[inline]
    fn watch(&mut self, number: u32, now: Time) -> bool {
        let Some(connection) = &mut self.site.slot(number).connection else { return true };
        let sender = &connection.half.endpoint;
        // An application that writes over time has written all only when it has closed.
        let ends = sender.is_finished() && (!connection.has_app || sender.is_closed());
        let has_app = connection.has_app;
        let reductions = sender.reductions();
        if reductions > u64::from(connection.reductions) {
            connection.reductions = reductions as u32;
            if (number as usize) < self.site.plan.flows.len() {
                self.report(Report::Congestion(number));
            }
            if DETAILED {
                self.tell_of_slot(EventKind::Congestion, number, None, now);
            }
        }
        if has_app {
            self.take_chunks(number, now);
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
        if !self.take_turn(number, end, now) {
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
}

//! The event loop in virtual time: selects the next event and handles it.
//!
//! The order of simultaneous events is: events of links, by number; then those of [`Timer`], in its order;
//! then changes of links and their records; and last the observer, which so sees the effects of all others.

mod backlog;
mod packets;
mod standstill;
mod steps;
mod transfers;
mod transport;

use elephan_network::Driver;
use elephan_units::Time;

use crate::engine::steps::{Source, Steps};
use crate::error::Error;
use crate::observer::{Event, Observer};
use crate::state::State;
use crate::state::connection::SENDER;
use crate::state::timers::Timer;

/// Carries out a run and reports its events to an observer.
pub struct Engine<'a, O> {
    state: State<'a>,
    observer: O,
    steps: Steps,
}

impl<'a, O: Observer> Engine<'a, O> {
    /// An engine for a run that has not begun.
    pub fn new(state: State<'a>, observer: O) -> Self {
        Self { state, observer, steps: Steps::default() }
    }

    /// Runs to the end of the plan.
    pub fn run(mut self) -> Result<(State<'a>, O), Error> {
        let duration = self.state.plan.duration;
        let mut tick = self.next_tick();
        loop {
            let (arrival, link) = self.state.network.next_arrival();
            let timer = self.state.timers.next_time();
            let now = arrival.min(timer).min(tick);
            if now > duration {
                return Ok((self.state, self.observer));
            }
            self.state.handled += 1;
            self.steps.take();
            if !self.steps.are_left() {
                self.look(Source::next(&self.state, now), now)?;
            }
            if arrival <= timer && arrival <= tick {
                self.arrive(link, arrival);
            } else if timer <= tick {
                self.fire(self.state.timers.next(), timer);
            } else {
                self.change(tick);
                self.state.network.record(tick);
                if self.observer.next_tick() <= tick {
                    self.observer.tick(&mut self.state, tick)?;
                }
                tick = self.next_tick();
            }
        }
    }

    /// Time of the next event that belongs to neither a link nor a timer.
    fn next_tick(&self) -> Time {
        let network = &self.state.network;
        self.observer.next_tick().min(network.next_change()).min(network.next_record())
    }

    /// Handles a timer that is due.
    #[inline]
    fn fire(&mut self, timer: Timer, now: Time) {
        match timer {
            Timer::End(slot, end) => self.wake(slot, end, now),
            Timer::Stream(stream) => self.emit(stream, now),
            Timer::Arrival(crowd) => self.arrival(crowd, now),
            Timer::Host(flow) => self.pump(flow, SENDER, now),
        }
    }

    /// Reports an event to the observer.
    fn tell(&mut self, event: Event<'_>, now: Time) {
        self.observer.event(&self.state, now, event);
    }
}

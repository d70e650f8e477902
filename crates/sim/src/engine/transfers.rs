//! Opening and closing of connections: for which transfer one is opened, and what follows when it ends.

use elephan_metrics::trace::EventKind;
use elephan_tcp::Endpoint;
use elephan_traffic::Demand;
use elephan_units::Time;

use crate::engine::Engine;
use crate::observer::Observer;
use crate::state::connection::{Connection, RECEIVER, SENDER};
use crate::state::slot::Owner;
use crate::state::timers::Timer;

impl<O: Observer> Engine<'_, O> {
    /// A flow arrives at random.
    pub(super) fn arrival(&mut self, number: u32, now: Time) {
        let crowd = &mut self.state.crowds[number as usize];
        let size = crowd.members.arrive();
        self.state.timers.schedule(Timer::Arrival(number), crowd.members.next());
        let idle = crowd.idle.pop();
        let slot = idle.unwrap_or_else(|| {
            let slot = self.state.add_slot(Owner::Arrival { crowd: number }, Time::MAX);
            self.state.crowds[number as usize].slots.push(slot);
            slot
        });
        self.open(slot, Some(size), now);
    }

    /// The start time of a slot's next connection has come.
    pub(super) fn begin(&mut self, slot: u32, now: Time) {
        let running = &self.state.slots[slot as usize];
        match running.owner {
            Owner::Flow if running.opened == 0 => {
                let size = self.state.plan.flows[slot as usize].demand.size();
                self.open(slot, size, now);
            }
            Owner::User { crowd, user } => {
                let members = &mut self.state.crowds[crowd as usize].members;
                if let Some(size) = members.ask(user, now) {
                    self.open(slot, Some(size), now);
                }
            }
            Owner::Flow | Owner::Arrival { .. } => {}
        }
    }

    /// Opens a slot's next connection, for a transfer of `size`, or for one without end.
    fn open(&mut self, slot: u32, size: Option<u64>, now: Time) {
        let flow = self.state.plan_of(slot);
        let starts = [flow.forward, flow.reverse].map(|route| self.state.network.start(route));
        let running = &mut self.state.slots[slot as usize];
        let transfer = match running.owner {
            Owner::Flow => running.opened,
            Owner::User { crowd, .. } | Owner::Arrival { crowd } => {
                let opened = &mut self.state.crowds[crowd as usize].opened;
                *opened += 1;
                *opened - 1
            }
        };
        let number = (slot, running.opened);
        let seed = self.state.plan.seed;
        let connection = Connection::new(flow, number, (transfer, size), starts, seed, now);
        running.connection = Some(Box::new(connection));
        running.opened += 1;
        if running.owner == Owner::Flow {
            self.observer.started(slot, now);
        }
        if O::DETAILED {
            self.tell_of_slot(EventKind::Start, slot, None, now);
        }
        self.pump(slot, SENDER, now);
    }

    /// All data that a connection's sender wrote is acknowledged. If the other end has closed too, the slot's
    /// next connection may follow; returns whether it has.
    pub(super) fn finish(&mut self, slot: u32, now: Time) -> bool {
        let running = &mut self.state.slots[slot as usize];
        let Some(connection) = &mut running.connection else { return true };
        let closed = connection.ends[SENDER].peer_is_finished();
        if !connection.is_finished {
            connection.is_finished = true;
            match running.owner {
                Owner::Flow if connection.size.is_some() => self.observer.finished(slot, connection, now),
                Owner::Flow => {}
                Owner::User { crowd: number, user } => {
                    let crowd = &mut self.state.crowds[number as usize];
                    crowd.finished += 1;
                    let page = crowd.members.receive(user);
                    self.observer.crowd_finished(number, connection, page, now);
                }
                Owner::Arrival { crowd } => {
                    self.state.crowds[crowd as usize].finished += 1;
                    self.observer.crowd_finished(crowd, connection, None, now);
                }
            }
            if O::DETAILED {
                self.tell_of_slot(EventKind::Finish, slot, None, now);
            }
        }
        if closed {
            self.close(slot, now);
        }
        closed
    }

    /// A connection is closed: starts what follows in its slot.
    fn close(&mut self, slot: u32, now: Time) {
        for end in [SENDER, RECEIVER] {
            self.state.timers.schedule(Timer::End(slot, end), Time::MAX);
        }
        let running = &mut self.state.slots[slot as usize];
        running.clear();
        match running.owner {
            Owner::Flow => {
                let flow = &self.state.plan.flows[slot as usize];
                if let Demand::Transfers { size, count } = flow.demand
                    && count.is_none_or(|count| running.opened < count)
                    && flow.stop.is_none_or(|stop| now < stop)
                {
                    self.open(slot, Some(size.get()), now);
                }
            }
            Owner::User { crowd, user } => {
                let next = self.state.crowds[crowd as usize].members.turn(user, now);
                self.state.timers.schedule(Timer::End(slot, SENDER), next);
            }
            Owner::Arrival { crowd } => self.state.crowds[crowd as usize].idle.push(slot),
        }
    }

    /// A connection of a crowd whose sender gave up after too many timeouts is removed, so that the next can
    /// follow.
    pub(super) fn give_up(&mut self, slot: u32, now: Time) {
        let running = &self.state.slots[slot as usize];
        let (Owner::User { crowd, .. } | Owner::Arrival { crowd }) = running.owner else { return };
        if running.sender().is_some_and(Endpoint::is_reset) {
            self.state.crowds[crowd as usize].failed += 1;
            self.close(slot, now);
        }
    }
}

//! Opening and closing of connections: for which transfer one is opened, what its application writes, and what follows when it ends.

use elephan_metrics::trace::EventKind;
use elephan_tcp::Endpoint;
use elephan_traffic::Demand;
use elephan_units::Time;

use crate::engine::site::Running;
use crate::report::Report;
use crate::state::app::App;
use crate::state::connection::{SENDER, Sending, Transfer};
use crate::state::site::What;
use crate::state::slot::Owner;
use crate::state::timers::Timer;

impl<const DETAILED: bool> Running<'_, '_, DETAILED> {
    /// A flow arrives at random, or a session begins.
    pub(super) fn arrival(&mut self, number: u32, now: Time) {
        let Some(crowd) = &mut self.site.crowds[number as usize] else { return };
        let session = crowd.members.open();
        let size = if session.is_none() { Some(crowd.members.arrive()) } else { None };
        self.site.timers.schedule(Timer::Arrival(number), crowd.members.next());
        let idle = crowd.idle.pop();
        let slot = idle.unwrap_or(self.site.next);
        if idle.is_none() {
            crowd.slots.push(slot);
            self.site.next += 1;
            self.site.add_slot(slot, Owner::Arrival { crowd: number }, Time::MAX);
            self.tell(slot, self.site.plan.crowds[number as usize].flow.forward, What::Added(number));
        }
        if let Some(session) = session {
            self.begin_session(slot, number, session, now);
        }
        self.open(slot, size, now);
    }

    /// The start time of a slot's next connection has come.
    pub(super) fn begin(&mut self, slot: u32, now: Time) {
        let running = self.site.slot(slot);
        match running.owner {
            Owner::Flow if running.opened == 0 => {
                let size = self.site.plan.flows[slot as usize].demand.size();
                self.open(slot, size, now);
            }
            Owner::User { crowd, user } => {
                let crowd = self.site.crowds[crowd as usize].as_mut();
                if let Some(size) = crowd.and_then(|crowd| crowd.members.ask(user, now)) {
                    self.open(slot, Some(size), now);
                }
            }
            Owner::Flow | Owner::Arrival { .. } => {}
        }
    }

    /// Opens a slot's next connection, for a transfer of `size`, or for one without end.
    fn open(&mut self, slot: u32, size: Option<u64>, now: Time) {
        let running = self.site.slot(slot);
        let (owner, opened) = (running.owner, running.opened);
        running.opened += 1;
        let number = match owner.crowd().and_then(|crowd| self.site.crowds[crowd as usize].as_mut()) {
            None => opened,
            Some(crowd) => {
                crowd.opened += 1;
                crowd.opened - 1
            }
        };
        let flow = self.site.plan_of(slot, owner.crowd());
        let start = self.site.paths.start(flow.forward);
        let transfer = size.map(|size| Transfer { number, size, opened_at: now });
        let stack = self.site.stack_of(slot, owner.crowd());
        let connection = Sending::new(flow, stack, (slot, opened), transfer, start, self.site.plan.seed);
        self.site.slot(slot).connection = Some(Box::new(connection));
        if let Demand::App(app) = &flow.demand {
            self.site.add_app(slot, App::new(app, flow.stop, self.site.plan.seed, slot, now));
        }
        if matches!(flow.demand, Demand::App(_) | Demand::Drawn) && size.is_none() {
            self.set_turn(slot);
        }
        if owner == Owner::Flow {
            self.report(Report::Started(slot));
        }
        if DETAILED {
            self.tell_of_slot(EventKind::Start, slot, None, now);
        }
        self.pump::<SENDER>(slot, now);
    }

    /// The application of an end does what it has to do now, if it is time; returns whether it was.
    pub(super) fn take_turn(&mut self, slot: u32, end: usize, now: Time) -> bool {
        if end != SENDER {
            return self.speak(slot, end, now);
        }
        let Some(connection) = self.site.slot(slot).connection.as_deref_mut() else { return false };
        if connection.turn > now {
            return false;
        }
        if !connection.has_app {
            connection.turn = Time::MAX;
            connection.half.endpoint.stop();
            return true;
        }
        if self.speak(slot, SENDER, now) {
            self.set_turn(slot);
            return true;
        }
        let place = self.site.place(slot);
        if let (Some(connection), Some(Some(app))) =
            (&mut self.site.slots[place].connection, self.site.apps.get_mut(place))
        {
            app.take_turn(&mut connection.half.endpoint, now);
        }
        self.set_turn(slot);
        true
    }

    /// Some data of an application may have been acknowledged: reports the chunks of which all was. Some may have arrived.
    pub(super) fn take_chunks(&mut self, slot: u32, now: Time) {
        self.listen(slot, SENDER, now);
        let acked = self.site.slot(slot).sender().map_or(0, |sender| sender.counters().bytes_acked);
        while let Some(chunk) = self.site.app(slot).and_then(|app| app.acknowledge(acked, now)) {
            self.report(Report::Finished(slot, chunk));
        }
        self.set_turn(slot);
    }

    /// Takes note of when it is the turn of a sender's application.
    fn set_turn(&mut self, slot: u32) {
        let app = self.site.app(slot).map_or(Time::MAX, |app| app.turn());
        let turn = app.min(self.turn_to_speak(slot, SENDER));
        let is_session = self.site.talker(slot, SENDER).is_some();
        if let Some(connection) = &mut self.site.slot(slot).connection {
            // A session that the other end has reset is given up at once.
            connection.turn =
                if is_session && connection.half.endpoint.is_reset() { Time::ZERO } else { turn };
        }
    }

    /// All data that a connection's sender wrote is acknowledged. If the other end has closed too, the slot's
    /// next connection may follow; returns whether it has.
    pub(super) fn finish(&mut self, slot: u32, now: Time) -> bool {
        let running = self.site.slot(slot);
        let owner = running.owner;
        let Some(connection) = &mut running.connection else { return true };
        let closed = connection.half.endpoint.peer_is_finished();
        if !connection.is_finished {
            connection.is_finished = true;
            let transfer = connection.transfer.as_deref().copied();
            match (owner, transfer) {
                (Owner::Flow, None) => {}
                (Owner::User { crowd, .. } | Owner::Arrival { crowd }, None) => {
                    self.site.crowds[crowd as usize].iter_mut().for_each(|crowd| crowd.finished += 1);
                }
                (Owner::Flow, Some(transfer)) => self.report(Report::Finished(slot, transfer)),
                (Owner::User { crowd, .. } | Owner::Arrival { crowd }, Some(transfer)) => {
                    let mut page = None;
                    if let Some(crowd) = &mut self.site.crowds[crowd as usize] {
                        crowd.finished += 1;
                        if let Owner::User { user, .. } = owner {
                            page = crowd.members.receive(user);
                        }
                    }
                    self.report(Report::CrowdFinished(crowd, transfer, page));
                }
            }
            if DETAILED {
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
        self.site.timers.schedule(Timer::End(slot, SENDER), Time::MAX);
        let got_all = self.site.slot(slot).sender().is_some_and(Endpoint::peer_is_finished);
        self.close_talk(slot, SENDER, false);
        let running = self.site.slot(slot);
        running.clear();
        let (owner, opened) = (running.owner, running.opened);
        let flow = self.site.plan_of(slot, owner.crowd());
        self.tell(slot, flow.forward, What::Closed(got_all));
        match owner {
            Owner::Flow => {
                if let Demand::Transfers { size, count } = flow.demand
                    && count.is_none_or(|count| opened < count)
                    && flow.stop.is_none_or(|stop| now < stop)
                {
                    self.open(slot, Some(size.get()), now);
                }
            }
            Owner::User { crowd, user } => {
                let next = self.site.crowds[crowd as usize]
                    .as_mut()
                    .map_or(Time::MAX, |crowd| crowd.members.turn(user, now));
                self.site.timers.schedule(Timer::End(slot, SENDER), next);
            }
            Owner::Arrival { crowd } => {
                self.site.crowds[crowd as usize].iter_mut().for_each(|crowd| crowd.idle.push(slot));
            }
        }
    }

    /// A connection of a crowd whose sender gave up after too many timeouts is removed, so that the next can
    /// follow.
    pub(super) fn give_up(&mut self, slot: u32, now: Time) {
        let running = self.site.slot(slot);
        let Some(crowd) = running.owner.crowd() else { return };
        if running.sender().is_some_and(Endpoint::is_reset) {
            self.site.crowds[crowd as usize].iter_mut().for_each(|crowd| crowd.failed += 1);
            self.close(slot, now);
        }
    }
}

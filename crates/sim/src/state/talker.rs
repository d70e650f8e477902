//! An end of the sessions of a slot, one after the other, while a plan is carried out.

use std::collections::VecDeque;

use elephan_tcp::{Counters, Endpoint};
use elephan_traffic::{Act, Script, Side, Talk};
use elephan_units::Time;

use crate::state::connection::Transfer;
use crate::state::slot::add;

/// An end of the sessions of a slot.
pub struct Talker {
    /// The number of the session, of the crowd.
    session: u64,
    /// What it does when; none before the connection has begun for it.
    talk: Option<Talk>,
    /// Data units that it wrote and that are not acknowledged, in order; and the payload of those before them, all acknowledged.
    units: VecDeque<Transfer>,
    acked: u64,
    /// Counters of this end of the sessions before, and the payload that has arrived there, duplicates included.
    pub before: Counters,
    pub arrived_before: u64,
}

impl Talker {
    /// An end of session number `session`, after those of `before` in the slot, if there were any.
    pub fn new(session: u64, before: Option<Box<Self>>) -> Self {
        let (before, arrived_before) =
            before.map_or_else(Default::default, |all| (all.before, all.arrived_before));
        Self { session, talk: None, units: VecDeque::new(), acked: 0, before, arrived_before }
    }

    /// The connection begins for it.
    pub fn begin(&mut self, side: Side, script: &Script, now: Time) {
        self.talk = Some(Talk::new(script.units(self.session), side, now));
    }

    /// When it next does something.
    pub fn turn(&self) -> Time {
        self.talk.as_ref().map_or(Time::MAX, Talk::turn)
    }

    /// The time of [`Talker::turn`] has come: writes, or closes.
    pub fn take_turn(&mut self, endpoint: &mut Endpoint, now: Time) {
        match self.talk.as_mut().and_then(|talk| talk.act(now)) {
            Some(Act::Write(size)) => {
                endpoint.write(size);
                self.units.push_back(Transfer { number: self.session, size, opened_at: now });
            }
            Some(Act::Close) => endpoint.close(),
            None => {}
        }
    }

    /// Takes note of what its end has received, and that the other may have closed.
    pub fn listen(&mut self, endpoint: &Endpoint, now: Time) {
        let Some(talk) = &mut self.talk else { return };
        talk.receive(endpoint.bytes_delivered(), now);
        if endpoint.peer_is_finished() {
            talk.end(now);
        }
    }

    /// Of its data `acked` bytes are acknowledged: the next unit of which all is, if there is one.
    pub fn acknowledge(&mut self, acked: u64) -> Option<Transfer> {
        let end = self.acked.saturating_add(self.units.front()?.size);
        if end > acked {
            return None;
        }
        self.acked = end;
        self.units.pop_front()
    }

    /// Its connection is closed, with this end; returns the units of which it does not know that they have arrived.
    pub fn close(&mut self, endpoint: &Endpoint) -> VecDeque<Transfer> {
        add(&mut self.before, &endpoint.counters());
        self.arrived_before += endpoint.bytes_arrived();
        std::mem::take(&mut self.units)
    }

    /// The units that are not acknowledged.
    pub fn unfinished(&self) -> impl Iterator<Item = Transfer> {
        self.units.iter().copied()
    }
}

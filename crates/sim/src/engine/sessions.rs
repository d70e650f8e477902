//! Sessions: connections on which both ends write.

use elephan_tcp::Endpoint;
use elephan_traffic::Side;
use elephan_units::Time;

use crate::engine::site::Running;
use crate::report::Report;
use crate::state::connection::{RECEIVER, SENDER};
use crate::state::site::What;
use crate::state::talker::Talker;

impl<const DETAILED: bool> Running<'_, '_, DETAILED> {
    /// Session number `session` of a crowd begins in a slot; the other end learns which it is.
    pub(super) fn begin_session(&mut self, slot: u32, crowd: u32, session: u64, now: Time) {
        self.site.add_talker(slot, SENDER, session);
        self.begin_talk(slot, SENDER, Some(crowd), now);
        let route = self.site.plan.crowds[crowd as usize].flow.forward;
        self.tell(slot, route, What::Opened(session));
    }

    /// The connection begins for an end of a session; returns whether it is one.
    pub(super) fn begin_talk(&mut self, slot: u32, end: usize, crowd: Option<u32>, now: Time) -> bool {
        let place = self.site.place(slot);
        let Some(crowd) = crowd else { return false };
        let (Some(Some(talker)), Some(script)) =
            (self.site.talkers[end].get_mut(place), &self.site.scripts[crowd as usize])
        else {
            return false;
        };
        let side = if end == SENDER { Side::Initiator } else { Side::Acceptor };
        talker.begin(side, script, now);
        true
    }

    /// The end of a session does what it has to do now, if it is time; returns whether it was.
    pub(super) fn speak(&mut self, slot: u32, end: usize, now: Time) -> bool {
        let Some((talker, endpoint)) = self.talker(slot, end) else { return false };
        if talker.turn() > now && !endpoint.is_reset() {
            return false;
        }
        talker.take_turn(endpoint, now);
        true
    }

    /// Segments may have reached an end of a session: takes note of what they brought and acknowledged.
    pub(super) fn listen(&mut self, slot: u32, end: usize, now: Time) {
        let Some((talker, endpoint)) = self.talker(slot, end) else { return };
        talker.listen(endpoint, now);
        let acked = endpoint.counters().bytes_acked;
        let Some(crowd) = self.crowd_of(slot, end) else { return };
        while let Some(unit) = self.talker(slot, end).and_then(|(talker, _)| talker.acknowledge(acked)) {
            self.report(Report::CrowdFinished(crowd, unit, None));
        }
    }

    fn crowd_of(&self, slot: u32, end: usize) -> Option<u32> {
        let place = self.site.place(slot);
        if end == SENDER { self.site.slots[place].owner.crowd() } else { self.site.sinks[place].crowd }
    }

    /// An end of a session, and its endpoint, if it has both.
    fn talker(&mut self, slot: u32, end: usize) -> Option<(&mut Talker, &mut Endpoint)> {
        let place = self.site.place(slot);
        let talker = self.site.talkers[end].get_mut(place)?.as_deref_mut()?;
        let half = match end {
            RECEIVER => self.site.sinks[place].connection.as_deref_mut()?,
            _ => &mut self.site.slots[place].connection.as_deref_mut()?.half,
        };
        Some((talker, &mut half.endpoint))
    }

    /// The connection of a slot is closed: an end of a session keeps its counters. What it does not know to have arrived has, if the
    /// other end got all.
    pub(super) fn close_talk(&mut self, slot: u32, end: usize, got_all: bool) {
        let Some((talker, endpoint)) = self.talker(slot, end) else { return };
        let units = talker.close(endpoint);
        if let Some(crowd) = self.crowd_of(slot, end).filter(|_| got_all) {
            for unit in units {
                self.report(Report::CrowdFinished(crowd, unit, None));
            }
        }
    }

    /// When it is the turn of an end of a session; `Time::MAX` for never.
    pub(super) fn turn_to_speak(&self, slot: u32, end: usize) -> Time {
        self.site.talker(slot, end).map_or(Time::MAX, Talker::turn)
    }
}

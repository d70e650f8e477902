//! Carries out a run in virtual time, in rounds: each site advances alone to the end of the round; then the packets
//! between sites are handed over.
//!
//! A round ends just before the earliest time at which an event of the round can act on another site. It does
//! not go beyond the next change of a link or the next sample, for which all sites are at the same time.
//!
//! The order of simultaneous events is: events of links, by number; then those of `Timer`, in its order;
//! then changes of links and their records; and last what is recorded of flows, which so shows the effects of all others.

mod backlog;
mod faults;
mod lane;
mod packets;
mod sessions;
mod site;
mod source;
#[cfg(test)]
mod tests;
mod transfers;
mod transport;

use elephan_network::Driver;
use elephan_units::Time;
use rayon::prelude::*;

use crate::engine::site::Running;
use crate::error::Error;
use crate::partition::Partition;
use crate::record::Record;
use crate::report::{self, Log};
use crate::state::State;
use crate::state::site::Site;

/// Carries out a run and records it. `DETAILED` says whether single packets are recorded. It is a
/// compile-time constant, so a run that keeps no events and captures nothing does not even check.
pub struct Engine<'a, const DETAILED: bool> {
    state: State<'a>,
    record: Record<'a>,
    partition: Partition,
    reports: Log,
    /// Whether sites advance on the threads of the current pool.
    on_threads: bool,
    /// Whether any flow has an algorithm that may fail.
    may_fail: bool,
}

/// Events of a round, beside those of the site with the most, for which it is worth waking other threads: these take
/// some 30 us.
const EVENTS_FOR_THREADS: u64 = if cfg!(test) { 0 } else { 300 };

/// Whether sites are to advance on several threads: most rounds are like the one before.
fn is_worth_threads(sites: &[Site<'_>]) -> bool {
    let (sum, most) = sites.iter().fold((0, 0), |(sum, most), site| (sum + site.last, site.last.max(most)));
    sum - most > EVENTS_FOR_THREADS
}

impl<'a, const DETAILED: bool> Engine<'a, DETAILED> {
    /// An engine for a run that has not begun.
    pub fn new(state: State<'a>, record: Record<'a>, partition: Partition, on_threads: bool) -> Self {
        let may_fail = state.sites.iter().any(Site::may_fail);
        Self { state, record, partition, reports: Log::new(), on_threads, may_fail }
    }

    /// Runs to the end of the plan.
    pub fn run(mut self) -> Result<(State<'a>, Record<'a>), Error> {
        let duration = self.state.plan.duration;
        let mut tick = self.next_tick();
        loop {
            let earliest = self.next_event();
            if earliest.min(tick) > duration {
                return Ok((self.state, self.record));
            }
            // Of the events of this round, none acts on a site that has advanced before `earliest` and the lookahead.
            let earliest = earliest.min(self.state.network.next_service());
            let reach = earliest.saturating_add(self.partition.lookahead).since(Time::from_picos(1));
            let until =
                if self.partition.lookahead == Time::MAX { tick } else { reach.min(tick) }.min(duration);
            self.advance(until)?;
            if until == tick {
                self.tick(tick)?;
                tick = self.next_tick();
            }
        }
    }

    /// When the first event of any site is due; `Time::MAX` for never.
    fn next_event(&self) -> Time {
        let pairs = self.state.sites.iter().zip(&self.state.network.parts);
        pairs.map(|(site, part)| site.next_event(part)).min().unwrap_or(Time::MAX)
    }

    /// All sites advance to `until`.
    fn advance(&mut self, until: Time) -> Result<(), Error> {
        let State { sites, network, .. } = &mut self.state;
        for group in &self.partition.groups {
            let here = &mut sites[group.clone()];
            let parts = &mut network.parts[group.clone()];
            let advance = |(site, part)| Running::<DETAILED> { site, part }.run(until);
            if self.on_threads && is_worth_threads(here) {
                here.par_iter_mut().zip(parts).with_max_len(1).map(advance).collect::<Result<(), _>>()?;
            } else {
                here.iter_mut().zip(parts).try_for_each(advance)?;
            }
            for number in group.clone() {
                for (to, news) in std::mem::take(&mut sites[number].outbox) {
                    sites[to as usize].inbox.push_back(news);
                }
                network.hand_over(number as u32, until);
            }
        }
        if self.may_fail {
            faults::look(sites)?;
        }
        report::merge(sites.iter_mut().map(|site| &mut site.log), &mut self.reports);
        for (key, report) in self.reports.drain(..) {
            self.record.note(report, key.at);
        }
        Ok(())
    }

    /// Time of the next event that belongs to no site.
    fn next_tick(&self) -> Time {
        let network = &self.state.network;
        self.record.next_tick().min(network.next_change()).min(network.next_record())
    }

    /// The time returned by [`Engine::next_tick`] has come, and all sites are there.
    fn tick(&mut self, now: Time) -> Result<(), Error> {
        let state = &mut self.state;
        state.handled += 1;
        while let Some(end) = state.network.change(now) {
            let (site, part) = (&mut state.sites[0], &mut state.network.parts[0]);
            Running::<DETAILED> { site, part }.tell_gone(end);
        }
        state.network.record(now);
        if self.record.next_tick() <= now {
            self.record.tick(state, now)?;
        }
        Ok(())
    }
}

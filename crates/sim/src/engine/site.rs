//! The events of a site: selects the next one and handles it.

use elephan_network::{Driver, Part};
use elephan_units::Time;

use crate::engine::source::Source;
use crate::error::Error;
use crate::packet::Packet;
use crate::report::{Key, Rank, Report};
use crate::state::connection::{RECEIVER, SENDER};
use crate::state::site::{News, Site, What};
use crate::state::timers::Timer;

/// A site while it advances, with its part of the network.
pub struct Running<'r, 'a, const DETAILED: bool> {
    pub site: &'r mut Site<'a>,
    pub part: &'r mut Part<Packet>,
}

impl Site<'_> {
    /// When the next event is due; `Time::MAX` for never.
    pub fn next_event(&self, part: &Part<Packet>) -> Time {
        part.next_arrival().0.min(self.timers.next_time())
    }
}

impl<const DETAILED: bool> Running<'_, '_, DETAILED> {
    /// Handles all events up to `until`, in order.
    pub fn run(&mut self, until: Time) -> Result<(), Error> {
        self.site.inbox.make_contiguous().sort_by_key(|news| news.key);
        let before = self.site.handled;
        loop {
            let (arrival, far) = self.part.next_arrival();
            let timer = self.site.timers.next_time();
            if !DETAILED && arrival <= timer.min(until) && self.site.inbox.is_empty() {
                self.arrivals(far, until)?;
                continue;
            }
            let now = arrival.min(timer);
            let rank = if arrival <= timer {
                Rank::Arrival(self.part.link_of(far))
            } else {
                Rank::Timer(self.site.timers.next())
            };
            self.site.current = Key { at: now, rank };
            if !self.site.inbox.is_empty()
                && let Some(news) =
                    self.site.inbox.pop_front_if(|news| now > until || news.key < self.site.current)
            {
                self.take(news);
                continue;
            }
            if now > until {
                self.site.last = self.site.handled - before;
                return Ok(());
            }
            self.site.handled += 1;
            self.site.steps.take();
            if !self.site.steps.are_left() {
                self.look(Source::of_rank(rank), now)?;
            }
            match rank {
                Rank::Arrival(_) => {
                    let before = self.part.progress(far);
                    self.arrive(far, arrival);
                    self.count_progress(far, before);
                }
                Rank::Timer(timer) => self.fire(timer, now),
            }
        }
    }

    /// An event in which no packet left the wire does not count: where the near end is in another site, there is no such event.
    #[inline]
    pub(super) fn count_progress(&mut self, far: usize, before: Option<u64>) -> Option<u64> {
        let after = self.part.progress(far);
        if after.is_some() && after == before {
            self.site.handled -= 1;
        }
        after
    }

    /// A packet has been forwarded: checks whether the run stops, if it is time.
    #[inline]
    pub(super) fn check_steps(&mut self, packet: &Packet, now: Time) -> Result<(), Error> {
        if self.site.steps.are_left() { Ok(()) } else { self.look(Source::of(packet), now) }
    }

    /// Checks whether the run is cancelled, whether time advances, and what the site has done so far; `source` takes the current step.
    #[cold]
    pub(super) fn look(&mut self, source: Source, now: Time) -> Result<(), Error> {
        let mut steps = std::mem::take(&mut self.site.steps);
        let outcome = steps.look(self.site.control, now, || source.name(self.site));
        self.site.steps = steps;
        outcome.and_then(|()| self.site.check_estimate(now))
    }

    /// Whether a loop within an event must end, because the run stops: checked when no steps are left.
    #[cold]
    pub(super) fn stops(&mut self, source: Source, now: Time) -> bool {
        // No steps are granted then, so the next part that checks is also notified.
        self.site.steps.stopped = self.look(source, now).err();
        self.site.steps.stopped.is_some()
    }

    /// An event of a link begins.
    #[inline]
    pub(super) fn begin_event(&mut self, link: u32, now: Time) -> Result<(), Error> {
        self.site.current.at = now;
        self.site.handled += 1;
        self.site.steps.take();
        if !self.site.steps.are_left() {
            self.look(Source::Link(link as usize), now)?;
        }
        Ok(())
    }

    /// Handles a timer that is due.
    #[inline]
    fn fire(&mut self, timer: Timer, now: Time) {
        match timer {
            Timer::End(slot, end) => self.wake(slot, end, now),
            Timer::Stream(stream) => self.emit(stream, now),
            Timer::Arrival(crowd) => self.arrival(crowd, now),
            Timer::Host(flow) => self.pump::<SENDER>(flow, now),
        }
    }

    /// Takes note of what happened to the sending half of a slot.
    fn take(&mut self, news: News) {
        match news.what {
            What::Added(crowd) => self.site.add_sink(news.slot, Some(crowd)),
            What::Opened(session) => self.site.add_talker(news.slot, RECEIVER, session),
            What::Closed(got_all) => {
                // What it reports is of the event that it learns of, and not of the next one here.
                let current = std::mem::replace(&mut self.site.current, news.key);
                self.close_talk(news.slot, RECEIVER, got_all);
                self.site.current = current;
                let place = self.site.place(news.slot);
                self.site.sinks[place].close();
                self.site.timers.schedule(Timer::End(news.slot, RECEIVER), Time::MAX);
            }
        }
    }

    /// Tells the site of the receivers of a slot, whose data takes `route`.
    pub(super) fn tell(&mut self, slot: u32, route: u32, what: What) {
        let [_, to] = self.site.paths.ends(route);
        let news = News { key: self.site.current, slot, what };
        if to == self.site.number {
            self.take(news);
        } else {
            self.site.outbox.push((to, news));
        }
    }

    /// Reports what happened in the current event.
    pub(super) fn report(&mut self, report: Report) {
        let key = self.site.current;
        self.site.log.push((key, report));
    }
}

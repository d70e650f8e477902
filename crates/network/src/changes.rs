//! What changes during a run, in order of time: the events of the file, and the delays and losses of traces.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use elephan_scenario::plan::{Change, Plan, Replay};
use elephan_units::Time;

/// Pending changes. A trace that begins again has no last one, so that each is made when it is due.
pub(crate) struct Changes {
    listed: VecDeque<Change>,
    replays: Vec<Replay>,
    /// When each replay next changes its link, its number, and how many steps it has made.
    next: BinaryHeap<Reverse<(Time, usize, u64)>>,
    end: Time,
}

impl Changes {
    /// All changes of a plan.
    pub fn new(plan: &Plan) -> Self {
        let mut changes = Self {
            listed: plan.changes.iter().cloned().collect(),
            replays: plan.replays.clone(),
            next: BinaryHeap::new(),
            end: plan.duration,
        };
        (0..changes.replays.len()).for_each(|number| changes.plan_step(number, 0));
        changes
    }

    /// Step `count` of a replay is the next.
    fn plan_step(&mut self, number: usize, count: u64) {
        let replay = &self.replays[number];
        let steps = replay.steps.len() as u64;
        let (periods, place) = (count / steps, (count % steps) as usize);
        let begins = match replay.period {
            Some(period) => period * periods,
            None if periods > 0 => return,
            None => Time::ZERO,
        };
        let at = begins.saturating_add(replay.steps[place].at);
        if at <= self.end {
            self.next.push(Reverse((at, number, count)));
        }
    }

    /// When something next changes; `Time::MAX` for never.
    pub fn next_at(&self) -> Time {
        let replayed = self.next.peek().map_or(Time::MAX, |&Reverse((at, ..))| at);
        self.listed.front().map_or(Time::MAX, |change| change.at).min(replayed)
    }

    /// The next change, if it is due by `now`. Of changes at the same time, those of traces come first.
    pub fn take(&mut self, now: Time) -> Option<Change> {
        let next = self.next_at();
        if next > now || next == Time::MAX {
            return None;
        }
        match self.next.peek() {
            Some(&Reverse((at, number, count))) if at == next => {
                self.next.pop();
                self.plan_step(number, count + 1);
                let replay = &self.replays[number];
                let step = replay.steps[(count % replay.steps.len() as u64) as usize];
                Some(Change {
                    at,
                    link: replay.link,
                    rate: None,
                    delay: step.delay,
                    loss: step.loss,
                    weights: BTreeMap::new(),
                    up: None,
                })
            }
            _ => self.listed.pop_front(),
        }
    }
}

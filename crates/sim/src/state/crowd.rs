//! A crowd while a plan is carried out: the pending requests, and the engine slots that its connections use.

use elephan_scenario::plan::{self, Members};
use elephan_traffic::{Arriving, Request, User};
use elephan_units::{Seed, Time};

/// A crowd of short flows.
pub struct Crowd {
    /// The users; none if flows arrive at random.
    pub users: Vec<Visitor>,
    /// The process by which flows arrive.
    process: Option<Arriving>,
    /// Time after which no further requests are made.
    pub stop: Time,
    /// Slots of the engine that belong to the crowd; users have one each.
    pub slots: Vec<u32>,
    /// Slots that are not in use, of flows that arrive at random.
    pub idle: Vec<u32>,
    /// Connections opened, finished, and given up.
    pub opened: u64,
    pub finished: u64,
    pub failed: u64,
}

/// A web user, who waits for an object or for the time of the next request.
pub struct Visitor {
    user: User,
    /// The current or next request.
    pub request: Request,
    /// When the page was requested, and how much of it has arrived.
    page_began: Time,
    page_bytes: u64,
}

/// A page that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// When its first object was requested.
    pub began: Time,
    /// Payload of all its objects.
    pub bytes: u64,
}

impl Crowd {
    /// Crowd number `index` of a plan, with the slots `first`, `first + 1`, ... for its users. `users_before`
    /// is the number of users in the preceding crowds, so that each user of a run has a unique number.
    pub fn new(crowd: &plan::Crowd, seed: Seed, index: u64, first: u32, users_before: u64) -> Self {
        let (users, process) = match &crowd.members {
            Members::Users(count, web) => {
                let visitor = |n| Visitor::new(User::new(web, seed, users_before + n));
                ((0..*count).map(visitor).collect(), None)
            }
            Members::Arrivals(arrivals) => {
                let start = crowd.flow.start.draw_for("start of arrivals", seed, index);
                (Vec::new(), Some(Arriving::new(arrivals, seed, index, start)))
            }
        };
        Self {
            slots: (first..).take(users.len()).collect(),
            users,
            process,
            stop: crowd.flow.stop.unwrap_or(Time::MAX),
            idle: Vec::new(),
            opened: 0,
            finished: 0,
            failed: 0,
        }
    }

    /// When a flow next arrives at random; `Time::MAX` for never.
    pub fn next(&self) -> Time {
        self.process.as_ref().map(Arriving::next).filter(|&next| next < self.stop).unwrap_or(Time::MAX)
    }

    /// A flow arrives; returns its size, bytes.
    pub fn arrive(&mut self) -> u64 {
        self.process.as_mut().map_or(1, Arriving::arrive)
    }
}

impl Visitor {
    fn new(mut user: User) -> Self {
        let request = user.ask();
        Self { user, request, page_began: Time::ZERO, page_bytes: 0 }
    }

    /// The object is requested.
    pub fn asks(&mut self, now: Time) {
        if self.request.is_first {
            (self.page_began, self.page_bytes) = (now, 0);
        }
    }

    /// The object has arrived; returns the page if this was its last object.
    pub fn receives(&mut self) -> Option<Page> {
        self.page_bytes += self.request.size;
        self.request.is_last.then_some(Page { began: self.page_began, bytes: self.page_bytes })
    }

    /// Advances to the next object; returns when it is requested.
    pub fn turns(&mut self, now: Time) -> Time {
        self.request = self.user.ask();
        now.saturating_add(self.request.wait)
    }
}

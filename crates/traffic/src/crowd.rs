//! Crowds of short flows: their members' requests, and when each is made.

use elephan_units::{Seed, Time};

use crate::arrivals::{Arrivals, Arriving};
use crate::sessions::{Opening, Script, Sessions};
use crate::start::Start;
use crate::web::{Request, User, Web};

/// Who wants the transfers of a crowd.
#[derive(Clone, Debug, PartialEq)]
pub enum Members {
    /// So many web users.
    Users(u64, Web),
    /// A Poisson process.
    Arrivals(Arrivals),
    /// Sessions, on whose connections both ends write.
    Sessions(Sessions),
}

/// A crowd of short flows while it runs: the requests to come.
pub struct Crowd {
    /// The users; none if flows arrive at random.
    users: Vec<Visitor>,
    /// The process by which flows arrive.
    process: Option<Arriving>,
    /// The sessions to come; none of other members.
    opening: Option<Opening>,
    /// Time after which no further requests are made.
    stop: Time,
}

/// A web user, who waits for an object or for the time of the next request.
struct Visitor {
    user: User,
    /// When the first page is requested.
    start: Time,
    /// The current or next request.
    request: Request,
    /// When the page was requested, and how much of it has arrived.
    page_began: Time,
    page_bytes: u64,
}

/// A page that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// When its first object was requested.
    pub began: Time,
    /// Payload of all its objects.
    pub bytes: u64,
}

impl Crowd {
    /// Crowd number `index` of a run, which starts at `start` and makes no request from `stop` on.
    /// `users_before` is the number of users in the preceding crowds, so that each user of a run has a unique
    /// number.
    pub fn new(
        members: &Members,
        (start, stop): (&Start, Option<Time>),
        seed: Seed,
        index: u64,
        users_before: u64,
    ) -> Self {
        let (mut users, mut process, mut opening) = (Vec::new(), None, None);
        match members {
            Members::Users(count, web) => {
                let visitor = |n: u64| {
                    let start = start.draw_for("start of web user", seed, n);
                    Visitor::new(User::new(web, seed, n), start)
                };
                users = (users_before..users_before + count).map(visitor).collect();
            }
            Members::Arrivals(arrivals) => {
                let start = start.draw_for("start of arrivals", seed, index);
                process = Some(Arriving::new(arrivals, seed, index, start));
            }
            Members::Sessions(sessions) => {
                let start = start.draw_for("start of sessions", seed, index);
                opening = Some(Opening::new(Script::new(sessions, seed, index), start));
            }
        }
        Self { users, process, opening, stop: stop.unwrap_or(Time::MAX) }
    }

    /// When a flow next arrives at random, or a session begins; `Time::MAX` for never.
    pub fn next(&self) -> Time {
        let arriving = self.process.as_ref().map(Arriving::next);
        arriving
            .or(self.opening.as_ref().map(Opening::next))
            .filter(|&next| next < self.stop)
            .unwrap_or(Time::MAX)
    }

    /// A flow arrives; returns its size, bytes.
    pub fn arrive(&mut self) -> u64 {
        self.process.as_mut().map_or(1, Arriving::arrive)
    }

    /// What the sessions say, if the members are sessions.
    pub fn script(&self) -> Option<&Script> {
        self.opening.as_ref().map(|opening| &opening.script)
    }

    /// A session begins; returns its number, or `None` if the members are no sessions.
    pub fn open(&mut self) -> Option<u64> {
        self.opening.as_mut().map(Opening::open)
    }

    /// When each user requests the first page.
    pub fn starts(&self) -> impl ExactSizeIterator<Item = Time> {
        self.users.iter().map(|visitor| visitor.start)
    }

    /// The time of a user's next request has come; returns the size of the object, bytes, or `None` if the
    /// crowd has stopped.
    pub fn ask(&mut self, user: u32, now: Time) -> Option<u64> {
        (now < self.stop).then(|| {
            let visitor = &mut self.users[user as usize];
            if visitor.request.is_first {
                (visitor.page_began, visitor.page_bytes) = (now, 0);
            }
            visitor.request.size
        })
    }

    /// A user's object has arrived; returns the page if this was its last object.
    pub fn receive(&mut self, user: u32) -> Option<Page> {
        let visitor = &mut self.users[user as usize];
        visitor.page_bytes += visitor.request.size;
        visitor.request.is_last.then_some(Page { began: visitor.page_began, bytes: visitor.page_bytes })
    }

    /// A user advances to the next object; returns when it is requested.
    pub fn turn(&mut self, user: u32, now: Time) -> Time {
        let visitor = &mut self.users[user as usize];
        visitor.request = visitor.user.ask();
        now.saturating_add(visitor.request.wait)
    }
}

impl Visitor {
    fn new(mut user: User, start: Time) -> Self {
        let request = user.ask();
        Self { user, start, request, page_began: Time::ZERO, page_bytes: 0 }
    }
}

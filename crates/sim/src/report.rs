//! What sites report, and in which order it happened.

use elephan_traffic::Page;
use elephan_units::Time;

use crate::state::connection::Transfer;
use crate::state::timers::Timer;

/// An event, ordered as events happen: by time, and at the same time by rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Its time.
    pub at: Time,
    /// Its rank among simultaneous events.
    pub rank: Rank,
}

/// The order of simultaneous events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Packets reach the far end of this link.
    Arrival(u32),
    /// A timer is due.
    Timer(Timer),
}

/// What a site reports.
#[derive(Clone, Copy, Debug)]
pub enum Report {
    /// A flow's window was reduced.
    Congestion(u32),
    /// A flow opened a connection.
    Started(u32),
    /// A transfer of a flow ended, or a chunk of its application was acknowledged.
    Finished(u32, Transfer),
    /// A transfer of a crowd ended, and possibly a page with it.
    CrowdFinished(u32, Transfer, Option<Page>),
}

/// Reports of a site, in order.
pub type Log = Vec<(Key, Report)>;

/// Reports of several sites, in order; their lists are then empty.
pub fn merge<'a>(logs: impl Iterator<Item = &'a mut Log>, merged: &mut Log) {
    let mut lists = 0;
    for log in logs {
        lists += u32::from(!log.is_empty());
        merged.append(log);
    }
    if lists > 1 {
        // It is stable: reports of one event stay in their order.
        merged.sort_by_key(|(key, _)| *key);
    }
}

//! How the window grows below `ssthresh`: selected independently of the algorithm.

pub(crate) mod hystart;
mod hystart_plus_plus;
mod limited;
mod search;

use elephan_units::entry::Make;

use crate::algorithm::{Ack, Cause, Start, Window};
use crate::parameter::{Parameters, parameters};
use crate::variable::{Tell, Variable};

use hystart::HyStart;
use hystart_plus_plus::HyStartPlusPlus;
use limited::Limited;
use search::Search;

/// A slow start.
#[derive(Clone, Debug)]
pub enum SlowStart {
    /// One segment for each segment acknowledged (RFC 5681, section 3.1).
    Standard,
    /// No more than half of `max_ssthresh` segments in a round trip (RFC 3742).
    Limited(Limited),
    /// Ends early when the round-trip time rises or ACKs come in a long train (Ha and Rhee 2008); boxed, because
    /// few flows use it.
    HyStart(Box<HyStart>),
    /// Slows down, and ends, when the round-trip time rises (RFC 9406).
    HyStartPlusPlus(Box<HyStartPlusPlus>),
    /// Ends when what is delivered no longer doubles in a round trip (draft-chung-ietf-ccwg-00).
    Search(Box<Search>),
}

parameters! {
    /// Standard slow start has none.
    pub struct Standard {}
}

/// The description of a slow start, and its constructor.
pub type Entry = elephan_units::Entry<Make<SlowStart>>;

/// Every slow start that has a name.
pub const ALL: &[Entry] = &[
    Entry {
        name: "standard",
        title: "Slow start",
        source: "RFC 5681",
        implies: &[],
        parameters: Standard::all,
        make: |settings| Standard::with(settings).map(|_| SlowStart::Standard),
    },
    Entry {
        name: "limited",
        title: "Limited slow start",
        source: "RFC 3742",
        implies: &[],
        parameters: limited::Parameters::all,
        make: |settings| Ok(SlowStart::Limited(Limited::new(Parameters::with(settings)?))),
    },
    Entry {
        name: "hystart",
        title: "HyStart",
        source: "Ha and Rhee 2008; Linux's tcp_cubic.c",
        implies: &[],
        parameters: hystart::Parameters::all,
        make: |settings| Ok(SlowStart::HyStart(Box::new(HyStart::new(Parameters::with(settings)?)))),
    },
    Entry {
        name: "hystart++",
        title: "HyStart++",
        source: "RFC 9406",
        implies: &[],
        parameters: hystart_plus_plus::Parameters::all,
        make: |settings| {
            Ok(SlowStart::HyStartPlusPlus(Box::new(HyStartPlusPlus::new(Parameters::with(settings)?))))
        },
    },
    Entry {
        name: "search",
        title: "SEARCH",
        source: "draft-chung-ietf-ccwg-00 (June 2024)",
        implies: &[],
        parameters: search::Parameters::all,
        make: |settings| Ok(SlowStart::Search(Box::new(Search::new(Parameters::with(settings)?)))),
    },
];

/// The slow start called `name`.
pub fn find(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.name == name)
}

/// The variables of the slow start of this entry.
pub fn variables(entry: &Entry) -> Vec<&'static Variable> {
    let mut all = Vec::new();
    if let Ok(start) = entry.build(&entry.examples()) {
        start.variables(&mut |variable, _| all.push(variable));
    }
    all
}

impl SlowStart {
    /// The growth of `window` at `ack`, and whether slow start ends early.
    ///
    /// The caller ensures that the window does not exceed `ssthresh`.
    pub fn grow(&mut self, window: &Window, ack: &Ack) -> Start {
        match self {
            Self::Standard => Start { growth: ack.segments, ends: false },
            Self::Limited(limited) => limited.grow(window, ack),
            Self::HyStart(hystart) => hystart.grow(ack),
            Self::HyStartPlusPlus(hystart) => hystart.grow(ack),
            Self::Search(search) => search.grow(window, ack),
        }
    }

    /// Called for every ACK below `ssthresh` before [`SlowStart::grow`], whether the window grows or not.
    pub fn observe(&mut self, window: &Window, ack: &Ack) {
        match self {
            Self::Standard | Self::Limited(_) => {}
            Self::HyStart(hystart) => hystart.observe(window, ack, ack.min_rtt),
            Self::HyStartPlusPlus(hystart) => hystart.observe(ack),
            Self::Search(search) => search.observe(window, ack),
        }
    }

    /// The sender paces.
    pub fn pace(&mut self) {
        if let Self::HyStartPlusPlus(hystart) = self {
            hystart.pace();
        }
    }

    /// Whether it limits what an ACK adds by itself, in place of byte counting's L (RFC 3465; RFC 9406, section 4.2).
    pub fn has_limit(&self) -> bool {
        matches!(self, Self::HyStartPlusPlus(hystart) if hystart.is_first())
    }

    /// A congestion event: the first slow start is over.
    pub fn on_congestion(&mut self, cause: Cause) {
        match self {
            Self::Standard | Self::Limited(_) => {}
            Self::HyStart(hystart) => hystart.on_congestion(cause),
            Self::HyStartPlusPlus(hystart) => hystart.finish(),
            Self::Search(search) => search.on_congestion(cause),
        }
    }

    /// Tells its variables: the state that a trace records.
    pub fn variables(&self, tell: &mut Tell<'_>) {
        match self {
            Self::Standard | Self::Limited(_) => {}
            Self::HyStart(hystart) => hystart.variables(tell),
            Self::HyStartPlusPlus(hystart) => hystart.variables(tell),
            Self::Search(search) => search.variables(tell),
        }
    }
}

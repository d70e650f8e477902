//! How the window grows below `ssthresh`: selected independently of the algorithm.

mod careful_resume;
pub(crate) mod hystart;
mod hystart_plus_plus;
mod limited;
mod search;

use elephan_units::entry::Make;

use crate::algorithm::{Ack, Congestion, Start, Window};
use crate::parameter::{Parameters, parameters};
use crate::variable::{Tell, Variable};

use careful_resume::CarefulResume;
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
    /// Jumps to half of the window of an earlier connection (RFC 9959).
    CarefulResume(Box<CarefulResume>),
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
    Entry {
        name: "careful-resume",
        title: "Careful Resume",
        source: "RFC 9959",
        implies: &[],
        parameters: careful_resume::Parameters::all,
        make: |settings| {
            Ok(SlowStart::CarefulResume(Box::new(CarefulResume::new(Parameters::with(settings)?))))
        },
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
            Self::Standard | Self::CarefulResume(_) => Start { growth: ack.segments, ends: false },
            Self::Limited(limited) => limited.grow(window, ack),
            Self::HyStart(hystart) => hystart.grow(ack),
            Self::HyStartPlusPlus(hystart) => hystart.grow(ack),
            Self::Search(search) => search.grow(window, ack),
        }
    }

    /// Called for every ACK below `ssthresh` before [`SlowStart::grow`], whether the window grows or not.
    pub fn observe(&mut self, window: &Window, ack: &Ack) {
        match self {
            Self::Standard | Self::Limited(_) | Self::CarefulResume(_) => {}
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

    /// Whether it is to be asked at every ACK, in any state of the sender and beyond `ssthresh`, what the windows are.
    #[inline]
    pub fn controls(&self) -> bool {
        matches!(self, Self::CarefulResume(resume) if resume.is_active())
    }

    /// Called for every ACK before anything else where it [`controls`](Self::controls): may set the windows. Returns whether the window may
    /// not grow at this ACK.
    pub fn control(&mut self, window: &mut Window, ack: &Ack) -> bool {
        if let Self::CarefulResume(resume) = self { resume.control(window, ack) } else { false }
    }

    /// Whether the sender must be able to pace.
    pub fn paces(&self) -> bool {
        matches!(self, Self::CarefulResume(_))
    }

    /// The rate at which the sender must pace now, in bytes of payload per second; zero: none.
    pub fn pacing_rate(&self) -> f64 {
        if let Self::CarefulResume(resume) = self { resume.pacing_rate() } else { 0.0 }
    }

    /// Whether the window is one that it has jumped to, and that no growth led to.
    pub fn has_jumped(&self) -> bool {
        matches!(self, Self::CarefulResume(resume) if resume.has_jumped())
    }

    /// Whether the reduction that is in progress is one at once, whatever the sender's recovery is.
    pub fn retreats(&self) -> bool {
        matches!(self, Self::CarefulResume(resume) if resume.retreats())
    }

    /// A congestion event: the first slow start is over. Returns the window that the event leaves at most, in segments, if it determines one.
    pub fn on_congestion(&mut self, event: &Congestion) -> Option<f64> {
        match self {
            Self::Standard | Self::Limited(_) => {}
            Self::HyStart(hystart) => hystart.on_congestion(event.cause),
            Self::HyStartPlusPlus(hystart) => hystart.finish(),
            Self::Search(search) => search.on_congestion(event.cause),
            Self::CarefulResume(resume) => return resume.on_congestion(event),
        }
        None
    }

    /// Tells its variables: the state that a trace records.
    pub fn variables(&self, tell: &mut Tell<'_>) {
        match self {
            Self::Standard | Self::Limited(_) => {}
            Self::HyStart(hystart) => hystart.variables(tell),
            Self::HyStartPlusPlus(hystart) => hystart.variables(tell),
            Self::Search(search) => search.variables(tell),
            Self::CarefulResume(resume) => resume.variables(tell),
        }
    }
}

//! Every kind of traffic that a file can have.

use elephan_units::Entry;
use elephan_units::entry::Parameter;

use super::{ArrivalsFile, CbrFile, FlowFile, OnOffFile, SessionsFile, WebFile};

/// Every kind of traffic, by the name of its tables.
pub const TRAFFIC: &[Entry] = &[
    kind(
        "flow",
        "A TCP connection with unlimited data, successive transfers, or what an application writes",
        "RFC 9293",
        || Parameter::of::<FlowFile>(UNSET),
    ),
    kind(
        "web",
        "Web users, who fetch pages object by object and think between pages",
        "Kelly 2003, Table 4",
        || Parameter::of::<WebFile>(UNSET),
    ),
    kind("arrivals", "Sized flows that arrive by a Poisson process, an open loop", "Poisson process", || {
        Parameter::of::<ArrivalsFile>(UNSET)
    }),
    kind(
        "sessions",
        "Connections of requests and responses with times to think: connection vectors, or drawn",
        "Weigle et al. 2006",
        || Parameter::of::<SessionsFile>(UNSET),
    ),
    kind("cbr", "Datagrams at a constant rate", "RFC 768", || Parameter::of::<CbrFile>(UNSET)),
    kind("on_off", "Datagrams at a constant rate for a while, then none", "Willinger et al. 1997", || {
        Parameter::of::<OnOffFile>(UNSET)
    }),
];

/// What stands for a default that is no value.
const UNSET: &str = "none";

const fn kind(
    name: &'static str,
    title: &'static str,
    source: &'static str,
    parameters: fn() -> Vec<Parameter>,
) -> Entry {
    Entry { name, title, source, implies: &[], parameters, make: () }
}

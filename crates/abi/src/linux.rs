//! Linux's own algorithms: one for each of its modules `tcp_NAME`.

use std::sync::{PoisonError, RwLock};

use elephan_cc::registry;
use elephan_units::Entry;

/// The prefix of a name in a scenario that selects Linux's own file of an algorithm.
pub const PREFIX: &str = "linux:";

macro_rules! modules {
    ($( $name:literal, $title:literal, $source:literal; )+) => {
        /// Every algorithm of Linux, with [`PREFIX`]. A scenario cannot set parameters of them.
        pub const ALL: &[Entry] = &[ $( Entry {
            name: concat!("linux:", $name),
            title: $title,
            source: $source,
            implies: &[],
            parameters: Vec::new,
            make: (),
        }, )+ ];
    };
}

modules! {
    "reno", "Standard TCP", "RFC 5681";
    "bic", "BIC-TCP", "Xu, Harfoush and Rhee 2004";
    "cubic", "CUBIC", "Ha, Rhee and Xu 2008; RFC 9438";
    "westwood", "TCP Westwood+", "Mascolo et al. 2001; Grieco and Mascolo 2004";
    "htcp", "H-TCP", "Leith and Shorten 2004";
    "highspeed", "HighSpeed TCP", "RFC 3649";
    "hybla", "TCP Hybla", "Caini and Firrincieli 2004";
    "vegas", "TCP Vegas", "Brakmo and Peterson 1995";
    "nv", "TCP-NV", "Brakmo 2010";
    "scalable", "Scalable TCP", "Kelly 2003";
    "lp", "TCP-LP", "Kuzmanovic and Knightly 2003";
    "veno", "TCP Veno", "Fu and Liew 2003";
    "yeah", "YeAH-TCP", "Baiocchi, Castellani and Vacirca 2007";
    "illinois", "TCP-Illinois", "Liu, Basar and Srikant 2006";
    "dctcp", "Data Center TCP", "Alizadeh et al. 2010; RFC 8257";
    "cdg", "CAIA Delay-Gradient TCP", "Hayes and Armitage 2011";
    "bbr", "BBR, version 1", "Cardwell et al. 2016";
}

/// The names without [`PREFIX`] of the algorithms that `elephan-cc` does not have: a scenario can use them as they are.
pub fn plain() -> impl Iterator<Item = Entry> {
    let plain =
        |entry: &Entry| Entry { name: entry.name.strip_prefix(PREFIX).unwrap_or(entry.name), ..*entry };
    ALL.iter().map(plain).filter(|entry| registry::find(entry.name).is_none())
}

/// Algorithms that the running kernel has beside those of [`ALL`].
static ADDED: RwLock<Vec<&'static Entry>> = RwLock::new(Vec::new());

/// Makes known that the running kernel has an algorithm of this name, with [`PREFIX`].
pub fn add(name: &str) {
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    if ALL.iter().chain(added.iter().copied()).all(|entry| entry.name != name) {
        let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
        let title = name.strip_prefix(PREFIX).unwrap_or(name);
        added.push(Box::leak(Box::new(Entry { name, title, source: "the running kernel", ..ALL[0] })));
    }
}

/// The algorithm of Linux that a scenario names, with [`PREFIX`] or as in [`plain`].
pub fn find(name: &str) -> Option<&'static Entry> {
    let is_plain = !name.contains(':') && registry::find(name).is_none();
    let is_it =
        |entry: &&Entry| entry.name == name || is_plain && entry.name.strip_prefix(PREFIX) == Some(name);
    let added = || ADDED.read().unwrap_or_else(PoisonError::into_inner).iter().copied().find(is_it);
    ALL.iter().find(is_it).or_else(added)
}

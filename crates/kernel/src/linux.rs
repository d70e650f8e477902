//! Linux's own algorithms: one for each of its modules `tcp_NAME`.

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

/// The algorithm of Linux that a scenario names, with [`PREFIX`] or as in [`plain`].
pub fn find(name: &str) -> Option<&'static Entry> {
    let is_plain = !name.contains(':') && registry::find(name).is_none();
    ALL.iter().find(|entry| entry.name == name || is_plain && entry.name.strip_prefix(PREFIX) == Some(name))
}

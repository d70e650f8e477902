//! Every algorithm by name: to add one, write its file and add its line here.

use elephan_units::entry::{Make, Value};
use elephan_units::{Mistake, Time};

use crate::algorithm::{Ack, Algorithm, Congestion, Start, Window};
use crate::governor::{Fault, Governor};
use crate::linux::Form;
use crate::parameter::Parameters;
use crate::slow_start;
use crate::variable::{Tell, Variable};

/// The description of an algorithm, and its constructor.
pub type Entry = elephan_units::Entry<Make<AnyAlgorithm>>;

/// The algorithm called `name`.
pub fn find(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.name == name)
}

/// The variables of the algorithm of this entry.
pub fn variables(entry: &Entry) -> Vec<&'static Variable> {
    let mut all = Vec::new();
    if let Ok(algorithm) = entry.build(&[]) {
        algorithm.variables(&mut |variable, _| all.push(variable));
    }
    all
}

/// The variables that Linux, too, tells of its algorithm of this name (`TCP_CC_INFO`; include/uapi/linux/inet_diag.h). They mean the same there.
pub fn told_by_linux(algorithm: &str) -> &'static [&'static str] {
    match algorithm {
        "bbr" => &["max_bw", "min_rtt", "pacing_gain", "cwnd_gain"],
        "dctcp" => &["alpha"],
        _ => &[],
    }
}

/// The names of the variables of all algorithms and slow starts, and of the values of all that are discrete, each once: a trace has their numbers.
pub fn vocabulary() -> [Vec<&'static str>; 2] {
    let mut found = [Vec::new(), Vec::new()];
    let starts = slow_start::ALL.iter().flat_map(slow_start::variables);
    for variable in ALL.iter().flat_map(variables).chain(starts) {
        let [names, values] = &mut found;
        add_new(names, &[variable.name]);
        add_new(values, variable.values);
    }
    found
}

fn add_new(to: &mut Vec<&'static str>, words: &[&'static str]) {
    for word in words {
        if !to.contains(word) {
            to.push(word);
        }
    }
}

/// Declares the enum of all algorithms, its dispatch and [`ALL`]. A line gives the type of an algorithm in
/// its module, which also contains its `Parameters`, and each of its names with title and source. If the type has
/// a counterpart in [`crate::linux`], which its parameter `form` selects, the line names the counterpart's variant.
/// A type of more than 32 bytes is `in Box`: the enum is as large as its largest variant, and each flow has one. After a
/// semicolon come those that are a [`Governor`].
macro_rules! registry {
    ($( $module:ident::$variant:ident $(in $box:ident)? $(or $linux:ident $(in $linux_box:ident)?)? {
        $( $name:literal, $title:literal, $source:literal $(, implies $key:literal = $word:literal)?; )+
    } )+; $( $governing:ident::$governor:ident { $governs:literal, $called:literal, $from:literal; } )+) => {
        /// Any algorithm. It is an enum, so that the path of an ACK needs no virtual call.
        pub enum AnyAlgorithm {
            $(
                #[doc = concat!("`", stringify!($variant), "`")]
                $variant(registry!(@type crate::$module::$variant $(, $box)?)),
                $(
                    #[doc = concat!("`", stringify!($variant), "` as Linux has it")]
                    $linux(registry!(@type crate::linux::$module::$variant $(, $linux_box)?)),
                )?
            )+
            /// An algorithm that sets the window itself, as those from outside do.
            Governor(Box<dyn Governor>),
            /// What is left of one that failed: the window stays as it is.
            Failed(Fault),
        }

        /// The parameters of any algorithm that has a name.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum AnyParameters {
            $( #[doc = concat!("Of `", stringify!($variant), "`")] $variant(crate::$module::Parameters), )+
            $( #[doc = concat!("Of `", stringify!($governor), "`")] $governor(crate::$governing::Parameters), )+
        }

        impl AnyParameters {
            /// The parameters of the algorithm `name`: the published ones, except for those in `settings`;
            /// `None` if no algorithm has the name.
            pub fn of(name: &str, settings: &[(&str, Value)]) -> Option<Result<Self, Mistake>> {
                match name {
                    $( $( $name )|+ => Some(crate::$module::Parameters::with(settings).map(Self::$variant)), )+
                    $( $governs => {
                        Some(crate::$governing::Parameters::with(settings).map(Self::$governor))
                    } )+
                    _ => None,
                }
            }

            /// The algorithm with these parameters.
            fn build(self) -> AnyAlgorithm {
                match self {
                    $( Self::$variant(parameters) => {
                        $( if parameters.form == Form::Linux {
                            return AnyAlgorithm::$linux(Default::default());
                        } )?
                        AnyAlgorithm::$variant(crate::$module::$variant::new(parameters).into())
                    } )+
                    $( Self::$governor(parameters) => {
                        AnyAlgorithm::Governor(Box::new(crate::$governing::$governor::new(parameters)))
                    } )+
                }
            }
        }

        /// Every algorithm that has a name.
        pub const ALL: &[Entry] = &[ $( $( Entry {
            name: $name,
            title: $title,
            source: $source,
            implies: &[ $( ($key, $word) )? ],
            parameters: crate::$module::Parameters::all,
            make: |settings| {
                crate::$module::Parameters::with(settings).map(|it| AnyParameters::$variant(it).build())
            },
        }, )+ )+ $( Entry {
            name: $governs,
            title: $called,
            source: $from,
            implies: &[],
            parameters: crate::$governing::Parameters::all,
            make: |settings| {
                crate::$governing::Parameters::with(settings).map(|it| AnyParameters::$governor(it).build())
            },
        }, )+ ];

        impl Clone for AnyAlgorithm {
            fn clone(&self) -> Self {
                match self {
                    $(
                        Self::$variant(algorithm) => Self::$variant(algorithm.clone()),
                        $( Self::$linux(algorithm) => Self::$linux(algorithm.clone()), )?
                    )+
                    Self::Governor(governor) => Self::Governor(governor.boxed()),
                    Self::Failed(fault) => Self::Failed(fault.clone()),
                }
            }
        }

        // The controller tells a governor by other calls than these.
        impl Algorithm for AnyAlgorithm {
            fn increase(&mut self, window: &Window, ack: &Ack) -> f64 {
                match self {
                    $(
                        Self::$variant(algorithm) => algorithm.increase(window, ack),
                        $( Self::$linux(algorithm) => algorithm.increase(window, ack), )?
                    )+
                    Self::Governor(_) | Self::Failed(_) => 0.0,
                }
            }

            #[inline(always)]
            fn increase_by_window(&self, window: &Window, segments: f64) -> Option<f64> {
                match self {
                    $( Self::$variant(algorithm) => algorithm.increase_by_window(window, segments), )+
                    _ => None,
                }
            }

            fn decrease(&mut self, window: &Window, event: &Congestion) -> f64 {
                match self {
                    $(
                        Self::$variant(algorithm) => algorithm.decrease(window, event),
                        $( Self::$linux(algorithm) => algorithm.decrease(window, event), )?
                    )+
                    Self::Governor(_) | Self::Failed(_) => window.ssthresh,
                }
            }

            fn observe(&mut self, window: &Window, ack: &Ack) {
                match self {
                    $(
                        Self::$variant(algorithm) => algorithm.observe(window, ack),
                        $( Self::$linux(algorithm) => algorithm.observe(window, ack), )?
                    )+
                    Self::Governor(_) | Self::Failed(_) => {}
                }
            }

            fn resume(&mut self, idle: Time) {
                match self {
                    $(
                        Self::$variant(algorithm) => algorithm.resume(idle),
                        $( Self::$linux(algorithm) => algorithm.resume(idle), )?
                    )+
                    Self::Governor(_) | Self::Failed(_) => {}
                }
            }

            fn undo(&mut self) {
                match self {
                    $(
                        Self::$variant(algorithm) => algorithm.undo(),
                        $( Self::$linux(algorithm) => algorithm.undo(), )?
                    )+
                    Self::Governor(_) | Self::Failed(_) => {}
                }
            }

            fn uses_rest(&self) -> bool {
                match self {
                    $(
                        Self::$variant(algorithm) => algorithm.uses_rest(),
                        $( Self::$linux(algorithm) => algorithm.uses_rest(), )?
                    )+
                    Self::Governor(_) | Self::Failed(_) => true,
                }
            }

            fn abe(&self) -> Option<f64> {
                match self {
                    $(
                        Self::$variant(algorithm) => algorithm.abe(),
                        $( Self::$linux(algorithm) => algorithm.abe(), )?
                    )+
                    Self::Governor(_) | Self::Failed(_) => None,
                }
            }

            fn start(&mut self, window: &Window, ack: &Ack) -> Option<Start> {
                match self {
                    $(
                        Self::$variant(algorithm) => algorithm.start(window, ack),
                        $( Self::$linux(algorithm) => algorithm.start(window, ack), )?
                    )+
                    Self::Governor(_) | Self::Failed(_) => None,
                }
            }

            fn has_slow_start(&self) -> bool {
                match self {
                    $(
                        Self::$variant(algorithm) => algorithm.has_slow_start(),
                        $( Self::$linux(algorithm) => algorithm.has_slow_start(), )?
                    )+
                    Self::Governor(_) | Self::Failed(_) => true,
                }
            }

            fn variables(&self, tell: &mut Tell<'_>) {
                match self {
                    $(
                        Self::$variant(algorithm) => algorithm.variables(tell),
                        $( Self::$linux(algorithm) => algorithm.variables(tell), )?
                    )+
                    Self::Governor(governor) => governor.variables(tell),
                    Self::Failed(_) => {}
                }
            }
        }
    };
    (@type $type:ty) => { $type };
    (@type $type:ty, $box:ident) => { $box<$type> };
}

registry! {
    reno::Reno {
        "tahoe", "Standard TCP with Tahoe's recovery", "Jacobson 1988", implies "recovery" = "tahoe";
        "reno", "Standard TCP", "RFC 5681";
        "newreno", "Standard TCP with NewReno's recovery", "RFC 6582", implies "recovery" = "newreno";
        "sack", "Standard TCP with SACK recovery", "RFC 2018, RFC 6675", implies "recovery" = "sack";
    }
    hstcp::Hstcp in Box or LinuxHstcp { "hstcp", "HighSpeed TCP", "RFC 3649"; }
    hstcp_fc::HstcpFc in Box { "hstcp-fc", "HighSpeed TCP with fast convergence", "Nabeshima and Yata 2004"; }
    scalable::Scalable or LinuxScalable { "scalable", "Scalable TCP", "Kelly 2003"; }
    htcp::Htcp in Box or LinuxHtcp in Box { "htcp", "H-TCP", "Leith and Shorten 2004; thesis, section 6.1.3"; }
    bic::Bic in Box or LinuxBic in Box { "bic", "BIC-TCP", "Xu, Harfoush and Rhee 2004; thesis, section 6.1.4"; }
    fast::Fast in Box { "fast", "FAST TCP", "Jin, Wei and Low 2004; thesis, section 6.1.5"; }
    ltcp::Ltcp in Box { "ltcp", "Layered TCP", "Bhandarkar, Jain and Reddy"; }
    cubic::Cubic in Box or LinuxCubic in Box { "cubic", "CUBIC", "RFC 9438"; }
    vegas::Vegas in Box or LinuxVegas in Box { "vegas", "TCP Vegas", "Brakmo and Peterson 1995"; }
    westwood::Westwood in Box { "westwood", "TCP Westwood+", "Grieco and Mascolo 2004"; }
    veno::Veno in Box { "veno", "TCP Veno", "Fu and Liew 2003"; }
    compound::Compound in Box { "compound", "Compound TCP", "draft-sridharan-tcpm-ctcp-02; Tan et al. 2006"; }
    yeah::Yeah in Box { "yeah", "YeAH-TCP", "Baiocchi, Castellani and Vacirca 2007"; }
    illinois::Illinois in Box { "illinois", "TCP-Illinois", "Liu, Basar and Srikant 2006 and 2008"; }
    ;
    dctcp::Dctcp { "dctcp", "Data Center TCP", "RFC 8257"; }
    bbr::Bbr { "bbr", "BBR, version 3", "draft-ietf-ccwg-bbr-06 (July 2026)"; }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::History;
    use elephan_units::Entry as Known;
    use elephan_units::entry::Range;

    /// Values in a range, and values that are not.
    fn probes(range: &Range) -> (Vec<Value>, Vec<Value>) {
        let not_a_number = [Value::Number(f64::NAN), Value::Word("no such word"), Value::Flag(true)];
        match *range {
            Range::Number { low, high, .. } => {
                let mut outside = not_a_number.to_vec();
                outside.push(Value::Number(low - 1.0));
                if high.is_finite() {
                    outside.push(Value::Number(high * 2.0 + 1.0));
                    outside.push(Value::Number(f64::INFINITY));
                }
                (vec![Value::Number(low), Value::Number(high)], outside)
            }
            Range::Flag => (vec![Value::Flag(true), Value::Flag(false)], not_a_number[..2].to_vec()),
            Range::Word(words) => {
                (words.iter().map(|word| Value::Word(word)).collect(), not_a_number.to_vec())
            }
            Range::Other(_) => unreachable!("no parameter of an algorithm"),
        }
    }

    #[test]
    fn variables_have_a_meaning_and_names_of_their_own() {
        for (entry, start) in
            ALL.iter().flat_map(|entry| slow_start::ALL.iter().map(move |start| (entry, start)))
        {
            let name = format!("{} with {}", entry.name, start.name);
            let controller = History::of(entry.name).slow_start(start.name).controller;
            let mut names = Vec::new();
            controller.variables(&mut |variable, value| {
                names.push(variable.name);
                assert!(
                    variable.meaning.len() > 10 && variable.meaning.ends_with('.'),
                    "{name}: {variable:?}"
                );
                assert!(variable.values.is_empty() || variable.unit.is_empty(), "{name}: {variable:?}");
                let is_place = value >= 0.0 && value < variable.values.len() as f64 && value.fract() == 0.0;
                assert!(variable.values.is_empty() || is_place, "{name}: {variable:?} is {value}");
            });
            let mut each = names.clone();
            each.sort_unstable();
            each.dedup();
            assert_eq!(each.len(), names.len(), "{name}: {names:?}");
        }
        let [names, values] = vocabulary();
        assert!(
            names.contains(&"inflight_longterm") && values.contains(&"ProbeBW_UP"),
            "{names:?} {values:?}"
        );
        assert_eq!(names.iter().filter(|name| **name == "alpha").count(), 1, "that of several algorithms");
    }

    #[test]
    fn a_slow_start_tells_its_variables_where_the_algorithm_has_none_of_its_own() {
        let told = |history: History| history.variables().iter().any(|(name, _)| *name == "start_phase");
        assert!(told(History::of("reno").slow_start("hystart")));
        assert!(!told(History::of("reno")) && !told(History::of("fast").slow_start("hystart")));
        // Linux's CUBIC has HyStart in any case, and tells it once.
        assert!(told(History::of("cubic").set("form", "linux")));
    }

    fn check<T>(entry: &Known<Make<T>>) {
        let name = entry.name;
        let examples = entry.examples();
        assert!(entry.build(&examples).is_ok(), "{name}");
        for lacking in 0..examples.len() {
            let missing = entry.build(&examples[..lacking]).err().expect(name);
            assert_eq!((missing.key.as_str(), missing.found.as_str()), (examples[lacking].0, "nothing"));
        }
        assert!(!entry.title.is_empty() && !entry.source.is_empty(), "{name}");
        let parameters = (entry.parameters)();

        let unknown = entry.build(&[("no such parameter", Value::Number(1.0))]).err().expect(name);
        assert_eq!(unknown.key, "no such parameter");
        for parameter in &parameters {
            assert!(unknown.expected.contains(&*parameter.name), "{name}: {unknown}");
        }

        for parameter in &parameters {
            let set = |value| entry.build(&[&examples[..], &[(&*parameter.name, value)]].concat());
            assert!(parameter.meaning.len() > 20, "{name}: {}", parameter.name);
            if !parameter.is_required() {
                let default = entry.read(&parameter.name, &parameter.default).unwrap();
                assert!(set(default).is_ok(), "{name}: the default of {}", parameter.name);
            }
            let (inside, outside) = probes(&parameter.range);
            for value in inside {
                assert!(set(value).is_ok(), "{name}: {} = {value}", parameter.name);
            }
            for value in outside {
                let error = Mistake::new(&*parameter.name, &parameter.range, value);
                assert_eq!(set(value).err(), Some(error), "{name}: {} = {value}", parameter.name);
            }
        }
    }

    #[test]
    fn every_parameter_has_a_default_in_its_range_and_refuses_what_is_outside() {
        ALL.iter().for_each(check);
        slow_start::ALL.iter().for_each(check);
    }

    #[test]
    fn the_enum_is_small_because_large_algorithms_are_boxed() {
        assert!(size_of::<AnyAlgorithm>() <= 40, "{} bytes", size_of::<AnyAlgorithm>());
    }

    #[test]
    fn names_are_found_and_differ() {
        for (index, entry) in ALL.iter().enumerate() {
            assert_eq!(find(entry.name).map(|found| found.title), Some(entry.title));
            assert!(ALL[..index].iter().all(|other| other.name != entry.name), "{}", entry.name);
            assert!(AnyParameters::of(entry.name, &[]).is_some_and(|parameters| parameters.is_ok()));
        }
        for entry in slow_start::ALL {
            assert_eq!(slow_start::find(entry.name).map(|found| found.title), Some(entry.title));
        }
        assert!(find("no such algorithm").is_none() && slow_start::find("no such start").is_none());
        assert!(AnyParameters::of("no such algorithm", &[]).is_none());
    }

    #[test]
    fn errors_say_what_was_expected() {
        let scalable = find("scalable").unwrap();
        let error = |name, value| scalable.build(&[(name, value)]).err().unwrap().to_string();
        assert_eq!(
            error("alpha", Value::Number(1.0)),
            "alpha: expected one of the parameters a, b, lwnd, rounding, form, found \"alpha\""
        );
        assert_eq!(error("a", Value::Number(2.0)), "a: expected a number from 0 to 1, found 2");
        assert_eq!(
            error("rounding", Value::Word("up")),
            "rounding: expected one of floor, ceil, none, found \"up\""
        );
    }
}

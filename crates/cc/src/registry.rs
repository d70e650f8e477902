//! Every algorithm by name: to add one, write its file and add its line here.

use crate::algorithm::{Ack, Algorithm, Congestion, Start, Window};
use crate::parameter::{Parameter, ParameterError, Parameters, Value};
use crate::{bic, cubic, fast, hstcp, hstcp_fc, htcp, ltcp, reno, scalable, vegas};

/// What is known of an algorithm, or of a slow start, without making one.
#[derive(Clone, Copy, Debug)]
pub struct Entry<T = AnyAlgorithm> {
    /// The name that a scenario uses.
    pub name: &'static str,
    /// Its name in the literature.
    pub title: &'static str,
    /// Where it is published.
    pub source: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    pub(crate) build: Build<T>,
}

/// Makes one with these settings.
type Build<T> = fn(&[(&str, Value<'_>)]) -> Result<T, ParameterError>;

impl<T> Entry<T> {
    /// One with its published parameters, except for those in `settings`.
    pub fn build(&self, settings: &[(&str, Value<'_>)]) -> Result<T, ParameterError> {
        (self.build)(settings)
    }
}

/// The algorithm called `name`.
pub fn find(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.name == name)
}

/// Declares the enum of all algorithms, its dispatch and [`ALL`].
macro_rules! registry {
    ($( $variant:ident($type:ty, $parameters:ty) { $( $name:literal, $title:literal, $source:literal; )+ } )+) => {
        /// Any algorithm. An enum, so that the path of an ACK has neither heap nor virtual call;
        /// one from outside this crate comes boxed.
        pub enum AnyAlgorithm {
            $( #[doc = concat!("`", stringify!($type), "`")] $variant($type), )+
            /// One from outside this crate.
            External(Box<dyn Algorithm>),
        }

        /// Every algorithm that has a name.
        pub const ALL: &[Entry] = &[ $( $( Entry {
            name: $name,
            title: $title,
            source: $source,
            parameters: <$parameters>::ALL,
            build: |settings| {
                Ok(AnyAlgorithm::$variant(<$type>::new(<$parameters>::with(settings)?)))
            },
        }, )+ )+ ];

        impl Clone for AnyAlgorithm {
            fn clone(&self) -> Self {
                match self {
                    $( Self::$variant(algorithm) => Self::$variant(algorithm.clone()), )+
                    Self::External(algorithm) => Self::External(algorithm.boxed()),
                }
            }
        }

        impl Algorithm for AnyAlgorithm {
            fn increase(&mut self, window: &Window, ack: &Ack) -> f64 {
                match self {
                    $( Self::$variant(algorithm) => algorithm.increase(window, ack), )+
                    Self::External(algorithm) => algorithm.increase(window, ack),
                }
            }

            fn decrease(&mut self, window: &Window, event: &Congestion) -> f64 {
                match self {
                    $( Self::$variant(algorithm) => algorithm.decrease(window, event), )+
                    Self::External(algorithm) => algorithm.decrease(window, event),
                }
            }

            fn observe(&mut self, window: &Window, ack: &Ack) {
                match self {
                    $( Self::$variant(algorithm) => algorithm.observe(window, ack), )+
                    Self::External(algorithm) => algorithm.observe(window, ack),
                }
            }

            fn start(&mut self, window: &Window, ack: &Ack) -> Option<Start> {
                match self {
                    $( Self::$variant(algorithm) => algorithm.start(window, ack), )+
                    Self::External(algorithm) => algorithm.start(window, ack),
                }
            }

            fn boxed(&self) -> Box<dyn Algorithm> {
                Box::new(self.clone())
            }
        }
    };
}

registry! {
    Reno(reno::Reno, reno::Parameters) {
        "tahoe", "Standard TCP with Tahoe's recovery", "Jacobson 1988";
        "reno", "Standard TCP with Reno's recovery", "RFC 5681";
        "newreno", "Standard TCP with NewReno's recovery", "RFC 6582";
        "sack", "Standard TCP with selective acknowledgments", "RFC 2018, RFC 6675";
    }
    Hstcp(hstcp::Hstcp, hstcp::Parameters) {
        "hstcp", "HighSpeed TCP", "RFC 3649";
    }
    HstcpFc(hstcp_fc::HstcpFc, hstcp_fc::Parameters) {
        "hstcp-fc", "HighSpeed TCP with fast convergence", "Nabeshima and Yata 2004";
    }
    Scalable(scalable::Scalable, scalable::Parameters) {
        "scalable", "Scalable TCP", "Kelly 2003";
    }
    Htcp(htcp::Htcp, htcp::Parameters) {
        "htcp", "H-TCP", "Leith and Shorten 2004; thesis, section 6.1.3";
    }
    Bic(bic::Bic, bic::Parameters) {
        "bic", "BIC-TCP", "Xu, Harfoush and Rhee 2004; thesis, section 6.1.4";
    }
    Fast(fast::Fast, fast::Parameters) {
        "fast", "FAST TCP", "Jin, Wei and Low 2004; thesis, section 6.1.5";
    }
    Ltcp(ltcp::Ltcp, ltcp::Parameters) {
        "ltcp", "Layered TCP", "Bhandarkar, Jain and Reddy";
    }
    Cubic(cubic::Cubic, cubic::Parameters) {
        "cubic", "CUBIC", "RFC 9438";
    }
    Vegas(vegas::Vegas, vegas::Parameters) {
        "vegas", "TCP Vegas", "Brakmo and Peterson 1995";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameter::Range;
    use crate::slow_start;

    /// Values in a range, and values that are not.
    fn probes(range: &Range) -> (Vec<Value<'static>>, Vec<Value<'static>>) {
        let not_a_number = [Value::Number(f64::NAN), Value::Word("no such word"), Value::Flag(true)];
        match *range {
            Range::Number(low, high) => {
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
        }
    }

    fn check<T>(entry: &Entry<T>) {
        let name = entry.name;
        assert!(entry.build(&[]).is_ok(), "{name}");
        assert!(!entry.title.is_empty() && !entry.source.is_empty(), "{name}");
        let known: Vec<_> = entry.parameters.iter().map(|parameter| parameter.name).collect();

        let unknown = entry.build(&[("no such parameter", Value::Number(1.0))]).err().expect(name);
        assert_eq!(
            unknown,
            ParameterError::Unknown { name: "no such parameter".to_owned(), known: known.clone() }
        );
        for parameter in &known {
            assert!(unknown.to_string().contains(parameter), "{name}: {unknown}");
        }

        for parameter in entry.parameters {
            let set = |value| entry.build(&[(parameter.name, value)]);
            assert!(parameter.meaning.len() > 20, "{name}: {}", parameter.name);
            assert!(set(parameter.default).is_ok(), "{name}: the default of {}", parameter.name);
            let (inside, outside) = probes(&parameter.range);
            for value in inside {
                assert!(set(value).is_ok(), "{name}: {} = {value}", parameter.name);
            }
            for value in outside {
                let refused = set(value).err();
                let error = ParameterError::OutOfRange {
                    name: parameter.name,
                    found: value.to_string(),
                    range: parameter.range,
                };
                assert_eq!(refused, Some(error), "{name}: {} = {value}", parameter.name);
            }
        }
    }

    #[test]
    fn every_parameter_has_a_default_in_its_range_and_refuses_what_is_outside() {
        ALL.iter().for_each(check);
        slow_start::ALL.iter().for_each(check);
    }

    #[test]
    fn names_are_found_and_differ() {
        for (index, entry) in ALL.iter().enumerate() {
            assert_eq!(find(entry.name).map(|found| found.title), Some(entry.title));
            assert!(ALL[..index].iter().all(|other| other.name != entry.name), "{}", entry.name);
        }
        for entry in slow_start::ALL {
            assert_eq!(slow_start::find(entry.name).map(|found| found.title), Some(entry.title));
        }
        assert!(find("no such algorithm").is_none() && slow_start::find("no such start").is_none());
    }

    #[test]
    fn errors_say_what_was_expected() {
        let scalable = find("scalable").unwrap();
        let error = |name, value| scalable.build(&[(name, value)]).err().unwrap().to_string();
        assert_eq!(
            error("alpha", Value::Number(1.0)),
            "expected one of a, b, lwnd, rounding, found \"alpha\""
        );
        assert_eq!(error("a", Value::Number(2.0)), "expected a number from 0 to 1, found 2");
        assert_eq!(error("rounding", Value::Word("up")), "expected one of floor, ceil, none, found \"up\"");
    }
}

//! The parameters of algorithms: their names, meanings, units, defaults and ranges, declared once.

use std::ops::RangeInclusive;

use elephan_units::Mistake;
use elephan_units::entry::{Parameter, Range, Value, unknown};

/// Conversion between a Rust field and a [`Value`]: a number, a flag, or one of the enums that `words!`
/// declares.
pub trait Field: Sized {
    /// The field's value, if `value` is of the field's kind.
    fn take(value: Value) -> Option<Self>;
    /// The value of the field; none if a scenario must give it.
    fn value(self) -> Option<Value>;
    /// The values that the field may have, if a declaration gives no bounds.
    const RANGE: Range;
}

impl Field for f64 {
    const RANGE: Range = Range::Number { low: f64::NEG_INFINITY, high: f64::INFINITY, above: false };

    fn take(value: Value) -> Option<Self> {
        match value {
            Value::Number(number) => Some(number),
            Value::Flag(_) | Value::Word(_) => None,
        }
    }

    fn value(self) -> Option<Value> {
        Some(Value::Number(self))
    }
}

impl Field for bool {
    const RANGE: Range = Range::Flag;

    fn take(value: Value) -> Option<Self> {
        match value {
            Value::Flag(flag) => Some(flag),
            Value::Number(_) | Value::Word(_) => None,
        }
    }

    fn value(self) -> Option<Value> {
        Some(Value::Flag(self))
    }
}

/// A number without a published value, which a scenario must give.
impl Field for Option<f64> {
    const RANGE: Range = f64::RANGE;

    fn take(value: Value) -> Option<Self> {
        f64::take(value).map(Some)
    }

    fn value(self) -> Option<Value> {
        self.map(Value::Number)
    }
}

/// The range of numbers between these bounds.
pub fn within(bounds: RangeInclusive<f64>) -> Range {
    let (low, high) = bounds.into_inner();
    Range::Number { low, high, above: false }
}

/// Declares the words of a parameter as an enum.
///
/// ```ignore
/// words! {
///     /// How the decrease is rounded.
///     pub enum Rounding {
///         /// Down.
///         Floor = "floor",
///         /// Not at all.
///         None = "none",
///     }
/// }
/// ```
macro_rules! words {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $( $(#[$about:meta])+ $variant:ident = $word:literal, )+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $( $(#[$about])+ $variant, )+ }

        impl $crate::parameter::Field for $name {
            const RANGE: elephan_units::entry::Range = elephan_units::entry::Range::Word(&[$( $word ),+]);

            fn take(value: elephan_units::entry::Value) -> Option<Self> {
                match value {
                    $( elephan_units::entry::Value::Word($word) => Some(Self::$variant), )+
                    _ => None,
                }
            }

            fn value(self) -> Option<elephan_units::entry::Value> {
                Some(elephan_units::entry::Value::Word(match self { $( Self::$variant => $word, )+ }))
            }
        }
    };
}
pub(crate) use words;

/// Declares a struct of parameters: the meaning and default of each field, and the bounds and unit of each
/// number.
///
/// ```ignore
/// parameters! {
///     /// Scalable TCP's parameters.
///     pub struct Parameters {
///         /// Increase for each segment acknowledged (Kelly 2003, section 3).
///         a: f64 = 0.01, 0.0..=1.0, "segments";
///         /// Whether ...
///         fast: bool = true;
///         /// How the decrease is rounded ...
///         rounding: Rounding = Rounding::Floor;
///     }
/// }
/// ```
macro_rules! parameters {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident {
            $(
                $(#[doc = $meaning:literal])+
                $field:ident : $type:ty = $default:expr $(, $bounds:expr, $unit:literal)?;
            )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name {
            $( $(#[doc = $meaning])+ pub $field: $type, )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $default, )* }
            }
        }

        impl $crate::parameter::Parameters for $name {
            fn all() -> Vec<elephan_units::entry::Parameter> {
                vec![ $( elephan_units::entry::Parameter {
                    name: stringify!($field).into(),
                    meaning: concat!($($meaning),+).into(),
                    unit: concat!("" $(, $unit)?).into(),
                    default: elephan_units::entry::default_of($crate::parameter::Field::value($default)),
                    range: $crate::parameter::parameters!(@range $type $(, $bounds)?),
                }, )* ]
            }

            #[allow(unused_variables, reason = "a struct without parameters sets none")]
            fn set(&mut self, name: &str, value: elephan_units::entry::Value) -> bool {
                match name {
                    $( stringify!($field) => {
                        let range = $crate::parameter::parameters!(@range $type $(, $bounds)?);
                        let taken = $crate::parameter::Field::take(value).filter(|_| range.holds(value));
                        taken.map(|taken| self.$field = taken).is_some()
                    } )*
                    _ => false,
                }
            }

            fn lacks(&self) -> Option<&'static str> {
                $( if $crate::parameter::Field::value(self.$field).is_none() {
                    return Some(stringify!($field));
                } )*
                None
            }
        }
    };
    (@range $type:ty, $bounds:expr) => { $crate::parameter::within($bounds) };
    (@range $type:ty) => { <$type as $crate::parameter::Field>::RANGE };
}
pub(crate) use parameters;

/// A struct of parameters, as declared with `parameters!`.
pub trait Parameters: Default {
    /// All parameters, in the order of their declaration.
    fn all() -> Vec<Parameter>;

    /// Sets the parameter called `name`; returns false if there is none, or `value` is not in its range.
    fn set(&mut self, name: &str, value: Value) -> bool;

    /// A parameter that has no published value and was not set.
    fn lacks(&self) -> Option<&'static str>;

    /// The published values, except for those in `settings`. A mistake has the parameter's name as its key.
    fn with(settings: &[(&str, Value)]) -> Result<Self, Mistake> {
        let mut parameters = Self::default();
        for &(name, value) in settings {
            if !parameters.set(name, value) {
                let all = Self::all();
                return Err(match all.iter().find(|parameter| parameter.name == name) {
                    Some(parameter) => Mistake::new(name, &parameter.range, value),
                    None => unknown(&all, name),
                });
            }
        }
        match parameters.lacks() {
            Some(name) => Err(Mistake::new(name, "a value", "nothing")),
            None => Ok(parameters),
        }
    }
}

//! The parameters of algorithms: their names, defaults, ranges and sources, declared once.

use std::fmt;

/// A parameter's value, as a scenario gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A number.
    Number(f64),
    /// On or off.
    Flag(bool),
    /// One of a few words.
    Word(&'a str),
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Value<'_> {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(word: &'a str) -> Self {
        Self::Word(word)
    }
}

/// What a parameter may be set to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// A number from the first to the second, both included.
    Number(f64, f64),
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// A parameter of an algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its published name.
    pub name: &'static str,
    /// What it means, with its unit and its source.
    pub meaning: &'static str,
    /// Its published value.
    pub default: Value<'static>,
    /// What it may be set to.
    pub range: Range,
}

/// A setting that was refused.
#[derive(Clone, Debug, PartialEq)]
pub enum ParameterError {
    /// No parameter of that name.
    Unknown {
        /// The name found.
        name: String,
        /// The names that there are.
        known: Vec<&'static str>,
    },
    /// A value that is not in the parameter's range.
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// The value found.
        found: String,
        /// What it may be set to.
        range: Range,
    },
}

impl ParameterError {
    /// The name of the parameter that was refused.
    pub fn name(&self) -> &str {
        match self {
            Self::Unknown { name, .. } => name,
            Self::OutOfRange { name, .. } => name,
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(low, high) if high.is_infinite() => write!(f, "a number of {low} or more"),
            Self::Number(low, high) => write!(f, "a number from {low} to {high}"),
            Self::Flag => f.write_str("true or false"),
            Self::Word(words) => write!(f, "one of {}", words.join(", ")),
        }
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Word(word) => write!(f, "\"{word}\""),
        }
    }
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, known } if known.is_empty() => {
                write!(f, "expected no parameters, found \"{name}\"")
            }
            Self::Unknown { name, known } => {
                write!(f, "expected one of {}, found \"{name}\"", known.join(", "))
            }
            Self::OutOfRange { found, range, .. } => write!(f, "expected {range}, found {found}"),
        }
    }
}

impl std::error::Error for ParameterError {}

/// How a Rust field takes a [`Value`]; the three kinds of field that `parameters!` allows.
pub trait Field: Sized {
    /// The field's value, where `value` is of the field's kind and in `range`.
    fn take(value: &Value<'_>, range: &Range) -> Option<Self>;
}

impl Field for f64 {
    fn take(value: &Value<'_>, range: &Range) -> Option<Self> {
        match (value, range) {
            (Value::Number(number), Range::Number(low, high)) if low <= number && number <= high => {
                Some(*number)
            }
            _ => None,
        }
    }
}

impl Field for bool {
    fn take(value: &Value<'_>, _: &Range) -> Option<Self> {
        match value {
            Value::Flag(flag) => Some(*flag),
            _ => None,
        }
    }
}

impl Field for &'static str {
    fn take(value: &Value<'_>, range: &Range) -> Option<Self> {
        match (value, range) {
            (Value::Word(word), Range::Word(words)) => words.iter().find(|known| *known == word).copied(),
            _ => None,
        }
    }
}

/// Declares a struct of parameters: fields with meaning, default and range, in one place.
///
/// ```ignore
/// parameters! {
///     /// Scalable TCP's parameters.
///     pub struct Parameters {
///         /// Segments added for each segment acknowledged (Kelly 2003, section 3).
///         a: f64 = Number(0.01), Range::Number(0.0, 1.0);
///         /// Whether ...
///         fast: bool = Flag(true), Range::Flag;
///         /// How the decrease is rounded ...
///         rounding: &'static str = Word("floor"), Range::Word(&["floor", "none"]);
///     }
/// }
/// ```
macro_rules! parameters {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident {
            $(
                $(#[doc = $meaning:literal])+
                $field:ident : $type:ty = $kind:ident($default:expr), $range:expr;
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
            const ALL: &'static [$crate::parameter::Parameter] = &[
                $( $crate::parameter::Parameter {
                    name: stringify!($field),
                    meaning: concat!($($meaning),+),
                    default: $crate::parameter::Value::$kind($default),
                    range: $range,
                }, )*
            ];

            #[allow(unused_variables, reason = "a struct without parameters sets none")]
            fn set(
                &mut self,
                name: &str,
                value: $crate::parameter::Value<'_>,
            ) -> Result<(), $crate::parameter::ParameterError> {
                match name {
                    $( stringify!($field) => {
                        self.$field = $crate::parameter::Field::take(&value, &$range).ok_or_else(|| {
                            $crate::parameter::ParameterError::OutOfRange {
                                name: stringify!($field),
                                found: value.to_string(),
                                range: $range,
                            }
                        })?;
                        Ok(())
                    } )*
                    _ => Err($crate::parameter::ParameterError::Unknown {
                        name: name.to_owned(),
                        known: Self::ALL.iter().map(|parameter| parameter.name).collect(),
                    }),
                }
            }
        }
    };
}
pub(crate) use parameters;

/// A struct of parameters, as declared with `parameters!`.
pub trait Parameters: Default {
    /// All of them, in the order in which they are declared.
    const ALL: &'static [Parameter];

    /// Sets the one called `name`, or says what is known.
    fn set(&mut self, name: &str, value: Value<'_>) -> Result<(), ParameterError>;

    /// The published values, except for those in `settings`.
    fn with(settings: &[(&str, Value<'_>)]) -> Result<Self, ParameterError> {
        let mut parameters = Self::default();
        for &(name, value) in settings {
            parameters.set(name, value)?;
        }
        Ok(parameters)
    }
}

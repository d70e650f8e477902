//! Differentiated services codepoints by name.

use std::fmt;
use std::str::FromStr;

use elephan_units::Mistake;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

/// A codepoint, 0 to 63.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dscp(u8);

/// One codepoint, or the codepoints of a class by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codepoints {
    /// A single codepoint.
    One(Dscp),
    /// The three codepoints of an assured forwarding class, as in `af4` (RFC 2597).
    AfClass(u8),
    /// All twelve codepoints of assured forwarding: `af`.
    Af,
}

/// Codepoints that have names of their own (RFC 2474, 3246, 5865, 8622); `cs1` to `cs7` and `af11` to `af43` follow rules.
const NAMES: [(&str, u8); 5] = [("be", 0), ("cs0", 0), ("le", 1), ("va", 44), ("ef", 46)];

impl Dscp {
    /// The codepoint with this `value`, if it has six bits.
    pub fn new(value: u8) -> Option<Self> {
        (value < 64).then_some(Self(value))
    }
    /// The codepoint's value.
    pub fn get(self) -> u8 {
        self.0
    }
    /// Class 1 to 4 and drop precedence 1 to 3, if it is a codepoint of assured forwarding (RFC 2597, section
    /// 6).
    fn assured(self) -> Option<(u8, u8)> {
        let (class, precedence) = (self.0 >> 3, self.0 >> 1 & 3);
        ((1..=4).contains(&class) && precedence > 0 && self.0 & 1 == 0).then_some((class, precedence))
    }
}

impl Codepoints {
    /// Whether `dscp` is among them.
    pub fn contains(self, dscp: u8) -> bool {
        match self {
            Self::One(one) => one.0 == dscp,
            Self::AfClass(class) => Dscp(dscp).assured().is_some_and(|(found, _)| found == class),
            Self::Af => Dscp(dscp).assured().is_some(),
        }
    }
}

const EXPECTED: &str = "a codepoint such as \"ef\", \"af41\", \"cs1\", \"be\" or a number from 0 to 63";
const EXPECTED_SET: &str =
    "a codepoint such as \"ef\", \"af41\", \"cs1\" or 46, or a class such as \"af4\" or \"af\"";

impl FromStr for Dscp {
    type Err = Mistake;
    fn from_str(text: &str) -> Result<Self, Mistake> {
        let digit = |at: usize, range: std::ops::RangeInclusive<u8>| {
            text.as_bytes().get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| range.contains(digit))
        };
        let by_rule = match (text.get(..2), text.len()) {
            (Some("cs"), 3) => digit(2, 0..=7).map(|class| class << 3),
            (Some("af"), 4) => {
                digit(2, 1..=4).zip(digit(3, 1..=3)).map(|(class, drop)| class << 3 | drop << 1)
            }
            _ => None,
        };
        let named = NAMES.iter().find(|(name, _)| *name == text).map(|&(_, value)| value);
        let number = || text.parse().ok().filter(|&value: &u8| value < 64);
        let value = named.or(by_rule).or_else(number);
        value.map(Self).ok_or_else(|| Mistake::new("", EXPECTED, format_args!("\"{text}\"")))
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (NAMES.iter().find(|(_, value)| *value == self.0), self.assured()) {
            (Some((name, _)), _) => f.write_str(name),
            (None, Some((class, precedence))) => write!(f, "af{class}{precedence}"),
            (None, None) if self.0.is_multiple_of(8) => write!(f, "cs{}", self.0 >> 3),
            (None, None) => write!(f, "{}", self.0),
        }
    }
}

impl FromStr for Codepoints {
    type Err = Mistake;
    fn from_str(text: &str) -> Result<Self, Mistake> {
        match text {
            "af" => Ok(Self::Af),
            "af1" | "af2" | "af3" | "af4" => Ok(Self::AfClass(text.as_bytes()[2] - b'0')),
            _ => {
                let one = text.parse().map(Self::One);
                one.map_err(|_: Mistake| Mistake::new("", EXPECTED_SET, format_args!("\"{text}\"")))
            }
        }
    }
}

impl fmt::Display for Codepoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(one) => one.fmt(f),
            Self::AfClass(class) => write!(f, "af{class}"),
            Self::Af => f.write_str("af"),
        }
    }
}

/// Reads a value that is written as a name, or as a number.
macro_rules! read_name_or_number {
    ($type:ty, $expected:expr) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl serde::de::Visitor<'_> for Visitor {
                    type Value = $type;
                    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                        f.write_str($expected)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
                    }
                    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<$type, E> {
                        let read = value.to_string().parse();
                        read.map_err(|_| E::invalid_value(serde::de::Unexpected::Unsigned(value), &self))
                    }
                }
                deserializer.deserialize_any(Visitor)
            }
        }
    };
}
pub(crate) use read_name_or_number;

/// Serde and schema of a value that is written as a name, or as a number.
macro_rules! name_or_number {
    ($type:ty, $expected:ident, $pattern:literal, $description:literal) => {
        read_name_or_number!($type, $expected);
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "anyOf": [
                        { "type": "string", "pattern": $pattern },
                        { "type": "integer", "minimum": 0, "maximum": 63 },
                    ],
                    "description": $description,
                })
            }
        }
    };
}

name_or_number!(
    Dscp,
    EXPECTED,
    "^(be|le|va|ef|cs[0-7]|af[1-4][1-3]|[0-9]|[1-5][0-9]|6[0-3])$",
    "A codepoint (RFC 2474): \"ef\", \"af11\" to \"af43\", \"cs0\" to \"cs7\", \"be\", or a number"
);
name_or_number!(
    Codepoints,
    EXPECTED_SET,
    "^(be|le|va|ef|cs[0-7]|af([1-4][1-3]?)?|[0-9]|[1-5][0-9]|6[0-3])$",
    "A codepoint (RFC 2474), or a class of assured forwarding such as \"af4\", or \"af\" for all of it"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_written_as_they_are_read() {
        for name in ["af", "af1", "af4", "af23", "ef", "cs6", "be", "63"] {
            assert_eq!(name.parse::<Codepoints>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn names_have_the_values_of_their_standards() {
        // RFC 2597, section 6; RFC 3246, section 2.7; RFC 2474, section 4.2.2.
        for (name, value) in
            [("af11", 10), ("af12", 12), ("af23", 22), ("af43", 38), ("ef", 46), ("cs6", 48), ("be", 0)]
        {
            assert_eq!(name.parse(), Ok(Dscp(value)), "{name}");
            assert_eq!(Dscp(value).to_string(), name);
        }
        assert_eq!("63".parse(), Ok(Dscp(63)));
        for wrong in ["64", "af44", "af50", "cs8", "AF11", "", "af"] {
            assert!(
                wrong.parse::<Dscp>().unwrap_err().to_string().ends_with(&format!("found \"{wrong}\"")),
                "{wrong}"
            );
        }
    }

    #[test]
    fn every_value_is_read_as_it_is_written() {
        for value in 0..64 {
            assert_eq!(Dscp(value).to_string().parse(), Ok(Dscp(value)));
        }
    }

    #[test]
    fn a_class_has_its_codepoints() {
        let members = |name: &str| {
            let set: Codepoints = name.parse().unwrap();
            (0..64).filter(|&value| set.contains(value)).collect::<Vec<u8>>()
        };
        assert_eq!(members("af4"), [34, 36, 38]);
        assert_eq!(members("af").len(), 12);
        assert_eq!(members("ef"), [46]);
    }
}

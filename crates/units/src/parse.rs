//! Parsing of "82 ms": a number, optional white space, a unit.

use std::fmt;

use crate::mistake::Mistake;

/// A unit: its spellings and its value in base units.
pub(crate) type Unit = (&'static [&'static str], u64);

/// Reads `text` as a number followed by one of `units`, in base units.
///
/// The arithmetic is done in decimal on integers, so that "622.08 Mbit/s" is 622080000 bit/s
/// exactly. Digits beyond the base unit are rounded to nearest.
pub(crate) fn quantity(text: &str, units: &[Unit], expected: &'static str) -> Result<u64, Mistake> {
    let error = || Mistake::new("", expected, format_args!("\"{text}\""));
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).ok_or_else(error)?;
    // "1e3 ms" would be split at the exponent, but no unit begins with that letter.
    let (number, unit) = (trimmed[..split].replace('_', ""), trimmed[split..].trim());
    let scale =
        units.iter().find(|(names, _)| names.contains(&unit)).map(|&(_, scale)| scale).ok_or_else(error)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() || whole.len() > 19 || fraction.len() > 15 || fraction.contains('.') {
        return Err(error());
    }
    let whole: u128 = whole.parse().map_err(|_| error())?;
    let power = 10u128.pow(fraction.len() as u32);
    let fraction: u128 = if fraction.is_empty() { 0 } else { fraction.parse().map_err(|_| error())? };
    let scaled = (whole * power + fraction) * u128::from(scale);
    u64::try_from((scaled + power / 2) / power).map_err(|_| error())
}

/// Formats `value` in the largest of `units` in which it is a short decimal number.
///
/// `units` run from small to large, and the first is the base unit.
pub(crate) fn write(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let &(name, scale) = units.iter().rev().find(|(_, scale)| value >= *scale).unwrap_or(&units[0]);
    let (whole, rest) = (value / scale, value % scale);
    if rest == 0 {
        return write!(f, "{whole} {name}");
    }
    let digits = scale.ilog10() as usize;
    let fraction = format!("{rest:0digits$}");
    write!(f, "{whole}.{} {name}", fraction.trim_end_matches('0'))
}

/// Parsing by `UNITS`, serde and JSON Schema for a quantity that is written as text.
macro_rules! as_text {
    ($type:ty, $pattern:literal, $description:literal) => {
        impl std::str::FromStr for $type {
            type Err = crate::mistake::Mistake;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                crate::parse::quantity(text, &UNITS, Self::EXPECTED).map(Self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl serde::de::Visitor<'_> for Visitor {
                    type Value = $type;
                    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                        f.write_str(<$type>::EXPECTED)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
                    }
                }
                deserializer.deserialize_str(Visitor)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "pattern": $pattern, "description": $description })
            }
        }
    };
}
pub(crate) use as_text;

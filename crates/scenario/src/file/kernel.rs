//! Which kernel the engine `kernel` runs.

use std::fmt;

use elephan_units::refuse;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The oldest kernel that images are made of.
const OLDEST: (u32, u32) = (6, 1);

/// The kernel that the engine `kernel` runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KernelFile {
    /// Version, such as `"6.12"` or `"6.12.117"`: the newest image of it that `elephan kernel images` lists. By default the newest
    /// of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
}

impl KernelFile {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The version of a kernel, or its beginning: two or three numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version(String);

impl Version {
    /// The version of a text; none if it is not one, or older than 6.1.
    fn read(text: &str) -> Option<Self> {
        let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let numbers: Vec<u32> =
            text.split('.').filter(is_number).map_while(|part| part.parse().ok()).collect();
        let is_version = (2..=3).contains(&numbers.len()) && numbers.len() == text.split('.').count();
        (is_version && (numbers[0], numbers[1]) >= OLDEST).then(|| Self(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        const EXPECTED: &str = "a version in quotes, from \"6.1\" on, such as \"6.12\" or \"6.12.117\"";
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Version;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str(EXPECTED)
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Version, E> {
                Version::read(text).ok_or_else(|| refuse(EXPECTED, format_args!("\"{text}\"")))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl JsonSchema for Version {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Version".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": r"^[0-9]+\.[0-9]+(\.[0-9]+)?$" })
    }
}

//! How much a queue may hold, as a file says it.

use std::fmt;
use std::str::FromStr;

use elephan_units::{Bytes, Mistake};
use schemars::JsonSchema;
use serde::de::Unexpected;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What a queue may hold: a share of the bandwidth-delay product, packets, or bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Buffer {
    /// A share of the product of rate and round-trip time, cut to whole packets.
    BdpShare(f64),
    /// So many packets.
    Packets(u64),
    /// So many bytes.
    Bytes(Bytes),
}

impl Default for Buffer {
    fn default() -> Self {
        Self::BdpShare(1.0)
    }
}

const BUFFER: &str = "a size such as \"20% bdp\", \"500 packets\" or \"750 kB\"";

impl FromStr for Buffer {
    type Err = Mistake;
    fn from_str(text: &str) -> Result<Self, Mistake> {
        let error = || Mistake::new("", BUFFER, format_args!("\"{text}\""));
        let trimmed = text.trim();
        if let Some(number) =
            trimmed.strip_suffix("bdp").map(str::trim_end).and_then(|rest| rest.strip_suffix('%'))
        {
            let percent: f64 = number.trim().parse().map_err(|_| error())?;
            return if percent.is_finite() && percent >= 0.0 {
                Ok(Self::BdpShare(percent / 100.0))
            } else {
                Err(error())
            };
        }
        if let Some(number) = trimmed.strip_suffix("packets").or_else(|| trimmed.strip_suffix("packet")) {
            return number.trim().parse().map(Self::Packets).map_err(|_| error());
        }
        trimmed.parse().map(Self::Bytes).map_err(|_: Mistake| error())
    }
}

impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Ten digits hide the rounding of a division by a hundred.
            Self::BdpShare(share) => write!(f, "{}% bdp", (share * 1e12).round() / 1e10),
            Self::Packets(packets) => write!(f, "{packets} packets"),
            Self::Bytes(bytes) => write!(f, "{bytes}"),
        }
    }
}

impl<'de> Deserialize<'de> for Buffer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Buffer;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str(BUFFER)
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Buffer, E> {
                text.parse().map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

impl Serialize for Buffer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Buffer {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Buffer".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "What a queue holds: \"20% bdp\", \"500 packets\" or \"750 kB\"",
            "pattern": r"^ *([0-9.]+ ?% ?bdp|[0-9]+ ?packets?|[0-9_]+(\.[0-9]+)? ?(B|bytes?|[kMGT]B|[KMG]iB)) *$"
        })
    }
}

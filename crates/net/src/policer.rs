//! Token buckets at the entry of a link: packets that exceed the rate are dropped, or remarked with another
//! codepoint (RFC 2475, section 2.3.3).

use std::fmt;
use std::str::FromStr;

use elephan_units::{Bytes, Mistake, Rate, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};

use crate::dscp::{Codepoints, Dscp, read_name_or_number};
use crate::packet::Head;
use crate::serializer::PICOS_BITS;

/// A token bucket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policer {
    /// Codepoints to which the policer applies; none: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dscp: Vec<Codepoints>,
    /// Rate at which the bucket fills, counting IP packets.
    pub rate: Rate,
    /// Capacity of the bucket; it is full at first.
    pub burst: Bytes,
    /// Treatment of a packet that finds too few tokens: `"drop"`, or the codepoint to set.
    #[serde(default)]
    pub exceed: Exceed,
}

/// Treatment of packets that exceed the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exceed {
    /// It is dropped.
    #[default]
    Drop,
    /// It goes on with this codepoint.
    Remark(Dscp),
}

impl FromStr for Exceed {
    type Err = Mistake;
    fn from_str(text: &str) -> Result<Self, Mistake> {
        if text == "drop" { Ok(Self::Drop) } else { text.parse().map(Self::Remark) }
    }
}

const EXPECTED: &str = "\"drop\", or a codepoint such as \"cs1\" or a number from 0 to 63";
read_name_or_number!(Exceed, EXPECTED);

impl fmt::Display for Exceed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drop => f.write_str("drop"),
            Self::Remark(dscp) => dscp.fmt(f),
        }
    }
}

impl Serialize for Exceed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Exceed {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Exceed".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "const": "drop" }, generator.subschema_for::<Dscp>()] })
    }
}

impl Policer {
    /// Mistakes in the settings.
    pub fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        if self.rate.bits_per_sec() == 0 {
            mistakes.push(Mistake::new("rate", "a rate above zero", "\"0 bit/s\""));
        }
        if self.burst == Bytes::ZERO {
            mistakes.push(Mistake::new("burst", "room for at least one packet", "\"0 B\""));
        }
        mistakes
    }
}

/// A token bucket while a link runs.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    policer: Policer,
    /// Tokens: bits, times the picoseconds in a second, so that nothing is rounded.
    tokens: u128,
    filled: Time,
}

impl Bucket {
    pub fn new(policer: &Policer) -> Self {
        let tokens = u128::from(policer.burst.get()) * PICOS_BITS;
        Self { policer: policer.clone(), tokens, filled: Time::ZERO }
    }

    /// A packet arrives: returns false if it is dropped; otherwise its codepoint may have changed.
    pub fn admits<H: Head>(&mut self, packet: &mut H, now: Time) -> bool {
        let policer = &self.policer;
        if !policer.dscp.is_empty() && !policer.dscp.iter().any(|set| set.contains(packet.dscp())) {
            return true;
        }
        let full = u128::from(policer.burst.get()) * PICOS_BITS;
        let more = u128::from(now.since(self.filled).picos()) * u128::from(policer.rate.bits_per_sec());
        self.tokens = (self.tokens + more).min(full);
        self.filled = now;
        let price = u128::from(packet.bytes()) * PICOS_BITS;
        if price <= self.tokens {
            self.tokens -= price;
            return true;
        }
        match policer.exceed {
            Exceed::Drop => false,
            Exceed::Remark(dscp) => {
                packet.set_dscp(dscp.get());
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Parcel, parcel};

    fn bucket(exceed: Exceed) -> Bucket {
        // 1 Mbit/s and two packets: one more every 12 ms.
        Bucket::new(&Policer {
            dscp: vec!["ef".parse().unwrap()],
            rate: Rate::from_bits_per_sec(1_000_000),
            burst: Bytes::new(3000),
            exceed,
        })
    }

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut bucket = bucket(Exceed::Drop);
        let mut passes =
            |micros: u64| bucket.admits(&mut Parcel { dscp: 46, ..parcel(0) }, Time::from_micros(micros));
        assert_eq!([passes(0), passes(0), passes(0)], [true, true, false]);
        assert_eq!([passes(11_999), passes(12_000), passes(12_001)], [false, true, false]);
        // The tokens never exceed the burst, however long the idle time.
        assert_eq!([passes(9_000_000), passes(9_000_000), passes(9_000_000)], [true, true, false]);
    }

    #[test]
    fn others_pass_and_what_exceeds_may_be_marked_down() {
        let mut bucket = bucket(Exceed::Remark("be".parse().unwrap()));
        for (dscp, after) in [(46, 46), (0, 0), (46, 46), (46, 0), (10, 10)] {
            let mut packet = Parcel { dscp, ..parcel(0) };
            assert!(bucket.admits(&mut packet, Time::ZERO));
            assert_eq!(packet.dscp, after);
        }
    }

    #[test]
    fn over_time_it_passes_its_rate() {
        let mut bucket = bucket(Exceed::Drop);
        let passed = (0..100_000)
            .filter(|t| bucket.admits(&mut Parcel { dscp: 46, ..parcel(0) }, Time::from_micros(t * 1000)));
        // 100 s at 1 Mbit/s are 8333 packets, and the burst 2.
        assert_eq!(passed.count(), 8335);
    }
}

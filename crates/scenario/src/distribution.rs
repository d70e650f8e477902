//! Quantities that are drawn: `"1 MB"`, `{ exponential = "1 MB" }`, `{ pareto = { minimum = "12 kB", shape = 1.2 } }`.

use std::fmt::{self, Display, Formatter};
use std::marker::PhantomData;

use elephan_traffic::Distribution;
use elephan_units::{Bytes, Time};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Error, IntoDeserializer, MapAccess};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::Mistake;

/// What can be drawn: a time, a size, a count.
pub trait Quantity: Copy + PartialOrd + DeserializeOwned + Serialize + JsonSchema {
    /// The number that is drawn: seconds, bytes, or the count itself.
    fn number(self) -> f64;
    /// As an error shows it.
    fn shown(self) -> String;
}

impl Quantity for Time {
    fn number(self) -> f64 {
        self.secs_f64()
    }
    fn shown(self) -> String {
        format!("\"{self}\"")
    }
}

impl Quantity for Bytes {
    fn number(self) -> f64 {
        self.get() as f64
    }
    fn shown(self) -> String {
        format!("\"{self}\"")
    }
}

impl Quantity for f64 {
    fn number(self) -> f64 {
        self
    }
    fn shown(self) -> String {
        format!("{self}")
    }
}

/// A quantity that is constant, or drawn at each use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DistributionFile<T> {
    /// Always the same.
    Always(T),
    /// Drawn.
    From(Table<T>),
}

/// How a quantity is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Table<T> {
    /// From an exponential distribution of this mean.
    Exponential(T),
    /// Uniformly from the first to the second.
    Uniform((T, T)),
    /// From a Pareto distribution.
    Pareto(Pareto<T>),
}

/// A Pareto distribution: density `a k^a / x^(a + 1)` above `k`. Either `minimum` or `mean` is given.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pareto<T> {
    /// The scale k: the smallest value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<T>,
    /// The mean, which only a shape above 1 has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<T>,
    /// The shape a, above 0: the smaller, the heavier the tail.
    pub shape: f64,
}

impl<T: Quantity> DistributionFile<T> {
    /// The distribution, or what is wrong with it. Nothing of it may be zero, unless `zero` allows it.
    pub(crate) fn distribution(&self, key: &str, zero: bool) -> Result<Distribution, Mistake> {
        let below = |name: &str| format!("{key}.{name}");
        let check = |key: &str, value: T| {
            let number = value.number();
            if number.is_finite() && (number > 0.0 || zero && number == 0.0) {
                return Ok(number);
            }
            let expected = if zero { "a value that is not negative" } else { "a value above zero" };
            Err(Mistake::new(key, expected, value.shown()))
        };
        let wrong =
            |name: &str, expected: &str, found: &dyn Display| Mistake::new(below(name), expected, found);
        match self {
            Self::Always(value) => Ok(Distribution::Constant(check(key, *value)?)),
            Self::From(Table::Exponential(mean)) => {
                Ok(Distribution::Exponential(check(&below("exponential"), *mean)?))
            }
            Self::From(Table::Uniform((from, to))) => {
                let (low, high) = (check(&below("uniform"), *from)?, check(&below("uniform"), *to)?);
                if low > high {
                    let expected = format!("a second value of {} or more", from.shown());
                    return Err(Mistake::new(below("uniform"), expected, to.shown()));
                }
                Ok(Distribution::Uniform(low, high))
            }
            Self::From(Table::Pareto(pareto)) => {
                let shape = pareto.shape;
                if !(shape > 0.0 && shape.is_finite()) {
                    return Err(wrong("pareto.shape", "a shape above 0", &shape));
                }
                match (pareto.minimum, pareto.mean) {
                    (Some(minimum), None) => {
                        Ok(Distribution::Pareto { minimum: check(&below("pareto.minimum"), minimum)?, shape })
                    }
                    (None, Some(mean)) => {
                        let mean = check(&below("pareto.mean"), mean)?;
                        Distribution::pareto_of_mean(mean, shape).ok_or_else(|| {
                            let expected =
                                "a shape above 1, because up to 1 a Pareto distribution has no mean";
                            wrong("pareto.shape", expected, &shape)
                        })
                    }
                    (Some(_), Some(_)) => Err(wrong("pareto", "either minimum or mean", &"both")),
                    (None, None) => Err(wrong("pareto", "either minimum or mean", &"neither")),
                }
            }
        }
    }
}

impl<'de, T: Quantity> Deserialize<'de> for DistributionFile<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(PhantomData<T>);
        impl<'de, T: Quantity> serde::de::Visitor<'de> for Visitor<T> {
            type Value = DistributionFile<T>;
            fn expecting(&self, f: &mut Formatter) -> fmt::Result {
                f.write_str("a value, or a table that says how it is drawn")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<DistributionFile<T>, E> {
                T::deserialize(text.into_deserializer()).map(DistributionFile::Always)
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<DistributionFile<T>, E> {
                T::deserialize(number.into_deserializer()).map(DistributionFile::Always)
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<DistributionFile<T>, E> {
                T::deserialize(number.into_deserializer()).map(DistributionFile::Always)
            }
            fn visit_f64<E: Error>(self, number: f64) -> Result<DistributionFile<T>, E> {
                T::deserialize(number.into_deserializer()).map(DistributionFile::Always)
            }
            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<DistributionFile<T>, A::Error> {
                Table::deserialize(MapAccessDeserializer::new(table)).map(DistributionFile::From)
            }
        }
        deserializer.deserialize_any(Visitor(PhantomData))
    }
}

impl<T: Quantity> Serialize for DistributionFile<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Always(value) => value.serialize(serializer),
            Self::From(table) => table.serialize(serializer),
        }
    }
}

impl<T: Quantity> JsonSchema for DistributionFile<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Distribution{}", T::schema_name()).into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let (always, table) = (generator.subschema_for::<T>(), generator.subschema_for::<Table<T>>());
        schemars::json_schema!({
            "description": "A value, or a table that says how it is drawn",
            "oneOf": [always, table],
        })
    }
}

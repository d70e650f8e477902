//! Every queue discipline by name: to add one, write its file and add its line here.

use std::collections::BTreeMap;

use elephan_units::entry::{Parameter, choice_schema};
use elephan_units::{Choice, Entry, Mistake, Rate, Seed, read_choice};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::classes::Class;
use crate::packet::Head;
use crate::parameters::mistakes;
use crate::threshold::DropTail;
use crate::verdict::{Moment, Verdict};

/// The description of a discipline, and the JSON Schema of its parameters.
pub type Discipline = Entry<fn(&mut SchemaGenerator) -> Schema>;

/// Declares the enum of all disciplines, [`DISCIPLINES`], and the states of those that decide when a packet
/// arrives. A line gives the type of a discipline's parameters in its module, its name, title and source,
/// and, if it decides at arrival, the type of its state.
macro_rules! disciplines {
    ($( $module:ident::$variant:ident {
        $name:literal, $title:literal, $source:literal $(, judges $state:ident)?
    } )+) => {
        /// A queue discipline and its parameters. In a file: a name, or a table with `name` and parameters.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Queue {
            $( #[doc = concat!($title, " (", $source, ").")] $variant(crate::$module::$variant), )+
        }

        /// Every discipline.
        pub const DISCIPLINES: &[Discipline] = &[ $( Discipline {
            name: $name,
            title: $title,
            source: $source,
            implies: &[],
            parameters: || Parameter::of::<crate::$module::$variant>("automatic"),
            make: <crate::$module::$variant as JsonSchema>::json_schema,
        }, )+ ];

        impl Queue {
            /// The name that a scenario uses.
            pub fn name(&self) -> &'static str {
                match self { $( Self::$variant(_) => $name, )+ }
            }

            fn settings(&self) -> Value {
                let value = match self { $( Self::$variant(parameters) => serde_json::to_value(parameters), )+ };
                value.expect("parameters are always JSON")
            }

            /// Mistakes: a parameter out of its range, or two that contradict each other.
            pub fn mistakes(&self) -> Vec<Mistake> {
                match self { $( Self::$variant(parameters) => mistakes(parameters), )+ }
            }
        }

        impl<'de> Choice<'de> for Queue {
            const KIND: &'static str = "a queue discipline";

            fn read<A: MapAccess<'de>>(name: &str, parameters: A) -> Result<Self, A::Error> {
                let parameters = MapAccessDeserializer::new(parameters);
                match name {
                    $( $name => crate::$module::$variant::deserialize(parameters).map(Self::$variant), )+
                    _ => Err(A::Error::unknown_variant(name, &[$( $name ),+])),
                }
            }
        }

        /// The state of a discipline that decides when a packet arrives.
        #[derive(Clone, Debug)]
        pub(crate) enum EnqueueAqm {
            $( $( $variant(crate::$module::$state), )? )+
        }

        impl EnqueueAqm {
            /// The state of `queue` at a transmitter of `rate`; `None` if it has no state, or decides when
            /// packets leave.
            pub fn new(queue: &Queue, rate: Rate, seed: Seed, index: u64) -> Option<Self> {
                let stream = seed.stream("early drop on link", index);
                match queue {
                    $( $( Queue::$variant(parameters) => {
                        Some(Self::$variant(crate::$module::$state::new(parameters, rate, stream)))
                    } )? )+
                    _ => None,
                }
            }

            /// Decides on `packet`.
            #[inline]
            pub fn judge<H: Head>(&mut self, packet: &H, moment: &Moment) -> Verdict {
                match self {
                    $( $( Self::$variant(state) => crate::$module::$state::judge(state, packet, moment), )? )+
                }
            }

            /// The transmitter's rate changed: automatic settings follow it.
            pub fn tune(&mut self, rate: Rate) {
                match self {
                    $( $( Self::$variant(state) => crate::$module::$state::tune(state, rate), )? )+
                }
            }
        }
    };
}

disciplines! {
    threshold::DropTail { "droptail", "First in, first out; what does not fit is dropped", "RFC 2309" }
    threshold::Threshold { "threshold", "DropTail that marks packets that find a given number waiting", "Alizadeh et al. 2010", judges ThresholdState }
    red::Red { "red", "Random Early Detection", "Floyd and Jacobson 1993", judges RedState }
    adaptive_red::AdaptiveRed { "adaptive-red", "Adaptive RED", "Floyd, Gummadi and Shenker 2001", judges AdaptiveRedState }
    wred::Wred { "wred", "Weighted RED: one profile of drops for each class", "Clark and Fang 1998; thesis, section 5.3.2", judges WredState }
    codel::Codel { "codel", "Controlled Delay", "RFC 8289" }
    fq_codel::FqCodel { "fq-codel", "Flow queueing with CoDel", "RFC 8290" }
    pie::Pie { "pie", "Proportional Integral controller Enhanced", "RFC 8033", judges PieState }
    classes::Drr { "drr", "Deficit round robin, of classes or of flows", "Shreedhar and Varghese 1996" }
    classes::Wrr { "wrr", "Weighted round robin of classes", "Katevenis, Sidiropoulos and Courcoubetis 1991" }
    classes::Priority { "priority", "Strict priority of classes", "RFC 2475" }
}

impl Queue {
    /// Its outer classes; none if it is no scheduler.
    pub fn classes(&self) -> &[Class] {
        match self {
            Self::Drr(drr) => &drr.class,
            Self::Wrr(wrr) => &wrr.class,
            Self::Priority(priority) => &priority.class,
            _ => &[],
        }
    }

    /// Whether packets may leave in an order other than that of arrival.
    #[cfg(test)]
    pub fn reorders(&self) -> bool {
        matches!(self, Self::FqCodel(_) | Self::Drr(_) | Self::Wrr(_) | Self::Priority(_))
    }

    /// The names of its classes, and of classes within them.
    pub fn class_names(&self) -> Vec<&str> {
        let inner = self.classes().iter().flat_map(|class| class.queue.class_names());
        self.classes().iter().map(|class| class.name.as_str()).chain(inner).collect()
    }

    /// New weights for classes, by name.
    pub fn set_weights(&mut self, weights: &BTreeMap<String, f64>) {
        let classes = match self {
            Self::Drr(drr) => &mut drr.class,
            Self::Wrr(wrr) => &mut wrr.class,
            Self::Priority(priority) => &mut priority.class,
            _ => return,
        };
        for class in classes {
            if let Some(&weight) = weights.get(&class.name) {
                class.weight = Some(weight);
            }
            class.queue.set_weights(weights);
        }
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self::DropTail(DropTail {})
    }
}

impl<'de> Deserialize<'de> for Queue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_choice(deserializer)
    }
}

impl Serialize for Queue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut table = Map::from_iter([("name".to_owned(), json!(self.name()))]);
        if let Value::Object(settings) = self.settings() {
            table.extend(settings);
        }
        table.serialize(serializer)
    }
}

impl JsonSchema for Queue {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Queue".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let tables: Vec<Value> = DISCIPLINES
            .iter()
            .map(|known| match (known.make)(generator).to_value()["properties"].take() {
                Value::Object(properties) => known.table(properties),
                _ => known.table(Map::new()),
            })
            .collect();
        choice_schema(Self::KIND, &tables)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: Value) -> Result<Queue, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn every_discipline_is_found_by_its_name_and_described() {
        for known in DISCIPLINES {
            let found = read(json!(known.name)).unwrap();
            assert_eq!(found.name(), known.name);
            assert_eq!(read(serde_json::to_value(&found).unwrap()), Ok(found));
            for parameter in (known.parameters)() {
                assert!(parameter.meaning.len() > 20, "{}: {}", known.name, parameter.name);
            }
        }
    }

    #[test]
    fn defaults_of_those_without_classes_can_work() {
        for known in DISCIPLINES.iter().filter(|known| !["wred", "wrr", "priority"].contains(&known.name)) {
            assert_eq!(read(json!(known.name)).unwrap().mistakes(), [], "{}", known.name);
        }
    }

    #[test]
    fn ranges_and_contradictions_are_refused() {
        let mistakes = |value| {
            let mistakes = read(value).unwrap().mistakes();
            mistakes.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            mistakes(json!({ "name": "red", "max_p": 2.0 })),
            ["max_p: expected a number above 0, up to 1, found 2"]
        );
        assert_eq!(
            mistakes(json!({ "name": "red", "min_th": 20, "max_th": 10 })),
            ["max_th: expected a number above min_th = 20, found 10"]
        );
        let classes = |weights: [f64; 2]| {
            json!({ "name": "wrr", "class": [
            { "name": "af", "dscp": ["af"], "weight": weights[0] },
            { "name": "be", "weight": weights[1] },
        ] })
        };
        assert_eq!(mistakes(classes([1.0, 0.0])), [] as [String; 0]);
        assert_eq!(mistakes(classes([0.0, 0.0])), ["class: expected weights with a sum above 0, found 0"]);
        assert_eq!(
            mistakes(classes([1.0, -1.0]))[0],
            "class.1.weight: expected a number of 0 or more, found -1"
        );
    }
}

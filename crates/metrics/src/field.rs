//! The figures of a summary: each is declared once, with its unit, its meaning and how it is shown. The JSON of a summary, the
//! tables of the terminal and of reports, the page and the documents follow.

use serde::Serialize;

/// A figure of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Field {
    /// Its key in JSON. It ends with the unit where there is one.
    pub name: &'static str,
    /// What a table or a chart calls it.
    pub title: &'static str,
    /// Its unit: `s`, `B`, `bit/s`, `segments`, `packets`; `1` for numbers, counts and shares; empty for what is no quantity.
    pub unit: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// Where it is defined; empty where nothing needs to be cited.
    pub source: &'static str,
    /// Its greatest value, if it has one: 1 for shares. No figure is negative.
    pub most: Option<f64>,
    /// How tables show it; none for what they leave out.
    pub shown: Option<Shown>,
}

/// How tables show a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Shown {
    /// Which values are better.
    pub better: Better,
    /// The unit in tables, and what is counted: `Mbit/s, application bytes`.
    pub unit: &'static str,
    /// A value times this is in that unit.
    pub factor: f64,
    /// Decimals.
    pub digits: u8,
}

/// Which values of a figure are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Larger ones.
    Higher,
    /// Smaller ones.
    Lower,
    /// Neither: it describes.
    Neither,
}

/// Declares a part of a summary: a struct, and the description of each field.
///
/// A field is `name: type, "unit", "title";` after its meaning, with `<= 1.0` where it has a greatest value, `["source"]` where one
/// is cited, and `=> Better "unit in tables" factor digits` where tables show it.
macro_rules! summary {
    (
        $(#[doc = $doc:literal])+
        pub struct $summary:ident {
            $(
                $(#[doc = $meaning:literal])+
                $field:ident : $type:ty, $unit:literal, $title:literal $(<= $most:literal)? $([$source:literal])?
                $(=> $better:ident $shown:literal $factor:literal $digits:literal)? ;
            )+
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub struct $summary { $( $(#[doc = $meaning])+ pub $field: $type, )+ }

        impl $summary {
            /// Its figures, in their order.
            pub const FIELDS: &'static [$crate::field::Field] = &[ $( $crate::field::Field {
                name: stringify!($field),
                title: $title,
                unit: $unit,
                meaning: concat!($($meaning),+).trim_ascii(),
                source: concat!("" $(, $source)?),
                most: [$( Some($most), )? None][0],
                shown: [
                    $( Some($crate::field::Shown {
                        better: $crate::field::Better::$better,
                        unit: $shown,
                        factor: $factor,
                        digits: $digits,
                    }), )?
                    None
                ][0],
            }, )+ ];
        }
    };
}
pub(crate) use summary;

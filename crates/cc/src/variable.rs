//! The variables of algorithms and slow starts that a trace records: the name, unit and meaning of each, declared once, with its value.

use elephan_units::Time;

/// The names of the values of a flag.
pub(crate) const FLAG: &[&str] = &["false", "true"];

/// A variable of the state of an algorithm or a slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name in the algorithm's source.
    pub name: &'static str,
    /// The unit of a quantity; empty for ratios, counts and discrete variables.
    pub unit: &'static str,
    /// Its meaning, with its source.
    pub meaning: &'static str,
    /// The names of its values, if it is discrete, such as a state: a value is a place in this list. Otherwise empty.
    pub values: &'static [&'static str],
}

/// What an algorithm tells its variables to, one after the other, each with its value: NaN for a quantity that is unknown, infinite
/// for a bound that is not set. They are always the same, in the same order.
pub type Tell<'a> = dyn FnMut(&'static Variable, f64) + 'a;

/// A time in seconds, for a variable: NaN for [`Time::MAX`], which stands for none.
pub(crate) fn seconds(time: Time) -> f64 {
    if time < Time::MAX { time.secs_f64() } else { f64::NAN }
}

/// Tells the variables of an algorithm or slow start. Each is `name: "unit" = value;` after its meaning, a discrete one `name: NAMES = value;`, where
/// the value is a place in the list `NAMES`.
macro_rules! variables {
    ($tell:ident; $( $(#[doc = $meaning:literal])+ $name:ident : $kind:tt = $value:expr; )+) => { $(
        $tell(
            const { &$crate::variable::Variable {
                name: stringify!($name),
                meaning: concat!($($meaning),+).trim_ascii(),
                ..variables!(@kind $kind)
            } },
            $value,
        );
    )+ };
    (@kind $unit:literal) => { $crate::variable::Variable { name: "", unit: $unit, meaning: "", values: &[] } };
    (@kind $values:ident) => { $crate::variable::Variable { name: "", unit: "", meaning: "", values: $values } };
}
pub(crate) use variables;

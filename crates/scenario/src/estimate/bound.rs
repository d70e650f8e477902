//! The form of an estimate, which a plan carries.

/// A run is ended at this multiple of its estimate, unless it is as short as [`Bound::most`] says.
pub const TIMES: f64 = 4.0;

/// An upper estimate, and what contributes most to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bound {
    /// The bound; infinite where there is none.
    pub amount: f64,
    /// The key of the scenario that contributes most.
    pub key: String,
}

impl Bound {
    /// The amount at which a run is ended: [`TIMES`] the estimate, but at least `harmless`.
    #[must_use]
    pub fn most(&self, harmless: f64) -> f64 {
        (TIMES * self.amount).max(harmless)
    }
}

/// What it takes to run a scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Events of the simulator, and what they look at: about 100 ns each. Of the other engines, what takes as long.
    pub events: Bound,
    /// Rows of all tables.
    pub rows: Bound,
    /// Memory, bytes.
    pub bytes: Bound,
}

impl Estimate {
    /// The larger bound of each kind.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        let larger = |a: Bound, b: Bound| if b.amount > a.amount { b } else { a };
        Self {
            events: larger(self.events, other.events),
            rows: larger(self.rows, other.rows),
            bytes: larger(self.bytes, other.bytes),
        }
    }
}

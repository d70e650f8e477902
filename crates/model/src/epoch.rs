//! The result of each model: its climb.

/// The growth of the window from one loss to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Epoch {
    /// Its length in round trips.
    pub rounds: f64,
    /// Packets sent in it.
    pub packets: f64,
}

//! Predictions and explanations: closed forms and fluid equations from the literature.
//!
//! Symbols are the same everywhere: `w` a congestion window in segments, `p` the probability that a packet is
//! lost (one loss in `1/p` packets), `rtt` the round-trip time `T` in seconds, `a` the increase in segments
//! for each round trip, `beta` the fraction of the window that remains after a loss, `b = 1 - beta` the
//! fraction that a loss removes. Rates are in segments per second unless a name says `bit_s`. "Thesis" is Li
//! 2006, "Kelly" is Kelly 2003, "Tekala" is Tekala and Szabo 2006, "Bhandarkar" is the paper on Layered TCP.
//! If a source misprints a formula, the correct one is here and its docstring says what is printed.
//!
//! - [`Algorithm`]: response function, its inverse, recovery, doubling, halving, variation, fairness of each algorithm.
//! - [`standard`]: the square root law and PFTK. [`tekala`]: Scalable TCP's window over time, and under random loss.
//! - [`utilisation`]: of one AIMD flow, by its buffer.
//! - [`independent`]: what an algorithm comes to under independent losses.
//! - [`fluid`]: windows and queue as delay differential equations, and [`integrate`] over time. [`stability`]: Kelly's condition.

mod algorithm;
mod bic;
mod cubic;
mod epoch;
mod fast;
pub mod fluid;
mod highspeed;
mod htcp;
pub mod independent;
mod integrate;
pub mod ltcp;
pub mod rounds;
mod scalable;
mod solve;
pub mod stability;
pub mod standard;
pub mod tekala;
pub mod utilisation;

pub use algorithm::{Algorithm, Error, RttUnfairness, modelled};
pub use epoch::Epoch;
pub use integrate::{Lifetime, Sample, integrate};

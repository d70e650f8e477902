//! The scenario file: one definition that every engine reads.
//!
//! [`Scenario`] is the file as people write it. [`Scenario::resolve`] turns it into a [`Plan`]:
//! links with exact numbers, flows with their routes, nothing left to interpret.

pub mod plan;

pub use plan::Plan;

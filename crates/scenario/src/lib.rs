//! The scenario file: one definition that every engine reads.
//!
//! [`Scenario`] is the file as people write it. [`Scenario::resolve`] turns it into a [`Plan`]:
//! links with exact numbers, flows with their routes, nothing left to interpret.

mod algorithm;
mod buffer;
mod csv;
mod cvec;
mod distribution;
mod document;
mod error;
pub mod estimate;
mod file;
mod fluid;
pub mod plan;
mod read;
mod replay;
mod resolve;
mod show;
mod start;
mod sweep;

use serde_json::Value;

pub use algorithm::{Algorithm, SlowStart};
pub use buffer::Buffer;
pub use csv::Files;
pub use distribution::DistributionFile;
pub use document::{Syntax, parse};
pub use error::{Error, Mistake};
pub use estimate::Estimate;
pub use file::{
    ArrivalsFile, At, Bound, CbrFile, Engine, EventFile, ExpectFile, FlowFile, KernelFile, LinkFile,
    MeasureFile, OnOffFile, Path, ReplayFile, Reverse, Scenario, SizesFile, Span, Statistic, StepFile,
    TRAFFIC, TraceFile, Transfers, Version, WebFile,
};
pub use plan::Plan;
pub use start::StartFile;
pub use sweep::{Expansion, Point};

impl Scenario {
    /// Reads a scenario from TOML, after setting `overrides` (key and value as on a command line). No file is read for it.
    ///
    /// `file` is what errors call it.
    pub fn from_toml(text: &str, file: &str, overrides: &[(String, String)]) -> Result<Self, Error> {
        Self::from_document(parse(text, file, Syntax::Toml)?, file, overrides, Files::Refused)
    }

    /// Reads a scenario from JSON, of the same form as the TOML file.
    pub fn from_json(text: &str, file: &str, overrides: &[(String, String)]) -> Result<Self, Error> {
        Self::from_document(parse(text, file, Syntax::Json)?, file, overrides, Files::Refused)
    }

    /// Reads a scenario from a document that [`parse`] gave. With [`Files::Allowed`], files that it names are read, relative
    /// to the folder of `file`.
    pub fn from_document(
        mut document: Value,
        file: &str,
        overrides: &[(String, String)],
        files: Files,
    ) -> Result<Self, Error> {
        let error = |mistake| Error { file: file.to_owned(), mistakes: vec![mistake] };
        for (key, value) in overrides {
            document::set(&mut document, key, &document::value_of(key, value)).map_err(error)?;
        }
        document::printable(&document, "").map_err(error)?;
        csv::inline(&mut document, file, files)?;
        replay::inline(&mut document, file, files)?;
        read::typed(document, "").map_err(error)
    }

    /// The JSON Schema of the scenario file.
    pub fn schema() -> Value {
        schemars::schema_for!(Self).to_value()
    }
}

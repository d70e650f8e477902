//! What is wrong with a scenario: which file, which key, what was found, what was expected.

use std::fmt;

pub use elephan_units::Mistake;

/// Everything that is wrong with a scenario; one line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The file, or `scenario` where it came from a program.
    pub file: String,
    /// One or more mistakes.
    pub mistakes: Vec<Mistake>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.mistakes.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}: {mistake}", self.file)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

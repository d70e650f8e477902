//! Messages between the host and the guest: MessagePack, each after its length in four bytes.

use std::io::{self, Read, Write};

use elephan_linux::Measured;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Maximum length of a message: beyond this it is rubbish.
const LONGEST: usize = 1 << 31;

/// What the guest is to do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The scenario (JSON).
    pub scenario: String,
    /// The kernel's name of each flow's congestion control.
    pub algorithms: Vec<String>,
    /// Algorithms of `kernel/` with other parameters than the published ones.
    pub loads: Vec<Load>,
}

/// An algorithm of `kernel/` with other parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// The name of its file.
    pub name: String,
    /// The kernel's name of it.
    pub registered: String,
    /// The values of its table of parameters, in fixed point.
    pub values: Vec<u64>,
}

/// What the guest tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Report {
    /// The share of the run that is done.
    Progress(f64),
    /// The run has ended: its results.
    Done(Box<Measured>),
    /// The run could not be carried out: why.
    Failed(String),
}

/// Writes a message.
pub fn send<T: Serialize>(mut to: impl Write, message: &T) -> io::Result<()> {
    let bytes = rmp_serde::to_vec_named(message).map_err(io::Error::other)?;
    to.write_all(&(bytes.len() as u32).to_le_bytes())?;
    to.write_all(&bytes)
}

/// Reads a message.
pub fn receive<T: DeserializeOwned>(mut from: impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST {
        return Err(io::Error::other(format!(
            "expected a message of at most {LONGEST} bytes, found {length}"
        )));
    }
    let mut bytes = Vec::new();
    from.take(length as u64).read_to_end(&mut bytes)?;
    rmp_serde::from_slice(&bytes).map_err(io::Error::other)
}

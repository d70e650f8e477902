//! Runs a plan on the TCP of a guest kernel: user-mode Linux with `time-travel=inf-cpu`, in which computing takes
//! no time and sleeping takes none of ours.
//!
//! The guest is a process of the user. Its first program (`src/init.rs`) is the engine of `elephan-linux`; the
//! links are those of `elephan-emulator`, within the guest's kernel. [`run`] starts it, sends it a [`Job`] and
//! receives [`Report`]s. A guest carries out one job, so that no result depends on what ran before it.

mod archive;
mod host;
mod protocol;

pub use host::{Error, Launch, run};
pub use protocol::{Job, Load, Report, receive, send};

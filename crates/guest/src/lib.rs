//! Runs a plan, or a script of packetdrill, on the TCP of a guest kernel: user-mode Linux with `time-travel=inf-cpu`, in which computing takes
//! no time and sleeping takes none of ours.
//!
//! The guest is a process of the user. Its first program (`src/init.rs`) is the engine of `elephan-linux`, with links
//! that are those of `elephan-emulator` within the guest's kernel; or it runs a script by `elephan-packetdrill`. [`run`]
//! and [`run_script`] start it, send it a [`Job`] and receive [`Report`]s. A guest carries out one job, so that no result depends on what ran before it.

mod archive;
mod host;
mod protocol;

pub use host::{Error, Launch, run, run_script};
pub use protocol::{Job, Load, Report, Run, receive, send};

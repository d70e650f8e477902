//! Runs scripts in the language of packetdrill (Cardwell et al., USENIX ATC 2013): packets that arrive, system calls, and the
//! packets that a TCP stack has to send, each at its time.
//!
//! [`parse`] reads a script; [`run`] runs it on the simulator's TCP in virtual time, or on the running kernel's in real time, and
//! compares each line with what it sees. What a script asks for and a stack does not have ends it with the name of that thing.

#![allow(clippy::cast_possible_wrap, reason = "the numbers of scripts and of system calls are signed")]

mod call;
mod compare;
#[cfg(target_os = "linux")]
mod kernel;
mod lexer;
mod parser;
mod run;
pub mod script;
mod settings;
mod simulator;
#[cfg(target_os = "linux")]
mod wire;

pub use parser::parse;
pub use run::{Done, Engine, Judge, Judgement, Report, Stop};
pub use settings::Keys;

use run::{Options, Run, differs};
use script::Script;
use simulator::Simulated;

/// Runs a script. `keys` set the simulated stack, after the script's own settings; `judge` runs its code. In real time it ends
/// soon after `is_cancelled`.
pub fn run(
    script: &Script,
    engine: Engine,
    keys: &Keys,
    judge: Judge<'_>,
    is_cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<Done, Stop> {
    let skipped = |reason, line| Ok(Done { report: Report::Skipped { reason, line }, ignored: Vec::new() });
    if let Some(reason) = differs(script, engine) {
        return skipped(reason.to_owned(), 0);
    }
    let options = match Options::new(script) {
        Ok(options) => options,
        Err((line, Stop::Skip(reason))) => return skipped(reason, line),
        Err((_, stop)) => return Err(stop),
    };
    match engine {
        Engine::Simulator => Run::new(script, Simulated::new(script, options.mtu, keys)?, options).run(judge),
        #[cfg(target_os = "linux")]
        Engine::Kernel => kernel::run(script, options, judge, is_cancelled),
        #[cfg(not(target_os = "linux"))]
        Engine::Kernel => {
            let _ = is_cancelled;
            Err(Stop::Kernel("the running kernel".to_owned(), std::io::ErrorKind::Unsupported.into()))
        }
    }
}

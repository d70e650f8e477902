//! Runs scripts in the language of packetdrill (Cardwell et al., USENIX ATC 2013): packets that arrive, system calls, and the
//! packets that a TCP stack has to send, each at its time.
//!
//! [`parse`] reads a script; [`simulate`] runs it on the simulator's TCP, and [`run_on_kernel`] on the TCP of the kernel below this process,
//! which is a guest's (`crates/guest`). Both compare each line with what they see. What a script asks for and a stack does not have ends it
//! with the name of that thing.

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
pub use run::{Done, Judge, Judgement, Report, Stop};
pub use settings::Keys;

use run::{Engine, Options, Run, differs};
use script::Script;
use simulator::Simulated;

/// Runs a script on the simulator's TCP. `keys` set the stack, after the script's own settings; `judge` runs its code.
pub fn simulate(script: &Script, keys: &Keys, judge: Judge<'_>) -> Result<Done, Stop> {
    begin(script, Engine::Simulator, |options| {
        Run::new(script, Simulated::new(script, options.mtu, keys)?, options).run(judge)
    })
}

/// Runs a script on this kernel's TCP, and changes this kernel's settings. Its clock stands still while the kernel computes, so a script
/// passes or fails for good; in real time it would be late now and then.
#[cfg(target_os = "linux")]
pub fn run_on_kernel(script: &Script, judge: Judge<'_>) -> Result<Done, Stop> {
    begin(script, Engine::Kernel, |options| kernel::run(script, options, judge))
}

/// Carries out a script, unless it asks for something that the stack as a whole does not have.
fn begin(
    script: &Script,
    engine: Engine,
    run: impl FnOnce(Options) -> Result<Done, Stop>,
) -> Result<Done, Stop> {
    let skipped = |reason, line| Ok(Done { report: Report::Skipped { reason, line }, ignored: Vec::new() });
    if let Some(reason) = differs(script, engine) {
        return skipped(reason.to_owned(), 0);
    }
    match Options::new(&script.options) {
        Ok(options) => run(options),
        Err((line, Stop::Skip(reason))) => skipped(reason, line),
        Err((_, stop)) => Err(stop),
    }
}

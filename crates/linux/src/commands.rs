//! Command lines that run in the namespaces of the hosts while a plan is carried out.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use elephan_sys::Namespace;
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

/// Interval between checks for the end of the run.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Starts the command lines of each host, in this order, and kills them at `stop`. To be called on a separate
/// thread: the commands die with that thread, also if this process is killed. Otherwise they would keep their
/// namespace.
pub fn run(hosts: &[(&Namespace, &[Vec<String>])], stop: &AtomicBool) -> io::Result<()> {
    let mut children = Vec::new();
    let started = hosts.iter().try_for_each(|(host, lines)| {
        host.enter()?;
        lines.iter().try_for_each(|line| start(line).map(|child| children.push(child)))
    });
    while started.is_ok() && !stop.load(Ordering::Relaxed) {
        thread::sleep(BETWEEN_LOOKS);
    }
    for child in &mut children {
        // The command may have ended by itself.
        let _ = child.kill();
        let _ = child.wait();
    }
    started
}

fn start(line: &[String]) -> io::Result<Child> {
    let program = line.first().map_or("", String::as_str);
    let mut command = Command::new(program);
    command.args(line.get(1..).unwrap_or_default()).stdin(Stdio::null());
    let parent = getpid();
    #[expect(unsafe_code, reason = "code between fork and exec")]
    // SAFETY: two system calls, without memory or locks.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have been killed before that.
            if getppid() == Some(parent) { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
        });
    }
    command.spawn()
}

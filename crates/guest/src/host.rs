//! The host's side: starts a guest, and waits for its results.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use elephan_emulator::EVENTS;
use elephan_linux::Measured;
use elephan_metrics::trace::{EventTrace, QueueTrace};
use elephan_metrics::{Control, FlowSamples, SoFar};
use elephan_net::Limit;
use elephan_packetdrill::script::Script;
use elephan_packetdrill::{Done, Judge, Judgement};
use elephan_scenario::Plan;
use elephan_units::Time;
use rand::Rng;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, kill_process_group, set_parent_process_death_signal};
use serde::Serialize;
use tempfile::TempDir;

use crate::archive::archive;
use crate::protocol::{Job, Report, Run, receive, send};

/// A guest that has told nothing for so long hangs.
const LONGEST_SILENCE: Duration = Duration::from_mins(2);
/// Interval between checks whether the run is cancelled.
const LOOKS: Duration = Duration::from_millis(50);
/// Last lines of the guest's console that an error shows.
const LINES: usize = 12;
/// The seed of the random numbers of a script's guest.
const SCRIPT_SEED: u64 = 1;
/// The name of the guest's files within the folder of a run.
const FILES: &str = "files";

/// What a guest needs.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The kernel.
    pub image: PathBuf,
    /// Its first program: `elephan-init`.
    pub init: PathBuf,
    /// The library of the links: `libelephan_emulator.so`.
    pub links: PathBuf,
}

/// Why there are no results.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run was cancelled.
    #[error("the run was cancelled")]
    Cancelled,
    /// The host refused an operation: which one, and why.
    #[error("kernel engine: {0}: {1}")]
    Host(&'static str, io::Error),
    /// The guest refused the job: why.
    #[error("kernel engine: {0}")]
    Refused(String),
    /// The guest needs more memory than the host has available, bytes.
    #[error(
        "scenario: expected a network whose packets fit into {} MB of memory, found one whose guest needs {} MB",
        .found >> 20, .expected >> 20
    )]
    Memory {
        /// What it needs.
        expected: u64,
        /// What is available.
        found: u64,
    },
    /// The guest ended, hung or wrote something else than messages: which of these, and its last lines.
    #[error("kernel engine: {what}; its last lines were:\n{lines}")]
    Guest {
        /// What happened.
        what: String,
        /// The last lines of its console.
        lines: String,
    },
}

/// The memory of a guest besides the packets, and of a script's guest, bytes.
const BASE: u64 = 512 << 20;
/// Memory of a packet that awaits its acknowledgment, or of its copy at the receiver, bytes: data and the kernel's
/// descriptors.
const PACKET: u64 = 4 << 10;
/// Memory of a flow without its packets in flight, bytes: data that it has written and not sent.
const FLOW: u64 = 1 << 20;

/// The memory that a guest is given for a plan, bytes. The host provides what is used of it.
fn memory(plan: &Plan) -> u64 {
    let packet = plan.flows.iter().map(|flow| flow.tcp.packet.get()).min().unwrap_or(1500);
    let longest = plan.flows.iter().map(|flow| flow.rtt).max().unwrap_or(Time::ZERO);
    let queued = |limit| match limit {
        Limit::Packets(packets) => packets,
        Limit::Bytes(bytes) => bytes / packet,
    };
    let served = plan.links.iter().filter_map(|link| Some((link.config.rate?, queued(link.config.limit))));
    let (unlimited, limited): (Vec<_>, Vec<_>) = served.partition(|&(_, queued)| queued == u64::MAX);
    let links =
        limited.iter().map(|&(rate, queued)| queued.saturating_add(rate.bytes_in(longest).get() / packet));
    // Queues without a limit hold together what the sockets may have in flight.
    let flows = plan.flows.iter().chain(plan.crowds.iter().map(|crowd| &crowd.flow));
    let sockets = flows.map(|flow| plan.buffer(flow) / packet).fold(0, u64::saturating_add);
    let sockets = if unlimited.is_empty() { 0 } else { sockets };
    // Twice: packets that follow a lost one wait at the receiver for a round-trip time, each with its own copy of the data.
    let packets = links.fold(sockets, u64::saturating_add).saturating_mul(2);
    let flows = (plan.flows.len() + plan.crowds.len()) as u64;
    BASE.saturating_add(packets.saturating_mul(PACKET)).saturating_add(flows.saturating_mul(FLOW))
}

/// Memory of the host that new processes can use (proc_meminfo(5): MemAvailable), bytes; without limit if the
/// host does not tell.
fn available() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kilobytes.map_or(u64::MAX, |kilobytes| kilobytes << 10)
}

fn refused(what: &'static str) -> impl Fn(io::Error) -> Error {
    move |error| Error::Host(what, error)
}

/// Runs the scenario of `plan` in a new guest. Nothing of the guest is left when this returns.
pub fn run(launch: &Launch, plan: &Plan, run: &Run, control: &dyn Control) -> Result<Measured, Error> {
    let seed = plan.seed.stream("random numbers of a guest's kernel", 0).next_u64();
    let mut guest = Guest::start(launch, (memory(plan), seed), &Job::Run(run.clone()))?;
    let mut measured = guest.watch(&|| control.is_cancelled(), |guest, report| match report {
        Report::Progress(share) => {
            let (flows, queues) = (&FlowSamples::default(), &QueueTrace::default());
            let goes_on = control.goes_on(&SoFar { now: Time::ZERO, share, flows, queues });
            if goes_on { Ok(None) } else { Err(Error::Cancelled) }
        }
        Report::Done(measured) => Ok(Some(*measured)),
        report => Err(guest.misunderstood(&report)),
    })?;
    guest.kill();
    if plan.trace.events {
        measured.outcome.events = events(guest.folder.path()).map_err(refused("the events of the run"))?;
    }
    Ok(measured)
}

/// Runs a script of packetdrill in a new guest; `judge` runs its code on the host. Nothing of the guest is left when
/// this returns.
pub fn run_script(
    launch: &Launch,
    script: &Script,
    judge: Judge<'_>,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Done, Error> {
    let mut guest = Guest::start(launch, (BASE, SCRIPT_SEED), &Job::Script(script.clone()))?;
    guest.watch(is_cancelled, |guest, report| match report {
        Report::Judge(code, values) => match judge(&code, &values) {
            Judgement::Cancelled => Err(Error::Cancelled),
            judgement => {
                guest.tell(&judgement);
                Ok(None)
            }
        },
        Report::Ran(done) => Ok(Some(done)),
        report => Err(guest.misunderstood(&report)),
    })
}

/// The events that the links of a guest have written.
fn events(folder: &Path) -> io::Result<EventTrace> {
    let file = BufReader::new(fs::File::open(folder.join("events"))?);
    rmp_serde::from_read(file).map_err(io::Error::other)
}

/// A guest while it runs.
struct Guest {
    process: Child,
    /// Its temporary files.
    folder: TempDir,
    /// Messages to it.
    messages: Sender<Vec<u8>>,
    /// Its reports, the last of which is an error: the end of the guest, or something else than a message.
    reports: Receiver<io::Result<Report>>,
    console: Arc<Mutex<VecDeque<String>>>,
    /// Reads the console to its end.
    reading: Option<JoinHandle<()>>,
}

impl Guest {
    /// Starts a guest with memory, bytes, and a seed, and gives it a job.
    fn start(launch: &Launch, (memory, seed): (u64, u64), job: &Job) -> Result<Self, Error> {
        let available = available();
        if memory > available {
            return Err(Error::Memory { expected: memory, found: available });
        }
        let folder = tempfile::Builder::new()
            .prefix("elephan-guest-")
            .tempdir()
            .map_err(refused("a folder for temporary files"))?;
        let init = fs::read(&launch.init).map_err(refused("the guest's first program"))?;
        fs::write(folder.path().join(FILES), archive(&init)).map_err(refused("the guest's files"))?;
        let (read_message, mut write_message) = io::pipe().map_err(refused("a pipe"))?;
        let (read_report, write_report) = io::pipe().map_err(refused("a pipe"))?;
        let (process, output) =
            Self::spawn(launch, (memory, seed), folder.path(), &read_message, &write_report)
                .map_err(refused("the kernel's image"))?;
        let console = Arc::new(Mutex::new(VecDeque::new()));
        let kept = Arc::clone(&console);
        let reading = thread::spawn(move || keep_last(output, &kept));
        // The guest has these now, so that its end is an end of the reports.
        drop((read_message, write_report));
        let (messages, to_send) = mpsc::channel::<Vec<u8>>();
        // On threads of their own: they end with the guest, also within a message.
        thread::spawn(move || to_send.iter().all(|message| write_message.write_all(&message).is_ok()));
        let (hears, reports) = mpsc::channel();
        thread::spawn(move || {
            let mut reports = BufReader::new(read_report);
            loop {
                let report = receive(&mut reports);
                let is_last = report.is_err();
                if hears.send(report).is_err() || is_last {
                    break;
                }
            }
        });
        let guest = Self { process, folder, messages, reports, console, reading: Some(reading) };
        guest.tell(job);
        Ok(guest)
    }

    /// Sends a message. A guest that has ended does not read it: its reports tell why.
    fn tell(&self, message: &impl Serialize) {
        let mut bytes = Vec::new();
        send(&mut bytes, message).expect("a buffer takes everything");
        let _ = self.messages.send(bytes);
    }

    /// Starts the process, and returns what it writes on its console.
    fn spawn(
        launch: &Launch,
        (memory, seed): (u64, u64),
        folder: &Path,
        job: &PipeReader,
        report: &PipeWriter,
    ) -> io::Result<(Child, PipeReader)> {
        let (console, output) = io::pipe()?;
        let (job, report) = (job.try_clone()?, report.try_clone()?);
        let descriptors = [job.as_raw_fd(), report.as_raw_fd()];
        let mut command = Command::new(&launch.image);
        command
            .arg(format!("mem={}M", memory >> 20))
            .args(["time-travel=inf-cpu", "time-travel-start=1000000000000000000", "norandmaps"])
            .args(["con=null", "con0=null", "panic=-1", "rdinit=/init"])
            // Names within the folder: the guest's random numbers depend on its command line.
            .arg(format!("initrd={FILES}"))
            .arg("uml_dir=./")
            .env_clear()
            .env("ELEPHAN_LINKS", &launch.links)
            .env("ELEPHAN_SEED", seed.to_string())
            .env("ELEPHAN_IN", descriptors[0].to_string())
            .env("ELEPHAN_OUT", descriptors[1].to_string())
            .env(EVENTS, folder.join("events"))
            .env("HOME", folder)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0);
        #[expect(unsafe_code, reason = "code between fork and exec")]
        // SAFETY: system calls, without memory or locks.
        unsafe {
            command.pre_exec(move || {
                set_parent_process_death_signal(Some(Signal::KILL))?;
                for descriptor in [job.as_fd(), report.as_fd()] {
                    fcntl_setfd(descriptor, FdFlags::empty())?;
                }
                Ok(())
            });
        }
        Ok((command.spawn()?, console))
    }

    /// Hands over reports until one of them gives a result.
    fn watch<T>(
        &mut self,
        is_cancelled: &dyn Fn() -> bool,
        mut hear: impl FnMut(&mut Self, Report) -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        let mut last = Instant::now();
        loop {
            if is_cancelled() {
                return Err(Error::Cancelled);
            }
            let Ok(report) = self.reports.recv_timeout(LOOKS) else {
                if last.elapsed() > LONGEST_SILENCE {
                    let silence = LONGEST_SILENCE.as_secs();
                    return Err(self.failed(format!("the guest reported nothing for {silence} s")));
                }
                continue;
            };
            match report {
                Ok(Report::Failed(why)) => return Err(Error::Refused(why)),
                Ok(report) => {
                    if let Some(result) = hear(self, report)? {
                        return Ok(result);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    let status = self.kill().map_or_else(String::new, |status| status.to_string());
                    return Err(self.failed(self.why_it_ended(&status)));
                }
                Err(error) => return Err(self.failed(format!("the guest wrote no messages: {error}"))),
            }
            last = Instant::now();
        }
    }

    /// A report of another job.
    fn misunderstood(&mut self, report: &Report) -> Error {
        self.failed(format!("the guest wrote a message of another job: {report:?}"))
    }

    /// A guest begins with a check that it can trace its programs, which some containers forbid.
    fn why_it_ended(&self, status: &str) -> String {
        let lines = self.console.lock().expect("nobody panics with it");
        if lines.iter().any(|line| line.contains("ptrace: ") || line.starts_with("check_ptrace")) {
            return "expected permission to use ptrace(2), found it refused; a container needs `--cap-add SYS_PTRACE`, \
                    or a seccomp profile that allows it"
                .to_owned();
        }
        format!("the guest ended without results ({status})")
    }

    fn failed(&mut self, what: String) -> Error {
        self.kill();
        let lines = self.console.lock().expect("nobody panics with it");
        Error::Guest { what, lines: lines.iter().cloned().collect::<Vec<_>>().join("\n") }
    }

    /// Ends the guest with all its processes, once: afterwards its number may be another group's. Returns how its
    /// first process ended; one that is ending by itself keeps its own status.
    fn kill(&mut self) -> Option<ExitStatus> {
        let reading = self.reading.take()?;
        if let Some(group) = Pid::from_raw(self.process.id().cast_signed()) {
            // The group may have ended by itself.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let status = self.process.wait().ok();
        let _ = reading.join();
        status
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Keeps the last lines of a guest's console.
fn keep_last(console: impl Read, lines: &Mutex<VecDeque<String>>) {
    let mut console = BufReader::new(console);
    let mut line = Vec::new();
    while console.by_ref().take(1000).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        let mut lines = lines.lock().expect("nobody panics with it");
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use elephan_metrics::Uncontrolled;
    use elephan_scenario::Scenario;

    use super::*;

    fn plan() -> Plan {
        let text =
            r#"{"duration": "1 s", "path": {"rate": "10 Mbit/s", "rtt": "10 ms"}, "flow": [{"cc": "reno"}]}"#;
        Scenario::from_json(text, "scenario", &[]).unwrap().resolve("scenario").unwrap()
    }

    #[test]
    fn queues_without_a_limit_need_what_the_sockets_hold() {
        let text = r#"{"duration": "1 s", "path": {"rate": "10 Mbit/s", "rtt": "10 ms", "access_rate": "10 Gbit/s"}, "flow": [{"cc": "reno"}]}"#;
        let accessed = Scenario::from_json(text, "scenario", &[]).unwrap().resolve("scenario").unwrap();
        assert_eq!(memory(&accessed), memory(&plan()) + 2 * ((1 << 30) / 1500) * PACKET);
    }

    /// Runs a shell script in place of a kernel.
    fn run_script(script: &str, control: &dyn Control) -> Error {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("linux");
        fs::write(&image, format!("#!/bin/bash\n{script}\n")).unwrap();
        fs::set_permissions(&image, fs::Permissions::from_mode(0o755)).unwrap();
        let launch = Launch { image, init: "/dev/null".into(), links: "/dev/null".into() };
        run(&launch, &plan(), &Run::default(), control).unwrap_err()
    }

    #[test]
    fn the_end_of_a_guest_is_told_with_its_last_lines() {
        let error = run_script(
            "for n in $(seq 100); do echo line $n; done; echo Kernel panic >&2; exit 7",
            &Uncontrolled,
        );
        let text = error.to_string();
        assert!(matches!(error, Error::Guest { .. }), "{text}");
        assert!(text.contains("exit status: 7") && text.ends_with("line 100\nKernel panic"), "{text}");
        assert!(!text.contains("line 1\n"), "{text}");
    }

    #[test]
    fn rubbish_is_refused() {
        let long = run_script(r"printf '\377\377\377\377' >&$ELEPHAN_OUT; sleep infinity", &Uncontrolled)
            .to_string();
        assert!(long.contains("wrote no messages"), "{long}");
        let short = run_script(r"printf '\003\000\000\000abc' >&$ELEPHAN_OUT; sleep infinity", &Uncontrolled)
            .to_string();
        assert!(short.contains("wrote no messages"), "{short}");
    }

    #[test]
    fn a_refusal_of_ptrace_says_what_to_allow() {
        let text =
            run_script("echo 'check_ptrace : expected SIGSTOP, got status = 9'; exit 1", &Uncontrolled)
                .to_string();
        assert!(text.contains("SYS_PTRACE"), "{text}");
    }

    /// Cancels the run when something was written.
    struct Written<'a>(&'a Path);

    impl Control for Written<'_> {
        fn is_cancelled(&self) -> bool {
            self.0.metadata().is_ok_and(|file| file.len() > 0)
        }
    }

    #[test]
    fn a_cancelled_guest_ends_with_its_children() {
        let told = tempfile::NamedTempFile::new().unwrap();
        // The child has the console, too, which is read to its end: otherwise this would not return.
        let script = format!("sleep infinity & echo $! > {}; wait", told.path().display());
        assert!(matches!(run_script(&script, &Written(told.path())), Error::Cancelled));
    }

    #[test]
    fn a_network_that_is_too_large_is_refused_before_the_start() {
        let mut plan = plan();
        plan.links[0].config.limit = Limit::Packets(1 << 50);
        let launch = Launch { image: "/".into(), init: "/".into(), links: "/".into() };
        let error = run(&launch, &plan, &Run::default(), &Uncontrolled).unwrap_err();
        assert!(matches!(error, Error::Memory { .. }), "{error}");
    }
}

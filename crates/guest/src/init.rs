//! The first program of a guest: reads a job, carries it out, and switches the guest off.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::Mutex;

use elephan_guest::{Job, Report, Run, receive, send};
use elephan_linux::{Options, run_over};
use elephan_metrics::{Control, SoFar};
use elephan_packetdrill::script::Script;
use elephan_packetdrill::{Judgement, Stop};
use elephan_scenario::Scenario;
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, reboot};

use crate::device::{DEVICE, Device};

mod device;

fn main() {
    let host = File::options().read(true).write(true).open(DEVICE).expect("the kernel has the driver");
    let report = match carry_out(&host) {
        Ok(report) => report,
        Err(error) => Report::Failed(error.to_string()),
    };
    send(&host, &report).expect("the host listens");
    // If this is refused, the kernel panics at the end of this program, which the host reports.
    let _ = reboot(RebootCommand::PowerOff);
}

/// Pages of memory that TCP may use (tcp_mem in tcp(7)): more than there are.
const TCP_PAGES: &str = "1000000000";

fn carry_out(host: &File) -> io::Result<Report> {
    mount("proc", "/proc", "proc", MountFlags::empty(), None)?;
    // By default an eighth of the memory is TCP's at most, and beyond it TCP drops packets.
    std::fs::write("/proc/sys/net/ipv4/tcp_mem", [TCP_PAGES; 3].join(" "))?;
    match receive(host)? {
        Job::Run(run) => carry_out_run(host, run),
        Job::Script(script) => carry_out_script(host, &script),
    }
}

fn carry_out_run(host: &File, run: Run) -> io::Result<Report> {
    let plan = Scenario::from_json(&run.scenario, "scenario", &[])
        .and_then(|scenario| scenario.resolve("scenario"))
        .map_err(io::Error::other)?;
    let network = Device::open(host.try_clone()?, &run.scenario)?;
    for load in &run.loads {
        network.load(load)?;
    }
    let options = Options { algorithms: run.algorithms, ..Options::default() };
    std::thread::sleep(SETTLING);
    let told = Told { host, share: Mutex::new(0.0) };
    let measured = run_over(network, &plan, &options, &told).map_err(io::Error::other)?;
    Ok(Report::Done(Box::new(measured)))
}

fn carry_out_script(host: &File, script: &Script) -> io::Result<Report> {
    // Parameters of the kernel's modules.
    mount("sysfs", "/sys", "sysfs", MountFlags::empty(), None)?;
    std::thread::sleep(SETTLING);
    // The host is gone if it does not answer.
    let mut judge = |code: &str, values: &BTreeMap<String, i64>| {
        send(host, &Report::Judge(code.to_owned(), values.clone()))
            .and_then(|()| receive(host))
            .unwrap_or(Judgement::Cancelled)
    };
    Ok(match elephan_packetdrill::run_on_kernel(script, &mut judge) {
        Ok(done) => Report::Ran(done),
        Err(Stop::Kernel(what, error)) => Report::Failed(format!("{what}: {error}")),
        Err(stop) => Report::Failed(format!("{stop:?}")),
    })
}

/// Booting takes no time, and a kernel's timers have the resolution of its ticks until the first of these.
const SETTLING: std::time::Duration = std::time::Duration::from_millis(20);
/// Smallest share of a run between two reports of progress.
const STEP: f64 = 0.01;

/// Tells the host how far the run is.
struct Told<'a> {
    host: &'a File,
    share: Mutex<f64>,
}

impl Control for Told<'_> {
    fn goes_on(&self, so_far: &SoFar<'_>) -> bool {
        let mut told = self.share.lock().expect("nobody panics with it");
        if so_far.share < *told + STEP {
            return true;
        }
        *told = so_far.share;
        send(self.host, &Report::Progress(so_far.share)).is_ok()
    }
}

//! The first program of a guest: reads a job, carries it out, and switches the guest off.
#![allow(missing_docs)]

use std::fs::File;

use elephan_guest::{Job, Report, receive, send};
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, reboot};

mod device;

fn main() {
    let report = match carry_out() {
        Ok(report) => report,
        Err(error) => Report::Failed(error.to_string()),
    };
    let host = File::options().write(true).open(device::DEVICE).expect("the driver has it");
    send(&host, &report).expect("the host listens");
    let _ = reboot(RebootCommand::PowerOff);
}

fn carry_out() -> std::io::Result<Report> {
    mount("proc", "/proc", "proc", MountFlags::empty(), None)?;
    let host = File::options().read(true).write(true).open(device::DEVICE)?;
    let job: Job = receive(&host)?;
    let path = device::Device::open(host, &job.scenario)?;
    path.make(0)?;
    let zero = path.start()?;
    std::thread::sleep(std::time::Duration::from_millis(100));
    let records = path.finish()?;
    Ok(Report::Failed(format!("hello {zero} {records:?}")))
}

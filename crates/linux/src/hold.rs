//! Links without traffic of their own: for programs of the user's in the two namespaces.

use std::os::fd::RawFd;
use std::thread;
use std::time::Duration;

use elephan_scenario::Plan;
use elephan_sys::Namespace;
use elephan_sys::device::{DEVICE, device_drops};

use crate::clock::Processors;
use crate::emulator::Tunnels;
use crate::{Error, Path, Quality, equip, quality, refused};

/// Interval between checks for the end.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Connects two namespaces by the links of a plan, and carries what programs in them send, until `is_over`.
///
/// The near host is 10.0.0.1 and the far one 10.0.0.2. Packets whose port belongs to no flow of the plan take the route of its first
/// flow; the plan's own traffic does not run. `ready` is told the file descriptors of this process for the namespaces of the two
/// hosts, near and far, for `setns`. Both end with this call, or with the process.
pub fn hold(
    plan: &Plan,
    ready: impl FnOnce([RawFd; 2]),
    is_over: impl Fn() -> bool,
) -> Result<Quality, Error> {
    // As for a run; programs may use any processor.
    let mut path = Tunnels::new(plan, Processors::own().split().0);
    let hosts = equip(&mut path, plan)?;
    let clock = path.start().map_err(refused("the network"))?;
    ready(hosts.each_ref().map(Namespace::descriptor));
    while !is_over() && !path.has_stopped() {
        thread::sleep(BETWEEN_LOOKS);
    }
    // It is judged by as long as it lasted.
    let plan = Plan { duration: clock.now(), ..plan.clone() };
    let emulated = path.finish().map_err(refused("the emulator"))?;
    let drops = hosts.each_ref().map(|host| host.within(|| device_drops(DEVICE)).unwrap_or_default());
    Ok(quality::quality(&plan, &emulated, drops, (0.0, 0.0)))
}

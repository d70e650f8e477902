//! Faults of congestion control from outside: at the end of a round all sites are at the same time, so the first fault of
//! the run is the earliest that any of them has.

use crate::error::Error;
use crate::state::site::Site;

/// Ends the run if the congestion control of a connection has failed: with the earliest fault, and of several at that
/// time with that of the first flow.
pub fn look(sites: &[Site<'_>]) -> Result<(), Error> {
    let earliest = sites.iter().flat_map(Site::faults).min_by_key(|&(slot, _, fault)| (fault.at(), slot));
    let Some((_, (flow, name), fault)) = earliest else { return Ok(()) };
    Err(Error::Fault { flow, name, at: fault.at(), text: fault.text().to_owned() })
}

//! A link in one direction: a queue, a transmitter, a wire.
//!
//! A link has two ends, which may advance separately: all that happens at the near end ([`NearEnd`]) acts on the
//! far end ([`FarEnd`]) at least the propagation delay later. The packets between them are on the [`Wire`].
//! What is reported of a link and what changes it needs both ends at the same time, as a [`View`].
//!
//! If the discipline decides when a packet arrives, and packets are served in order, the end of a packet's
//! service is known at its arrival. The packet is given to the wire at once, and the queue keeps its
//! time and its size.
//!
//! A discipline that decides when a packet leaves (CoDel), or in which order (fair queueing), keeps its
//! packets in a `PacketQueue`, and so does a link that changes during the run. The wire then has the packets
//! in service and behind it. The choice of the next packet is made at the next call, as of the time when the
//! transmitter became free: no packet that arrived later is considered. In either case a link needs one event
//! at a time, the arrival of the wire's first packet: as long as a packet waits, the packet in service is on the
//! wire.
//!
//! A new rate affects the waiting packets; the packet in service keeps its service time. Before a new delay
//! takes effect, the packets that have left the transmitter move to the side heap with their old delay. A
//! link that goes down drops all waiting packets and those on the wire.

mod far;
mod near;
mod run;
#[cfg(test)]
mod tests;
mod view;
mod wire;

pub use far::FarEnd;
pub use near::NearEnd;
pub use run::{Run, Times};
pub use view::View;
pub use wire::Wire;

//! The interface through which an engine reports what it does.

use elephan_metrics::trace::EventKind;
use elephan_tcp::Segment;
use elephan_traffic::Page;
use elephan_units::Time;

use crate::error::Error;
use crate::packet::Packet;
use crate::state::State;
use crate::state::connection::Connection;

/// Receives the engine's reports. All methods are called at the time of the event.
pub trait Observer {
    /// Whether [`Observer::event`] and [`Observer::crosses`] are to be called.
    const DETAILED: bool;

    /// An event of a packet, a window or a connection.
    fn event(&mut self, state: &State<'_>, now: Time, event: Event<'_>);
    /// A packet begins to cross a link.
    fn crosses(&mut self, link: u32, packet: &Packet, now: Time);
    /// A flow's window was reduced.
    fn congestion(&mut self, flow: u32, now: Time);
    /// A flow opened a connection.
    fn started(&mut self, flow: u32, now: Time);
    /// A transfer of a flow ended.
    fn finished(&mut self, flow: u32, connection: &Connection, now: Time);
    /// A transfer of a crowd ended, and possibly a page with it.
    fn crowd_finished(&mut self, crowd: u32, connection: &Connection, page: Option<Page>, now: Time);
    /// The time returned by [`Observer::next_tick`] has come.
    fn tick(&mut self, state: &mut State<'_>, now: Time) -> Result<(), Error>;
    /// Time of the observer's next tick; `Time::MAX` for never.
    fn next_tick(&self) -> Time;
    /// Whether the run must end at once.
    fn is_cancelled(&self) -> bool;
}

/// The argument of [`Observer::event`].
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// The kind of event.
    pub kind: EventKind,
    /// The flow, crowd or stream, by its number in traces.
    pub flow: u32,
    /// The link.
    pub link: Option<u32>,
    /// The segment.
    pub segment: Option<&'a Segment>,
}

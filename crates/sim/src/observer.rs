//! What an engine tells of what it does.

use elephan_metrics::trace::EventKind;
use elephan_tcp::Segment;
use elephan_units::Time;

use crate::error::Error;
use crate::packet::Packet;
use crate::state::State;
use crate::state::connection::Connection;
use crate::state::crowd::Page;

/// What an engine reports what it does. All methods are called at the time of the event.
pub trait Observer {
    /// Whether [`Observer::event`] and [`Observer::crosses`] are to be called.
    const DETAILED: bool;

    /// A packet, a window or a connection did something.
    fn event(&mut self, state: &State<'_>, now: Time, event: Event<'_>);
    /// A packet begins to cross a link.
    fn crosses(&mut self, link: u32, packet: &Packet, now: Time);
    /// A flow's window was reduced.
    fn congestion(&mut self, flow: u32, now: Time);
    /// A flow opened a connection.
    fn started(&mut self, flow: u32, now: Time);
    /// A transfer of a flow ended.
    fn finished(&mut self, flow: u32, connection: &Connection, now: Time);
    /// A transfer of a crowd ended, and with it perhaps a page.
    fn crowd_finished(&mut self, crowd: u32, connection: &Connection, page: Option<Page>, now: Time);
    /// The time that [`Observer::next_tick`] named has come.
    fn tick(&mut self, state: &mut State<'_>, now: Time) -> Result<(), Error>;
    /// When the observer next wants to look; `Time::MAX` for never.
    fn next_tick(&self) -> Time;
    /// Whether the run is to end at once.
    fn is_cancelled(&self) -> bool;
}

/// The argument of [`Observer::event`].
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// What happened.
    pub kind: EventKind,
    /// To which flow, crowd or stream, as traces number them.
    pub flow: u32,
    /// On which link.
    pub link: Option<u32>,
    /// Which segment.
    pub segment: Option<&'a Segment>,
}

//! When a run stops before its end: it is cancelled, or virtual time does not advance.
//!
//! A step is an event handled, or a packet given to a link: any endless activity takes steps.

use elephan_units::Time;

use crate::engine::site::Running;
use crate::engine::standstill::Standstill;
use crate::error::Error;
use crate::packet::Packet;
use crate::report::Rank;
use crate::state::site::Site;
use crate::state::timers::Timer;

/// The engine checks whether it must stop after this number of steps, which take well below a millisecond.
const STEPS_BETWEEN_LOOKS: u32 = 1024;

/// Steps until the engine checks whether it must stop.
pub struct Steps {
    /// Counted down, which is cheapest; an event may take more steps than are left.
    left: i64,
    /// Its value at the engine's last check.
    granted: i64,
    standstill: Standstill,
    /// Why the run stops; `None` while it continues.
    stopped: Option<Error>,
}

impl Default for Steps {
    fn default() -> Self {
        let (left, granted) = (STEPS_BETWEEN_LOOKS.into(), STEPS_BETWEEN_LOOKS.into());
        Self { left, granted, standstill: Standstill::default(), stopped: None }
    }
}

impl Steps {
    /// Takes one step.
    #[inline]
    pub fn take(&mut self) {
        self.left -= 1;
    }

    /// Takes this number of steps.
    #[inline]
    pub fn take_many(&mut self, count: u32) {
        self.left -= i64::from(count);
    }

    /// Whether the engine need not check yet.
    #[inline]
    pub fn are_left(&self) -> bool {
        self.left > 0
    }
}

/// The source of a step.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// A link.
    Link(usize),
    /// A stream of datagrams.
    Stream(u32),
    /// A crowd, whose flows arrive.
    Crowd(u32),
    /// The flow of a slot.
    Slot(u32),
}

impl Source {
    /// The sender of a packet.
    pub fn of(packet: &Packet) -> Self {
        if packet.datagram().is_some() { Self::Stream(packet.flow) } else { Self::Slot(packet.flow) }
    }

    /// The source of an event.
    pub fn of_rank(rank: Rank) -> Self {
        match rank {
            Rank::Arrival(link) => Self::Link(link as usize),
            Rank::Timer(Timer::Stream(stream)) => Self::Stream(stream),
            Rank::Timer(Timer::Arrival(crowd)) => Self::Crowd(crowd),
            Rank::Timer(Timer::Host(slot) | Timer::End(slot, _)) => Self::Slot(slot),
        }
    }

    fn name(self, site: &Site<'_>) -> String {
        let plan = site.plan;
        match self {
            Self::Link(link) => format!("link {:?}", plan.links[link].name),
            Self::Stream(stream) => format!("stream {:?}", plan.streams[stream as usize].label),
            Self::Crowd(crowd) => format!("arrivals {:?}", plan.crowds[crowd as usize].flow.label),
            Self::Slot(slot) => {
                let place = site.place(slot);
                let sender = site.slots.get(place).and_then(|slot| slot.owner.crowd());
                let crowd = sender.or(site.sinks.get(place).and_then(|sink| sink.crowd));
                format!("flow {:?}", site.plan_of(slot, crowd).label)
            }
        }
    }
}

impl<const DETAILED: bool> Running<'_, '_, DETAILED> {
    /// Checks whether the run is cancelled, and whether time advances; `source` takes the current step.
    #[cold]
    pub(super) fn look(&mut self, source: Source, now: Time) -> Result<(), Error> {
        if let Some(error) = self.site.steps.stopped.take() {
            return Err(error);
        }
        if self.site.control.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let steps = &self.site.steps;
        let taken = (steps.granted - steps.left) as u64;
        let mut standstill = std::mem::take(&mut self.site.steps.standstill);
        let look_soon = standstill.look(taken, now, || source.name(self.site))?;
        let steps = &mut self.site.steps;
        steps.standstill = standstill;
        steps.granted = if look_soon { 1 } else { STEPS_BETWEEN_LOOKS.into() };
        steps.left = steps.granted;
        Ok(())
    }

    /// Whether a loop within an event must end, because the run stops: checked when no steps are left.
    #[cold]
    pub(super) fn stops(&mut self, source: Source, now: Time) -> bool {
        // No steps are granted then, so the next part that checks is also notified.
        self.site.steps.stopped = self.look(source, now).err();
        self.site.steps.stopped.is_some()
    }
}

//! Sources of steps, which the error of a standstill names.

use crate::packet::Packet;
use crate::report::Rank;
use crate::state::site::Site;
use crate::state::timers::Timer;

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
        if packet.datagram().is_some() {
            Self::Stream(packet.head.flow)
        } else {
            Self::Slot(packet.head.flow)
        }
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

    /// Its kind and its name in the plan.
    pub fn name(self, site: &Site<'_>) -> String {
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

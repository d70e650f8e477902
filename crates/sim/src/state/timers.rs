//! Events at times of their own, apart from events of links.

use elephan_network::Events;
use elephan_units::Time;

use crate::state::connection::{RECEIVER, SENDER};

/// The kinds of timers. Of simultaneous timers the earlier kind in this list comes first, and of the same
/// kind the lower number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// This stream sends its next datagram.
    Stream(u32),
    /// A flow of this crowd arrives at random.
    Arrival(u32),
    /// The processor of this flow's host is free.
    Host(u32),
    /// An end of this slot's connection wants to be woken; if the slot has no connection, its next one
    /// begins.
    End(u32, usize),
}

/// Maps timers to numbers in their order: the number of timers of each kind is known at the start, except for
/// ends.
#[derive(Clone, Copy, Debug)]
struct Order {
    /// The number of the first arrival, of the first host, and of the first end.
    arrivals: usize,
    hosts: usize,
    ends: usize,
    /// The first slot.
    first: u32,
    /// The first of the ends here, and how many others are: one or none.
    end: usize,
    others: usize,
}

impl Order {
    fn new(streams: usize, crowds: usize, hosts: usize, first: u32, here: [bool; 2]) -> Self {
        Self {
            arrivals: streams,
            hosts: streams + crowds,
            ends: streams + crowds + hosts,
            first,
            end: if here[SENDER] { SENDER } else { RECEIVER },
            others: usize::from(here[SENDER] && here[RECEIVER]),
        }
    }

    /// The number of a timer.
    #[inline]
    fn pack(self, timer: Timer) -> usize {
        match timer {
            Timer::Stream(stream) => stream as usize,
            Timer::Arrival(crowd) => self.arrivals + crowd as usize,
            Timer::Host(flow) => self.hosts + flow as usize,
            Timer::End(slot, end) => {
                self.ends + (((slot - self.first) as usize) << self.others) + end - self.end
            }
        }
    }

    /// The timer with this number.
    #[inline]
    fn unpack(self, number: usize) -> Timer {
        if number >= self.ends {
            let end = number - self.ends;
            Timer::End(self.first + (end >> self.others) as u32, self.end + (end & self.others))
        } else if number >= self.hosts {
            Timer::Host((number - self.hosts) as u32)
        } else if number >= self.arrivals {
            Timer::Arrival((number - self.arrivals) as u32)
        } else {
            Timer::Stream(number as u32)
        }
    }
}

/// When each timer is due.
pub struct Timers {
    events: Events,
    order: Order,
    /// Number of timers.
    ends: usize,
}

impl Timers {
    /// Timers for these numbers of streams, crowds and hosts, and for no slot yet of those from `first` on; none
    /// is due. There is room for the slots before `next`. Of senders and receivers only those have timers that are `here`.
    pub fn new(
        streams: usize,
        crowds: usize,
        hosts: usize,
        (first, next): (u32, u32),
        here: [bool; 2],
    ) -> Self {
        let order = Order::new(streams, crowds, hosts, first, here);
        let room = ((next - first) as usize) << order.others;
        Self { events: Events::with_room(order.ends, room), order, ends: order.ends }
    }

    /// Adds timers for the ends of all slots up to this one.
    pub fn reach(&mut self, slot: u32) {
        let last = self.order.pack(Timer::End(slot, self.order.end)) + self.order.others;
        while self.ends <= last {
            self.ends = self.events.add() + 1;
        }
    }

    /// When the next timer is due; `Time::MAX` for never.
    #[inline]
    pub fn next_time(&self) -> Time {
        self.events.next().0
    }

    /// Which timer is due next.
    #[inline]
    pub fn next(&self) -> Timer {
        self.order.unpack(self.events.next().1)
    }

    /// Sets a timer, and replaces its previous time.
    #[inline]
    pub fn schedule(&mut self, timer: Timer, time: Time) {
        self.events.schedule(self.order.pack(timer), time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_number_stands_for_one_timer_and_keeps_the_order(
            streams in 0usize..4, crowds in 0usize..4, hosts in 0usize..4, first in 0u32..3, slots in 0u32..4,
            here in prop::sample::select(vec![[true, false], [false, true], [true, true]]),
        ) {
            let order = Order::new(streams, crowds, hosts, first, here);
            let ends = (first..first + slots).flat_map(|slot| {
                [SENDER, RECEIVER].into_iter().filter(move |&end| here[end]).map(move |end| Timer::End(slot, end))
            });
            let timers: Vec<Timer> = (0..streams as u32).map(Timer::Stream)
                .chain((0..crowds as u32).map(Timer::Arrival))
                .chain((0..hosts as u32).map(Timer::Host))
                .chain(ends)
                .collect();
            prop_assert!(timers.is_sorted());
            for (number, timer) in timers.into_iter().enumerate() {
                prop_assert_eq!(order.pack(timer), number);
                prop_assert_eq!(order.unpack(number), timer);
            }
        }
    }
}

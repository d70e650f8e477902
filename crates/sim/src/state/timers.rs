//! What happens at a time of its own, apart from what happens on links.

use elephan_network::Events;
use elephan_units::Time;

use crate::state::connection::{RECEIVER, SENDER};

/// What happens. Of simultaneous timers the earlier in this list comes first, and among equals the lower number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// This stream sends its next datagram.
    Stream(u32),
    /// A flow of this crowd arrives by itself.
    Arrival(u32),
    /// The processor of this flow's host is free.
    Host(u32),
    /// An end of this slot's connection wants to be woken; where the slot has no connection, its next one begins.
    End(u32, usize),
}

/// Timers as numbers in their order: how many there are of each kind is known from the beginning, but for ends.
#[derive(Clone, Copy, Debug)]
struct Order {
    /// The number of the first arrival, of the first host, and of the first end.
    arrivals: usize,
    hosts: usize,
    ends: usize,
}

impl Order {
    fn new(streams: usize, crowds: usize, hosts: usize) -> Self {
        Self { arrivals: streams, hosts: streams + crowds, ends: streams + crowds + hosts }
    }

    /// The number of a timer.
    #[inline]
    fn pack(self, timer: Timer) -> usize {
        match timer {
            Timer::Stream(stream) => stream as usize,
            Timer::Arrival(crowd) => self.arrivals + crowd as usize,
            Timer::Host(flow) => self.hosts + flow as usize,
            Timer::End(slot, end) => self.ends + 2 * slot as usize + end,
        }
    }

    /// The timer of a number.
    #[inline]
    fn unpack(self, number: usize) -> Timer {
        if number >= self.ends {
            let end = number - self.ends;
            Timer::End((end / 2) as u32, end % 2)
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
}

impl Timers {
    /// Of so many streams, crowds and hosts, and of no slot; none is due.
    pub fn new(streams: usize, crowds: usize, hosts: usize) -> Self {
        let order = Order::new(streams, crowds, hosts);
        Self { events: Events::new(order.ends), order }
    }

    /// Timers for the two ends of one more slot.
    pub fn add_slot(&mut self) {
        for _ in [SENDER, RECEIVER] {
            self.events.add();
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

    /// Sets a timer, in place of the time that it had.
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
            streams in 0usize..4, crowds in 0usize..4, hosts in 0usize..4, slots in 0u32..4,
        ) {
            let order = Order::new(streams, crowds, hosts);
            let ends = (0..slots).flat_map(|slot| [Timer::End(slot, SENDER), Timer::End(slot, RECEIVER)]);
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

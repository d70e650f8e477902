//! CoDel: Controlled Delay (RFC 8289).

use elephan_units::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ledger::{Ledger, Reason};
use crate::packet::{Ecn, Head, Packet};
use crate::packets::{Packets, Store};
use crate::parameters::Parameters;
use elephan_units::Mistake;

/// RFC 8289, section 5.5: a drop state that begins within this number of intervals after the last one starts
/// at the rate at which that one ended.
const MEMORY_INTERVALS: u64 = 16;

elephan_units::with_defaults! {
    /// CoDel's parameters.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct Codel {
        /// Acceptable standing queueing delay, TARGET (RFC 8289, section 4.3: 5 to 10 % of the
        /// interval).
        pub target: Time = Time::from_millis(5),
        /// Time for which the delay may exceed the target before the first drop, INTERVAL: about the largest common round-trip
        /// time (section 4.3).
        pub interval: Time = Time::from_millis(100),
        /// Whether ECN-capable packets are marked instead of dropped (section 5.4 of RFC 8290).
        pub ecn: bool = true,
    }
}

impl Parameters for Codel {
    fn rules(&self) -> Vec<Mistake> {
        if self.interval <= self.target {
            let expected = format!("a time above target = \"{}\"", self.target);
            return vec![Mistake::new("interval", expected, format_args!("\"{}\"", self.interval))];
        }
        Vec::new()
    }
}

/// CoDel's state for one queue. Its parameters are stored once for all queues of a link: this makes the state of each small.
#[derive(Clone, Debug, Default)]
pub(crate) struct Control {
    /// The time at which the delay will have been above the target for an interval.
    first_above: Option<Time>,
    drop_next: Time,
    count: u32,
    last_count: u32,
    /// The largest packet seen: no packet is dropped from a queue of at most this size.
    max_packet: u32,
    dropping: bool,
}

impl Control {
    /// Section 5.6: the next drop comes after an interval divided by the square root of the number of drops.
    fn after(&self, codel: &Codel, time: Time) -> Time {
        time.saturating_add(codel.interval.mul_f64(1.0 / f64::from(self.count).sqrt()))
    }

    /// Section 5.6, `dodequeue`: the oldest packet, and whether it may be dropped.
    #[inline(always)]
    fn take<P: Packet>(
        &mut self,
        codel: &Codel,
        queue: &mut Packets,
        now: Time,
        store: &Store<P>,
    ) -> Option<(u32, bool)> {
        let Some(place) = queue.pop(store) else {
            self.first_above = None;
            return None;
        };
        let stored = store.at(place);
        self.max_packet = self.max_packet.max(stored.head.bytes());
        if now.since(stored.arrived) < codel.target || queue.waiting.bytes <= u64::from(self.max_packet) {
            self.first_above = None;
            return Some((place, false));
        }
        let due = *self.first_above.get_or_insert_with(|| now.saturating_add(codel.interval));
        Some((place, now >= due))
    }

    /// Signals congestion to a packet's sender; returns true if the packet was marked and is forwarded.
    fn notify<P: Packet>(codel: &Codel, place: u32, now: Time, ledger: &mut Ledger<P>) -> bool {
        if codel.ecn && ledger.packets.at(place).head.ecn() != Ecn::NotCapable {
            ledger.mark(place);
            return true;
        }
        ledger.discard(place, Reason::Early, now);
        false
    }

    /// Section 5.5, `deque`: the packet to be served next.
    #[inline(always)]
    pub fn dequeue<P: Packet>(
        &mut self,
        codel: &Codel,
        queue: &mut Packets,
        now: Time,
        ledger: &mut Ledger<P>,
    ) -> Option<u32> {
        let Some((mut place, mut may_drop)) = self.take(codel, queue, now, &ledger.packets) else {
            self.dropping = false;
            return None;
        };
        if self.dropping {
            if !may_drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if Self::notify(codel, place, now, ledger) {
                    self.drop_next = self.after(codel, self.drop_next);
                    break;
                }
                let Some(next) = self.take(codel, queue, now, &ledger.packets) else {
                    self.dropping = false;
                    return None;
                };
                (place, may_drop) = next;
                if may_drop {
                    self.drop_next = self.after(codel, self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if may_drop {
            let marked = Self::notify(codel, place, now, ledger);
            self.dropping = true;
            let delta = self.count.saturating_sub(self.last_count);
            let recently = now.since(self.drop_next) < codel.interval * MEMORY_INTERVALS;
            self.count = if delta > 1 && recently { delta } else { 1 };
            self.drop_next = self.after(codel, now);
            self.last_count = self.count;
            if !marked {
                let Some(next) = self.take(codel, queue, now, &ledger.packets) else {
                    self.dropping = false;
                    return None;
                };
                place = next.0;
            }
        }
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Parcel, parcel};

    /// Packets that arrived together.
    fn packets(count: u64, ecn: Ecn, arrived: Time, ledger: &mut Ledger<Parcel>) -> Packets {
        let mut packets = Packets::default();
        for id in 0..count {
            let packet = Parcel { ecn, ..parcel(id) };
            let place = ledger.packets.insert(&packet, packet.rest(), arrived);
            packets.push(place, &mut ledger.packets);
        }
        packets
    }

    /// Times in milliseconds at which packets are dropped, if each has waited for `delay` and one is served
    /// each millisecond.
    fn drops(delay: impl Fn(u64) -> u64, until: u64, ecn: Ecn) -> (Vec<u64>, u64) {
        let (mut control, mut ledger) = (Control::default(), Ledger::new());
        let mut times = Vec::new();
        for t in 1000..1000 + until {
            let now = Time::from_millis(t);
            let arrived = now - Time::from_millis(delay(t));
            let mut queue = packets(20, ecn, arrived, &mut ledger);
            let before = ledger.counters.dropped_early + ledger.counters.marked;
            assert!(control.dequeue(&Codel::default(), &mut queue, now, &mut ledger).is_some());
            let told = ledger.counters.dropped_early + ledger.counters.marked - before;
            times.extend(std::iter::repeat_n(t - 1000, told as usize));
        }
        (times, ledger.counters.marked)
    }

    #[test]
    fn below_the_target_nothing_is_dropped() {
        assert_eq!(drops(|_| 4, 2000, Ecn::NotCapable).0, [] as [u64; 0]);
        // The delay falls below the target once per interval, so it is never above for a whole interval.
        assert_eq!(drops(|t| if t % 100 == 0 { 4 } else { 50 }, 2000, Ecn::NotCapable).0, [] as [u64; 0]);
    }

    #[test]
    fn drops_come_at_an_interval_over_root_n() {
        // First after 100 ms, then after 100/sqrt(1), 100/sqrt(2) = 70.7, 100/sqrt(3) = 57.7, 50: at 100,
        // 200, 270.7, 328.4 and 378.4 ms, each at the first packet from that time on.
        for (ecn, marks) in [(Ecn::NotCapable, 0), (Ecn::Capable0, 5)] {
            assert_eq!(drops(|_| 20, 400, ecn), (vec![100, 200, 271, 329, 379], marks));
        }
    }

    #[test]
    fn a_drop_state_soon_after_another_goes_on_at_its_rate() {
        // Above until 400, then below for 50 ms, then above again: the drop state begins again at 550, soon
        // after the next drop was due at 423. The count was 5 then, and 1 when that state began: it is now 4,
        // and the next drop comes after 100/sqrt(4) = 50 ms.
        let (times, _) = drops(|t| if (1400..1450).contains(&t) { 1 } else { 20 }, 620, Ecn::NotCapable);
        assert_eq!(times[5..7], [550, 600]);
    }

    #[test]
    fn the_last_packet_is_never_dropped() {
        let (mut control, mut ledger) = (Control::default(), Ledger::new());
        for t in 1..1000 {
            let mut queue = packets(1, Ecn::NotCapable, Time::ZERO, &mut ledger);
            assert!(
                control.dequeue(&Codel::default(), &mut queue, Time::from_millis(t), &mut ledger).is_some()
            );
        }
        assert_eq!(ledger.counters.dropped, 0);
    }
}

//! FQ-CoDel: flow queueing with CoDel (RFC 8290).

use std::collections::VecDeque;

use elephan_units::{Seed, Time};
use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::codel::{Codel, Control};
use crate::ledger::{Ledger, Reason};
use crate::packet::{Head, Packet};
use crate::packets::Packets;
use crate::parameters::Parameters;
use crate::waiting::{Limit, Waiting};
use elephan_units::Mistake;

/// RFC 8290, section 4.1: when the buffer is full, half of the longest queue is dropped, but at most this
/// number of packets.
const DROP_BATCH: usize = 64;

/// FQ-CoDel's parameters. Its limit is the link's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FqCodel {
    /// Acceptable standing queueing delay of a flow's queue, TARGET (RFC 8290, section 5.2.1).
    pub target: Time,
    /// Time for which the delay may exceed the target before the first drop, INTERVAL (RFC 8290, section 5.2.1).
    pub interval: Time,
    /// Bytes that a flow may send in a round (RFC 8290, section 5.2.4: 1514, an Ethernet frame).
    #[schemars(range(min = 1), extend("unit" = "bytes"))]
    pub quantum: u32,
    /// Number of queues to which flows are hashed (RFC 8290, section 5.2.5).
    #[schemars(range(min = 1, max = 65536))]
    pub flows: u32,
    /// Whether ECN-capable packets are marked instead of dropped (RFC 8290, section 5.4).
    pub ecn: bool,
}

impl Default for FqCodel {
    fn default() -> Self {
        let Codel { target, interval, ecn } = Codel::default();
        Self { target, interval, quantum: 1514, flows: 1024, ecn }
    }
}

impl FqCodel {
    fn codel(&self) -> Codel {
        Codel { target: self.target, interval: self.interval, ecn: self.ecn }
    }
}

impl Parameters for FqCodel {
    fn rules(&self) -> Vec<Mistake> {
        self.codel().rules()
    }
}

/// Distributes flow numbers over queues: SplitMix64's finaliser (Steele, Lea, Flood 2014), with a random
/// value from the run's seed.
pub(crate) fn hash(flow: u64, perturbation: u64) -> u64 {
    let mut z = flow.wrapping_add(perturbation);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[derive(Clone, Default)]
struct Flow {
    packets: Packets,
    control: Control,
    deficit: i64,
    /// Whether it is in one of the lists.
    listed: bool,
}

/// FQ-CoDel's state.
pub(crate) struct FqCodelState {
    flows: Vec<Flow>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    pub waiting: Waiting,
    limit: Limit,
    codel: Codel,
    quantum: i64,
    perturbation: u64,
}

impl FqCodelState {
    pub fn new(config: &FqCodel, limit: Limit, seed: Seed, index: u64) -> Self {
        Self {
            flows: vec![Flow::default(); config.flows as usize],
            new: VecDeque::new(),
            old: VecDeque::new(),
            waiting: Waiting::default(),
            limit,
            codel: config.codel(),
            quantum: i64::from(config.quantum),
            perturbation: seed.stream("hash of flows on link", index).random(),
        }
    }

    /// Section 4.1. The packet is enqueued before others are dropped to make room, and may itself be dropped.
    #[inline(always)]
    pub fn enqueue<P: Packet>(&mut self, place: u32, now: Time, ledger: &mut Ledger<P>) -> bool {
        let head = &ledger.packets.at(place).head;
        let bytes = head.bytes();
        let (hash, count) = (hash(head.flow(), self.perturbation), self.flows.len() as u64);
        // A division takes longer than the hash; the default of 1024 queues needs none.
        let number = if count.is_power_of_two() { hash & (count - 1) } else { hash % count } as u32;
        if self.waiting.fills(self.limit, bytes) && !self.make_room(bytes, now, ledger) {
            ledger.counters.drop(Reason::Full);
            return false;
        }
        let flow = &mut self.flows[number as usize];
        flow.packets.push(place, &mut ledger.packets);
        self.waiting.add(bytes);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = self.quantum;
            self.new.push_back(number);
        }
        true
    }

    /// Drops half of the longest queue, from its head, repeatedly until there is room for a packet of `bytes`; returns
    /// whether this was possible.
    fn make_room<P: Packet>(&mut self, bytes: u32, now: Time, ledger: &mut Ledger<P>) -> bool {
        while self.waiting.fills(self.limit, bytes) {
            let Some(fattest) = self.flows.iter_mut().max_by_key(|flow| flow.packets.waiting.bytes) else {
                return false;
            };
            let half = fattest.packets.waiting.bytes.div_ceil(2);
            let mut dropped = 0;
            for _ in 0..DROP_BATCH {
                if dropped >= half {
                    break;
                }
                let Some(place) = fattest.packets.pop(&ledger.packets) else { break };
                let bytes = ledger.packets.at(place).head.bytes();
                dropped += u64::from(bytes);
                self.waiting.remove(bytes);
                ledger.discard(place, Reason::Full, now);
            }
            if dropped == 0 {
                return false;
            }
        }
        true
    }

    /// Section 4.2.
    #[inline(always)]
    pub fn dequeue<P: Packet>(&mut self, now: Time, ledger: &mut Ledger<P>) -> Option<u32> {
        loop {
            let is_new = !self.new.is_empty();
            let number = *if is_new { self.new.front()? } else { self.old.front()? };
            let flow = &mut self.flows[number as usize];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                self.turn(is_new);
                self.old.push_back(number);
                continue;
            }
            let before = flow.packets.waiting;
            let place = flow.control.dequeue(&self.codel, &mut flow.packets, now, ledger);
            self.waiting.packets -= before.packets - flow.packets.waiting.packets;
            self.waiting.bytes -= before.bytes - flow.packets.waiting.bytes;
            if let Some(place) = place {
                flow.deficit -= i64::from(ledger.packets.at(place).head.bytes());
                return Some(place);
            }
            // An empty new queue passes through the list of old queues first, so that a flow does not stay
            // new for ever.
            let stays = is_new && !self.old.is_empty();
            flow.listed = stays;
            self.turn(is_new);
            if stays {
                self.old.push_back(number);
            }
        }
    }

    fn turn(&mut self, is_new: bool) {
        if is_new {
            self.new.pop_front()
        } else {
            self.old.pop_front()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Ecn;
    use crate::testing::{Parcel, parcel};

    fn state(config: FqCodel, limit: u64) -> FqCodelState {
        FqCodelState::new(&config, Limit::Packets(limit), Seed::new(1), 0)
    }

    fn of(flow: u64, id: u64, bytes: u32) -> Parcel {
        Parcel { flow, bytes, ecn: Ecn::NotCapable, ..parcel(id) }
    }

    fn next(fq: &mut FqCodelState, ledger: &mut Ledger<Parcel>) -> Option<Parcel> {
        fq.dequeue(Time::ZERO, ledger).map(|place| ledger.take(place))
    }

    #[test]
    fn flows_are_hashed_as_by_splitmix64() {
        // Its first three outputs for seed 0, whose state grows by the golden ratio (Steele, Lea, Flood 2014).
        let golden: u64 = 0x9e37_79b9_7f4a_7c15;
        let outputs = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
        for (n, output) in (1..).zip(outputs) {
            assert_eq!(hash(golden.wrapping_mul(n), 0), output);
            assert_eq!(hash(golden.wrapping_mul(n - 1), golden), output);
        }
    }

    #[test]
    fn codel_has_the_parameters_that_were_set() {
        let (target, interval) = (Time::from_millis(7), Time::from_millis(90));
        let config = FqCodel { target, interval, ecn: false, ..FqCodel::default() };
        assert_eq!(config.codel(), Codel { target, interval, ecn: false });
        assert_eq!(config.rules(), []);
        assert_eq!(FqCodel { interval: target, ..config }.rules()[0].key, "interval");
    }

    #[test]
    fn a_new_flow_goes_first_and_then_takes_turns() {
        let (mut fq, mut ledger) = (state(FqCodel::default(), 1000), Ledger::new());
        for id in 0..6 {
            fq.enqueue(ledger.put(of(1, id, 1500)), Time::ZERO, &mut ledger);
        }
        let two = |fq: &mut FqCodelState, ledger: &mut Ledger<Parcel>| {
            [(); 2].map(|()| next(fq, ledger).map(|packet| (packet.flow, packet.id)))
        };
        // The quantum of 1514 leaves a deficit of 14 after the first packet, and -1486 after the second.
        assert_eq!(two(&mut fq, &mut ledger), [Some((1, 0)), Some((1, 1))]);
        fq.enqueue(ledger.put(of(2, 0, 100)), Time::ZERO, &mut ledger);
        fq.enqueue(ledger.put(of(2, 1, 100)), Time::ZERO, &mut ledger);
        assert_eq!(two(&mut fq, &mut ledger), [Some((2, 0)), Some((2, 1))]);
        assert_eq!(two(&mut fq, &mut ledger)[0], Some((1, 2)));
    }

    #[test]
    fn the_fattest_flow_pays_for_want_of_room() {
        let (mut fq, mut ledger) = (state(FqCodel::default(), 100), Ledger::new());
        fq.enqueue(ledger.put(of(2, 0, 1500)), Time::ZERO, &mut ledger);
        for id in 0..100 {
            assert!(fq.enqueue(ledger.put(of(1, id, 1500)), Time::ZERO, &mut ledger));
            assert!(fq.waiting.packets <= 100);
        }
        // 99 packets of flow 1 were queued: half of their bytes, 50 packets, were dropped to make room for
        // the hundredth.
        assert_eq!(ledger.counters.dropped_full, 50);
        assert_eq!(fq.waiting, Waiting { packets: 51, bytes: 51 * 1500 });
        let served: Vec<u64> = std::iter::from_fn(|| Some(next(&mut fq, &mut ledger)?.flow)).collect();
        assert_eq!(served.iter().filter(|&&flow| flow == 2).count(), 1);
        assert_eq!(served.len(), 51);
    }

    #[test]
    fn flows_get_equal_bytes_whatever_their_packets() {
        // Long sojourn times would make CoDel drop; here it sees no delay.
        let (mut fq, mut ledger) = (state(FqCodel::default(), 100_000), Ledger::new());
        for id in 0..20_000 {
            fq.enqueue(ledger.put(of(1, id, 1500)), Time::ZERO, &mut ledger);
            fq.enqueue(ledger.put(of(2, id, 300)), Time::ZERO, &mut ledger);
        }
        let mut bytes = [0u64; 3];
        for _ in 0..10_000 {
            let packet = next(&mut fq, &mut ledger).unwrap();
            bytes[packet.flow as usize] += u64::from(packet.bytes);
        }
        // Each turn exceeds its deficit by at most a packet.
        assert!(bytes[1].abs_diff(bytes[2]) <= 1514 + 1500, "{bytes:?}");
    }
}

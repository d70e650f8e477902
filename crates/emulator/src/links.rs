//! The links, in the time of the guest kernel.

use elephan_metrics::Reduction;
use elephan_metrics::trace::{EventKind, EventTrace};
use elephan_network::{Driver, FIRST_PORT, Lateness, Network, Parcel, Part, Recorded, Routes};
use elephan_scenario::Plan;
use elephan_units::Time;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::events::{Events, SENDER, Window, reduces};

/// The fate of a packet.
pub trait Kernel {
    /// It has reached the other host.
    fn deliver(&self, parcel: &Parcel);
    /// A link has dropped or lost it.
    fn discard(&self, parcel: &Parcel);
}

/// The results of the links of a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Records {
    /// The records of the links.
    pub recorded: Recorded,
    /// How much later packets reached a host than the links had determined.
    pub lateness: Lateness,
    /// The reductions of the flows' windows, in order of time.
    pub reductions: Vec<Reduction>,
}

/// The links of a plan.
pub struct Links<K> {
    network: Network<Parcel>,
    routes: Routes,
    kernel: K,
    /// The time at which the kernel calls.
    now: Time,
    /// Lateness of the delivered packets, ns.
    lateness: Histogram<u64>,
    /// The events, if the plan asks for them.
    events: Option<Events>,
    /// The number of flows: their ports come first.
    flows: u16,
    reductions: Vec<Reduction>,
}

impl<K: Kernel> Links<K> {
    /// The links of a plan.
    pub fn new(plan: &Plan, kernel: K) -> Self {
        let network = Network::new(plan, Self::FOLLOWS);
        let routes = Routes::new(plan, &network);
        let lateness = Histogram::new(2).expect("two digits are a valid precision");
        let events = plan.trace.events.then(|| Events::new(plan));
        let flows = plan.flows.len() as u16;
        Self { network, routes, kernel, now: Time::ZERO, lateness, events, flows, reductions: Vec::new() }
    }

    /// A packet leaves its host at `now`.
    pub fn leave(
        &mut self,
        now: Time,
        direction: u8,
        header: &[u8],
        bytes: u32,
        window: Window,
        place: usize,
    ) {
        // The kernel may have put off what was due before.
        self.advance(now);
        match self.routes.parcel(header, bytes, direction, place) {
            Some(parcel) => {
                if let Some(events) = &mut self.events {
                    events.leaves(&parcel, header, window, now);
                }
                self.enter(&parcel, now);
            }
            // IPv6 and other packets that a host sends by itself.
            None => self.kernel.discard(&Parcel { place, ..Parcel::default() }),
        }
    }

    /// A sender's connection to this port enters another state of congestion: before, and then.
    pub fn state(&mut self, now: Time, port: u16, states: (u8, u8), window: Window) {
        let flow = port.wrapping_sub(FIRST_PORT);
        if flow < self.flows && reduces(states.0, states.1) {
            self.reductions.push(Reduction { at_ps: now.picos(), flow: u32::from(flow) });
        }
        if let Some(events) = &mut self.events {
            events.enters(port, states, window, now);
        }
    }

    /// The events since the run began, if the plan asks for them; returned once.
    pub fn events(&mut self) -> Option<EventTrace> {
        self.events.take().map(Events::finish)
    }

    /// When something is due next; `Time::MAX` for never.
    pub fn next(&self) -> Time {
        let (arrival, _) = self.network.parts[0].next_arrival();
        arrival.min(self.network.next_change()).min(self.network.next_record())
    }

    /// Does everything that is due by `now`, in order: of what is due at once, packets first, changes next,
    /// then records, as in the simulator.
    pub fn advance(&mut self, now: Time) {
        self.now = now;
        loop {
            let (arrival, end) = self.part().next_arrival();
            let (change, record) = (self.network.next_change(), self.network.next_record());
            if arrival <= now && arrival <= change && arrival <= record {
                self.arrive(end, arrival);
            } else if change <= now && change <= record {
                while let Some(end) = self.network.change(change) {
                    self.tell_gone(end);
                }
            } else if record <= now {
                self.network.record(record);
            } else {
                return;
            }
        }
    }

    /// The run ends.
    pub fn finish(&mut self, now: Time) -> Records {
        self.advance(now);
        Records {
            recorded: self.network.finish(now),
            lateness: Lateness::of(&self.lateness, 1e-9),
            reductions: std::mem::take(&mut self.reductions),
        }
    }
}

impl<K: Kernel> Driver for Links<K> {
    type Packet = Parcel;
    /// Frees the packets that have left.
    const FOLLOWS: bool = true;

    fn part(&mut self) -> &mut Part<Parcel> {
        self.network.whole()
    }

    fn deliver(&mut self, parcel: &Parcel, due: Time) {
        let _ = self.lateness.record(self.now.since(due).picos() / 1000);
        if let Some(events) = &mut self.events {
            events.gone(parcel, Some((EventKind::Receive, None)), self.now);
        }
        if parcel.direction == SENDER {
            self.network.count(usize::from(parcel.flow), parcel.payload());
        }
        self.kernel.deliver(parcel);
    }

    fn dropped(&mut self, link: u32, parcel: &Parcel, at: Time) {
        if let Some(events) = &mut self.events {
            events.gone(parcel, Some((EventKind::Drop, Some(link))), at);
        }
        self.kernel.discard(parcel);
    }

    fn lost(&mut self, _: u32, parcel: &Parcel) {
        if let Some(events) = &mut self.events {
            events.gone(parcel, None, self.now);
        }
        self.kernel.discard(parcel);
    }
}

#[cfg(test)]
mod tests {
    use elephan_scenario::Scenario;

    use super::*;

    struct Nobody;

    impl Kernel for Nobody {
        fn deliver(&self, _: &Parcel) {}
        fn discard(&self, _: &Parcel) {}
    }

    #[test]
    fn each_reduction_of_a_flow_is_counted_however_short_its_recovery_is() {
        let text = r#"{"duration": "1 s", "path": {"rate": "10 Mbit/s", "rtt": "10 ms"}, "flow": [{"cc": "reno"}, {"cc": "reno"}],
            "web": [{"users": 1, "start": "0 s"}]}"#;
        let plan = Scenario::from_json(text, "test", &[]).and_then(|s| s.resolve("test")).unwrap();
        let mut links = Links::new(&plan, Nobody);
        // Open, disorder, CWR, recovery, loss: 0 to 4. Two recoveries within a microsecond; a timeout within a recovery.
        let states = [(0, 0, 1), (0, 1, 3), (0, 3, 0), (0, 0, 3), (1, 0, 2), (1, 2, 3), (1, 3, 4), (2, 0, 3)];
        for (number, (flow, before, state)) in states.into_iter().enumerate() {
            links.state(
                Time::from_picos(number as u64),
                FIRST_PORT + flow,
                (before, state),
                Window::default(),
            );
        }
        let found = links.finish(Time::from_millis(1)).reductions;
        let found: Vec<_> = found.iter().map(|one| (one.at_ps, one.flow)).collect();
        // Flow 2 is the crowd.
        assert_eq!(found, [(1, 0), (3, 0), (4, 1), (6, 1)]);
    }
}

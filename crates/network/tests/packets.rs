//! Packets over a network of two links, with a driver that only counts them.

use elephan_network::{Driver, Network, Parcel, Part};
use elephan_scenario::{Plan, Scenario};
use elephan_units::Time;

struct Counting {
    network: Network<Parcel>,
    delivered: Vec<(u32, Time)>,
    dropped: Vec<(u32, u32, Time)>,
    lost: Vec<u32>,
}

impl Driver for Counting {
    type Packet = Parcel;
    const FOLLOWS: bool = true;

    fn part(&mut self) -> &mut Part<Parcel> {
        self.network.whole()
    }
    fn deliver(&mut self, packet: &Parcel, now: Time) {
        self.delivered.push((packet.place as u32, now));
    }
    fn dropped(&mut self, link: u32, packet: &Parcel, at: Time) {
        self.dropped.push((packet.place as u32, link, at));
    }
    fn lost(&mut self, _: u32, packet: &Parcel) {
        self.lost.push(packet.place as u32);
    }
}

impl Counting {
    fn new(plan: &Plan) -> Self {
        let network = Network::new(plan, true);
        Self { network, delivered: Vec::new(), dropped: Vec::new(), lost: Vec::new() }
    }

    /// Starts all packets on the first flow's data route at time zero, and runs until this time.
    fn run(mut self, plan: &Plan, packets: u32, until: Time) -> Self {
        let position = self.network.start(plan.flows[0].forward);
        for number in 0..packets {
            let place = number as usize;
            self.enter(&Parcel { place, bytes: 1000, position, ..Parcel::default() }, Time::ZERO);
        }
        loop {
            let (arrival, end) = self.part().next_arrival();
            let due = self.network.next_change().min(self.network.next_record());
            if arrival.min(due) > until {
                return self;
            }
            if arrival <= due {
                self.arrive(end, arrival);
            } else {
                while let Some(end) = self.network.change(due) {
                    self.tell_gone(end);
                }
                self.network.record(due);
            }
        }
    }
}

/// Two links of 8 Mbit/s, 1 ms a packet, with 10 ms of delay each; the second has room for two waiting
/// packets.
fn plan(second: &str, more: &str) -> Plan {
    let text = format!(
        r#"duration = "1 s"
        link = [
            {{ name = "first", from = "a", to = "b", rate = "8 Mbit/s", delay = "10 ms", buffer = "50 packets", both_ways = true }},
            {{ name = "second", from = "b", to = "c", rate = "8 Mbit/s", delay = "10 ms", both_ways = true, {second} }},
        ]
        flow = [{{ cc = "reno", from = "a", to = "c" }}]
        {more}"#
    );
    let scenario = Scenario::from_toml(&text, "test", &[]).unwrap();
    scenario.resolve("test").unwrap()
}

#[test]
fn packets_cross_the_links_of_their_route_in_order() {
    let plan = plan("buffer = \"2 packets\"", "");
    let run = Counting::new(&plan).run(&plan, 3, Time::from_secs(1));
    // Served at 1 ms, 2 ms and 3 ms by the first link, and for 1 ms more by the second.
    let expected = [22, 23, 24].map(Time::from_millis);
    assert_eq!(run.delivered, [(0, expected[0]), (1, expected[1]), (2, expected[2])]);
    assert!(run.dropped.is_empty() && run.lost.is_empty());
}

#[test]
fn every_packet_is_delivered_dropped_or_lost_once() {
    let slow = "buffer = \"2 packets\", loss = { name = \"random\", probability = 0.5 }";
    let halved = "event = [{ at = \"1 ms\", link = \"second\", rate = \"800 kbit/s\" }]";
    let plan = plan(slow, halved);
    let run = Counting::new(&plan).run(&plan, 40, Time::from_secs(1));
    let mut seen: Vec<u32> = run.delivered.iter().map(|(number, _)| *number).collect();
    seen.extend(run.dropped.iter().map(|(number, ..)| *number));
    seen.extend(&run.lost);
    seen.sort_unstable();
    assert_eq!(seen, (0..40).collect::<Vec<_>>());
    assert!(!run.delivered.is_empty() && !run.dropped.is_empty() && !run.lost.is_empty());
}

#[test]
fn a_link_that_goes_down_drops_what_it_has_and_says_so() {
    let down = "event = [{ at = \"5.5 ms\", link = \"first\", up = false }]";
    let plan = plan("buffer = \"2 packets\"", down);
    let mut run = Counting::new(&plan).run(&plan, 8, Time::from_secs(1));
    let first = plan.routes[plan.flows[0].forward as usize][0];
    let expected: Vec<_> = (0..8).map(|number| (number, first, Time::from_picos(5_500_000_000))).collect();
    run.dropped.sort_unstable();
    assert_eq!(run.dropped, expected);
    let recorded = run.network.finish(Time::from_secs(1));
    assert_eq!(recorded.links[0].summary.dropped_down, 8);
}

#[test]
fn what_was_due_is_recorded_late() {
    let plan = plan("buffer = \"2 packets\"", "trace = { interval = \"100 ms\" }");
    let mut network = Network::<Parcel>::new(&plan, false);
    network.record(Time::from_millis(250));
    let times = &network.recorded().queues.time_s;
    assert_eq!(times.iter().copied().filter(|&time| time > 0.1).count(), plan.links.len());
    assert_eq!(network.next_record(), Time::from_millis(300));
    network.record(Time::from_secs(5));
    assert_eq!(network.recorded().queues.time_s.last(), Some(&1.0));
}

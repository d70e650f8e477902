//! What the congestion controller receives: each ACK that carries new information, and each congestion event.
#![expect(clippy::single_range_in_vec_init, reason = "one SACK block is a list of blocks too")]

use std::sync::{Arc, Mutex};

use crate::common::{Script, config, ms};
use elephan_cc::registry::AnyAlgorithm;
use elephan_cc::{Ack, Algorithm, Cause, Congestion, Controller, SlowStart, Window};
use elephan_tcp::Config;

/// The calls that an algorithm received.
#[derive(Default)]
struct Told {
    acks: Vec<Ack>,
    events: Vec<Congestion>,
}

/// A window that does not grow, and is reduced to half of the data in flight.
#[derive(Clone, Default)]
struct Listener(Arc<Mutex<Told>>);

impl Algorithm for Listener {
    fn observe(&mut self, _: &Window, ack: &Ack) {
        self.0.lock().unwrap().acks.push(*ack);
    }
    fn increase(&mut self, _: &Window, _: &Ack) -> f64 {
        0.0
    }
    fn decrease(&mut self, _: &Window, event: &Congestion) -> f64 {
        self.0.lock().unwrap().events.push(*event);
        event.flight_size / 2.0
    }
    fn boxed(&self) -> Box<dyn Algorithm> {
        Box::new(self.clone())
    }
}

/// A window of 10 in congestion avoidance, and the calls that its algorithm receives.
fn listening(config: Config) -> (Script, Listener) {
    let listener = Listener::default();
    let algorithm = AnyAlgorithm::External(Box::new(listener.clone()));
    let config = Config { initial_ssthresh: Some(10), ..config };
    let controller = Controller::new(algorithm, SlowStart::Standard, config.quantisation, 10.0);
    let mut tcp = Script::controlled(controller, config);
    tcp.write(100).sent();
    (tcp, listener)
}

impl Listener {
    /// The ACKs since the last call.
    fn acks(&self) -> Vec<Ack> {
        std::mem::take(&mut self.0.lock().unwrap().acks)
    }
    fn events(&self) -> Vec<Congestion> {
        std::mem::take(&mut self.0.lock().unwrap().events)
    }
}

#[test]
fn an_ack_comes_with_what_it_delivered() {
    // Ten are in flight; 1, then 3 more are acknowledged; then 4 of the next window selectively, and then
    // all. Segments that were reported before are delivered once, and count for growth when they are
    // acknowledged cumulatively.
    let (mut tcp, listener) = listening(config());
    tcp.until(100).ack(1).ack(4);
    let acks = listener.acks();
    let numbers = |acks: &[Ack]| -> Vec<(f64, f64, f64)> {
        acks.iter().map(|ack| (ack.segments, ack.delivered, ack.flight_size)).collect()
    };
    assert_eq!(numbers(&acks), [(1.0, 1.0, 10.0), (3.0, 4.0, 10.0)]);
    assert!(acks.iter().all(|ack| ack.rtt == Some(ms(100)) && ack.min_rtt == ms(100) && ack.now == tcp.now));
    tcp.until(110).sack(4, &[5..7]);
    assert_eq!(numbers(&listener.acks()), [(0.0, 6.0, 10.0)]);
    tcp.until(120).ack(7);
    assert_eq!(numbers(&listener.acks()), [(3.0, 7.0, 10.0)]);
    // An ACK without new information is not passed on.
    tcp.ack(7).ack(6);
    assert!(listener.acks().is_empty());
}

#[test]
fn a_round_ends_when_what_was_sent_after_it_began_is_acknowledged() {
    // The first ACK ends the round of the handshake; the next round ends with the ACK of 10, which was next then.
    let (mut tcp, listener) = listening(config());
    tcp.until(100).ack(1);
    tcp.sent();
    for next in 2..=10 {
        tcp.ack(next);
    }
    tcp.until(200).ack(11).ack(12);
    let rounds: Vec<u64> = listener.acks().iter().map(|ack| ack.round).collect();
    // 11 segments had been sent when the first ACK was processed, not counting the one that it released.
    assert_eq!(rounds, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2]);
}

#[test]
fn nothing_is_worth_growth_in_recovery_and_at_its_end() {
    // 0 is lost: from the third report to the ACK that ends the recovery nothing counts for growth;
    // afterwards everything does.
    let (mut tcp, listener) = listening(config());
    tcp.until(100).sack(0, &[1..4]).sack(0, &[1..8]);
    assert_eq!(
        listener.acks().iter().map(|a| (a.segments, a.in_recovery())).collect::<Vec<_>>(),
        [(0.0, true); 2]
    );
    tcp.until(200).ack(8).ack(10);
    let end: Vec<(f64, bool)> = listener.acks().iter().map(|a| (a.segments, a.in_recovery())).collect();
    assert_eq!(end, [(0.0, true), (0.0, false)]);
    tcp.until(300).ack(11);
    assert_eq!(listener.acks()[0].segments, 1.0);
}

#[test]
fn an_event_comes_with_its_cause_and_what_was_in_flight() {
    // FlightSize (RFC 5681, section 2) does not count segments sent by limited transmit: it is 10 for a loss;
    // for a timeout it is the outstanding data; for a mark it is the data outstanding before its ACK.
    let (mut tcp, listener) = listening(config());
    tcp.until(100).sack(0, &[1..2]).sack(0, &[1..3]).sack(0, &[1..4]);
    let said = |listener: &Listener| -> Vec<(Cause, f64, f64)> {
        listener.events().iter().map(|e| (e.cause, e.flight_size, e.delivered)).collect()
    };
    assert_eq!(said(&listener), [(Cause::Loss, 10.0, 3.0)]);
    tcp.until(100).sack(0, &[1..12]).until(1100);
    // The window is then 5, of the 16 that are outstanding.
    assert_eq!(said(&listener), [(Cause::Timeout, 5.0, 11.0)]);

    let (mut tcp, listener) = listening(Config { ecn: true, ..config() });
    tcp.ece = true;
    tcp.until(100).ack(4);
    assert_eq!(said(&listener), [(Cause::Ecn, 10.0, 4.0)]);

    let (mut tcp, listener) = listening(config());
    tcp.until(1000);
    assert_eq!(said(&listener), [(Cause::Timeout, 10.0, 0.0)]);
}

#[test]
fn a_full_device_queue_reduces_once_in_a_window() {
    // Linux (tcp_enter_cwr): treated as a mark, but neither a loss nor a mark is counted, and there is no
    // second reduction before some data is acknowledged.
    let (mut tcp, listener) = listening(config());
    tcp.end.on_local_congestion(tcp.now);
    assert!(listener.events().is_empty());
    tcp.until(100).ack(4);
    tcp.end.on_local_congestion(tcp.now);
    tcp.end.on_local_congestion(tcp.now);
    let events = listener.events();
    assert_eq!((events.len(), events[0].cause, events[0].flight_size), (1, Cause::Ecn, 10.0));
    let counters = tcp.end.counters();
    assert_eq!(
        (counters.stalls, counters.reductions, counters.ecn_events, counters.loss_events),
        (1, 1, 0, 0)
    );
    assert_eq!(tcp.cwnd(), 5.0);
    // All data sent before belongs to the same window of data; the next window allows another reduction.
    tcp.until(200).ack(14);
    tcp.end.on_local_congestion(tcp.now);
    assert_eq!(tcp.end.counters().stalls, 1);
    tcp.until(300).ack(16);
    tcp.end.on_local_congestion(tcp.now);
    assert_eq!(tcp.end.counters().stalls, 2);
}

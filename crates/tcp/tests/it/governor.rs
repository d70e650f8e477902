//! What the congestion controller receives: each ACK that carries new information, and each congestion event.

use std::sync::{Arc, Mutex};

use crate::common::{Script, config, ms, stamped};
use elephan_cc::governor::{Event, Fault, Governor, Limits, Report, Snapshot, clock};
use elephan_cc::registry::AnyAlgorithm;
use elephan_cc::{Cause, Controller, SlowStart, State, Undo};
use elephan_tcp::{ByteCounting, Config, Flags};

/// A call that a governor received.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    Start,
    Ack,
    State(State),
    Event(Event),
    Congestion(Cause),
    Newest(Snapshot),
    Lost(Snapshot),
}

/// A window that does not grow, and is reduced to half; it keeps the calls, with the report of each.
#[derive(Clone, Default)]
struct Listener {
    calls: Arc<Mutex<Vec<(Call, Report)>>>,
    governs_recovery: bool,
    needs_rate: bool,
    needs_ecn: bool,
    /// The pacing rate that it sets, in bytes per second.
    rate: f64,
    /// The window that it sets when it governs recovery.
    in_recovery: f64,
    /// The window that it restores, if it undoes by itself.
    undone: Option<f64>,
}

const STATES: [State; 5] = [State::Open, State::Disorder, State::Cwr, State::Recovery, State::Loss];

impl Listener {
    fn note(&self, call: Call, limits: &mut Limits, report: &Report) {
        self.calls.lock().unwrap().push((call, *report));
        limits.pacing_rate = self.rate;
    }

    /// The calls since the last call of this.
    fn calls(&self) -> Vec<(Call, Report)> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    /// The calls, other than for ACKs, since the last call of this.
    fn happened(&self) -> Vec<Call> {
        self.calls().into_iter().map(|(call, _)| call).filter(|&call| call != Call::Ack).collect()
    }

    /// A value of the report of each ACK since the last call of this.
    fn acks<T>(&self, value: impl Fn(&Report) -> T) -> Vec<T> {
        let calls = self.calls();
        calls.iter().filter(|(call, _)| *call == Call::Ack).map(|(_, report)| value(report)).collect()
    }
}

impl Governor for Listener {
    fn governs_recovery(&self) -> bool {
        self.governs_recovery
    }
    fn needs_rate(&self) -> bool {
        self.needs_rate
    }
    fn needs_ecn(&self) -> bool {
        self.needs_ecn
    }
    fn start(&mut self, limits: &mut Limits, report: &Report) -> Result<(), Fault> {
        self.note(Call::Start, limits, report);
        Ok(())
    }
    fn ack(&mut self, limits: &mut Limits, report: &Report) -> Result<(), Fault> {
        self.note(Call::Ack, limits, report);
        Ok(())
    }
    fn newest(&mut self, segment: &Snapshot) {
        self.calls.lock().unwrap().push((Call::Newest(*segment), Report::default()));
    }
    fn lost(&mut self, limits: &mut Limits, report: &Report, segment: &Snapshot) -> Result<(), Fault> {
        self.note(Call::Lost(*segment), limits, report);
        Ok(())
    }
    fn congestion(&mut self, limits: &mut Limits, report: &Report, cause: Cause) -> Result<(), Fault> {
        self.note(Call::Congestion(cause), limits, report);
        limits.ssthresh = limits.cwnd / 2.0;
        if self.governs_recovery {
            limits.cwnd = self.in_recovery;
        }
        Ok(())
    }
    fn state(&mut self, limits: &mut Limits, report: &Report) -> Result<(), Fault> {
        self.note(Call::State(STATES[report.state as usize]), limits, report);
        Ok(())
    }
    fn event(&mut self, limits: &mut Limits, report: &Report, event: Event) -> Result<(), Fault> {
        self.note(Call::Event(event), limits, report);
        Ok(())
    }
    fn undo(&mut self, limits: &mut Limits, _: &Limits) -> Result<bool, Fault> {
        let Some(cwnd) = self.undone else { return Ok(false) };
        limits.cwnd = cwnd;
        Ok(true)
    }
    fn fresh(&self, _: u64) -> Box<dyn Governor> {
        self.boxed()
    }
    fn boxed(&self) -> Box<dyn Governor> {
        Box::new(self.clone())
    }
}

/// A controller with a window of 10.
fn controller(listener: &Listener, config: &Config) -> Controller {
    let algorithm = AnyAlgorithm::Governor(Box::new(listener.clone()));
    Controller::new(algorithm, SlowStart::Standard, config.quantisation, 10.0)
}

/// Settings for a window of 10 in congestion avoidance.
fn avoiding(config: Config) -> Config {
    Config { initial_ssthresh: Some(10), ..config }
}

/// A window of 10 in congestion avoidance.
fn governed(listener: &Listener, config: Config) -> Script {
    Script::controlled(controller(listener, &config), avoiding(config))
}

/// A window of 10 in congestion avoidance, whose first segments were sent, and the calls that its governor receives.
fn listening(config: Config) -> (Script, Listener) {
    let listener = Listener::default();
    let mut tcp = governed(&listener, config);
    tcp.write(100).sent();
    (tcp, listener)
}

#[test]
fn an_ack_comes_with_what_it_delivered() {
    // Ten are in flight; 1, then 3 more are acknowledged; then 4 of the next window selectively, and then
    // all. Segments that were reported before are delivered once, and count for growth when they are
    // acknowledged cumulatively.
    let (mut tcp, listener) = listening(config());
    let numbers = |ack: &Report| {
        let counts = [ack.acked, ack.acked_cumulative, ack.prior_in_flight, ack.in_flight, ack.sacked];
        (ack.growth, ack.delivered, counts)
    };
    tcp.until(100).ack(1).ack(4);
    let acks = listener.acks(|ack| *ack);
    assert_eq!([&acks[0], &acks[1]].map(numbers), [(1.0, 1, [1, 1, 10, 9, 0]), (3.0, 4, [3, 3, 10, 7, 0])]);
    for ack in &acks {
        assert_eq!((ack.rtt_ns, ack.min_rtt_ns, ack.now_ns), (100_000_000, 100_000_000, clock(tcp.now)));
        assert_eq!((ack.mss, ack.is_window_limited), (1000, 1));
    }
    assert_eq!((acks.len(), acks[1].snd_una, acks[1].snd_nxt), (2, 4000, 11_000));
    tcp.until(110).sack(4, &[5..7]);
    assert_eq!(listener.acks(numbers), [(0.0, 6, [2, 0, 10, 8, 2])]);
    tcp.until(120).ack(7);
    assert_eq!(listener.acks(numbers), [(3.0, 7, [1, 3, 10, 9, 0])]);
    // An ACK without new information is not passed on.
    tcp.ack(7).ack(6);
    assert_eq!(listener.acks(numbers), []);
}

#[test]
fn a_duplicate_counts_as_delivered_where_linux_counts() {
    // 0 is taken as lost, retransmitted, and arrives twice.
    for (byte_counting, acked) in [(ByteCounting::Delivered, 2), (config().byte_counting, 1)] {
        let (mut tcp, listener) = listening(Config { byte_counting, dsack: true, ..config() });
        tcp.until(100).sack(0, &[1..4]).sends([0]);
        tcp.until(200).ack(10);
        let before = *listener.acks(|ack| ack.delivered).last().unwrap();
        tcp.sack(11, &[0..1]);
        let after = listener.acks(|ack| (ack.acked, ack.acked_cumulative, ack.delivered));
        assert_eq!(after, [(acked, 1, before + u64::from(acked))], "{byte_counting:?}");
        // A report of a duplicate alone is passed on there, too.
        tcp.sack(11, &[0..1]);
        assert_eq!(listener.acks(|ack| (ack.acked, ack.growth)), vec![(1, 0.0); acked as usize - 1]);
    }
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
    // 11 segments had been sent when the first ACK was processed, not counting the one that it released.
    assert_eq!(listener.acks(|ack| ack.round), [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2]);
}

#[test]
fn nothing_is_worth_growth_in_recovery_and_at_its_end() {
    // 0 is lost: from the third report to the ACK that ends the recovery nothing counts for growth;
    // afterwards everything does.
    let (mut tcp, listener) = listening(config());
    let growth = |ack: &Report| (ack.growth, ack.state);
    tcp.until(100).sack(0, &[1..4]).sack(0, &[1..8]);
    assert_eq!(listener.acks(growth), [(0.0, State::Recovery.into()); 2]);
    tcp.until(200).ack(8).ack(10);
    assert_eq!(listener.acks(growth), [(0.0, State::Recovery.into()), (0.0, State::Open.into())]);
    tcp.until(300).ack(11);
    assert_eq!(listener.acks(growth), [(1.0, State::Open.into())]);
}

#[test]
fn a_reduction_comes_with_its_cause_and_what_is_in_flight() {
    let (mut tcp, listener) = listening(config());
    let reductions = |listener: &Listener| -> Vec<(Call, u32, u64)> {
        let calls = listener.calls().into_iter();
        let reductions = calls.filter(|(call, _)| matches!(call, Call::Congestion(_)));
        reductions.map(|(call, report)| (call, report.in_flight, report.delivered)).collect()
    };
    tcp.until(100).sack(0, &[1..2]).sack(0, &[1..3]).sack(0, &[1..4]);
    // Two segments of limited transmit; the ACK that shows the loss is not counted yet.
    assert_eq!(reductions(&listener), [(Call::Congestion(Cause::Loss), 8, 2)]);
    tcp.until(100).sack(0, &[1..12]).until(1100);
    assert_eq!(reductions(&listener), [(Call::Congestion(Cause::Timeout), 5, 11)]);

    let (mut tcp, listener) = listening(Config { ecn: true, ..config() });
    tcp.ece = true;
    tcp.until(100).ack(4);
    assert_eq!(reductions(&listener), [(Call::Congestion(Cause::Ecn), 6, 0)]);

    // FlightSize (RFC 5681, section 2), which Standard TCP halves, does not count segments sent by limited transmit: it
    // is 10 for a loss; for a mark it is the data outstanding before its ACK.
    let reno = || Script::sending(avoiding(Config { ecn: true, ..config() }), 100);
    assert_eq!(reno().until(100).sack(0, &[1..2]).sack(0, &[1..3]).sack(0, &[1..4]).ssthresh(), 5.0);
    let mut tcp = reno();
    tcp.ece = true;
    assert_eq!(tcp.until(100).ack(4).ssthresh(), 5.0);
    assert_eq!(reno().until(1000).ssthresh(), 5.0);
}

#[test]
fn states_and_events_are_reported_in_order() {
    use Call::{Congestion, Event as Happened, Start};
    let state = Call::State;
    let (mut tcp, listener) = listening(config());
    assert_eq!(listener.happened(), [Start]);
    // A hole, a recovery, and its end.
    tcp.until(100).sack(0, &[1..2]);
    assert_eq!(listener.happened(), [state(State::Disorder)]);
    tcp.sack(0, &[1..4]);
    assert_eq!(listener.happened(), [Congestion(Cause::Loss), state(State::Recovery)]);
    // Nothing is in flight then, and more is to be sent.
    tcp.until(200).ack(11);
    let begins = Happened(Event::Start);
    assert_eq!(listener.happened(), [Happened(Event::EndCwr), state(State::Open), begins]);
    // A timeout, and its end, when all that was sent before it is acknowledged.
    tcp.until(1500);
    assert_eq!(
        listener.happened(),
        [Happened(Event::Timeout), Congestion(Cause::Timeout), state(State::Loss)]
    );
    let next = tcp.sent().into_iter().max().unwrap() + 1;
    tcp.until(1600).ack(next);
    assert_eq!(listener.happened(), [state(State::Open), begins]);

    // A mark, which the data of a window answers.
    let (mut tcp, listener) = listening(Config { ecn: true, ..config() });
    tcp.ece = true;
    tcp.until(100).ack(4);
    assert_eq!(listener.happened(), [Start, Congestion(Cause::Ecn), state(State::Cwr)]);
    tcp.ece = false;
    tcp.until(200).ack(10);
    assert_eq!(listener.happened(), [Happened(Event::EndCwr), state(State::Open), begins]);
}

#[test]
fn each_timeout_is_a_state_of_its_own() {
    let (mut tcp, listener) = listening(config());
    listener.calls();
    tcp.expire().expire();
    let state = Call::State(State::Loss);
    let timeout = Call::Event(Event::Timeout);
    assert_eq!(listener.happened(), [timeout, Call::Congestion(Cause::Timeout), state, timeout, state]);
}

#[test]
fn a_reduction_ends_before_the_same_ack_begins_the_next() {
    // Linux, `tcp_end_cwnd_reduction` and `tcp_enter_cwr`: a mark reduces for a round trip, and at its end, at the first ACK above
    // what was sent when it began, the next mark does.
    use Call::{Congestion, Event as Happened};
    let state = Call::State;
    let config = Config { ecn: true, window_reduction: elephan_tcp::WindowReduction::Prr, ..config() };
    let (mut tcp, listener) = listening(config);
    tcp.ece = true;
    tcp.until(100).ack(4);
    tcp.until(200).ack(10);
    listener.calls();
    tcp.until(300).ack(11);
    let next = [Happened(Event::EndCwr), Congestion(Cause::Ecn), state(State::Cwr)];
    assert_eq!(listener.happened(), next);
    // So do losses of what was sent in a recovery that ends.
    let (mut tcp, listener) = listening(Config { reduce_again: false, ..self::config() });
    tcp.until(100).sack(0, &[1..4]).sack(0, &[1..10]).sends([0, 10, 11, 12, 13]);
    listener.calls();
    tcp.until(200).sack(10, &[11..14]);
    let next = [Happened(Event::EndCwr), Congestion(Cause::Loss), state(State::Recovery)];
    assert_eq!(listener.happened(), next);
}

#[test]
fn a_retransmission_into_nothing_is_a_start_in_linux() {
    // `tcp_event_data_sent`: after a timeout nothing is in flight.
    for (undo, starts) in [(Undo::Windows, true), (Undo::State, false)] {
        let (mut tcp, listener) = listening(Config { undo, ..config() });
        tcp.sent();
        listener.calls();
        tcp.until(1500).sent();
        let happened = listener.happened();
        assert_eq!(happened.contains(&Call::Event(Event::Start)), starts, "{happened:?}");
    }
}

#[test]
fn the_first_data_after_an_idle_time_is_reported() {
    for (idle, event) in [(500, Event::Start), (5000, Event::Restart)] {
        let listener = Listener::default();
        let mut tcp = governed(&listener, Config { initial_window: 3, ..config() });
        tcp.write(5).sent();
        tcp.until(100).ack(5);
        listener.calls();
        tcp.until(100 + idle).write(1);
        let calls = listener.calls();
        assert_eq!((calls.len(), calls[0].0), (1, Call::Event(event)));
        assert_eq!(calls[0].1.sent_ns, clock(ms(100)), "when data was sent before: the end of the handshake");
        assert_eq!(tcp.cwnd(), if event == Event::Restart { 3.0 } else { 10.0 });
    }
}

#[test]
fn a_recovery_has_the_governors_window() {
    // Of 10 segments the first is lost. With a window of 6 and PRR's none, 5 are in flight when 3 have arrived and one is
    // lost: the retransmission, and no more.
    let listener = Listener { governs_recovery: true, in_recovery: 8.0, ..Listener::default() };
    let config = Config { window_reduction: elephan_tcp::WindowReduction::Prr, ..config() };
    let mut tcp = governed(&listener, config);
    tcp.write(100).until(100).sack(0, &[1..4]);
    assert_eq!((tcp.cwnd(), tcp.ssthresh(), tcp.pipe()), (8.0, 5.0, 8));
    // A timeout leaves the window to it.
    tcp.until(3000);
    assert_eq!(tcp.cwnd(), 8.0);
}

#[test]
fn an_undo_is_the_governors_own() {
    for (undone, cwnd) in [(Some(9.0), 9.0), (None, 10.0)] {
        let listener = Listener { undone, ..Listener::default() };
        let mut tcp = governed(&listener, Config { eifel: true, ..stamped() });
        tcp.write(100).until(100).sack(0, &[1..4]);
        assert_eq!(tcp.cwnd(), 5.0);
        listener.calls();
        // The ACK of the first transmission, which was late.
        tcp.until(110);
        tcp.echo = 101;
        tcp.ack(4);
        assert_eq!(tcp.cwnd(), cwnd);
        // The end of a reduction that was undone is not reported.
        assert_eq!(listener.happened(), [Call::State(State::Open)]);
    }
}

#[test]
fn segments_leave_at_the_governors_pacing_rate() {
    // 1000 bytes at 100 kB/s: one for each 10 ms.
    let mut tcp = governed(&Listener { rate: 100_000.0, ..Listener::default() }, config());
    tcp.write(100).until(45);
    assert_eq!(tcp.sent_at(), [(0, 0.0), (1, 10.0), (2, 20.0), (3, 30.0), (4, 40.0)]);
}

#[test]
fn a_constant_rate_is_what_is_sampled() {
    // A segment for each millisecond arrives after 100 ms: 1 segment/ms.
    let listener = Listener { needs_rate: true, ..Listener::default() };
    let mut tcp = governed(&listener, config());
    tcp.write(100);
    for next in 1..=60 {
        tcp.until(100 + 10 * next).ack(next);
    }
    for ack in &listener.acks(|ack| *ack)[20..] {
        let rate = ack.rate;
        assert_eq!(rate.interval_ns, i64::from(rate.delivered) * 10_000_000, "{rate:?}");
        assert_eq!((rate.is_app_limited, rate.lost, rate.sent_in_flight), (0, 0, 10_000));
        assert_eq!(rate.prior_delivered + u64::from(rate.delivered), ack.delivered);
    }
}

#[test]
fn each_loss_is_told_with_what_was_known_when_the_segment_was_sent() {
    use Call::{Ack, Congestion, Event as Happened, Lost, Newest, State as In};
    let listener = Listener { needs_rate: true, ..Listener::default() };
    let mut tcp = governed(&listener, config());
    tcp.write(10).sent();
    // The application writes no more.
    let sent = |number, delivered, lost, in_flight| Snapshot {
        number,
        delivered,
        lost,
        in_flight,
        is_app_limited: true,
        has_sack: true,
    };
    listener.calls();
    // Of ten segments the first is found lost, and a report later the second: after the recovery has begun, before the ACK.
    tcp.until(100).sack(0, &[2..4]).sack(0, &[2..5]);
    let calls = listener.calls();
    let told: Vec<_> = calls.iter().map(|&(call, _)| call).skip(3).collect();
    let (recovery, newest) = (In(State::Recovery), Newest(sent(4, 0, 0, 5)));
    let lost = [0, 1].map(|number| Lost(sent(number, 0, 0, number as u32 + 1)));
    assert_eq!(told, [Congestion(Cause::Loss), recovery, lost[0], lost[1], newest, Ack]);
    let counts = |calls: &[(Call, Report)]| -> Vec<_> {
        let lost = calls.iter().filter(|(call, _)| matches!(call, Lost(_)));
        lost.map(|(_, report)| (report.delivered, report.lost)).collect()
    };
    assert_eq!(counts(&calls), [(3, 1), (3, 2)]);
    // A timeout loses what was retransmitted, with five others in flight, and those; the second still waits.
    tcp.sends([0]);
    tcp.expire();
    let calls = listener.calls();
    let told: Vec<_> = calls.iter().map(|&(call, _)| call).collect();
    assert_eq!(told[..3], [Happened(Event::Timeout), Congestion(Cause::Timeout), In(State::Loss)]);
    assert_eq!(told[3..5], [Lost(sent(0, 3, 2, 6)), Lost(sent(5, 0, 0, 6))]);
    assert_eq!(counts(&calls), [3, 4, 5, 6, 7, 8].map(|lost| (3, lost)));
}

#[test]
fn losses_are_told_only_where_the_rate_is() {
    let (mut tcp, listener) = listening(config());
    tcp.until(100).sack(0, &[1..4]);
    assert!(listener.calls().iter().all(|(call, _)| !matches!(call, Call::Lost(_) | Call::Newest(_))));
}

#[test]
fn samples_of_an_idle_application_say_so() {
    let listener = Listener { needs_rate: true, ..Listener::default() };
    let mut tcp = governed(&listener, config());
    tcp.write(3).until(100).ack(3).until(150).write(40).until(250);
    for next in 4..=30 {
        tcp.ack(next);
    }
    let flags = listener.acks(|ack| (ack.delivered, ack.rate.is_app_limited));
    // What was sent before a write that follows an idle time, and what was sent until that was delivered.
    assert_eq!(flags[0], (3, 1));
    assert!(flags[1..].iter().any(|&(_, limited)| limited == 0), "{flags:?}");
}

#[test]
fn each_mark_is_echoed_where_the_governor_needs_it() {
    // RFC 8257, section 3.2: an ACK at once where the mark of a segment differs from that of the one before; otherwise
    // every second segment is acknowledged, and CWR changes nothing.
    let listener = Listener { needs_ecn: true, ..Listener::default() };
    let mut tcp = Script::receiver_controlled(controller(&listener, &config()), avoiding(config()));
    let mut acks = Vec::new();
    for (number, mark) in [false, true, true, true, false, false, false].into_iter().enumerate() {
        tcp.marked = mark;
        tcp.until(number as u64 + 1).data(number as u64);
        let sent = tcp.take_all_bare();
        acks.extend(sent.iter().map(|ack| (number, ack.flags.contains(Flags::ECE))));
    }
    assert_eq!(acks, [(1, true), (3, true), (4, false), (6, false)]);
}

#[test]
fn marks_that_are_echoed_are_counted() {
    let listener = Listener { needs_ecn: true, ..Listener::default() };
    let mut tcp = governed(&listener, config());
    tcp.write(100);
    assert!(tcp.end.ecn_capable() || !listener.calls().is_empty());
    tcp.ece = true;
    tcp.until(100).ack(4);
    tcp.ece = false;
    tcp.until(200).ack(8);
    assert_eq!(listener.acks(|ack| (ack.delivered, ack.delivered_ce)), [(4, 4), (8, 4)]);
}

#[test]
fn a_full_device_queue_reduces_once_in_a_window() {
    // Linux (tcp_enter_cwr): treated as a mark, but neither a loss nor a mark is counted, and there is no
    // second reduction before some data is acknowledged.
    let reductions = |listener: &Listener| -> Vec<Cause> {
        let cause = |call| if let Call::Congestion(cause) = call { Some(cause) } else { None };
        listener.happened().into_iter().filter_map(cause).collect()
    };
    let (mut tcp, listener) = listening(config());
    tcp.end.on_local_congestion(tcp.now);
    assert_eq!(reductions(&listener), []);
    tcp.until(100).ack(4);
    tcp.end.on_local_congestion(tcp.now);
    tcp.end.on_local_congestion(tcp.now);
    assert_eq!(reductions(&listener), [Cause::Ecn]);
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

#[test]
fn a_header_is_predicted_if_it_only_moves_the_left_edge() {
    // Linux, `tcp_rcv_established`: the window, the length of the header and the flags are those of the last.
    let (mut tcp, listener) = listening(Config { ecn: true, ..config() });
    let predicted = || listener.acks(|report| report.is_predicted);
    tcp.until(110).ack(1).ack(2).ack(3);
    assert_eq!(predicted()[1..], [1, 1]);
    tcp.window -= 128;
    tcp.ack(4).ack(5);
    assert_eq!(predicted(), [0, 1], "another window, and the same again");
    tcp.sack(5, &[6..7]).sack(6, &[7..8]).ack(8);
    assert_eq!(predicted(), [0, 0, 1], "with blocks, and without");
    tcp.ece = true;
    tcp.ack(9);
    assert_eq!(predicted(), [0], "an echoed mark");
}

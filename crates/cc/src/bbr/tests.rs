use super::*;
use crate::governor::Rate;
use crate::history::close;

/// A path that carries 1000 segments of 1000 bytes in a second, with a round-trip time of 100 ms without a queue, and ACKs
/// of single segments in round trips of a window each.
struct Path {
    bbr: Bbr,
    limits: Limits,
    report: Report,
    /// Segments that are lost in the next round trip: every second one, found at its first ACK.
    losing: u64,
    /// Whether the connection has selective acknowledgments.
    has_sack: bool,
}

const RATE: f64 = 1000.0;
const RTT: f64 = 0.1;

impl Path {
    fn with(parameters: Parameters) -> Self {
        let mut bbr = Bbr::new(parameters);
        let mut limits = Limits { cwnd: 10.0, ssthresh: f64::INFINITY, pacing_rate: 0.0, requests: 0 };
        let report = Report {
            now_ns: 1_000_000_000,
            srtt_ns: 100_000_000,
            mss: 1000,
            rtt_ns: -1,
            ..Report::default()
        };
        bbr.start(&mut limits, &report).unwrap();
        Self { bbr, limits, report, losing: 0, has_sack: true }
    }

    fn new() -> Self {
        Self::with(Parameters::default())
    }

    /// A segment that was sent with so much in flight, when this was delivered and lost.
    fn snapshot(&self, in_flight: u32, delivered: u64, lost: u64) -> Snapshot {
        Snapshot { number: 0, delivered, lost, in_flight, is_app_limited: false, has_sack: self.has_sack }
    }

    /// It is told that this segment is lost.
    fn lose(&mut self, segment: Snapshot) {
        self.report.lost += 1;
        self.bbr.lost(&mut self.limits, &self.report, &segment).unwrap();
    }

    /// An ACK of a segment, with this sample of the delivery rate.
    fn ack(&mut self, newest: Snapshot, rate: Rate) {
        self.report.acked = 1;
        self.report.rate = rate;
        self.bbr.newest(&newest);
        self.bbr.ack(&mut self.limits, &self.report).unwrap();
    }

    /// A round trip in which a window arrives, at the path's rate or the pacing rate.
    fn round_trip(&mut self) {
        let (window, pacing) = (self.limits.cwnd, self.limits.pacing_rate / 1000.0);
        let sent = f64::min(window, pacing * RTT).max(1.0);
        let segments = sent as u64;
        let queued = (sent - RATE * RTT).max(0.0);
        let interval = RTT.max(sent / RATE);
        let newest = self.snapshot(segments as u32, self.report.delivered, self.report.lost);
        let rate = Rate {
            interval_ns: (interval * 1e9) as i64,
            prior_delivered: newest.delivered,
            delivered: segments as u32,
            ..Rate::default()
        };
        let flight = segments as u32;
        self.report = Report {
            rtt_ns: ((RTT + queued / RATE) * 1e9) as i64,
            in_flight: flight,
            prior_in_flight: flight,
            is_window_limited: u32::from(segments == window as u64),
            ..self.report
        };
        for acked in 1..=segments {
            self.report.now_ns += (interval / sent * 1e9) as u64;
            self.report.delivered += 1;
            for lost in 0..if acked == 1 { std::mem::take(&mut self.losing) } else { 0 } {
                self.lose(Snapshot { number: 2 * lost, ..newest });
            }
            self.ack(newest, rate);
        }
    }

    fn round_trips(&mut self, most: u32, until: impl Fn(&Bbr) -> bool) -> u32 {
        let count = (0..most).take_while(|_| {
            let goes_on = !until(&self.bbr);
            if goes_on {
                self.round_trip();
            }
            goes_on
        });
        count.count() as u32
    }

    fn until(&mut self, phase: Phase) {
        self.round_trips(100, |bbr| bbr.phase == phase);
        assert_eq!(self.bbr.phase, phase);
    }

    fn congestion(&mut self, cause: Cause) {
        self.bbr.congestion(&mut self.limits, &self.report, cause).unwrap();
    }

    fn state(&mut self, state: State) {
        self.report.state = state.into();
        self.bbr.state(&mut self.limits, &self.report).unwrap();
    }

    fn undo(&mut self) {
        let before = self.limits;
        assert!(self.bbr.undo(&mut self.limits, &before).unwrap());
    }
}

/// A path at the start of a cruise.
fn cruising() -> Path {
    let mut path = Path::new();
    path.until(Phase::Cruise);
    path
}

/// A path while it probes for bandwidth, with this bound of data in flight, after a round trip of it.
fn probing(inflight_longterm: f64) -> Path {
    let mut path = cruising();
    path.bbr.inflight_longterm = inflight_longterm;
    path.until(Phase::Up);
    path
}

#[test]
fn it_begins_at_the_initial_window_in_a_round_trip() {
    // 2.77 * 10 segments of 1000 bytes in 100 ms.
    close(Path::new().limits.pacing_rate, 277_000.0, 1e-6);
}

#[test]
fn startup_finds_the_bandwidth_and_drain_the_round_trip_time() {
    let mut path = Path::new();
    let rounds = path.round_trips(50, |bbr| bbr.phase != Phase::Startup);
    // From 10 segments to 100 by doubling, and three round trips without growth.
    assert!((6..=10).contains(&rounds), "{rounds}");
    close(path.bbr.bw, RATE, 0.05 * RATE);
    path.round_trips(50, |bbr| bbr.phase.is_probe_bw());
    assert!(path.bbr.phase.is_probe_bw());
    close(path.bbr.min_rtt, RTT, 1e-9);
}

#[test]
fn growth_within_a_round_trip_is_seen_at_the_start_of_the_next() {
    let mut path = Path::new();
    path.round_trips(4, |_| false);
    let full_bw = path.bbr.full_bw.bw;
    let newest = path.snapshot(50, path.bbr.next_round - 1, 0);
    let rate = Rate { interval_ns: 100_000_000, delivered: 1000, ..Rate::default() };
    path.report.delivered += 1;
    path.ack(newest, rate);
    assert!(!path.bbr.round_start);
    assert_eq!((path.bbr.full_bw.bw, path.bbr.bw), (full_bw, 10_000.0));
    let newest = path.snapshot(50, path.report.delivered, 0);
    path.report.delivered += 1;
    path.ack(newest, rate);
    assert_eq!(path.bbr.full_bw.bw, 10_000.0);
}

/// Losses in the first round trip of a recovery in Startup, of every second segment: whether Startup has ended with it.
fn startup_ends(recovers: bool, losing: u64, has_sack: bool) -> Path {
    let mut path = Path { has_sack, ..Path::new() };
    path.round_trips(4, |_| false);
    if recovers {
        path.congestion(Cause::Loss);
        path.state(State::Recovery);
    }
    path.losing = losing;
    path.round_trip();
    // A segment that was sent when the losses were found arrives.
    let newest = path.snapshot(80, path.report.delivered, 0);
    path.report.delivered += 1;
    path.ack(newest, path.report.rate);
    path
}

#[test]
fn startup_ends_after_a_round_trip_of_recovery_with_six_ranges_of_losses() {
    let ended = startup_ends(true, 6, true);
    assert_eq!((ended.bbr.phase, ended.bbr.full_bw_reached), (Phase::Drain, true));
    // What was delivered in the last round trip, or the bandwidth-delay product.
    let bound = ended.bbr.inflight_longterm;
    assert!(bound.is_finite() && bound >= ended.bbr.bdp(ended.bbr.bw, 1.0), "{bound}");
    for (recovers, losing) in [(true, 5), (false, 6)] {
        assert_eq!(startup_ends(recovers, losing, true).bbr.phase, Phase::Startup, "{recovers} {losing}");
    }
    // One is enough where no more can be seen.
    assert_eq!(startup_ends(true, 1, false).bbr.phase, Phase::Drain);
}

#[test]
fn losses_one_behind_the_other_are_one_range() {
    let mut path = Path::new();
    for number in [7, 8, 9, 11] {
        path.lose(Snapshot { number, ..path.snapshot(10, 0, 0) });
    }
    assert_eq!(path.bbr.lost_ranges, 2);
}

/// Round trips of Drain on a path whose queue does not drain.
fn drains(parameters: Parameters) -> u32 {
    let mut path = Path::with(parameters);
    path.until(Phase::Drain);
    path.report.in_flight = 1000;
    let round_trip = |_: &u32| {
        let newest = path.snapshot(1000, path.report.delivered, 0);
        path.report.delivered += 1;
        path.ack(newest, path.report.rate);
        path.bbr.phase == Phase::Drain
    };
    (0..20).take_while(round_trip).count() as u32
}

#[test]
fn drain_ends_after_three_round_trips_in_any_case() {
    assert_eq!(drains(Parameters::default()), 3);
    assert_eq!(drains(Parameters { drain_rounds: 7.0, ..Parameters::default() }), 7);
    assert_eq!(drains(Parameters { drain_rounds: 1e9, ..Parameters::default() }), 20);
}

#[test]
fn it_probes_every_2_to_3_seconds_for_two_round_trips_and_more() {
    let mut path = cruising();
    let begin = path.report.now_ns;
    path.until(Phase::Refill);
    let waited = (path.report.now_ns - begin) as f64 / 1e9;
    assert!((1.8..=3.1).contains(&waited), "{waited}");
    path.round_trips(3, |bbr| bbr.phase == Phase::Up);
    // 1.25 of the bandwidth, of which a hundredth is left unused.
    close(path.limits.pacing_rate, 1.25 * 0.99 * 1000.0 * path.bbr.bw, 1e-6);
    // The delivery rate does not grow in three round trips.
    assert!((2..=5).contains(&path.round_trips(20, |bbr| bbr.phase != Phase::Up)));
    close(path.bbr.bw, RATE, 0.05 * RATE);
}

#[test]
fn a_cruise_begins_at_the_largest_bandwidth_and_a_probe_is_due_after_a_window_of_round_trips_however_small() {
    let mut path = cruising();
    path.bbr.bw_shortterm = 500.0;
    path.bbr.bw = 500.0;
    let mut sample = path.bbr.sample(&path.report);
    sample.in_flight = 90.0;
    assert!(path.bbr.is_time_to_cruise(&sample));
    sample.in_flight = 110.0;
    assert!(!path.bbr.is_time_to_cruise(&sample));
    // A bandwidth-delay product of two segments, below the smallest window.
    path.bbr.bw = 20.0;
    path.bbr.rounds_since_probe = 2.0;
    assert!(path.bbr.check_time_to_probe(4.0));
    assert_eq!(path.bbr.phase, Phase::Refill);
}

#[test]
fn losses_while_probing_bound_what_is_in_flight() {
    let mut path = cruising();
    path.until(Phase::Up);
    path.round_trip();
    // 2 of 100 are not too many, 10 are.
    path.losing = 2;
    path.round_trip();
    assert_eq!((path.bbr.phase, path.bbr.inflight_longterm), (Phase::Up, f64::INFINITY));
    path.losing = 10;
    path.round_trip();
    assert_ne!(path.bbr.phase, Phase::Up);
    let bound = path.bbr.inflight_longterm;
    assert!((90.0..=140.0).contains(&bound), "{bound}");
    // 15 % of it are left to others.
    path.round_trips(10, |bbr| bbr.phase == Phase::Cruise);
    path.round_trip();
    assert!(path.limits.cwnd <= 0.85 * bound + 1e-9, "{} of {bound}", path.limits.cwnd);
}

#[test]
fn the_bound_is_what_was_in_flight_with_the_lost_segment() {
    let mut path = probing(f64::INFINITY);
    let delivered = path.report.delivered;
    // Sent with 200 in flight, when nothing was lost: the fifth loss is more than 2 %, whatever is in flight now.
    for _ in 0..4 {
        path.lose(path.snapshot(200, delivered, 0));
    }
    assert_eq!((path.bbr.phase, path.bbr.inflight_longterm), (Phase::Up, f64::INFINITY));
    path.lose(path.snapshot(200, delivered, 0));
    // The threshold is crossed within the segment: 199 and what of it 4 losses leave of 2 %.
    assert_eq!(path.bbr.phase, Phase::Down);
    close(path.bbr.inflight_longterm, 199.0 + (0.02 * 199.0 - 4.0) / 0.98, 1e-9);
    // It is set once for each probe, not below beta of the bandwidth-delay product, and not where the application limits.
    path.lose(path.snapshot(20, delivered, 0));
    assert!(path.bbr.inflight_longterm > 190.0);
    let mut path = probing(f64::INFINITY);
    path.lose(path.snapshot(20, delivered, 0));
    close(path.bbr.inflight_longterm, 0.7 * path.bbr.bdp(path.bbr.bw, 1.0), 1e-9);
    let mut path = probing(f64::INFINITY);
    path.lose(Snapshot { is_app_limited: true, ..path.snapshot(20, delivered, 0) });
    assert_eq!((path.bbr.phase, path.bbr.inflight_longterm), (Phase::Down, f64::INFINITY));
}

#[test]
fn without_selective_acknowledgments_one_loss_is_too_much() {
    let mut path = Path { has_sack: false, ..probing(f64::INFINITY) };
    path.lose(path.snapshot(100, path.report.delivered, 0));
    assert_eq!(path.bbr.phase, Phase::Down);
}

#[test]
fn the_probe_after_one_that_lost_too_much_ends_at_the_bound_and_if_it_lost_little_another_follows_at_once() {
    let mut path = probing(105.0);
    path.bbr.prev_probe_too_high = true;
    // 104 in flight are below the bound.
    path.report.prior_in_flight = 104;
    let sample = path.bbr.sample(&path.report);
    assert!(!path.bbr.is_time_to_go_down(&sample, 105.0));
    path.until(Phase::Down);
    assert!(path.bbr.prev_probe_precautionary && !path.bbr.prev_probe_too_high);
    assert_eq!(path.bbr.inflight_longterm, 105.0);
    assert_eq!(path.round_trips(5, |bbr| bbr.phase == Phase::Refill), 1);
    assert!(!path.bbr.prev_probe_precautionary);
    // The second one raises the bound.
    path.until(Phase::Up);
    path.round_trips(3, |_| false);
    assert!(path.bbr.inflight_longterm > 105.0);
}

#[test]
fn after_a_precautionary_probe_that_lost_too_much_none_follows_at_once() {
    let mut path = probing(105.0);
    path.bbr.prev_probe_too_high = true;
    path.until(Phase::Down);
    path.losing = 10;
    path.round_trips(3, |_| false);
    assert!(path.bbr.prev_probe_too_high && path.bbr.inflight_longterm < 105.0);
    assert_eq!(path.bbr.phase, Phase::Down);
}

#[test]
fn without_precaution_a_probe_goes_beyond_the_bound() {
    let mut path = probing(105.0);
    path.bbr.parameters.precautionary_probing = false;
    path.bbr.prev_probe_too_high = true;
    path.round_trips(3, |_| false);
    assert_eq!(path.bbr.phase, Phase::Up);
    assert!(path.bbr.inflight_longterm > 105.0);
}

#[test]
fn losses_while_cruising_lower_short_term_bounds_until_the_next_probe() {
    let mut path = cruising();
    path.round_trip();
    path.losing = 1;
    path.round_trips(2, |_| false);
    let (bw, inflight) = (path.bbr.bw_shortterm, path.bbr.inflight_shortterm);
    // Not below what was delivered, nearly the bandwidth.
    assert!((0.7..=1.01).contains(&(bw / RATE)) && inflight.is_finite(), "{bw} {inflight}");
    path.until(Phase::Refill);
    assert!(path.bbr.bw_shortterm.is_infinite() && path.bbr.inflight_shortterm.is_infinite());
}

#[test]
fn bounds_are_cut_once_a_whole_round_trip_after_the_first_loss() {
    let mut path = cruising();
    let rate = Rate { interval_ns: 100_000_000, delivered: 10, ..Rate::default() };
    let deliver = |path: &mut Path, prior| {
        let newest = path.snapshot(100, prior, path.report.lost);
        path.report.delivered += 1;
        path.ack(newest, rate);
        path.bbr.bw_shortterm
    };
    let begin = path.report.delivered;
    // A round trip ends in the middle of a burst of losses.
    path.bbr.loss_round_delivered = begin - 50;
    path.lose(path.snapshot(100, begin - 60, 0));
    assert!(deliver(&mut path, begin - 60).is_infinite());
    path.lose(path.snapshot(100, begin - 60, 0));
    assert!(deliver(&mut path, begin - 50).is_infinite());
    // What was sent when the first loss was found ends the round trip.
    assert!(deliver(&mut path, begin - 1).is_infinite());
    let bw = deliver(&mut path, begin);
    assert!(bw.is_finite());
    // The burst has cut once.
    let end = path.report.delivered;
    assert_eq!(deliver(&mut path, end), bw);
}

#[test]
fn every_five_seconds_it_measures_the_smallest_round_trip_time() {
    let mut path = cruising();
    let rounds = path.round_trips(100, |bbr| bbr.phase == Phase::ProbeRtt);
    assert!(rounds < 60, "{rounds}");
    path.round_trip();
    // Half of 100 segments.
    close(path.limits.cwnd, 50.0, 2.5);
    let begin = path.report.now_ns;
    path.round_trips(20, |bbr| bbr.phase != Phase::ProbeRtt);
    let lasted = (path.report.now_ns - begin) as f64 / 1e9;
    assert!((0.1..=0.5).contains(&lasted), "{lasted}");
    assert!(path.limits.cwnd > 100.0);
    // Its low rates end no cycle of the filter of bandwidths: what the last probe measured is in it.
    let max_bw = path.bbr.max_bw;
    path.round_trips(3, |_| false);
    assert_eq!((path.bbr.acks, path.bbr.max_bw[0]), (Acks::Init, max_bw[0]));
}

#[test]
fn aggregation_is_remembered_for_ten_round_trips_and_for_one_in_startup() {
    for (reached, remembered) in [(true, 10), (false, 1)] {
        let mut path = cruising();
        path.bbr.full_bw_reached = reached;
        let sample = Sample { acked: 50.0, ..path.bbr.sample(&path.report) };
        path.bbr.extra_acked_delivered = 0.0;
        path.bbr.update_aggregation(&sample, 200.0);
        close(path.bbr.extra_acked(), 50.0, 1e-9);
        for round in 1..=remembered {
            assert!(path.bbr.extra_acked() > 49.0, "{reached} {round}");
            path.bbr.rounds += 1;
            path.bbr.now += 1.0;
            path.bbr.update_aggregation(&Sample { acked: 1.0, ..sample }, 200.0);
        }
        close(path.bbr.extra_acked(), 1.0, 1e-9);
    }
}

#[test]
fn fast_recovery_leaves_the_window_to_the_model_and_a_timeout_one_segment() {
    let mut path = cruising();
    let before = path.limits.cwnd;
    path.report.in_flight = 80;
    path.congestion(Cause::Loss);
    path.state(State::Recovery);
    assert_eq!(path.limits.cwnd, before);
    // Losses are no part of the window that follows an ACK.
    let newest = path.snapshot(100, path.report.delivered - 1, 0);
    path.lose(path.snapshot(100, path.report.delivered - 1, 0));
    path.report.delivered += 1;
    path.ack(newest, path.report.rate);
    assert!(path.limits.cwnd >= before, "{} after {before}", path.limits.cwnd);
    path.limits.cwnd = 40.0;
    path.state(State::Open);
    assert_eq!(path.limits.cwnd, before);
    // A timeout leaves one segment beyond what is in flight, and its end restores the window; a mark changes nothing.
    path.congestion(Cause::Timeout);
    path.report.in_flight = 3;
    path.state(State::Loss);
    assert_eq!(path.limits.cwnd, 4.0);
    path.congestion(Cause::Ecn);
    assert_eq!(path.limits.cwnd, 4.0);
    path.state(State::Open);
    assert_eq!(path.limits.cwnd, before);
}

#[test]
fn an_undo_restores_the_bounds_and_the_search_for_bandwidth_begins_again() {
    let mut path = cruising();
    let before = path.limits.cwnd;
    path.congestion(Cause::Loss);
    (path.bbr.inflight_longterm, path.bbr.bw_shortterm, path.bbr.inflight_shortterm) = (70.0, 500.0, 50.0);
    (path.limits.cwnd, path.bbr.is_loss_in_round) = (40.0, true);
    path.bbr.full_bw = FullBw { bw: 900.0, rounds: 3, now: true };
    path.undo();
    let bbr = &path.bbr;
    assert_eq!((path.limits.cwnd, bbr.phase, bbr.is_loss_in_round), (before, Phase::Cruise, false));
    assert!(
        [bbr.inflight_longterm, bbr.bw_shortterm, bbr.inflight_shortterm]
            .iter()
            .all(|bound| bound.is_infinite())
    );
    assert_eq!((bbr.full_bw.bw, bbr.full_bw.rounds, bbr.full_bw.now), (0.0, 0, false));
}

#[test]
fn an_undo_returns_to_the_probe_that_the_losses_ended() {
    let probe = |losing| {
        let mut path = probing(f64::INFINITY);
        path.congestion(Cause::Loss);
        path.losing = losing;
        path.round_trip();
        path
    };
    let mut path = probe(3);
    assert!(path.bbr.inflight_longterm.is_finite());
    path.undo();
    assert_eq!((path.bbr.phase, path.bbr.inflight_longterm), (Phase::Refill, f64::INFINITY));
    // A loss after the one that ended the probe is the first of another round trip: the state that it saves is that after the probe.
    let mut path = probe(4);
    path.undo();
    assert_eq!(path.bbr.phase, Phase::Down);
    // In ProbeRTT there it stays, and what ended for another reason is not begun again.
    let mut path = probe(3);
    path.bbr.phase = Phase::ProbeRtt;
    path.undo();
    assert_eq!(path.bbr.phase, Phase::ProbeRtt);
    let mut path = probe(1);
    path.bbr.start_down();
    path.undo();
    assert_eq!(path.bbr.phase, Phase::Down);
    let mut path = startup_ends(true, 6, true);
    assert_eq!(path.bbr.phase, Phase::Drain);
    path.undo();
    assert_eq!((path.bbr.phase, path.bbr.full_bw_reached), (Phase::Startup, false));
}

#[test]
fn copies_of_other_connections_draw_other_times() {
    let wait = |seed| {
        let mut bbr = Bbr::new(Parameters::default());
        bbr.random = Seed::new(seed).stream(PURPOSE, 0);
        bbr.draw()
    };
    assert_ne!(wait(1), wait(2));
    assert_eq!(wait(1), wait(1));
}

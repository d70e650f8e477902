use super::*;
use crate::governor::Rate;
use crate::history::close;

/// A path that carries 1000 segments of 1000 bytes in a second, with a round-trip time of 100 ms without a queue, and ACKs
/// of single segments in round trips of a window each.
struct Path {
    bbr: Bbr,
    limits: Limits,
    report: Report,
    /// Segments that are lost in the next round trip.
    losing: u64,
}

const RATE: f64 = 1000.0;
const RTT: f64 = 0.1;

impl Path {
    fn new() -> Self {
        let mut bbr = Bbr::new(Parameters::default());
        let mut limits = Limits { cwnd: 10.0, ssthresh: f64::INFINITY, pacing_rate: 0.0, requests: 0 };
        let report = Report {
            now_ns: 1_000_000_000,
            srtt_ns: 100_000_000,
            mss: 1000,
            rtt_ns: -1,
            ..Report::default()
        };
        bbr.start(&mut limits, &report).unwrap();
        Self { bbr, limits, report, losing: 0 }
    }

    /// A round trip in which a window arrives, at the path's rate or the pacing rate.
    fn round_trip(&mut self) {
        let (window, pacing) = (self.limits.cwnd, self.limits.pacing_rate / 1000.0);
        let sent = f64::min(window, pacing * RTT).max(1.0);
        let segments = sent as u64;
        let queued = (sent - RATE * RTT).max(0.0);
        let interval = RTT.max(sent / RATE);
        let before = self.report.delivered;
        let lost = std::mem::take(&mut self.losing);
        for acked in 1..=segments {
            self.report.now_ns += (interval / sent * 1e9) as u64;
            self.report.delivered += 1;
            let newly_lost = if acked == 1 { lost } else { 0 };
            self.report.lost += newly_lost;
            self.report = Report {
                rtt_ns: ((RTT + queued / RATE) * 1e9) as i64,
                acked: 1,
                in_flight: segments as u32,
                is_window_limited: 1,
                outstanding_max: segments as u32,
                rate: Rate {
                    interval_ns: (interval * 1e9) as i64,
                    prior_delivered: before,
                    delivered: segments as u32,
                    sent_in_flight: segments as u32 * 1000,
                    lost: newly_lost as u32,
                    ..Rate::default()
                },
                ..self.report
            };
            self.bbr.ack(&mut self.limits, &self.report).unwrap();
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

/// A path at the start of a cruise.
fn cruising() -> Path {
    let mut path = Path::new();
    path.round_trips(50, |bbr| bbr.phase == Phase::Cruise);
    path
}

#[test]
fn it_probes_every_2_to_3_seconds_for_two_round_trips_and_more() {
    let mut path = cruising();
    let begin = path.report.now_ns;
    path.round_trips(50, |bbr| bbr.phase == Phase::Refill);
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
fn losses_while_probing_bound_what_is_in_flight() {
    let mut path = cruising();
    path.round_trips(50, |bbr| bbr.phase == Phase::Up);
    path.round_trip();
    // 2 of 100 are not too many, 10 are.
    path.losing = 2;
    path.round_trip();
    assert_eq!((path.bbr.phase, path.bbr.inflight_hi), (Phase::Up, f64::INFINITY));
    path.losing = 10;
    path.round_trip();
    assert_ne!(path.bbr.phase, Phase::Up);
    let bound = path.bbr.inflight_hi;
    assert!((90.0..=140.0).contains(&bound), "{bound}");
    // 15 % of it are left to others.
    path.round_trips(10, |bbr| bbr.phase == Phase::Cruise);
    path.round_trip();
    assert!(path.limits.cwnd <= 0.85 * bound + 1e-9, "{} of {bound}", path.limits.cwnd);
}

#[test]
fn losses_while_cruising_lower_short_term_bounds_until_the_next_probe() {
    let mut path = cruising();
    path.round_trip();
    path.losing = 1;
    path.round_trips(2, |_| false);
    let low = path.bbr.low;
    // Not below what was delivered, nearly the bandwidth.
    assert!((0.7..=1.01).contains(&(low.bw / RATE)) && low.inflight.is_finite(), "{low:?}");
    path.round_trips(50, |bbr| bbr.phase == Phase::Refill);
    assert!(path.bbr.low.bw.is_infinite() && path.bbr.low.inflight.is_infinite());
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
}

#[test]
fn recovery_begins_with_what_is_delivered_and_ends_with_the_window_of_before() {
    let mut path = cruising();
    let before = path.limits.cwnd;
    path.report.in_flight = 80;
    path.bbr.congestion(&mut path.limits, &path.report, Cause::Loss).unwrap();
    assert_eq!(path.limits.cwnd, 81.0);
    path.report.state = State::Recovery.into();
    path.bbr.state(&mut path.limits, &path.report).unwrap();
    assert_eq!(path.limits.cwnd, 81.0);
    path.report.state = State::Open.into();
    path.bbr.state(&mut path.limits, &path.report).unwrap();
    assert_eq!(path.limits.cwnd, before);
    // A timeout leaves one segment beyond what is in flight; a mark changes nothing.
    path.report.in_flight = 0;
    path.bbr.congestion(&mut path.limits, &path.report, Cause::Timeout).unwrap();
    assert_eq!(path.limits.cwnd, 1.0);
    path.bbr.congestion(&mut path.limits, &path.report, Cause::Ecn).unwrap();
    assert_eq!(path.limits.cwnd, 1.0);
}

#[test]
fn an_undo_restores_the_bounds() {
    let mut path = cruising();
    let limits = path.limits;
    path.bbr.congestion(&mut path.limits, &path.report, Cause::Loss).unwrap();
    (path.bbr.inflight_hi, path.bbr.low) = (70.0, Low { bw: 500.0, inflight: 50.0 });
    assert!(path.bbr.undo(&mut path.limits, &limits).unwrap());
    assert_eq!(path.limits.cwnd, limits.cwnd);
    assert!(path.bbr.inflight_hi.is_infinite() && path.bbr.low.bw.is_infinite());
    assert!(!path.bbr.undo(&mut path.limits, &limits).unwrap());
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

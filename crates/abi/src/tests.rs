use elephan_cc::governor::{Report, Told, clock, nanos};
use elephan_cc::{Ack, Cause, Congestion, Controller, Quantisation, SlowStart, State};
use elephan_units::Time;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::*;

#[test]
fn tables_have_the_parameters_of_elephan_cc_with_the_same_defaults() {
    for entry in ALL {
        let parameters = (entry.parameters)();
        let known: Vec<&str> = parameters.iter().map(|p| p.name.as_ref()).collect();
        let rows: Vec<&str> = entry.table.rows().iter().map(Row::name).collect();
        assert_eq!(rows, known, "{}", entry.cc);
        let default =
            |name: &str, default| entry.described().read(name, default).expect("a default in its range");
        let settings: Vec<_> =
            parameters.iter().map(|p| (p.name.as_ref(), default(&p.name, &p.default))).collect();
        assert_eq!(entry.values(&settings).unwrap(), entry.values(&[]).unwrap(), "{}", entry.cc);
    }
}

/// An event of a connection.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// Round trips with this queueing delay, in milliseconds, each ACK counting as this number of segments.
    RoundTrips {
        count: u32,
        queueing_ms: u32,
        worth: u32,
    },
    /// An interval without ACKs.
    Wait {
        ms: u64,
    },
    Loss,
    Mark,
    Timeout,
}

/// The same algorithm in floating point with whole windows, and the kernel's, in parallel.
struct Pair {
    controllers: [Controller; 2],
    now: Time,
    min_rtt: Time,
    delivered: [f64; 2],
    marked: u64,
    round: u64,
    /// The largest distance between the windows so far, in segments.
    worst: f64,
}

impl Pair {
    fn new(entry: &Entry, settings: &[(&str, Value)], base_rtt_ms: u64) -> Self {
        let made = [entry.described().build(settings), entry.build(settings)];
        let controllers = made.map(|algorithm| {
            let algorithm = algorithm.expect("settings in range");
            let mut controller =
                Controller::new(algorithm, SlowStart::Standard, Quantisation::RoundDown, 10.0);
            controller.tell(Told::Start, &Report { snd_nxt: 1, ..Report::default() });
            controller
        });
        let min_rtt = Time::from_millis(base_rtt_ms);
        Self { controllers, now: Time::ZERO, min_rtt, delivered: [0.0; 2], marked: 0, round: 0, worst: 0.0 }
    }

    fn compare(&mut self) {
        let [published, kernel] = [0, 1].map(|i| self.controllers[i].cwnd());
        self.worst = self.worst.max((published - kernel).abs());
    }

    fn round_trip(&mut self, queueing_ms: u32, worth: u32) {
        let rtt = self.min_rtt + Time::from_millis(u64::from(queueing_ms));
        let in_flight = self.controllers[0].cwnd().min(MOST_ACKS * f64::from(worth));
        let began = self.now;
        let mut acked = 0.0;
        // An ACK in five of a round trip with a longer queue echoes a mark.
        let marks = if queueing_ms > MARKED_FROM_MS { 5 } else { u64::MAX };
        let mut acks = 0;
        while acked < in_flight {
            acked += f64::from(worth);
            acks += 1;
            self.marked += if acks % marks == 0 { u64::from(worth) } else { 0 };
            self.now = began + rtt.mul_f64((acked / in_flight).min(1.0));
            for (controller, delivered) in self.controllers.iter_mut().zip(&mut self.delivered) {
                *delivered += f64::from(worth);
                let ack = Ack {
                    now: self.now,
                    segments: f64::from(worth),
                    delivered: *delivered,
                    una: (*delivered * 1448.0) as u64,
                    next: ((*delivered + controller.cwnd()) * 1448.0) as u64,
                    rtt: Some(rtt),
                    min_rtt: self.min_rtt,
                    srtt: rtt,
                    round: self.round,
                    state: State::Open,
                    mss: 1448,
                };
                if controller.governor().is_some() {
                    controller.tell(Told::Ack, &Report { delivered_ce: self.marked, ..report(&ack) });
                } else {
                    controller.on_ack(&ack);
                }
            }
            self.compare();
        }
        self.round += 1;
    }

    fn congestion(&mut self, cause: Cause) {
        for (controller, &delivered) in self.controllers.iter_mut().zip(&self.delivered) {
            let (now, min_rtt, flight_size) = (self.now, self.min_rtt, controller.cwnd());
            if controller.governor().is_some() {
                let delivered = delivered as u64;
                let (now_ns, min_rtt_ns) = (clock(now), nanos(min_rtt));
                let report = Report { now_ns, min_rtt_ns, delivered, ..Report::default() };
                controller.on_governed_congestion(cause, &report);
            } else {
                controller.on_congestion(&Congestion { now, cause, flight_size, delivered, min_rtt });
            }
        }
        self.compare();
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::RoundTrips { count, queueing_ms, worth } => {
                (0..count).for_each(|_| self.round_trip(queueing_ms, worth));
            }
            Event::Wait { ms } => self.now += Time::from_millis(ms),
            Event::Loss => self.congestion(Cause::Loss),
            Event::Mark => self.congestion(Cause::Ecn),
            Event::Timeout => self.congestion(Cause::Timeout),
        }
    }
}

/// The same ACK as it is reported to a governor.
fn report(ack: &Ack) -> Report {
    Report {
        now_ns: clock(ack.now),
        rtt_ns: ack.rtt.map_or(-1, |rtt| nanos(rtt).cast_signed()),
        min_rtt_ns: nanos(ack.min_rtt),
        srtt_ns: nanos(ack.srtt),
        delivered: ack.delivered as u64,
        // Data sent in a round trip is acknowledged in the next.
        snd_una: 2 * ack.round,
        snd_nxt: 2 * ack.round + 1,
        round: ack.round,
        growth: ack.segments,
        mss: ack.mss,
        state: ack.state.into(),
        ..Report::default()
    }
}

/// More ACKs in a round trip than this test nothing new.
const MOST_ACKS: f64 = 5000.0;
/// Queueing delay above which segments are marked.
const MARKED_FROM_MS: u32 = 20;

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        8 => (1..12u32, 0..40u32, 1..4u32)
            .prop_map(|(count, queueing_ms, worth)| Event::RoundTrips { count, queueing_ms, worth }),
        1 => (1..4000u64).prop_map(|ms| Event::Wait { ms }),
        5 => Just(Event::Loss),
        1 => Just(Event::Timeout),
        1 => Just(Event::Mark),
    ];
    prop::collection::vec(event, 1..40)
}

/// The difference of the windows, in segments, over many random histories: in 95 % of the histories, and in
/// the worst.
///
/// The kernel's arithmetic completes a segment one ACK earlier or later, so windows differ by a segment if
/// there is one segment more or less of growth. If a rule has a threshold (Scalable's and BIC's low windows,
/// the window that BIC searches for), a segment can decide on which side of it a loss falls; the windows then
/// differ until the next losses bring them together.
fn apart(cc: &str, settings: &[(&str, Value)]) -> (f64, f64) {
    const HISTORIES: usize = 150;
    let entry = find(cc).unwrap();
    let mut runner = TestRunner::deterministic();
    let mut worst: Vec<f64> = (0..HISTORIES)
        .map(|_| {
            let mut pair = Pair::new(entry, settings, 50);
            events()
                .new_tree(&mut runner)
                .unwrap()
                .current()
                .into_iter()
                .for_each(|event| pair.happens(event));
            pair.worst
        })
        .collect();
    worst.sort_by(f64::total_cmp);
    (worst[HISTORIES * 95 / 100], worst[HISTORIES - 1])
}

/// An algorithm, settings, and the maximum difference of the windows: in 95 % of the histories, and in all.
type Case<'a> = (&'a str, &'a [(&'a str, Value)], (f64, f64));

#[test]
fn windows_agree_with_elephan_cc_within_a_few_segments() {
    let n = Value::Number;
    let w = Value::Word;
    let cases: [Case<'_>; 30] = [
        ("reno", &[], (1.0, 1.0)),
        ("reno", &[("a", n(3.0)), ("beta", n(0.7))], (2.0, 2.0)),
        ("hstcp", &[], (2.0, 2.0)),
        ("hstcp", &[("response", w("table"))], (2.0, 8.0)),
        ("hstcp-fc", &[], (2.0, 2.0)),
        ("hstcp-fc", &[("n1", n(1.0)), ("s_min", n(5.0))], (2.0, 2.0)),
        ("scalable", &[], (1.0, 9.0)),
        ("scalable", &[("a", n(0.02)), ("b", n(0.25)), ("rounding", w("ceil"))], (1.0, 9.0)),
        ("htcp", &[], (2.0, 2.0)),
        ("htcp", &[("rtt_scaling", w("seconds")), ("settle", Value::Flag(true))], (2.0, 2.0)),
        ("bic", &[], (2.0, 34.0)),
        ("bic", &[("low_utilisation", Value::Flag(true))], (2.0, 34.0)),
        ("fast", &[], (1.0, 2.0)),
        ("fast", &[("gamma", n(0.8)), ("alpha_low", n(50.0))], (1.0, 2.0)),
        ("ltcp", &[], (2.0, 4.0)),
        ("ltcp", &[("w_t", n(20.0)), ("beta_l", n(0.2))], (2.0, 4.0)),
        ("westwood", &[], (1.0, 1.0)),
        ("westwood", &[("alpha", n(0.5))], (1.0, 1.0)),
        ("veno", &[], (1.0, 1.0)),
        ("veno", &[("beta", n(10.0)), ("random", n(0.9))], (1.0, 1.0)),
        ("illinois", &[], (1.0, 7.0)),
        ("illinois", &[("alpha_max", n(5.0)), ("beta_min", n(0.2)), ("theta", n(2.0))], (1.0, 7.0)),
        ("illinois", &[("win_thresh", n(50.0)), ("d_1", n(0.1))], (1.0, 7.0)),
        ("yeah", &[], (1.0, 87.0)),
        ("yeah", &[("alpha", n(10.0)), ("gamma", n(0.5)), ("rho", n(4.0))], (5.0, 5.0)),
        ("yeah", &[("zeta", n(5.0)), ("delta", n(0.3))], (1.0, 87.0)),
        ("compound", &[], (1.0, 24.0)),
        ("compound", &[("k", n(0.8)), ("eta", n(0.1)), ("lambda", n(0.0))], (1.0, 24.0)),
        ("dctcp", &[], (3.0, 4.0)),
        ("dctcp", &[("g", n(0.25)), ("alpha", n(0.0))], (3.0, 4.0)),
    ];
    let mut wrong = Vec::new();
    for (cc, settings, bound) in cases {
        let found = apart(cc, settings);
        if found.0 > bound.0 || found.1 > bound.1 {
            wrong.push(format!("{cc} {settings:?}: {found:?}, expected at most {bound:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_decrease_rounds_as_the_published_kernels_do() {
    // Thesis, section 9.1.2: b = 1/8 removes 2 of 18 segments.
    for (cwnd, left) in [(18.0, 16.0), (16.0, 8.0)] {
        let scalable = find("scalable").unwrap().build(&[]).unwrap();
        let mut controller = Controller::new(scalable, SlowStart::Standard, Quantisation::None, cwnd);
        controller.on_governed_congestion(Cause::Loss, &Report::default());
        assert_eq!(controller.ssthresh(), left);
    }
}

#[test]
fn settings_are_refused_as_elephan_cc_refuses_them() {
    let scalable = find("kernel:scalable").unwrap();
    assert!(scalable.values(&[("a", Value::Number(2.0))]).is_err());
    assert!(scalable.values(&[("alpha", Value::Number(0.02))]).is_err());
    assert_eq!(scalable.values(&[("a", Value::Number(0.5))]).unwrap()[0], 1 << 31);
    assert_eq!(scalable.values(&[("rounding", Value::Word("ceil"))]).unwrap()[3], 1);
}

#[test]
fn the_files_are_the_published_rules() {
    let htcp = find("htcp").unwrap();
    assert_eq!(htcp.values(&[("form", Value::Word("published"))]), htcp.values(&[]));
    assert_eq!(
        htcp.values(&[("form", Value::Word("linux"))]).unwrap_err().to_string(),
        "form: expected \"published\", which the file of kernel/ has (linux:NAME is Linux's own), found \"linux\""
    );
}

#[test]
fn linux_algorithms_have_a_prefix_unless_no_other_has_the_name() {
    let plain: Vec<&str> = linux::plain().map(|entry| entry.name).collect();
    assert!(plain.contains(&"hybla") && plain.contains(&"highspeed"), "{plain:?}");
    assert!(!plain.contains(&"reno") && !plain.contains(&"htcp"), "{plain:?}");
    let found = |name| linux::find(name).map(|entry| entry.name);
    assert_eq!(found("linux:reno"), Some("linux:reno"));
    assert_eq!(found("hybla"), Some("linux:hybla"));
    for name in ["reno", "linux:hstcp", "kernel:bbr", "linux:", "el_bbr"] {
        assert_eq!(found(name), None, "{name}");
    }
}

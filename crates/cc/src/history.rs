//! For tests: a connection of one algorithm, with explicit ACKs and losses.

use elephan_units::Time;
use elephan_units::entry::Value;

use crate::slow_start::{self, SlowStart};
use crate::{Ack, Cause, Congestion, Controller, Quantisation, State, registry};

const MSS: u32 = 1460;

/// Asserts that `found` is within `tolerance` of `expected`.
#[track_caller]
pub fn close(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "found {found}, expected {expected} within {tolerance}");
}

/// A loss with this many segments in flight, for tests of an algorithm without a controller.
pub fn loss(flight_size: f64) -> Congestion {
    Congestion {
        now: Time::from_secs(10),
        cause: Cause::Loss,
        flight_size,
        delivered: 0.0,
        min_rtt: Time::from_millis(100),
    }
}

/// An ACK of one segment with this round-trip time, for tests of an algorithm without a controller.
pub fn ack(rtt: Time) -> Ack {
    Ack {
        now: Time::from_secs(10),
        segments: 1.0,
        delivered: 0.0,
        una: 0,
        next: 0,
        rtt: Some(rtt),
        min_rtt: Time::from_millis(100),
        srtt: rtt,
        round: 0,
        state: State::Open,
        mss: MSS,
    }
}

/// A connection whose ACKs and losses a test supplies one by one.
#[derive(Clone)]
pub struct History {
    algorithm: &'static registry::Entry,
    settings: Vec<(&'static str, Value)>,
    slow_start: SlowStart,
    quantisation: Quantisation,
    pub controller: Controller,
    pub now: Time,
    /// Round-trip time of the next ACKs, and the smallest.
    pub rtt: Time,
    pub min_rtt: Time,
    pub delivered: f64,
    /// What is cumulatively acknowledged of that: in a recovery nothing more.
    pub acknowledged: f64,
    pub round: u64,
    pub in_recovery: bool,
}

impl History {
    /// A connection with this algorithm, a round-trip time of 100 ms and a window of 10, in slow start.
    pub fn of(name: &str) -> Self {
        let algorithm = registry::find(name).expect(name);
        let built = algorithm.build(&[]).expect("no settings");
        Self {
            algorithm,
            settings: Vec::new(),
            slow_start: SlowStart::Standard,
            quantisation: Quantisation::None,
            controller: Controller::new(built, SlowStart::Standard, Quantisation::None, 10.0),
            now: Time::ZERO,
            rtt: Time::from_millis(100),
            min_rtt: Time::from_millis(100),
            delivered: 0.0,
            acknowledged: 0.0,
            round: 0,
            in_recovery: false,
        }
    }

    /// With this parameter.
    pub fn set(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.settings.push((name, value.into()));
        self.starting(10.0)
    }

    /// With this slow start. Careful Resume has saved a window of 300 segments at 100 ms.
    pub fn slow_start(mut self, name: &str) -> Self {
        let saved = [("saved_cwnd", Value::Number(300.0)), ("saved_rtt", Value::Number(0.1))];
        let settings: &[_] = if name == "careful-resume" { &saved } else { &[] };
        self.slow_start = slow_start::find(name).expect(name).build(settings).expect("settings in range");
        self.starting(10.0)
    }

    /// With this quantisation.
    pub fn quantised(mut self, quantisation: Quantisation) -> Self {
        self.quantisation = quantisation;
        self.starting(10.0)
    }

    /// With this round-trip time, in milliseconds.
    pub fn rtt_ms(mut self, ms: f64) -> Self {
        self.rtt = Time::from_secs_f64(ms / 1e3);
        self.min_rtt = self.rtt;
        self
    }

    /// With a window of `cwnd`, in slow start.
    pub fn starting(mut self, cwnd: f64) -> Self {
        let algorithm = self.algorithm.build(&self.settings).expect("settings in range");
        self.controller = Controller::new(algorithm, self.slow_start.clone(), self.quantisation, cwnd);
        self
    }

    /// With a window of `cwnd`, in congestion avoidance.
    pub fn at(mut self, cwnd: f64) -> Self {
        self = self.starting(cwnd);
        self.controller = self.controller.with_ssthresh(2.0);
        self
    }

    /// The variables of the algorithm and the slow start, to nine digits after the point.
    pub fn variables(&self) -> Vec<(&'static str, f64)> {
        let mut all = Vec::new();
        self.controller
            .variables(&mut |variable, value| all.push((variable.name, (value * 1e9).round() / 1e9)));
        all
    }

    pub fn cwnd(&self) -> f64 {
        self.controller.cwnd()
    }

    pub fn ssthresh(&self) -> f64 {
        self.controller.ssthresh()
    }

    /// Asserts the window.
    #[track_caller]
    pub fn window_is(&mut self, cwnd: f64) -> &mut Self {
        self.window_near(cwnd, 0.0)
    }

    /// Asserts that the window is within `tolerance` of `cwnd`.
    #[track_caller]
    pub fn window_near(&mut self, cwnd: f64, tolerance: f64) -> &mut Self {
        close(self.cwnd(), cwnd, tolerance);
        self
    }

    /// The next ACKs have this round-trip time, in milliseconds.
    pub fn rtt_becomes(&mut self, ms: u64) -> &mut Self {
        self.rtt = Time::from_millis(ms);
        self
    }

    /// The next ACK is of the next round trip.
    pub fn next_round(&mut self) -> &mut Self {
        self.round += 1;
        self
    }

    /// An ACK of `segments`, now.
    pub fn ack(&mut self, segments: f64) -> &mut Self {
        self.ack_worth(segments, if self.in_recovery { 0.0 } else { segments })
    }

    /// `count` ACKs of `segments`, now.
    pub fn acks(&mut self, count: u32, segments: f64) -> &mut Self {
        for _ in 0..count {
            self.ack(segments);
        }
        self
    }

    /// An ACK of `segments`, now, which counts `growth` segments for window growth.
    pub fn ack_worth(&mut self, segments: f64, growth: f64) -> &mut Self {
        self.delivered += segments;
        if !self.in_recovery {
            self.acknowledged = self.delivered;
        }
        let bytes = |segments: f64| (segments * f64::from(MSS)) as u64;
        self.controller.on_ack(&Ack {
            now: self.now,
            segments: growth,
            delivered: self.delivered,
            una: bytes(self.acknowledged),
            next: bytes(self.delivered + self.cwnd()),
            min_rtt: self.min_rtt,
            round: self.round,
            state: if self.in_recovery { State::Recovery } else { State::Open },
            ..ack(self.rtt)
        });
        self
    }

    /// `count` ACKs of one segment that allow no growth.
    pub fn idle_acks(&mut self, count: u32) -> &mut Self {
        for _ in 0..count {
            self.ack_worth(1.0, 0.0);
        }
        self
    }

    /// A round trip with samples of this round-trip time. The ACK that ends it may add `growth`.
    pub fn round_of(&mut self, ms: u64, growth: f64) -> &mut Self {
        self.rtt_becomes(ms).idle_acks(3).next_round().ack_worth(1.0, growth)
    }

    /// A congestion event, now, with a window in flight.
    pub fn event(&mut self, cause: Cause) -> &mut Self {
        self.controller.on_congestion(&Congestion {
            now: self.now,
            cause,
            min_rtt: self.min_rtt,
            delivered: self.delivered,
            ..loss(self.cwnd())
        });
        self
    }

    /// A loss, now, with a window in flight.
    pub fn loss(&mut self) -> &mut Self {
        self.event(Cause::Loss)
    }

    /// Lets `seconds` pass in which nothing is in flight, until more data is sent.
    pub fn idle(&mut self, seconds: f64) -> &mut Self {
        self.wait(seconds).controller.resume(Time::from_secs_f64(seconds));
        self
    }

    /// Lets `seconds` pass without an ACK.
    pub fn wait(&mut self, seconds: f64) -> &mut Self {
        self.now += Time::from_secs_f64(seconds);
        self
    }

    /// ACKs of one segment, spread over the round trip, until the window in flight at its start is
    /// acknowledged or the window reaches `target`; returns the fraction of the round trip that took.
    fn round_trip_to(&mut self, target: f64) -> f64 {
        let in_flight = self.cwnd();
        let begin = self.now;
        let mut acked = 0.0;
        while acked < in_flight {
            let segments = f64::min(in_flight - acked, 1.0);
            acked += segments;
            self.now = begin + self.rtt.mul_f64(acked / in_flight);
            self.ack(segments);
            if self.cwnd() >= target {
                return acked / in_flight;
            }
        }
        self.round += 1;
        1.0
    }

    /// One round trip.
    pub fn round_trip(&mut self) -> &mut Self {
        self.round_trip_to(f64::INFINITY);
        self
    }

    /// How many round trips it takes until the window reaches `target`.
    pub fn round_trips_to(&mut self, target: f64) -> f64 {
        let mut round_trips = 0.0;
        while self.cwnd() < target {
            round_trips += self.round_trip_to(target);
            assert!(round_trips < 200_000.0, "{target} is not reached: {}", self.cwnd());
        }
        round_trips
    }
}

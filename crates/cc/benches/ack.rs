//! The cost of an ACK: `cargo bench -p elephan-cc`.

use divan::{Bencher, black_box};
use elephan_cc::{Ack, Cause, Congestion, Controller, Quantisation, State, registry, slow_start};
use elephan_units::Time;

fn main() {
    divan::main();
}

fn algorithms() -> impl Iterator<Item = &'static str> {
    registry::ALL.iter().map(|entry| entry.name)
}

fn slow_starts() -> impl Iterator<Item = &'static str> {
    slow_start::ALL.iter().map(|entry| entry.name)
}

/// A connection between 10,000 and 12,000 segments and 100 to 120 ms, two segments for each ACK.
struct Connection {
    controller: Controller,
    ack: Ack,
    /// ACKs since the round trip began.
    in_round: u64,
}

impl Connection {
    fn new(algorithm: &str, start: &str) -> Self {
        let algorithm = registry::find(algorithm).unwrap().build(&[]).unwrap();
        let start = slow_start::find(start).unwrap().build(&[]).unwrap();
        let rtt = Time::from_millis(100);
        Self {
            controller: Controller::new(algorithm, start, Quantisation::None, 10_000.0),
            ack: Ack {
                now: Time::from_secs(1),
                segments: 2.0,
                delivered: 0.0,
                flight_size: 10_000.0,
                rtt: Some(rtt),
                min_rtt: rtt,
                srtt: rtt,
                round: 0,
                state: State::Open,
                mss: 1448,
            },
            in_round: 0,
        }
    }

    /// A thousand ACKs, with a loss when the window reaches `ceiling`.
    fn thousand_acks(&mut self, ceiling: f64) {
        for _ in 0..1000 {
            let ack = &mut self.ack;
            ack.now += Time::from_micros(20);
            ack.delivered += 2.0;
            self.in_round += 1;
            if self.in_round == 5000 {
                self.in_round = 0;
                ack.round += 1;
            }
            ack.rtt = Some(Time::from_micros(100_000 + 4 * self.in_round));
            self.controller.on_ack(black_box(ack));
            if self.controller.cwnd() > ceiling {
                self.controller.on_congestion(&Congestion {
                    now: self.ack.now,
                    cause: Cause::Loss,
                    flight_size: ceiling,
                    delivered: self.ack.delivered,
                    min_rtt: self.ack.min_rtt,
                });
            }
        }
    }
}

/// An iteration's time in microseconds is the time for an ACK in nanoseconds.
#[divan::bench(args = algorithms())]
fn congestion_avoidance_1000_acks(bencher: Bencher, name: &str) {
    let mut connection = Connection::new(name, "standard");
    connection.controller = connection.controller.clone().with_ssthresh(2.0);
    bencher.bench_local(|| connection.thousand_acks(12_000.0));
}

/// As above; the window grows without limit.
#[divan::bench(args = slow_starts())]
fn slow_start_1000_acks(bencher: Bencher, name: &str) {
    let mut connection = Connection::new("reno", name);
    bencher.bench_local(|| connection.thousand_acks(f64::INFINITY));
}

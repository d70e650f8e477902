//! The cost of a segment without a network: a sender and a receiver joined by two rings.
//!
//! `cargo run --release -p elephan-tcp --example loopback`
#![expect(clippy::print_stdout, reason = "it prints a table")]

use std::collections::VecDeque;
use std::time::Instant;

use elephan_cc::governor::{Fault, Governor, Limits, Report};
use elephan_cc::{Cause, Controller, Quantisation, registry::AnyAlgorithm, slow_start};
use elephan_tcp::{Config, Endpoint, Segment, Stack};
use elephan_units::{Bytes, Time};

/// A constant window.
#[derive(Clone)]
struct Fixed;

impl Governor for Fixed {
    fn ack(&mut self, _: &mut Limits, _: &Report) -> Result<(), Fault> {
        Ok(())
    }
    fn congestion(&mut self, limits: &mut Limits, _: &Report, _: Cause) -> Result<(), Fault> {
        limits.ssthresh = limits.cwnd;
        Ok(())
    }
    fn fresh(&self, _: u64) -> Box<dyn Governor> {
        self.boxed()
    }
    fn boxed(&self) -> Box<dyn Governor> {
        Box::new(self.clone())
    }
}

fn endpoint(window: u32, connects: bool) -> Endpoint {
    let config = Config {
        packet: Bytes::new(1000),
        initial_window: window,
        initial_ssthresh: Some(2),
        ..Config::default()
    };
    let standard = slow_start::find("standard").expect("registered").build(&[]).expect("no settings");
    let algorithm = AnyAlgorithm::Governor(Box::new(Fixed));
    let controller = Controller::new(algorithm, standard, Quantisation::None, f64::from(window));
    let stack = Stack::new(&config, controller);
    if connects { Endpoint::connect(&stack, 1) } else { Endpoint::listen(&stack, 2) }
}

fn main() {
    println!("{:>9} {:>6} {:>12} {:>9} {:>9}", "window", "loss", "ns/segment", "retrans.", "timeouts");
    for (window, every) in [(1_000, 0), (1_000_000, 0), (1_000, 100), (1_000_000, 100)] {
        let (mut a, mut b) = (endpoint(window, true), endpoint(window, false));
        a.write(u64::MAX);
        let rtt = Time::from_millis(100);
        let step = rtt / u64::from(window);
        let mut forward: VecDeque<(Time, Segment)> = VecDeque::new();
        let mut back: VecDeque<(Time, Segment)> = VecDeque::new();
        let mut now = Time::ZERO;
        let (mut sent, mut free) = (0u64, Time::ZERO);
        let started = Instant::now();
        while a.counters().bytes_acked < 6_000_000 * 948 {
            while let Some(segment) = a.poll_transmit(now) {
                sent += 1;
                free = free.max(now) + step;
                if every == 0 || sent % every != 0 || sent < 10 {
                    forward.push_back((free + rtt, segment));
                }
            }
            let next =
                [forward.front(), back.front()].into_iter().flatten().map(|e| e.0).min().unwrap_or(Time::MAX);
            now = next.min(a.poll_timeout()).min(b.poll_timeout());
            a.on_timer(now);
            b.on_timer(now);
            if let Some((_, segment)) = forward.pop_front_if(|e| e.0 <= now) {
                b.on_segment(&segment, false, now);
            }
            while let Some(segment) = b.poll_transmit(now) {
                back.push_back((now, segment));
            }
            if let Some((_, segment)) = back.pop_front_if(|e| e.0 <= now) {
                a.on_segment(&segment, false, now);
            }
        }
        let nanos = started.elapsed().as_nanos() as f64;
        let counters = a.counters();
        let segments = counters.bytes_acked / 948;
        println!(
            "{window:>9} {:>6} {:>12.1} {:>9} {:>9}",
            if every == 0 { 0.0 } else { 1.0 / every as f64 },
            nanos / segments as f64,
            counters.segments_retransmitted,
            counters.timeouts
        );
    }
}

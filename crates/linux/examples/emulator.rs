//! Throughput and timing accuracy of the link emulator: medians of a few runs in real time. Needs root.
//!
//!     cargo run --release -p elephan-linux --example emulator -- [--seconds S] [--runs N]
#![expect(clippy::print_stdout, reason = "a command line")]

use elephan_linux::{Measured, Options, RealTime, run};
use elephan_metrics::Uncontrolled;
use elephan_scenario::Scenario;

/// The two targets: 1 Gbit/s of 1500-byte packets of TCP, and the added delay at 250 Mbit/s.
const CAPACITY: &str =
    "rate = \"1 Gbit/s\"\nrtt = \"20 ms\"\nbuffer = \"100% bdp\"\n[[flow]]\ncc = \"reno\"\n";
const DELAY: &str =
    "rate = \"250 Mbit/s\"\nrtt = \"40 ms\"\nbuffer = \"100 packets\"\n[[cbr]]\nrate = \"240 Mbit/s\"\n";
/// One-way delay, and the time that a packet of 1500 bytes takes at that rate.
const EXPECTED_DELAY_S: f64 = 0.020 + 1500.0 * 8.0 / 250e6;

fn measure(path: &str, seconds: f64) -> Measured {
    let text = format!(
        "duration = \"{seconds} s\"\n[measure]\nfrom = \"{} s\"\n[tcp]\nrto_min = \"200 ms\"\n[path]\n{path}",
        seconds / 4.0
    );
    let scenario = Scenario::from_toml(&text, "bench", &[]).expect("a scenario");
    let plan = scenario.resolve("bench").expect("a plan");
    let algorithms = vec!["reno".to_owned(); plan.flows.len()];
    run(&plan, &Options { algorithms, ..Options::default() }, &Uncontrolled).unwrap_or_else(|error| {
        println!("{error}");
        std::process::exit(1)
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn option(name: &str, default: f64) -> f64 {
    let words: Vec<String> = std::env::args().collect();
    let at = words.iter().position(|word| word == name);
    at.and_then(|at| words.get(at + 1)?.parse().ok()).unwrap_or(default)
}

/// Lateness of packets that left the emulator, and disturbances caused by the machine.
fn print_quality(runs: &[Measured]) {
    let of = |read: &dyn Fn(&Measured) -> f64| median(runs.iter().map(read).collect()) * 1e3;
    let valid = runs.iter().filter(|m| m.quality.invalid_because.is_empty()).count();
    println!("  lateness, mean          {:>8.3} ms", of(&|m| m.quality.lateness.lateness_mean_s));
    println!("  lateness, 99 %          {:>8.3} ms", of(&|m| m.quality.lateness.lateness_p99_s));
    println!("  taken by the host       {:>8.0} ms of processor time", of(&|m| real_time(m).stolen_s));
    println!("  valid                   {valid:>8} of {}", runs.len());
}

fn real_time(measured: &Measured) -> RealTime {
    measured.quality.real_time.expect("it runs in real time")
}

fn main() {
    let seconds = option("--seconds", 10.0);
    let runs = option("--runs", 5.0) as usize;
    let capacity: Vec<Measured> = (0..runs).map(|_| measure(CAPACITY, seconds)).collect();
    let of = |read: &dyn Fn(&Measured) -> f64| median(capacity.iter().map(read).collect());
    println!(
        "one flow of TCP, 1500-byte packets, link of 1 Gbit/s and 20 ms; medians of {runs} runs of {seconds} s"
    );
    println!(
        "  carried, IP packets     {:>8.0} Mbit/s",
        of(&|m| m.outcome.summary.utilisation.unwrap_or(0.0) * 1e3)
    );
    println!("  goodput                 {:>8.0} Mbit/s", of(&|m| m.outcome.summary.goodput_bit_s * 1e-6));
    println!(
        "  emulator, at work       {:>8.1} us a packet",
        of(&|m| real_time(m).emulator_busy_s / m.quality.lateness.packets as f64 * 1e6)
    );
    println!("  taken out of its time   {:>8.1} ms", of(&|m| real_time(m).slipped_s * 1e3));
    print_quality(&capacity);
    let delay: Vec<Measured> = (0..runs).map(|_| measure(DELAY, seconds)).collect();
    let of = |read: &dyn Fn(&elephan_metrics::StreamSummary) -> f64| {
        median(delay.iter().map(|m| read(&m.outcome.summary.streams[0])).collect())
    };
    println!("240 Mbit/s of datagrams of 1500 bytes, link of 250 Mbit/s and 20 ms one way");
    let beyond = |delay: Option<f64>| (delay.unwrap_or(f64::NAN) - EXPECTED_DELAY_S) * 1e3;
    println!("  delay beyond, mean      {:>8.3} ms", of(&|s| beyond(s.delay_mean_s)));
    println!("  delay beyond, median    {:>8.3} ms", of(&|s| beyond(s.delay_p50_s)));
    println!("  delay beyond, 99 %      {:>8.3} ms", of(&|s| beyond(s.delay_p99_s)));
    println!("  lost                    {:>8.0} of {:.0}", of(&|s| s.lost as f64), of(&|s| s.sent as f64));
    print_quality(&delay);
}

//! The dumbbell that `make bench-peers` also runs on other simulators: `dumbbell RATE_MBIT RTT_MS BUFFER
//! FLOWS SECONDS HOPS` prints the segments delivered and retransmitted of each flow. The flows start evenly over the
//! first tenth of the time.
#![expect(clippy::print_stdout, reason = "it prints its result")]

use elephan_metrics::Uncontrolled;
use elephan_scenario::Scenario;
use elephan_sim::run;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let arguments: Vec<f64> = std::env::args().skip(1).map(|text| text.parse().expect("a number")).collect();
    let [rate, rtt, buffer, flows, seconds, hops] = arguments[..] else { panic!("six numbers") };
    let access = if hops == 3.0 { "access_rate = \"10 Gbit/s\"," } else { "" };
    let apart_ns = 0.1e9 * seconds / (flows - 1.0).max(1.0);
    let flows: Vec<String> = (0..flows as u32)
        .map(|flow| format!("{{ cc = \"reno\", start = \"{:.0} ns\" }}", f64::from(flow) * apart_ns))
        .collect();
    let toml = format!(
        "duration = \"{seconds} s\"\n\
         path = {{ rate = \"{rate} Mbit/s\", rtt = \"{rtt} ms\", {access} buffer = \"{buffer} packets\" }}\n\
         measure = {{ from = \"0 s\" }}\nflow = [{}]",
        flows.join(", ")
    );
    let plan = Scenario::from_toml(&toml, "dumbbell", &[])
        .and_then(|scenario| scenario.resolve("dumbbell"))
        .unwrap_or_else(|error| panic!("{error}"));
    let outcome = run(&plan, &Uncontrolled).expect("nothing cancels it");
    for flow in &outcome.summary.flows {
        let delivered = flow.goodput_bit_s * seconds / 8.0 / 1448.0;
        println!("{} {}", delivered.round() as u64, flow.retransmitted_bytes / 1448);
    }
}

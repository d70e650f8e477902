//! The kernel's integer arithmetic in the simulator: the effect of quantisation alone.

use elephan_abi::ALL;
use elephan_metrics::Outcome;

use crate::common::outcome;

fn run(cc: &str, quantisation: &str) -> Outcome {
    outcome(&format!(
        "duration = \"60 s\"\n[path]\nrate = \"20 Mbit/s\"\nrtt = \"42 ms\"\nbuffer = \"20% bdp\"\n\
         [tcp]\nquantisation = \"{quantisation}\"\n[[flow]]\ncc = \"{cc}\"\n"
    ))
}

/// One flow of each: the kernel's implementation and the published rules in whole windows have the same
/// goodput, to a few per cent.
#[test]
fn the_kernels_arithmetic_carries_what_whole_windows_do() {
    for cc in ["reno", "hstcp", "hstcp-fc", "scalable", "htcp", "bic", "fast", "ltcp"] {
        let published = run(cc, "round_down").summary.flows.remove(0);
        let kernel = run(&format!("kernel:{cc}"), "round_down").summary.flows.remove(0);
        let apart = (kernel.goodput_bit_s / published.goodput_bit_s - 1.0).abs();
        assert!(apart < 0.03, "{cc}: {} and {} bit/s", kernel.goodput_bit_s, published.goodput_bit_s);
        let windows = [&kernel, &published].map(|flow| flow.cwnd_mean_segments.unwrap());
        assert!((windows[0] / windows[1] - 1.0).abs() < 0.05, "{cc}: {windows:?} segments");
    }
}

/// The buffer holds few packets, so every loss occurs where the rounding to whole windows matters:
/// real-valued windows give another epoch.
#[test]
fn whole_windows_show() {
    let real = run("scalable", "none").summary.flows.remove(0);
    let kernel = run("kernel:scalable", "none").summary.flows.remove(0);
    assert_ne!(real.congestion_events, kernel.congestion_events);
}

/// The largest initial window that a scenario may have is one that every algorithm may have, also after slow start and losses.
#[test]
fn every_algorithm_accepts_the_largest_initial_window() {
    for cc in ALL.iter().map(|entry| format!("kernel:{}", entry.cc)).chain(["dctcp".into(), "bbr".into()]) {
        let flow = outcome(&format!(
            "duration = \"5 s\"\n[path]\nrate = \"10 Mbit/s\"\nrtt = \"42 ms\"\nbuffer = \"50 packets\"\n\
             [tcp]\ninitial_window = 1073741824\nreceive_buffer = \"1 MB\"\n[[flow]]\ncc = \"{cc}\"\n"
        ))
        .summary
        .flows
        .remove(0);
        assert!(flow.goodput_bit_s > 1e6, "{cc}");
    }
}

//! Congestion control from outside in whole runs: it carries what ours does, and its faults end the run.

use elephan_abi::registered::{Description, register};
use elephan_cc::Cause;
use elephan_cc::governor::{Fault, Governor, Limits, Report};
use elephan_cc::registry::AnyAlgorithm;
use elephan_metrics::Uncontrolled;
use elephan_sim::{Error, run, run_as_one_site, run_on};
use elephan_units::entry::{Parameter, Range};

use crate::common::{outcome, plan};

/// Standard TCP, which fails at a time after the beginning of the clock that it sees, in seconds.
#[derive(Clone)]
struct Standard {
    fails_at: f64,
    needs_rate: bool,
}

impl Governor for Standard {
    fn needs_rate(&self) -> bool {
        self.needs_rate
    }
    fn ack(&mut self, limits: &mut Limits, report: &Report) -> Result<(), Fault> {
        if (report.now_ns - 1_000_000_000) as f64 / 1e9 >= self.fails_at {
            limits.cwnd = f64::NAN;
            return Ok(());
        }
        limits.cwnd +=
            if limits.cwnd < limits.ssthresh { report.growth } else { report.growth / limits.cwnd };
        Ok(())
    }
    fn congestion(&mut self, limits: &mut Limits, _: &Report, _: Cause) -> Result<(), Fault> {
        limits.ssthresh = limits.cwnd / 2.0;
        Ok(())
    }
    fn fresh(&self, _: u64) -> Box<dyn Governor> {
        self.boxed()
    }
    fn boxed(&self) -> Box<dyn Governor> {
        Box::new(self.clone())
    }
}

fn register_all() {
    for (name, needs_rate) in [("lib:/standard.so", false), ("lib:/sampled.so", true)] {
        let range = Range::Number { low: 0.0, high: 1e6, above: false };
        let [fails_at, meaning, unit] = ["fails_at", "When it fails.", "s"].map(Into::into);
        let parameters = vec![Parameter { name: fails_at, meaning, unit, default: 1e6.into(), range }];
        let title = "Standard TCP from outside".to_owned();
        register(name, Description { title, source: String::new(), parameters }, move |values| {
            AnyAlgorithm::Governor(Box::new(Standard { fails_at: values[0], needs_rate }))
        });
    }
}

fn scenario(flows: &str) -> String {
    format!(
        "duration = \"60 s\"\n[path]\nrate = \"20 Mbit/s\"\nrtt = \"42 ms\"\nbuffer = \"50% bdp\"\n{flows}"
    )
}

/// The same rule gives the same window, to the bit, whether the endpoint's fast paths are taken or not.
#[test]
fn a_rule_from_outside_carries_what_ours_does() {
    register_all();
    let flow = |cc: &str| outcome(&scenario(&format!("[[flow]]\ncc = \"{cc}\"\n"))).summary.flows.remove(0);
    let ours = flow("reno");
    let [outside, sampled] = ["lib:/standard.so", "lib:/sampled.so"].map(flow);
    assert_eq!(outside.goodput_bit_s, sampled.goodput_bit_s);
    assert_eq!(outside.cwnd_mean_segments, sampled.cwnd_mean_segments);
    // Ours halves what is in flight, this one its window.
    assert!((outside.goodput_bit_s / ours.goodput_bit_s - 1.0).abs() < 0.02);
    assert_eq!(outside.timeouts, Some(0));
}

#[test]
fn the_earliest_fault_ends_the_run() {
    register_all();
    let flows: String = [1e6, 7.5, 3.25, 3.0, 50.0]
        .map(|at| format!("[[flow]]\ncc = {{ name = \"lib:/standard.so\", fails_at = {at} }}\n"))
        .concat();
    let plan = plan(&scenario(&flows));
    let errors =
        [run(&plan, &Uncontrolled), run_on(&plan, &Uncontrolled, 2), run_as_one_site(&plan, &Uncontrolled)]
            .map(|result| result.expect_err("a fault"));
    for error in &errors {
        let Error::Fault { flow: 3, name: "lib:/standard.so", at, text } = error else { panic!("{error}") };
        assert!((3.0..3.1).contains(&at.secs_f64()), "{at}");
        assert_eq!(text, "cwnd: expected 1 to 2^31 segments, found NaN");
        assert_eq!(error.to_string(), errors[0].to_string());
    }
    let text = errors[0].to_string();
    assert!(text.starts_with("flow 4 (lib:/standard.so) at 3."), "{text}");
}

/// A connection that is closed when the round ends is not forgotten.
#[test]
fn a_fault_of_a_short_transfer_ends_the_run() {
    register_all();
    let flow = "[[flow]]\ncc = { name = \"lib:/standard.so\", fails_at = 0 }\nsize = \"20 kB\"\n";
    let error = run(&plan(&scenario(flow)), &Uncontrolled).expect_err("a fault");
    assert!(matches!(error, Error::Fault { flow: 0, .. }), "{error}");
}

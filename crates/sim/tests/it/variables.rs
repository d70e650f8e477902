//! The variables of algorithms as a trace has them.

use std::collections::BTreeMap;

use elephan_cc::registry;
use elephan_metrics::table::Table;
use elephan_metrics::trace::{UNKNOWN, VariableTrace};
use elephan_metrics::{Outcome, Uncontrolled};
use elephan_sim::run;
use proptest::prelude::*;

use crate::common::{outcome, plan};

/// A flow at a time: its variables by name, and the names of the values of those that are discrete.
pub type Snapshot = (f64, BTreeMap<&'static str, (f64, Option<&'static str>)>);

/// The snapshots of a flow, in order.
pub fn snapshots(trace: &VariableTrace, flow: u32) -> Vec<Snapshot> {
    let [names, values] = registry::vocabulary();
    let mut found: Vec<Snapshot> = Vec::new();
    for row in (0..trace.rows()).filter(|&row| trace.flow[row] == flow) {
        let (time_s, name) = (trace.time_s[row], names[trace.variable[row] as usize]);
        let named = trace.value_name[row];
        let value = (trace.value[row], (named != UNKNOWN).then(|| values[named as usize]));
        match found.last_mut() {
            Some((at, all)) if *at == time_s => {
                assert!(all.insert(name, value).is_none(), "two rows of {name} at {time_s}");
            }
            _ => found.push((time_s, BTreeMap::from([(name, value)]))),
        }
    }
    found
}

/// The states that a flow entered, each with its time.
fn states(snapshots: &[Snapshot]) -> Vec<(f64, &'static str)> {
    let mut found: Vec<(f64, &str)> = Vec::new();
    for (time_s, all) in snapshots {
        let state = all["state"].1.expect("a state has a name");
        if found.last().is_none_or(|&(_, last)| last != state) {
            found.push((*time_s, state));
        }
    }
    found
}

const ONE_BBR: &str = r#"duration = "20 s"
    path = { rate = "20 Mbit/s", rtt = "40 ms", buffer = "100% bdp" }
    flow = [{ cc = "bbr" }]
    trace = { variables = true }"#;

#[test]
fn states_of_bbr_follow_each_other_as_in_the_draft_at_times_of_their_own() {
    let all = snapshots(&outcome(ONE_BBR).variables, 0);
    let states = states(&all);
    let names: Vec<&str> = states.iter().map(|&(_, state)| state).collect();
    let first = |state: &str| names.iter().position(|name| *name == state).unwrap_or(usize::MAX);
    assert_eq!((first("Startup"), first("Drain")), (0, 1));
    assert!(first("ProbeBW_REFILL") + 1 == first("ProbeBW_UP"), "{names:?}");
    assert!(names.contains(&"ProbeBW_DOWN") && names.contains(&"ProbeRTT"), "{names:?}");
    // The draft's figure of the state machine (section 3.4), where ProbeBW_DOWN may end with the ACK that began it.
    for pair in names.windows(2) {
        let may = match pair[0] {
            "Startup" => ["Drain", "ProbeRTT"].as_slice(),
            "Drain" | "ProbeBW_UP" => &["ProbeBW_DOWN", "ProbeBW_CRUISE", "ProbeRTT"],
            "ProbeBW_DOWN" => &["ProbeBW_CRUISE", "ProbeBW_REFILL", "ProbeRTT"],
            "ProbeBW_CRUISE" => &["ProbeBW_REFILL", "ProbeRTT"],
            "ProbeBW_REFILL" => &["ProbeBW_UP", "ProbeRTT"],
            _ => &["ProbeBW_CRUISE", "ProbeBW_DOWN", "Startup"],
        };
        assert!(may.contains(&pair[1]), "{pair:?}");
    }
    // Those after the first come with an ACK, and not with a sample of each 100 ms.
    let off_grid =
        states[1..].iter().filter(|(at, _)| (at * 10.0 - (at * 10.0).round()).abs() > 1e-6).count();
    assert_eq!(off_grid, states.len() - 1, "{states:?}");
    // The first probe for bandwidth begins two to three seconds after the first cycle has.
    let wait = states[first("ProbeBW_REFILL")].0 - states[2].0;
    assert!((2.0..3.1).contains(&wait), "{wait}");
}

#[test]
fn all_variables_of_a_row_are_of_one_time() {
    let found = outcome(ONE_BBR);
    let all = snapshots(&found.variables, 0);
    let gains: BTreeMap<&str, f64> = BTreeMap::from([
        ("Startup", 2.77),
        ("Drain", 0.5),
        ("ProbeBW_DOWN", 0.9),
        ("ProbeBW_CRUISE", 1.0),
        ("ProbeBW_REFILL", 1.0),
        ("ProbeBW_UP", 1.25),
        ("ProbeRTT", 1.0),
    ]);
    for (time_s, values) in &all {
        assert_eq!(values.len(), 15, "{time_s}");
        let state = values["state"].1.expect("it has a name");
        assert_eq!(values["pacing_gain"].0, gains[state], "{state} at {time_s}");
    }
    // Each sample of the flow has its snapshot.
    let times: Vec<f64> = all.iter().map(|&(time_s, _)| time_s).collect();
    assert!(found.flows.time_s.iter().all(|time_s| times.contains(time_s)));
    // 20 Mbit/s in packets of 1500 bytes, and a round trip of 40 ms and the time of a packet.
    let (_, last) = all.last().expect("there are some");
    let (bw, min_rtt) = (last["max_bw"].0, last["min_rtt"].0);
    assert!((bw / (20e6 / 12e3) - 1.0).abs() < 0.05, "{bw}");
    assert!((0.04..0.045).contains(&min_rtt), "{min_rtt}");
    assert_eq!((last["full_bw_reached"].1, last["is_app_limited"].1), (Some("true"), Some("false")));
}

#[test]
fn a_sender_without_enough_data_is_limited_by_the_application() {
    let found = outcome(
        r#"duration = "10 s"
        path = { rate = "20 Mbit/s", rtt = "40 ms", buffer = "100% bdp" }
        flow = [{ cc = "bbr", tcp = { send_buffer = "30 kB" } }]
        trace = { variables = true }"#,
    );
    let all = snapshots(&found.variables, 0);
    assert!(all.iter().any(|(_, values)| values["is_app_limited"].1 == Some("true")));
}

#[test]
fn cubic_and_htcp_tell_what_they_keep() {
    let found = outcome(
        r#"duration = "20 s"
        path = { rate = "20 Mbit/s", rtt = "40 ms", buffer = "50% bdp" }
        flow = [{ cc = "cubic" }, { cc = "htcp" }, { cc = "reno" }]
        trace = { variables = true }"#,
    );
    // W_max of CUBIC is the window before its last reduction, or less: between these two samples there was none.
    let (_, last) = snapshots(&found.variables, 0).pop().expect("there are some");
    let (w_max, prior) = (last["w_max"].0, last["cwnd_prior"].0);
    assert!(w_max == prior || (w_max - 0.85 * prior).abs() < 1e-9, "{w_max} {prior}");
    assert!(last["t_epoch"].0 > 0.0 && last["k"].0 >= 0.0, "{last:?}");
    let (_, last) = snapshots(&found.variables, 1).pop().expect("there are some");
    assert!((0.5..=0.8).contains(&last["beta"].0) && last["alpha"].0 >= 1.0, "{last:?}");
    assert!(snapshots(&found.variables, 2).is_empty(), "Standard TCP keeps nothing");
}

#[test]
fn a_slow_start_tells_when_it_ends() {
    let found = outcome(
        r#"duration = "5 s"
        path = { rate = "20 Mbit/s", rtt = "40 ms", buffer = "100% bdp" }
        flow = [{ cc = "reno", slow_start = "hystart" }]
        trace = { variables = true }"#,
    );
    let all = snapshots(&found.variables, 0);
    let mut phases: Vec<_> =
        all.iter().map(|(_, all)| all["start_phase"].1.expect("a phase has a name")).collect();
    phases.dedup();
    // The ACK that finds the end is that of the last growth.
    assert_eq!(phases, ["searching", "finished"]);
}

#[test]
fn nothing_is_recorded_unless_it_is_asked_for() {
    assert_eq!(outcome(&ONE_BBR.replace("true", "false")).variables.rows(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn variables_change_no_other_table(
        algorithms in prop::collection::vec(prop::sample::select(vec!["bbr", "cubic", "htcp", "yeah", "dctcp"]), 1..4),
        rate in 1u32..50,
        rtt in 1u32..100,
        buffer in 2u32..100,
        slow_start in prop::sample::select(vec!["standard", "hystart", "hystart++", "search"]),
        size in prop::sample::select(vec!["", "size = \"60 kB\", transfers = \"repeat\","]),
        seed in any::<u32>(),
    ) {
        let flows: Vec<String> = algorithms.iter().map(|cc| format!("{{ cc = \"{cc}\", slow_start = \"{slow_start}\", {size} start = \"10 ms\" }}")).collect();
        let mut plan = plan(&format!(
            "duration = \"4 s\"\nseed = {seed}\nflow = [{}]\npath = {{ rate = \"{rate} Mbit/s\", rtt = \"{rtt} ms\", \
             buffer = \"{buffer} packets\", loss = {{ name = \"random\", probability = 0.002 }} }}",
            flows.join(", ")
        ));
        let without = run(&plan, &Uncontrolled).expect("nothing cancels it");
        plan.trace.variables = true;
        let with = run(&plan, &Uncontrolled).expect("nothing cancels it");
        prop_assert!(with.variables.rows() > 0);
        prop_assert_eq!(Outcome { variables: VariableTrace::default(), ..with }, without);
    }
}

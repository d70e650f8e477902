//! Slow starts over a path of 100 Mbit/s and 100 ms, whose bandwidth-delay product is 833 packets.

use elephan_metrics::Outcome;
use elephan_metrics::table::Table;

use crate::common::outcome;
use crate::variables::snapshots;

/// A flow with this slow start over a path with a buffer of so many percent of its bandwidth-delay product.
fn start(slow_start: &str, rate: &str, buffer: u32) -> Outcome {
    outcome(&format!(
        r#"duration = "3 s"
        path = {{ rate = "{rate}", rtt = "100 ms", buffer = "{buffer}% bdp" }}
        flow = [{{ cc = "reno", slow_start = {slow_start} }}]
        trace = {{ variables = true, interval = "10 ms" }}"#
    ))
}

/// When slow start was seen to be over, and how many congestion events there were by then.
fn end(outcome: &Outcome) -> Option<(f64, u32)> {
    let flows = &outcome.flows;
    let row = (0..flows.rows()).find(|&row| flows.ssthresh_segments[row].is_finite())?;
    Some((flows.time_s[row], flows.congestion_events[row]))
}

/// When the receiver had got 90 % of `rate` over a round trip, of ten samples, for the first time.
fn reaches(outcome: &Outcome, rate: f64) -> Option<f64> {
    let flows = &outcome.flows;
    let last =
        flows.receive_rate_bit_s.windows(10).position(|of| of.iter().sum::<f64>() / 10.0 >= 0.9 * rate)?;
    Some(flows.time_s[last + 9])
}

/// The phases of the first flow's slow start, with the last value of each of its variables in them.
fn phases(outcome: &Outcome) -> Vec<(&'static str, f64, f64)> {
    let mut found: Vec<(&str, f64, f64)> = Vec::new();
    for (time_s, all) in snapshots(&outcome.variables, 0) {
        let phase = all["start_phase"].1.expect("a phase has a name");
        if found.last().is_some_and(|&(last, ..)| last == phase) {
            found.pop();
        }
        found.push((phase, time_s, all["pipe_size"].0));
    }
    found
}

/// The queue that slow start builds makes the round trip longer, and SEARCH looks further back: it leaves five round trips after the path is
/// full, when six bandwidth-delay products wait. A smaller buffer is full before that.
#[test]
fn search_leaves_without_a_loss_where_the_buffer_is_large() {
    let dropped = |found: &Outcome| found.queues.dropped.iter().copied().max();
    let search = start("\"search\"", "100 Mbit/s", 600);
    let (time_s, events) = end(&search).expect("slow start ends");
    assert!(events == 0 && (1.0..1.6).contains(&time_s), "{events} events by {time_s} s");
    assert_eq!(dropped(&search), Some(0));
    assert!(dropped(&start("\"standard\"", "100 Mbit/s", 600)) > Some(1000));
}

#[test]
fn search_is_standard_where_a_loss_comes_first() {
    for buffer in [25, 100] {
        let [search, standard] = ["\"search\"", "\"standard\""].map(|name| start(name, "100 Mbit/s", buffer));
        assert_eq!(end(&search).map(|(_, events)| events), Some(1), "{buffer} %");
        assert_eq!(search.flows, standard.flows, "{buffer} %");
    }
}

#[test]
fn careful_resume_reaches_the_saved_rate_in_a_few_round_trips() {
    // The handshake, the initial window, the jump of 416 packets and one doubling, each with a round trip, and half a one on the way.
    // Standard slow start doubles seven times, from 10 to 1280.
    let saved = "{ name = \"careful-resume\", saved_cwnd = 833, saved_rtt = 0.1 }";
    let (resumed, standard) = (start(saved, "100 Mbit/s", 100), start("\"standard\"", "100 Mbit/s", 100));
    let [resumed_s, standard_s] = [&resumed, &standard].map(|one| reaches(one, 100e6).expect("it does"));
    assert!((0.4..0.6).contains(&resumed_s) && standard_s > resumed_s + 0.3, "{resumed_s} {standard_s}");
    let entered: Vec<&str> = phases(&resumed).iter().map(|&(phase, ..)| phase).collect();
    assert_eq!(entered, ["reconnaissance", "unvalidated", "validating", "normal"]);
    // Paced over a round trip, the jump is sent at 50 Mbit/s: no queue but that of the initial window's acknowledgments.
    let queues = &resumed.queues;
    let longest =
        (0..queues.rows()).filter(|&row| queues.time_s[row] < 0.3).map(|row| queues.packets[row]).max();
    assert!(longest.is_some_and(|packets| packets <= 20), "{longest:?}");
}

#[test]
fn careful_resume_retreats_where_the_capacity_fell_to_a_tenth() {
    // 83 packets fit into the path of 10 Mbit/s, and as many into its buffer: a jump of 416 is too much.
    let saved = "{ name = \"careful-resume\", saved_cwnd = 833, saved_rtt = 0.1 }";
    let found = start(saved, "10 Mbit/s", 100);
    let phases = phases(&found);
    let entered: Vec<&str> = phases.iter().map(|&(phase, ..)| phase).collect();
    assert_eq!(entered, ["reconnaissance", "unvalidated", "validating", "safe_retreat", "normal"]);
    // The window of the retreat is half of what had arrived when the loss was found, and does not grow in it.
    let flows = &found.flows;
    let (_, began, before) = phases[2];
    let (_, ended, pipe) = phases[3];
    let rows: Vec<usize> = (0..flows.rows())
        .filter(|&row| flows.time_s[row] > began + 0.01 && flows.time_s[row] < ended)
        .collect();
    let windows: Vec<f64> = rows.iter().map(|&row| flows.cwnd_segments[row]).collect();
    assert!(!windows.is_empty() && windows.iter().all(|cwnd| *cwnd == windows[0]), "{windows:?}");
    assert!(windows[0] >= before / 2.0 && windows[0] <= pipe / 2.0, "{before} {} {pipe}", windows[0]);
    // It leaves half of what has arrived as the threshold.
    let after =
        (0..flows.rows()).find(|&row| flows.time_s[row] > ended + 0.01).expect("there are more samples");
    let (_, _, last) = phases[4];
    assert!(
        (flows.ssthresh_segments[after] - last / 2.0).abs() < 1e-9,
        "{} {last}",
        flows.ssthresh_segments[after]
    );
}

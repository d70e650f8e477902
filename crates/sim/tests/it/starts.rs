//! Slow starts over a path of 100 Mbit/s and 100 ms, whose bandwidth-delay product is 833 packets.

use elephan_metrics::Outcome;
use elephan_metrics::table::Table;

use crate::common::outcome;

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

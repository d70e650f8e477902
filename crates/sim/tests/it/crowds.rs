//! Web users, and flows that arrive at random.

use elephan_metrics::Outcome;

use crate::common::outcome;

/// Kelly's web users on a path that is wide enough for them, without start-up.
fn web(users: u32, more: &str) -> Outcome {
    outcome(&format!(
        r#"duration = "100 s"
        path = {{ rate = "100 Mbit/s", rtt = "50 ms", buffer = "50% bdp" }}
        web = [{{ users = {users}, size = {{ pareto = {{ minimum = "12 kB", shape = 1.5 }} }} }}]
        {more}"#
    ))
}

/// The sizes of a crowd's transfers, in the order of the requests.
fn sizes(outcome: &Outcome) -> Vec<u64> {
    let mut sizes: Vec<(u64, u64)> =
        outcome.transfers.index.iter().copied().zip(outcome.transfers.bytes.iter().copied()).collect();
    sizes.sort_unstable();
    sizes.into_iter().map(|(_, bytes)| bytes).collect()
}

#[test]
fn users_get_their_pages() {
    let outcome = web(50, "measure = { from = \"0 s\" }");
    let crowd = &outcome.summary.crowds[0];
    let (objects, pages) = (crowd.transfers.as_ref().unwrap(), crowd.pages.as_ref().unwrap());
    // The data of completed transfers was delivered, and little more was in transit.
    assert!(crowd.delivered_bytes >= objects.bytes, "{crowd:?}");
    assert!(objects.count + 50 >= crowd.opened && crowd.failed == 0, "{crowd:?}");
    // A page has nine objects on average; a sample of a heavy-tailed distribution has fewer.
    let per_page = objects.count as f64 / pages.count as f64;
    assert!((5.0..12.0).contains(&per_page), "{per_page}");
    // At least two times between objects, each 0.5 s or more, and three objects of 1.5 round trips or more.
    assert!(pages.p50_s.unwrap() > 2.0 * 0.5 + 3.0 * 0.075, "{pages:?}");
    assert!(objects.p50_s.unwrap() > 0.1 && objects.p50_s.unwrap() < 1.0, "{objects:?}");
    let delivered = outcome.crowds.delivered_bytes.last().copied();
    assert_eq!(delivered, Some(crowd.delivered_bytes));
}

#[test]
fn what_users_ask_for_is_the_same_whatever_else_there_is() {
    // One user: the order of the requests is the user's own. A competing flow only delays the later ones.
    let (alone, beside) = (sizes(&web(1, "")), sizes(&web(1, "flow = [{ cc = \"scalable\", count = 3 }]")));
    let both = alone.len().min(beside.len());
    assert!(both > 5);
    assert_eq!(alone[..both], beside[..both]);
}

#[test]
fn the_loop_is_closed() {
    // Users on a third of the rate that they would use wait for their pages, and so make fewer requests.
    let asked = |rate: u32| {
        let outcome = outcome(&format!(
            r#"duration = "100 s"
            path = {{ rate = "{rate} Mbit/s", rtt = "50 ms", buffer = "100 packets" }}
            web = [{{ users = 200 }}]"#
        ));
        assert!(outcome.crowds.open.iter().all(|&open| open <= 200));
        (outcome.summary.crowds[0].opened, outcome.summary.utilisation.unwrap())
    };
    let ((narrow, busy), (wide, _)) = (asked(10), asked(200));
    assert!(busy > 0.95 && 3 * narrow < 2 * wide, "{narrow} of {wide}, {busy}");
}

#[test]
fn arrivals_bring_the_load_that_was_asked_for() {
    let toml = r#"duration = "300 s"
        path = { rate = "100 Mbit/s", rtt = "20 ms" }
        arrivals = [{ cc = "reno", load = "30 Mbit/s", size = { exponential = "100 kB" } }]"#;
    let summary = outcome(toml).summary;
    let crowd = &summary.crowds[0];
    // 37.5 arrivals a second; the standard deviation of the load is sqrt(2/11250) = 1.3 %.
    assert!((crowd.opened as f64 / (300.0 * 37.5) - 1.0).abs() < 0.04, "{crowd:?}");
    assert!((crowd.goodput_bit_s / 30e6 - 1.0).abs() < 0.06, "{crowd:?}");
}

#[test]
fn connections_are_made_and_freed() {
    let toml = r#"duration = "100 s"
        path = { rate = "10 Mbit/s", rtt = "20 ms" }
        arrivals = [{ cc = "reno", per_second = 50, size = { list = ["1 kB", "2 kB", "15 kB"] } }]"#;
    let outcome = outcome(toml);
    let crowd = &outcome.summary.crowds[0];
    assert!(crowd.transfers.as_ref().unwrap().count > 4500, "{crowd:?}");
    // Little's law: 50 a second for some 0.1 s each; never more than a few times that.
    assert!(outcome.crowds.open.iter().all(|&open| open < 40), "{:?}", outcome.crowds.open.iter().max());
    assert_eq!(sizes(&outcome)[..5], [1000, 2000, 15_000, 1000, 2000]);
}

#[test]
fn arrivals_stop_when_they_are_told_to() {
    let toml = r#"duration = "20 s"
        path = { rate = "10 Mbit/s", rtt = "20 ms" }
        measure = { from = "0 s" }
        arrivals = [{ cc = "reno", per_second = 20, size = "5 kB", start = "5 s", stop = "10 s" }]"#;
    let outcome = outcome(toml);
    let starts = &outcome.transfers.start_s;
    assert!(starts.iter().all(|&start| (5.0..10.0).contains(&start)));
    assert!((70..130).contains(&starts.len()));
    assert!(outcome.transfers.end_s.iter().all(|end| end.is_finite()));
}

#[test]
fn transfers_are_kept_only_where_they_are_asked_for() {
    let outcome = web(5, "trace = { transfers = false }");
    assert!(outcome.transfers.flow.is_empty());
    assert!(outcome.summary.crowds[0].transfers.is_some());
}

#[test]
fn bulk_transfers_are_restarted_and_counted() {
    // Kelly's closed loop, scaled down: a transfer of 2 MB takes about 1 s of 20 Mbit/s; there is no idle
    // time between transfers.
    let toml = r#"duration = "60 s"
        path = { rate = "20 Mbit/s", rtt = "20 ms" }
        flow = [{ cc = "scalable", size = "2 MB", transfers = "repeat" }]"#;
    let outcome = outcome(toml);
    let transfers = outcome.summary.transfers.unwrap();
    assert!((60..75).contains(&transfers.count), "{transfers:?}");
    assert_eq!(transfers.bytes, transfers.count * 2_000_000);
    let trace = &outcome.transfers;
    for i in 1..trace.flow.len() {
        assert!(trace.start_s[i] - trace.end_s[i - 1] < 0.03);
    }
}

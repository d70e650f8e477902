//! Sites, their order and threads leave every result as it is.

use elephan_metrics::Uncontrolled;
use elephan_scenario::{Plan, Scenario};
use elephan_units::Time;

use crate::partition::Partition;
use crate::{Error, run_as_one_site, run_on};

fn plan(text: &str) -> Plan {
    Scenario::from_toml(text, "test", &[]).and_then(|scenario| scenario.resolve("test")).unwrap()
}

/// Name and scenario, and the numbers of sites and of groups.
const PLANS: [(&str, &str, u32, usize); 18] = [
    (
        "one hop",
        r#"duration = "4 s"
        path = { rate = "50 Mbit/s", rtt = "40 ms", buffer = "20% bdp" }
        flow = [{ cc = "htcp", count = 2 }]"#,
        2,
        1,
    ),
    (
        "access without delay: the way back, the hosts, the way out",
        r#"duration = "4 s"
        path = { rate = "50 Mbit/s", rtt = "40 ms", buffer = "20% bdp", access_rate = "100 Mbit/s" }
        flow = [{ cc = "htcp" }, { cc = "cubic", start = "1 s" }]"#,
        8,
        3,
    ),
    (
        "many hosts, which are alike",
        r#"duration = "1 s"
        path = { rate = "50 Mbit/s", rtt = "40 ms", buffer = "50% bdp", access_rate = "100 Mbit/s" }
        flow = [{ cc = "reno", count = 100, start = { uniform = ["0 s", "500 ms"] } }]"#,
        6,
        3,
    ),
    (
        "different round-trip times",
        r#"duration = "4 s"
        path = { rate = "50 Mbit/s", rtt = "40 ms", buffer = "20% bdp" }
        flow = [{ cc = "reno", rtt = "40 ms" }, { cc = "reno", rtt = "100 ms" }, { cc = "bic", rtt = "100 ms" }]"#,
        3,
        1,
    ),
    (
        "connections that close: senders first",
        r#"duration = "6 s"
        path = { rate = "20 Mbit/s", rtt = "40 ms", loss = { name = "random", probability = 0.01 } }
        flow = [{ cc = "reno", size = "100 kB", transfers = 20 }, { cc = "reno", stop = "3 s" }]
        web = [{ cc = "reno", users = 20, think = "200 ms" }]
        arrivals = [{ cc = "reno", per_second = 20, size = "20 kB" }]"#,
        2,
        2,
    ),
    (
        "sessions: initiators first",
        r#"duration = "6 s"
        path = { rate = "20 Mbit/s", rtt = "40 ms", loss = { name = "random", probability = 0.01 } }
        arrivals = [{ cc = "reno", per_second = 10, size = "20 kB" }]
        sessions = [
            { cc = "cubic", per_second = 10, epochs = { uniform = [1, 5] }, request = { exponential = "2 kB" }, response = { exponential = "20 kB" }, think = "100 ms" },
            { cc = "reno", vectors = { lines = ["CONC 500 2 2 1 1", "c> 30000", "t> 200000", "c> 500", "c< 9000", "t< 100000", "c< 80000"] }, count = 3 },
        ]"#,
        2,
        2,
    ),
    (
        "sessions in both directions",
        r#"duration = "4 s"
        path = { rate = "20 Mbit/s", rtt = "40 ms" }
        sessions = [
            { cc = "cubic", per_second = 5, epochs = 3, request = "1 kB", response = "30 kB", think = "100 ms" },
            { cc = "reno", per_second = 5, epochs = 3, request = "1 kB", response = "30 kB", think = "100 ms", reverse = true },
        ]"#,
        1,
        1,
    ),
    (
        "applications that write over time",
        r#"duration = "6 s"
        path = { rate = "20 Mbit/s", rtt = "40 ms", loss = { name = "random", probability = 0.01 } }
        flow = [
            { cc = "reno", app = { rate = "3 Mbit/s", chunk = "20 kB", on = { exponential = "300 ms" }, off = { exponential = "300 ms" } } },
            { cc = "cubic", stop = "4 s", app = { per_second = 30, chunk = { exponential = "10 kB" }, key_frames = { every = 10, size = "80 kB" } } },
            { cc = "bbr", app = { chunk = { pareto = { minimum = "10 kB", shape = 1.3 } }, pause = { exponential = "100 ms" } } },
        ]"#,
        2,
        2,
    ),
    (
        "connections that close in both directions",
        r#"duration = "4 s"
        path = { rate = "20 Mbit/s", rtt = "40 ms" }
        flow = [{ cc = "reno", size = "100 kB", transfers = 20 }, { cc = "reno", size = "50 kB", transfers = 20, reverse = true }]"#,
        1,
        1,
    ),
    (
        "a queue that keeps its packets, and changes",
        r#"duration = "5 s"
        path = { rate = "20 Mbit/s", rtt = "40 ms", queue = "fq-codel" }
        flow = [{ cc = "cubic", count = 3 }]
        cbr = [{ rate = "2 Mbit/s" }]
        event = [{ at = "1 s", link = "bottleneck", rate = "5 Mbit/s" }, { at = "2 s", link = "bottleneck", delay = "5 ms" }, { at = "3 s", link = "bottleneck", up = false }, { at = "3.3 s", link = "bottleneck", up = true }]"#,
        2,
        2,
    ),
    (
        "a chain",
        r#"duration = "4 s"
        link = [
            { name = "a", from = "0", to = "1", rate = "20 Mbit/s", delay = "10 ms", buffer = "40 packets", both_ways = true },
            { name = "b", from = "1", to = "2", rate = "30 Mbit/s", delay = "15 ms", buffer = "40 packets", both_ways = true },
        ]
        flow = [{ cc = "htcp", from = "0", to = "2" }, { cc = "reno", from = "0", to = "1" }, { cc = "reno", from = "1", to = "2" }]"#,
        3,
        1,
    ),
    (
        "delays of less than some packets",
        r#"duration = "2 s"
        path = { rate = "1 Mbit/s", rtt = "20 ms" }
        flow = [{ cc = "reno", count = 2 }]"#,
        1,
        1,
    ),
    (
        "a link that follows rates, delays and losses",
        r#"duration = "6 s"
        path = { rate = "20 Mbit/s", rtt = "40 ms", trace = { steps = [
            { time = "0 s", rate = "20 Mbit/s", delay = "20 ms", loss = 0 }, { time = "300 ms", rate = "3 Mbit/s", delay = "35 ms" },
            { time = "700 ms", rate = "0 bit/s", delay = "12 ms" }, { time = "800 ms", rate = "30 Mbit/s", loss = 0.01 },
            { time = "1100 ms" },
        ] } }
        flow = [{ cc = "cubic", count = 3 }]"#,
        2,
        1,
    ),
    (
        "links that aggregate",
        r#"duration = "5 s"
        path = { rate = "20 Mbit/s", rtt = "40 ms", vary = { name = "aggregate", slot = "7 ms" }, reverse = { vary = { name = "aggregate", slot = "3 ms" } } }
        flow = [{ cc = "cubic", count = 3 }, { cc = "reno", reverse = true }]
        event = [{ at = "2 s", link = "bottleneck", delay = "5 ms" }]"#,
        2,
        2,
    ),
    (
        "delays with a heavy tail",
        r#"duration = "5 s"
        path = { rate = "20 Mbit/s", rtt = "40 ms", vary = { name = "heavy-tail", median = "1 ms", shape = 1.5 } }
        flow = [{ cc = "cubic", count = 3 }]"#,
        2,
        1,
    ),
    (
        "opportunities both ways, and a queue that decides when packets leave",
        r#"duration = "6 s"
        path.rate = "12 Mbit/s"
        path.rtt = "60 ms"
        path.queue = "fq-codel"
        path.trace.opportunities = [0, 1, 1, 5, 6, 6, 6, 20, 22, 22, 23, 90, 91, 95, 110]
        path.reverse.trace.opportunities = [3, 3, 17, 18, 19, 40]
        flow = [{ cc = "cubic", count = 3 }]
        cbr = [{ rate = "300 kbit/s" }]"#,
        2,
        1,
    ),
    (
        "opportunities before a far end without delay, which is a site of its own",
        r#"duration = "6 s"
        link = [
            { name = "a", from = "0", to = "1", rate = "3 Mbit/s", delay = "0 s", buffer = "20 packets", trace.opportunities = [2, 2, 7, 8, 8, 8, 13, 90] },
            { name = "b", from = "1", to = "2", rate = "3 Mbit/s", delay = "70 ms", buffer = "20 packets", vary = { name = "jitter", max = "4 ms" } },
        ]
        flow = [{ cc = "cubic", from = "0", to = "2" }]"#,
        4,
        3,
    ),
    (
        "opportunities on a link with both ends in one site",
        r#"duration = "6 s"
        path = { rate = "1 Mbit/s", rtt = "20 ms", buffer = "20 packets", trace = { opportunities = [3, 3, 17, 18, 19, 140] } }
        flow = [{ cc = "reno", count = 2 }]"#,
        1,
        1,
    ),
];

#[test]
fn plans_have_as_many_sites_as_are_worthwhile() {
    for (name, text, sites, groups) in PLANS {
        let plan = plan(text);
        let found = Partition::of(&plan);
        assert_eq!((found.sites, found.groups.len()), (sites, groups), "{name}: {found:?}");
        assert!(found.lookahead > Time::ZERO && (found.sites > 1 || found.lookahead == Time::MAX), "{name}");
    }
}

#[test]
fn sites_and_threads_leave_every_result() {
    for (name, text, ..) in PLANS {
        let plan = plan(text);
        let outcome = run_as_one_site(&plan, &Uncontrolled).unwrap();
        assert!(outcome.segments_delivered > 50, "{name}");
        // As text: transfers that have not ended have no end, which equals nothing.
        let expected = format!("{outcome:?}");
        for threads in 1..4 {
            let found = format!("{:?}", run_on(&plan, &Uncontrolled, threads).unwrap());
            assert!(found == expected, "{name}: different on {threads} threads");
        }
    }
}

#[test]
fn single_packets_are_recorded_in_the_order_of_time() {
    let text = PLANS[0].1.replace("duration", "trace = { events = true }\nduration");
    assert_eq!(Partition::of(&plan(&text)).sites, 1);
}

#[test]
fn a_run_far_beyond_its_estimate_ends_with_the_key() {
    let text = r#"duration = "10 s"
        path = { rate = "10 Mbit/s", rtt = "40 ms", buffer = "50% bdp" }
        flow = [{ cc = "reno" }]
        trace = { events = true }"#;
    let whole = plan(text);
    assert!(run_on(&whole, &Uncontrolled, 1).is_ok());
    let (mut events, mut rows) = (whole.clone(), whole);
    events.estimate.events.amount = 500.0;
    rows.estimate.rows.amount = 500.0;
    for (plan, expected) in [
        (events, "path.rate: expected at most 2.0e3 events, which is 4 times the estimate, found more at "),
        (rows, "trace.events: expected at most 2.0e3 rows, which is 4 times the estimate, found more at "),
    ] {
        for result in [run_on(&plan, &Uncontrolled, 2), run_as_one_site(&plan, &Uncontrolled)] {
            let error: Error = result.expect_err(expected);
            assert!(error.to_string().starts_with(expected), "{error}");
        }
    }
}

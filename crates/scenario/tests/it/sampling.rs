//! How often a run is sampled where its scenario does not say.

use elephan_scenario::Scenario;
use elephan_units::Time;

/// The interval of a run of 100 s with so many flows, and other lines of the file.
fn interval(flows: u64, more: &str) -> Time {
    interval_of(flows, "100 s", more)
}

fn interval_of(flows: u64, duration: &str, more: &str) -> Time {
    let text = format!(
        "duration = \"{duration}\"\n{more}\npath = {{ rate = \"10 Gbit/s\", rtt = \"100 ms\" }}\n\
         [[flow]]\ncc = \"reno\"\ncount = {}\n[[flow]]\ncc = \"htcp\"",
        flows - 1
    );
    let scenario = Scenario::from_toml(&text, "test", &[]).unwrap();
    let plan = scenario.resolve("test").unwrap();
    assert_eq!(plan.flows.len() as u64, flows);
    assert_eq!(plan.trace.interval, scenario.trace_interval());
    plan.trace.interval
}

#[test]
fn up_to_a_thousand_flows_it_is_100_ms() {
    for flows in [2, 10, 1000] {
        assert_eq!(interval(flows, ""), Time::from_millis(100), "{flows}");
    }
}

#[test]
fn above_flows_give_at_most_10_000_rows_a_second() {
    for (flows, ms) in [
        (1001, 200),
        (2000, 200),
        (2001, 500),
        (5001, 1000),
        (10_000, 1000),
        (10_001, 2000),
        (100_000, 10_000),
    ] {
        assert_eq!(interval(flows, ""), Time::from_millis(ms), "{flows}");
    }
}

#[test]
fn a_run_has_ten_samples_however_many_flows() {
    for (duration, ms) in
        [("100 ms", 100), ("1999 ms", 100), ("2 s", 200), ("10 s", 1000), ("19 s", 1000), ("20 s", 2000)]
    {
        assert_eq!(interval_of(50_000, duration, ""), Time::from_millis(ms), "{duration}");
    }
}

#[test]
fn what_the_file_says_holds() {
    assert_eq!(interval(50_000, "trace.interval = \"10 ms\""), Time::from_millis(10));
}

#[test]
fn users_of_crowds_do_not_count_and_the_model_keeps_100_ms() {
    let users = "web = [{ users = 5000 }]";
    assert_eq!(interval(2, users), Time::from_millis(100));
    assert_eq!(interval(50_000, "engine = \"model\""), Time::from_millis(100));
}

#[test]
fn it_is_not_written_out_so_that_other_settings_get_their_own() {
    let few =
        "duration = \"100 s\"\npath = { rate = \"10 Gbit/s\", rtt = \"100 ms\" }\nflow = [{ cc = \"reno\" }]";
    let text = serde_json::to_string(&Scenario::from_toml(few, "test", &[]).unwrap()).unwrap();
    let more = [("flow.count".to_owned(), "10000".to_owned())];
    let scenario = Scenario::from_json(&text, "test", &more).unwrap();
    assert_eq!(scenario.trace_interval(), Time::from_secs(1));
}

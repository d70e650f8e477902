//! What would take too long or too much memory is refused when it is loaded, with the key that causes it; and what people do is not.

use elephan_scenario::{Estimate, Files, Scenario, Syntax, parse};

use crate::project_scenarios;

const PATH: &str = r#"path = { rate = "100 Mbit/s", rtt = "20 ms" }"#;

/// The outcome of loading a scenario: the largest estimate of its points, or the error.
fn load(text: &str, file: &str, large: bool) -> Result<Estimate, String> {
    let scenario = parse(text, file, Syntax::Toml)
        .and_then(|document| Scenario::from_document(document, file, &[], Files::Allowed))
        .map_err(|error| error.to_string())?;
    let expansion = scenario.expansion(file).map_err(|error| error.to_string())?;
    let points: Result<Vec<Estimate>, _> = expansion.check(large).collect();
    let points = points.map_err(|error| error.to_string())?;
    Ok(points.into_iter().reduce(Estimate::max).unwrap())
}

#[test]
fn what_has_no_sensible_end_is_refused_with_its_key() {
    let flow = r#"flow = [{ cc = "reno" }]"#;
    for (text, expected) in [
        // What brought the program to a halt, or the machine.
        (format!("{PATH}\n{flow}\nmeasure.interval = \"1 ps\""), "measure.interval: expected at most 1e11 events"),
        (format!("{PATH}\n{flow}\ntrace.interval = \"1 ps\""), "trace.interval: expected at most 1e8 rows of samples"),
        (
            format!("{flow}\npath = {{ rate = \"1 Mbit/s\", rtt = \"20 ms\", queue = {{ name = \"pie\", t_update = \"1 ps\" }} }}"),
            "path.queue.t_update: expected at most 1e11 events",
        ),
        (
            format!("{PATH}\ncbr = [{{ rate = \"9000 Tbit/s\", burst = 1000000 }}]"),
            "cbr.0.rate: expected at most 1e11 events",
        ),
        (
            format!("{PATH}\non_off = [{{ rate = \"1 kbit/s\", burst = 1000, on = \"1 ps\", off = \"1 ps\" }}]"),
            "on_off.0.on: expected at most 1e11 events",
        ),
        (
            "link = [{ name = \"one\", from = \"a\", to = \"b\", delay = \"0 s\" }]\n\
             flow = [{ cc = \"reno\", from = \"a\", to = \"b\" }]"
                .to_owned(),
            "flow.0.tcp.receive_buffer: expected at most 1e11 events (--large allows more), found no bound",
        ),
        (
            "link = [{ name = \"one\", from = \"a\", to = \"b\", delay = \"0 s\" }]\n\
             flow = [{ cc = \"reno\", from = \"a\", to = \"b\", size = \"1 B\", transfers = \"repeat\" }]"
                .to_owned(),
            "flow.0.size: expected at most 1e11 events (--large allows more), found no bound",
        ),
        // What is of the same kind.
        (format!("path = {{ rate = \"9000 Tbit/s\", rtt = \"1 us\" }}\n{flow}"), "path.rate: expected at most 1e11 events"),
        (
            "path = { rate = \"100 Mbit/s\", rtt = \"100 us\", buffer = \"100 packets\", reverse = { rate = \"1 Mbit/s\" } }\n\
             flow = [{ cc = \"reno\", reverse = true }]\n\
             event = [{ at = \"1 s\", link = \"bottleneck.reverse\", rate = \"100 Tbit/s\" }]"
                .to_owned(),
            "event.0.rate: expected at most 1e11 events",
        ),
        (
            format!("{PATH}\nweb = [{{ users = 9000000, think = \"0 s\", between = \"0 s\", start = \"0 s\" }}]"),
            "web.0.users: expected at most 3.2e10 bytes of memory",
        ),
        (
            format!("{PATH}\narrivals = [{{ cc = \"reno\", per_second = 1e9, size = \"1 B\" }}]"),
            "arrivals.0.per_second: expected at most 1e8 rows of samples",
        ),
        (format!("{PATH}\nflow = [{{ cc = \"reno\", count = 10000000 }}]"), "flow.0.count: expected at most 3.2e10 bytes of memory"),
        (
            "path = { rate = \"100 Mbit/s\", rtt = \"20 ms\", access_rate = \"1 Gbit/s\" }\n\
             flow = [{ cc = \"reno\", count = 5000000 }]"
                .to_owned(),
            "flow.0.count: expected at most 3.2e10 bytes of memory",
        ),
        (
            format!("{flow}\npath = {{ rate = \"10 Gbit/s\", rtt = \"20 ms\", queue = {{ name = \"fq-codel\", quantum = 1 }} }}\nduration = \"200 s\""),
            "path.queue.quantum: expected at most 1e11 events",
        ),
        (format!("{PATH}\n{flow}\nsweep.repeat = 1000000000000000000"), "sweep.repeat: expected at most 1e6 runs"),
        (
            format!("{PATH}\n{flow}\n[sweep]\n{}", (0..10).map(|n| format!("\"flow.{n}\" = [{}]", "1,".repeat(8))).collect::<Vec<_>>().join("\n")),
            "sweep: expected at most 1e6 runs",
        ),
        (
            "engine = \"model\"\npath = { rate = \"100 Mbit/s\", rtt = \"1 ps\", buffer = \"100 packets\" }\nflow = [{ cc = \"reno\" }]".to_owned(),
            "path.rtt: expected at most 1e11 events",
        ),
        (
            format!("engine = \"linux\"\n{PATH}\n{flow}\ntrace.interval = \"1 ps\""),
            "trace.interval: expected at most 1e8 rows of samples",
        ),
    ] {
        let text = if text.contains("duration") { text } else { format!("duration = \"10 s\"\n{text}") };
        // Tables at the end take the keys that follow.
        let error = load(&text, "x.toml", false).expect_err(&text);
        assert!(error.lines().any(|line| line.starts_with(&format!("x.toml: {expected}"))), "{text}\n  {error}\n  {expected}");
        if !text.contains("sweep") && !text.contains("count") {
            assert!(load(&text, "x.toml", true).is_ok(), "{text}");
        }
    }
}

#[test]
fn a_point_of_a_sweep_is_named() {
    let text = format!(
        "duration = \"10 s\"\n{PATH}\nflow = [{{ cc = \"reno\" }}]\n[sweep]\n\"trace.interval\" = [\"1 s\", \"1 ps\"]"
    );
    let error = load(&text, "x.toml", false).unwrap_err();
    assert!(error.contains("(at point 2 of 2: trace.interval = \"1 ps\")"), "{error}");
}

#[test]
fn a_flow_over_links_without_a_rate_is_bounded_by_its_window_or_its_size() {
    let flow = |more: &str, delay: &str| {
        load(
            &format!(
                "duration = \"10 s\"\nlink = [{{ name = \"one\", from = \"a\", to = \"b\", delay = \"{delay}\" }}]\n\
                 flow = [{{ cc = \"reno\", from = \"a\", to = \"b\"{more} }}]"
            ),
            "x.toml",
            false,
        )
    };
    assert!(flow("", "10 ms").is_ok());
    assert!(flow("", "10 us").unwrap_err().contains("flow.0.tcp.receive_buffer"));
    assert!(flow(", tcp = { receive_buffer = \"1 MB\" }", "10 us").is_ok());
    assert!(flow(", size = \"1 GB\"", "0 s").is_ok());
}

#[test]
fn every_scenario_of_the_repository_is_far_from_the_limits() {
    let all = project_scenarios();
    assert!(all.len() > 40);
    for path in all {
        let text = std::fs::read_to_string(&path).unwrap();
        // The package draws this trace when it is used: no file has it.
        let text = text.replace("\"cellular.down\"", "{ opportunities = [3, 3, 30] }");
        let estimate = load(&text, path.to_str().unwrap(), false).unwrap_or_else(|error| panic!("{error}"));
        let Estimate { events, rows, bytes } = &estimate;
        assert!(
            events.amount < 3e10 && rows.amount < 3e7 && bytes.amount < 1e10,
            "{}: {estimate:?}",
            path.display()
        );
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "figures to look at")]
fn what_people_do_is_not_refused() {
    for (what, text) in [
        (
            "a million flows for two seconds",
            r#"duration = "2 s"
            path = { rate = "100 Gbit/s", rtt = "100 ms" }
            flow = [{ cc = "reno", count = 1000000, start = { uniform = ["0 s", "1 s"] } }]"#,
        ),
        (
            "a million flows on the model",
            r#"duration = "20 s"
            engine = "model"
            path = { rate = "10 Tbit/s", rtt = "100 ms", buffer = "10% bdp" }
            flow = [{ cc = "reno", count = 1000000 }]"#,
        ),
        (
            "an hour at 10 Gbit/s",
            r#"duration = "1 h"
            path = { rate = "10 Gbit/s", rtt = "200 ms" }
            flow = [{ cc = "scalable" }]"#,
        ),
        (
            "the same from hosts with links of their own",
            r#"duration = "1 h"
            path = { rate = "10 Gbit/s", rtt = "200 ms", access_rate = "40 Gbit/s" }
            flow = [{ cc = "scalable" }]"#,
        ),
        (
            "100,000 flows (make bench)",
            r#"duration = "10 s"
            path = { rate = "10 Gbit/s", rtt = "100 ms" }
            flow = [{ cc = "reno", count = 100000, start = { uniform = ["0 s", "1 s"] } }]"#,
        ),
        (
            "4200 web users (make bench)",
            r#"duration = "1200 s"
            path = { rate = "2.4 Gbit/s", rtt = "120 ms", buffer = "2048 packets", access_rate = "1 Gbit/s" }
            web = [{ users = 1400, count = 3, start = { uniform = ["0 s", "1 s"] }, tcp = { initial_window = 2 } }]"#,
        ),
    ] {
        let estimate = load(text, "x.toml", false).unwrap_or_else(|error| panic!("{what}: {error}"));
        println!("{what}: {estimate:?}");
    }
}

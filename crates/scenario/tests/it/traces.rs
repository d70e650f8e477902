//! Traces of links: what files may have, what they may not, and what a scenario has of them.

use std::path::PathBuf;

use elephan_net::Schedule;
use elephan_scenario::{Files, Plan, Scenario, Syntax, parse};
use elephan_units::{Rate, Time};
use proptest::prelude::*;
use serde_json::json;

const HEAD: &str = "duration = \"10 s\"\nflow = [{ cc = \"reno\" }]\n";
const CSV: &str = "time (s),rate (Mbit/s),delay (ms),loss\n0,10,20,0\n1.5,0,,\n2,2.5,35.25,0.01\n4,1,20,0\n";

/// A folder of its own, which is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("elephan-traces-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Reads a scenario beside a trace, `x.trace`, with this content.
    fn read(&self, content: impl AsRef<[u8]>, path: &str) -> Result<Scenario, String> {
        std::fs::write(self.0.join("x.trace"), content).unwrap();
        let file = self.0.join("x.toml").display().to_string();
        let text = format!("{HEAD}path = {{ rate = \"10 Mbit/s\", rtt = \"20 ms\", {path} }}");
        let document = parse(&text, &file, Syntax::Toml).unwrap();
        Scenario::from_document(document, &file, &[], Files::Allowed).map_err(|error| error.to_string())
    }

    /// The line of an error, without the path of the trace.
    fn error(&self, content: impl AsRef<[u8]>) -> String {
        let error = self.read(content, "trace = \"x.trace\"").unwrap_err();
        let file = format!("{}: ", self.0.join("x.trace").display());
        error.strip_prefix(&file).unwrap_or_else(|| panic!("{error}")).to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

fn plan(scenario: &Scenario) -> Plan {
    scenario.resolve("x").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_scenario_has_the_content_of_its_trace() {
    let folder = Folder::new("content");
    let scenario = folder.read(CSV, "trace = \"x.trace\"").unwrap();
    let document = serde_json::to_value(&scenario).unwrap();
    let expected = json!({
        "loop": true,
        "source": "x.trace",
        "steps": [
            { "time": "0 s", "rate": "10 Mbit/s", "delay": "20 ms", "loss": 0.0 },
            { "time": "1.5 s", "rate": "0 bit/s" },
            { "time": "2 s", "rate": "2.5 Mbit/s", "delay": "35.25 ms", "loss": 0.01 },
            { "time": "4 s", "rate": "1 Mbit/s", "delay": "20 ms", "loss": 0.0 },
        ],
    });
    assert_eq!(document["path"]["trace"], expected);
    // It needs the file no more.
    let again = Scenario::from_json(&document.to_string(), "run.json", &[]).unwrap();
    assert_eq!(again, scenario);
    assert_eq!(folder.read(format!("\u{feff}{CSV}"), "trace = \"x.trace\"").as_ref(), Ok(&scenario));
    let plan = plan(&again);
    let Some(Schedule::Rates(rates)) = &plan.links[0].config.schedule else { panic!("rates") };
    // Looped: the last row is the end of the round.
    for (at, rate) in [(0, 10_000), (1_700, 0), (3_999, 2_500), (4_000, 10_000), (5_800, 0), (6_100, 2_500)] {
        assert_eq!(rates.at(Time::from_millis(at)), Rate::from_bits_per_sec(rate * 1000), "{at} ms");
    }
    assert_eq!(plan.links[1].config.schedule, None);
    assert_eq!(plan.replays[0].period, Some(Time::from_secs(4)));
    let delays: Vec<_> = plan.replays[0].steps.iter().map(|step| (step.at, step.delay)).collect();
    assert_eq!(
        delays,
        [(Time::ZERO, Some(Time::from_millis(20))), (Time::from_secs(2), Some(Time::from_micros(35_250))),]
    );
}

#[test]
fn an_empty_list_beside_a_file_is_no_content() {
    let folder = Folder::new("empty");
    let alone = folder.read(CSV, "trace = \"x.trace\"").unwrap();
    for empty in ["steps = []", "opportunities = []", "steps = [], opportunities = []"] {
        let path = format!("trace = {{ file = \"x.trace\", {empty} }}");
        assert_eq!(folder.read(CSV, &path).unwrap(), alone, "{empty}");
    }
}

#[test]
fn a_trace_of_mahimahi_is_known_by_its_first_line() {
    let folder = Folder::new("mahimahi");
    let scenario = folder.read("0\n3\n3\r\n10\n", "trace = { file = \"x.trace\", loop = false }").unwrap();
    let document = serde_json::to_value(&scenario).unwrap();
    let expected = json!({ "loop": false, "source": "x.trace", "opportunities": [0, 3, 3, 10] });
    assert_eq!(document["path"]["trace"], expected);
    let plan = plan(&scenario);
    let Some(Schedule::Opportunities(opportunities)) = &plan.links[0].config.schedule else { panic!() };
    assert_eq!(opportunities.count(Time::from_secs(5)), 4);
}

#[test]
fn a_sweep_may_have_traces() {
    let folder = Folder::new("sweep");
    std::fs::write(folder.0.join("b"), "5\n").unwrap();
    let file = folder.0.join("x.toml").display().to_string();
    std::fs::write(folder.0.join("a"), CSV).unwrap();
    for sweep in [
        "sweep.\"path.trace\" = [\"a\", \"b\"]",
        "sweep.zip.\"path.trace\" = [\"a\", { file = \"b\" }]",
        "[[sweep.points]]\n\"path.trace\" = \"a\"\n[[sweep.points]]\n\"path.trace\" = \"b\"",
    ] {
        let text = format!("{HEAD}path = {{ rate = \"10 Mbit/s\", rtt = \"20 ms\" }}\n{sweep}");
        let document = parse(&text, &file, Syntax::Toml).unwrap();
        let scenario = Scenario::from_document(document, &file, &[], Files::Allowed).unwrap();
        let expansion = scenario.expansion(&file).unwrap();
        let sources: Vec<_> = (0..2)
            .map(|number| {
                expansion.point(number).unwrap().scenario.path.unwrap().trace.unwrap().source.unwrap()
            })
            .collect();
        assert_eq!(sources, ["a", "b"], "{sweep}");
    }
    // The file of a trace that was read cannot be exchanged by its name alone.
    let text = format!(
        "{HEAD}path = {{ rate = \"10 Mbit/s\", rtt = \"20 ms\", trace = \"a\" }}\nsweep.\"path.trace.file\" = [\"b\"]"
    );
    let document = parse(&text, &file, Syntax::Toml).unwrap();
    let scenario = Scenario::from_document(document, &file, &[], Files::Allowed).unwrap();
    let error = scenario.expansion(&file).unwrap().check(false).find_map(Result::err).unwrap().to_string();
    assert!(
        error.contains("path.trace: expected one of file, steps, opportunities, found file and steps"),
        "{error}"
    );
}

#[test]
fn no_file_is_read_unless_that_is_allowed() {
    for text in [
        "path = { rate = \"10 Mbit/s\", rtt = \"20 ms\", trace = \"/etc/passwd\" }",
        "path = { rate = \"10 Mbit/s\", rtt = \"20 ms\", trace = { file = \"/etc/passwd\" } }",
        "path = { rate = \"10 Mbit/s\", rtt = \"20 ms\", reverse = { trace = \"/etc/passwd\" } }",
        "link = [{ name = \"a\", from = \"b\", to = \"c\", delay = \"1 ms\", trace = \"/etc/passwd\" }]",
        "[sweep]\n\"path.trace\" = [\"/etc/passwd\"]",
        "[[sweep.points]]\npath = { reverse = { trace = \"/etc/passwd\" } }",
    ] {
        let error = Scenario::from_toml(&format!("{HEAD}{text}"), "x", &[]).unwrap_err().to_string();
        assert!(
            error.contains("expected no file, but its content") && !error.contains("root"),
            "{text}: {error}"
        );
    }
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_line() {
    let folder = Folder::new("wrong");
    for (text, expected) in [
        ("", "line 1: expected names of columns, one of them \"time\", or a time in ms, found nothing"),
        ("5\n3\n", "line 2: expected a time of 5 ms or later, found 3"),
        ("5\nx\n", "line 2: expected a time in whole ms, found \"x\""),
        ("5\n\n6\n", "line 2: expected a time in whole ms, found \"\""),
        ("5\n-6\n", "line 2: expected a time in whole ms, found \"-6\""),
        ("0\n0\n", "line 2: expected a last time above 0 ms, found 0"),
        ("99999999999999999\n", "line 1: expected a time of at most 18446744073 ms"),
        (
            "time\n0\n",
            "line 1: expected names of columns: time, and one of rate, delay, loss, found \"time\"",
        ),
        ("rate,loss\n", "line 1: expected names of columns: time, and one of"),
        (
            "time,speed\n",
            "line 1: expected a column of time, rate, delay, loss, such as \"rate (Mbit/s)\", found \"speed\"",
        ),
        ("time,rate,rate\n", "line 1: expected each column once, found \"rate\" again"),
        ("time (s),rate (MB)\n", "line 1: expected a unit such as Mbit/s in column rate, found \"MB\""),
        ("time (year),rate\n", "line 1: expected a unit such as ms in column time, found \"year\""),
        ("time,loss (ms)\n", "line 1: expected the unit %, or none in column loss, found \"ms\""),
        ("time,rate\n", "line 2: expected a row, found nothing"),
        ("time,rate\n0 s,1 Mbit/s\n1 s\n", "line 3: expected 2 cells, found 1"),
        ("time,rate\n0,1 Mbit/s\n", "line 2.time: expected a time such as \"82 ms\", found \"0\""),
        ("time,rate\n0 s,1 MB\n", "line 2.rate: expected a rate such as \"250 Mbit/s\", found \"1 MB\""),
        ("time,rate\n1 s,1 Mbit/s\n", "line 2.time: expected the time \"0 s\" first, found \"1 s\""),
        (
            "time,delay\n0 s,1 ms\n2 s,1 ms\n2 s,2 ms\n",
            "line 4.time: expected a time after \"2 s\", found \"2 s\"",
        ),
        (
            "time,delay\n0 s,1 ms\n\n2 s,1 ms\n1 s,2 ms\n",
            "line 5.time: expected a time after \"2 s\", found \"1 s\"",
        ),
        ("time,loss\n0 s,2\n", "line 2.loss: expected a probability from 0 to 1, found 2"),
        ("time,loss (%)\n0 s,x\n", "line 2.loss: expected a probability from 0 to 1, or in %, found \"x %\""),
        ("time,loss\n0 s,NaN\n", "line 2.loss: expected a probability from 0 to 1, found NaN"),
    ] {
        let error = folder.error(text);
        assert!(error.starts_with(expected), "{text:?}:\n  {error}\n  {expected}");
        assert!(!error.contains('\n'), "{error}");
    }
    assert!(
        folder.error([0xff, 0xfe, 0x31]).starts_with("expected a trace of a link, CSV or mahimahi's, found ")
    );
    let missing = folder.read("", "trace = \"none\"").unwrap_err();
    assert!(
        missing.contains("none: expected a trace of a link") && missing.contains("read for path.trace"),
        "{missing}"
    );
    let device = folder.read("", "trace = \"/dev/zero\"").unwrap_err();
    assert!(device.contains("found no regular file"), "{device}");
    let long = folder.error("5\n".repeat(2_000_001));
    assert!(long.contains("expected at most 2000000 lines, found more"), "{long}");
}

#[test]
fn what_cannot_work_is_refused_with_its_key() {
    let path = |more: &str| format!("{HEAD}path = {{ rate = \"10 Mbit/s\", rtt = \"20 ms\", {more} }}");
    let steps = |steps: &str| path(&format!("trace = {{ steps = [{steps}] }}"));
    let event = |event: &str| {
        let all = r#"{ time = "0 s", rate = "1 Mbit/s", delay = "1 ms", loss = 0.1 }"#;
        format!("{}\nevent = [{{ at = \"1 s\", link = \"bottleneck\", {event} }}]", steps(all))
    };
    for (text, expected) in [
        (path("trace = {}"), "path.trace: expected one of file, steps, opportunities, found none"),
        (path("trace = { steps = [], opportunities = [] }"), "path.trace: expected one of file, steps, opportunities, found none"),
        (path("trace = { opportunities = [3, 2] }"), "path.trace.opportunities.1: expected a time of 3 ms or later, found 2"),
        (path("trace = { opportunities = [0] }"), "path.trace.opportunities: expected a last time above 0 ms, found 0"),
        (path("reverse = { trace = { opportunities = [0] } }"), "path.reverse.trace.opportunities: expected a last time"),
        (steps(r#"{ time = "1 s" }"#), "path.trace.steps.0.time: expected the time \"0 s\" first, found \"1 s\""),
        (steps(r#"{ time = "0 s", rate = "0 bit/s" }"#), "path.trace.steps: expected a rate above zero in one of them, found none"),
        (
            // The last step of a trace that begins again does not hold.
            steps(r#"{ time = "0 s", rate = "0 bit/s" }, { time = "1 s", rate = "1 Mbit/s" }"#),
            "path.trace.steps: expected a rate above zero in one of them, found none",
        ),
        (steps(r#"{ time = "0 s", loss = 7 }"#), "path.trace.steps.0.loss: expected a probability from 0 to 1, found 7"),
        (
            path(r#"loss = { name = "random", probability = 0.1 }, trace = { steps = [{ time = "0 s", loss = 0.1 }] }"#),
            "path.trace: expected losses either of the link or of its trace, found both",
        ),
        (event("rate = \"1 Mbit/s\""), "event.0.rate: expected no rate, since the link has it from its trace, found one"),
        (event("delay = \"1 ms\""), "event.0.delay: expected no delay, since the link has it from its trace, found one"),
        (event("loss = { name = \"random\", probability = 0.1 }"), "event.0.loss: expected no loss, since"),
        (
            "duration = \"1 s\"\nflow = [{ cc = \"reno\", from = \"a\", to = \"b\" }]\n\
             link = [{ name = \"l\", from = \"a\", to = \"b\", delay = \"1 ms\", trace = { opportunities = [1] } }]"
                .to_owned(),
            "link.0.trace: expected a trace without rates, or a rate of the link that its buffer refers to",
        ),
    ] {
        let error = Scenario::from_toml(&text, "x", &[]).and_then(|scenario| scenario.resolve("x").map(|_| ()));
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with(&format!("x: {expected}")), "{text}\n  {error}\n  {expected}");
    }
    let up = event("up = false");
    assert!(Scenario::from_toml(&up, "x", &[]).unwrap().resolve("x").is_ok());
}

#[test]
fn changes_without_end_are_refused() {
    let text = format!(
        "{HEAD}path = {{ rate = \"10 Mbit/s\", rtt = \"20 ms\", trace = {{ steps = [{{ time = \"0 s\", delay = \"1 ms\" }}, {{ time = \"1 ps\" }}] }} }}"
    );
    let error = Scenario::from_toml(&text, "x", &[]).unwrap().check("x", false).unwrap_err().to_string();
    assert!(error.starts_with("x: path.trace: expected at most 1e11 events"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A damaged file is read, or refused in one line that names it.
    #[test]
    fn damaged_files_are_read_or_refused(
        mahimahi: bool,
        damage in prop::collection::vec((0usize..200, prop_oneof![
            any::<u8>(), prop::sample::select(b"0123456789.,-()%\n msM".to_vec()),
        ], 0u8..3), 0..8),
    ) {
        let mut bytes = if mahimahi { b"0\n1\n1\n5\n800\n".to_vec() } else { CSV.as_bytes().to_vec() };
        for (at, byte, kind) in damage {
            let at = at % (bytes.len() + 1);
            match kind {
                0 => bytes.insert(at, byte),
                1 if at < bytes.len() => bytes[at] = byte,
                _ if at < bytes.len() => _ = bytes.remove(at),
                _ => {}
            }
        }
        let folder = Folder::new(&format!("damaged-{:?}", std::thread::current().id()));
        match folder.read(&bytes, "trace = \"x.trace\"") {
            Err(error) => {
                prop_assert!(error.contains("x.trace: ") && error.contains("expected ") && error.contains(", found "));
                prop_assert_eq!(error.lines().count(), 1, "{}", error);
            }
            Ok(scenario) => {
                if let Ok(plan) = scenario.resolve("x") {
                    let schedule = plan.links[0].config.schedule.as_ref();
                    let allowed = schedule.map(|schedule| schedule.allowed(Time::from_secs(10)));
                    prop_assert!(allowed.is_none_or(|allowed| allowed < u128::MAX / 2));
                }
                let json = serde_json::to_string(&scenario).unwrap();
                prop_assert_eq!(Scenario::from_json(&json, "x", &[]).unwrap(), scenario);
            }
        }
    }
}

//! A scenario with nothing left to a default of the stack: what `elephan scenario show` prints.

use elephan_tcp::Config;
use serde_json::{Map, Value};

use crate::error::Error;
use crate::file::Scenario;
use crate::read::typed;

impl Scenario {
    /// The scenario with every key of its stack, those of the profile included; `file` is what errors call it.
    ///
    /// # Errors
    /// A key of `tcp` that cannot be read.
    pub fn shown(&self, file: &str) -> Result<Self, Error> {
        let error = |mistake| Error { file: file.to_owned(), mistakes: vec![mistake] };
        let table = self.stack_table(&[], &Map::new(), "tcp").map_err(error)?;
        let config: Config = typed(Value::Object(table), "tcp").map_err(error)?;
        let mut shown = self.clone();
        if let Ok(Value::Object(tcp)) = serde_json::to_value(config) {
            shown.tcp = tcp.into_iter().filter(|(_, value)| !value.is_null()).collect();
        }
        Ok(shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_scenario_reads_back_as_the_same_stack() {
        for tcp in
            ["{}", "{ profile = \"linux-6\" }", "{ profile = \"linux-2.4\", delayed_ack = { quick = 3 } }"]
        {
            let text = format!(
                "duration = \"1 s\"\ntcp = {tcp}\npath = {{ rate = \"100 Mbit/s\", rtt = \"10 ms\" }}\nflow = [{{ cc = \"reno\" }}]"
            );
            let scenario = Scenario::from_toml(&text, "test", &[]).unwrap();
            let text = serde_json::to_string(&scenario.shown("test").unwrap()).unwrap();
            let again = Scenario::from_json(&text, "shown", &[]).unwrap();
            let stack = |scenario: &Scenario| scenario.resolve("test").unwrap().flows[0].tcp;
            assert_eq!(stack(&scenario), stack(&again), "{tcp}");
        }
    }

    #[test]
    fn a_rule_that_an_algorithm_does_not_have_is_refused_by_name() {
        let refused = |tcp: &str, cc: &str| {
            let text = format!(
                "duration = \"1 s\"\ntcp = {tcp}\npath = {{ rate = \"100 Mbit/s\", rtt = \"10 ms\" }}\nflow = [{{ cc = {cc} }}]"
            );
            let scenario = Scenario::from_toml(&text, "test", &[]).unwrap();
            scenario.resolve("test").map(|_| ()).map_err(|error| error.mistakes[0].to_string())
        };
        let abe = "{ ecn = true, abe = true }";
        for cc in ["\"reno\"", "\"newreno\"", "\"cubic\""] {
            assert_eq!(refused(abe, cc), Ok(()), "{cc}");
        }
        for (cc, name) in [
            ("\"hstcp\"", "hstcp"),
            ("\"dctcp\"", "dctcp"),
            ("{ name = \"cubic\", form = \"linux\" }", "cubic"),
        ] {
            let expected = format!("none for {name}, found true");
            assert!(
                refused(abe, cc).is_err_and(|text| text.starts_with("tcp.abe: ") && text.contains(&expected)),
                "{cc}"
            );
        }
        assert_eq!(
            refused("{ abe = true }", "\"reno\""),
            Err("tcp.abe: expected false, because ecn is false, found true".to_owned())
        );
        let validate = "{ after_idle = \"validate\" }";
        assert_eq!(refused(validate, "\"hstcp\""), Ok(()));
        assert!(
            refused(validate, "\"bbr\"")
                .is_err_and(|text| text.starts_with("tcp.after_idle: ") && text.contains("bbr"))
        );
        let increase = "{ rate_limited_increase = true }";
        assert_eq!(refused(increase, "\"cubic\""), Ok(()));
        let expected =
            "tcp.rate_limited_increase: expected false, because dctcp sets its window itself, found true";
        assert_eq!(refused(increase, "\"dctcp\""), Err(expected.to_owned()));
    }

    #[test]
    fn a_train_is_as_long_as_a_round_trip_where_linux_6_paces() {
        for (pacing, settings) in
            [(false, vec![]), (true, vec![("train".to_owned(), elephan_units::entry::Value::Number(1.0))])]
        {
            let text = format!(
                "duration = \"1 s\"\ntcp = {{ profile = \"linux-6\", pacing = {pacing} }}\npath = {{ rate = \"100 Mbit/s\", rtt = \"10 ms\" }}\nflow = [{{ cc = \"cubic\" }}]"
            );
            let plan = Scenario::from_toml(&text, "test", &[]).unwrap().resolve("test").unwrap();
            assert_eq!(plan.flows[0].slow_start.settings, settings);
        }
    }

    #[test]
    fn cubic_starts_with_hystart_on_linux_6() {
        for (profile, cc, start) in
            [("linux-6", "cubic", "hystart"), ("linux-6", "reno", "standard"), ("rfc", "cubic", "standard")]
        {
            let text = format!(
                "duration = \"1 s\"\ntcp.profile = \"{profile}\"\npath = {{ rate = \"100 Mbit/s\", rtt = \"10 ms\" }}\nflow = [{{ cc = \"{cc}\" }}]"
            );
            let plan = Scenario::from_toml(&text, "test", &[]).unwrap().resolve("test").unwrap();
            assert_eq!(plan.flows[0].slow_start.name, start, "{profile} {cc}");
        }
    }

    #[test]
    fn a_key_of_the_file_overrides_its_profile() {
        let stack = |tcp: &str| {
            let text = format!(
                "duration = \"1 s\"\ntcp = {tcp}\npath = {{ rate = \"100 Mbit/s\", rtt = \"10 ms\" }}\nflow = [{{ cc = \"reno\" }}]"
            );
            Scenario::from_toml(&text, "test", &[]).unwrap().resolve("test").unwrap().flows[0].tcp
        };
        let found = stack("{ profile = \"linux-6\" }");
        // Without a buffer of its own the receive window begins a segment below four times what the path holds,
        // and grows by what segments of 1448 bytes leave of twice as much: 1448/2304 are 160/256.
        let Config { first_receive_window: Some(first), receive_buffer: Some(last), .. } = found else {
            panic!("{found:?}")
        };
        assert_eq!(last.get(), 2 * (first.get() + 1448) * 160 / 256);
        let linux = Config {
            first_receive_window: Some(first),
            receive_buffer: Some(last),
            ..elephan_tcp::Profile::Linux6.config()
        };
        assert_eq!(found, linux);
        let changed =
            stack("{ profile = \"linux-6\", rto_variance_min = \"50 ms\", delayed_ack = { quick = 3 } }");
        let delayed_ack = elephan_tcp::DelayedAck { quick: 3, ..linux.delayed_ack };
        let rto_variance_min = elephan_units::Time::from_millis(50);
        assert_eq!(changed, Config { rto_variance_min, delayed_ack, ..linux });
    }
}

//! What a script sets of a stack: the commands of the shell that have a counterpart, and what they mean for the simulator.

use std::fs;
use std::path::Path;

use elephan_cc::{Controller, registry, slow_start};
use elephan_scenario::{Error, Mistake, Scenario};
use elephan_tcp::Config;
use serde_json::json;

use crate::script::Setting;

/// Commands that change nothing for a single connection in a namespace of its own, to whose device TCP passes single segments.
const WITHOUT_EFFECT: [&str; 7] = ["tc", "ethtool", "nstat", "sleep", "true", "rm", "cat"];
/// What packetdrill's `set_sysctls.py` writes, to restore what it set: a namespace vanishes with its settings.
const RESTORES: &str = "/tmp/sysctl_restore_";
/// Files that call each other at most.
const DEEPEST: u32 = 4;

/// The settings that a command makes, or the name of what has no counterpart. Files that it names are looked for in `folder`.
pub fn of_command(command: &str, folder: &Path) -> Result<Vec<Setting>, String> {
    let mut settings = Vec::new();
    of_text(command, folder, DEEPEST, &mut settings)?;
    Ok(settings)
}

fn of_text(text: &str, folder: &Path, deepest: u32, settings: &mut Vec<Setting>) -> Result<(), String> {
    // A backslash at the end of a line joins it with the next one.
    let text = text.replace("\\\n", "");
    let lines = text.lines().map(|line| line.split_once(" #").map_or(line, |(line, _)| line).trim());
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        for command in line.replace("&&", ";").split(';').map(str::trim).filter(|command| !command.is_empty())
        {
            of_line(command, folder, deepest, settings)?;
        }
    }
    Ok(())
}

fn of_line(command: &str, folder: &Path, deepest: u32, settings: &mut Vec<Setting>) -> Result<(), String> {
    let words = words(command);
    let is_redirection = |word: &&str| *word == ">" || *word == "2>&1";
    let all: Vec<&str> = words.iter().map(String::as_str).collect();
    let words: Vec<&str> = all.iter().copied().take_while(|word| !is_redirection(word)).collect();
    let lacks = || Err(format!("`{command}`"));
    let mut set = |assignment: &str| {
        let (key, value) = assignment.split_once('=')?;
        let key = key.trim().trim_start_matches("/proc/sys/").replace('/', ".");
        settings.push(Setting::Sysctl(key, value.trim().to_owned()));
        Some(())
    };
    if let ["echo", value, ">", file] = all[..] {
        if let Some(parameter) = file.strip_prefix("/sys/module/") {
            settings.push(Setting::Module(parameter.to_owned(), value.to_owned()));
            return Ok(());
        }
        let is_set = file.starts_with("/proc/sys/") && set(&format!("{file}={value}")).is_some();
        return if is_set { Ok(()) } else { lacks() };
    }
    let Some((&program, arguments)) = words.split_first() else { return Ok(()) };
    if program.starts_with(RESTORES) {
        return Ok(());
    }
    let program = program.strip_prefix("/bin/").unwrap_or(program);
    match (program, arguments) {
        ("sysctl", arguments) => {
            for argument in arguments.iter().filter(|argument| !argument.starts_with('-')) {
                if set(argument).is_none() {
                    return lacks();
                }
            }
            Ok(())
        }
        ("ip", ["tcp_metrics", ..]) => Ok(()),
        ("ip", ["route", "add" | "change" | "replace", rest @ ..]) => {
            let Some(at) = rest.iter().position(|word| *word == "initcwnd") else { return lacks() };
            let is_known = |word: &str| ["dev", "via", "initcwnd", "proto", "src", "scope"].contains(&word);
            let names_others = rest.iter().skip(1).step_by(2).any(|word| !is_known(word));
            match rest.get(at + 1).and_then(|window| window.parse().ok()) {
                Some(window) if !names_others => settings.push(Setting::InitialWindow(window)),
                _ => return lacks(),
            }
            Ok(())
        }
        // A queue that paces, and one that has no room, change what is sent and when.
        ("tc", arguments) if arguments.contains(&"fq") || arguments.contains(&"limit") => lacks(),
        (program, _) if WITHOUT_EFFECT.contains(&program) => Ok(()),
        (program, arguments) if program.ends_with("set_sysctls.py") => {
            if arguments.iter().all(|argument| set(argument).is_some()) { Ok(()) } else { lacks() }
        }
        (program, []) if Path::new(program).extension().is_some_and(|extension| extension == "sh") => {
            match fs::read_to_string(folder.join(program)) {
                Ok(text) if deepest > 0 => of_text(&text, folder, deepest - 1, settings),
                _ => lacks(),
            }
        }
        _ => lacks(),
    }
}

/// The words of a line of the shell: quotes keep blanks, and `$((a*b))` is a product.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut quote, mut depth) = (None, 0u32);
    for c in line.chars() {
        match c {
            '"' | '\'' if quote.is_none() => quote = Some(c),
            _ if quote == Some(c) => quote = None,
            _ if c.is_whitespace() && quote.is_none() && depth == 0 => words.push(String::new()),
            _ => {
                depth = (depth + u32::from(c == '(')).saturating_sub(u32::from(c == ')'));
                words.last_mut().expect("there is one").push(c);
            }
        }
    }
    words.into_iter().filter(|word| !word.is_empty()).map(|word| multiplied(&word)).collect()
}

/// A word with its `$((a*b))` worked out.
fn multiplied(word: &str) -> String {
    let mut text = word.to_owned();
    while let Some(begin) = text.find("$((") {
        let Some(length) = text[begin..].find("))") else { break };
        let product: Option<u64> = text[begin + 3..begin + length]
            .split('*')
            .try_fold(1u64, |product, factor| product.checked_mul(factor.trim().parse().ok()?));
        let Some(product) = product else { break };
        text.replace_range(begin..begin + length + 2, &product.to_string());
    }
    text
}

/// The key that a script sets for the kernel, too.
pub const BURST: &str = "tcp.burst";

/// What a script begins with on the simulator: TCP sends segment by segment, so that nothing depends on how it fills large packets
/// for a device.
pub fn segment_by_segment() -> (String, String) {
    (BURST.to_owned(), "1".to_owned())
}

/// Settings of the simulated stack: keys of a scenario such as `tcp.rack`, or `cc` and `slow_start`, and their values.
pub type Keys = Vec<(String, String)>;

/// Keys of the kernel that change what a connection does, of which the simulator has some values at most (Linux's
/// Documentation/networking/ip-sysctl.rst).
const WITH_EFFECT: [&str; 40] = [
    "tcp_syn_retries",
    "tcp_synack_retries",
    "tcp_sack",
    "tcp_timestamps",
    "tcp_dsack",
    "tcp_fack",
    "tcp_ecn",
    "tcp_comp_sack_nr",
    "tcp_comp_sack_delay_ns",
    "tcp_comp_sack_slack_ns",
    "tcp_slow_start_after_idle",
    "tcp_recovery",
    "tcp_early_retrans",
    "tcp_frto",
    "tcp_mtu_probing",
    "tcp_base_mss",
    "tcp_min_snd_mss",
    "tcp_mtu_probe_floor",
    "tcp_probe_interval",
    "tcp_probe_threshold",
    "tcp_abc",
    "tcp_low_latency",
    "tcp_shrink_window",
    "tcp_syn_linear_timeouts",
    "tcp_window_scaling",
    "tcp_moderate_rcvbuf",
    "tcp_reordering",
    "tcp_max_reordering",
    "tcp_retrans_collapse",
    "tcp_thin_linear_timeouts",
    "tcp_adv_win_scale",
    "tcp_app_win",
    "tcp_workaround_signed_windows",
    "tcp_stdurg",
    "tcp_rfc1337",
    "tcp_abort_on_overflow",
    "tcp_orphan_retries",
    "tcp_pingpong_thresh",
    "tcp_backlog_ack_defer",
    "tcp_rto_max_ms",
];

/// Keys of the kernel that do not change what one connection of the simulator does.
const NO_COUNTERPART_NEEDED: [&str; 31] = [
    "tcp_wmem",
    "tcp_mem",
    "tcp_tso_win_divisor",
    "tcp_min_tso_segs",
    "tcp_tso_rtt_log",
    "tcp_notsent_lowat",
    "tcp_fastopen",
    "tcp_fastopen_key",
    "tcp_syncookies",
    "tcp_retries1",
    "tcp_retries2",
    "tcp_no_metrics_save",
    "tcp_pacing_ss_ratio",
    "tcp_pacing_ca_ratio",
    "tcp_autocorking",
    "tcp_limit_output_bytes",
    "tcp_challenge_ack_limit",
    "tcp_invalid_ratelimit",
    "tcp_max_syn_backlog",
    "tcp_fin_timeout",
    "tcp_tw_reuse",
    "tcp_max_tw_buckets",
    "tcp_migrate_req",
    "tcp_ecn_fallback",
    "tcp_plb_enabled",
    "tcp_reflect_tos",
    // Of AccECN, which "tcp_ecn" does not select here.
    "tcp_ecn_option",
    "tcp_ecn_option_beacon",
    // Before the first keepalive an application has to ask for them.
    "tcp_keepalive_time",
    "tcp_keepalive_intvl",
    "tcp_keepalive_probes",
];

/// A key, its value that is off, and a key that needs it.
const CONDITIONS: [(&str, &str, &str); 3] = [
    ("tcp.recovery", "newreno", "tcp.rack"),
    ("tcp.rack", "false", "tcp.tlp"),
    ("tcp.timestamps", "false", "tcp.eifel"),
];

/// What a setting of the kernel is for the simulator, or the name of what has no counterpart. `opens` tells whether the stack
/// opens the connection.
fn of_setting(setting: &Setting, opens: bool) -> Result<Keys, String> {
    let (key, value) = match setting {
        Setting::InitialWindow(window) => {
            return Ok(vec![("tcp.initial_window".to_owned(), window.to_string())]);
        }
        // Linux's default: both of HyStart's conditions.
        Setting::Module(parameter, value) => {
            return match (parameter.as_str(), value.as_str()) {
                ("tcp_cubic/parameters/hystart_detect", "3") => {
                    Ok(vec![("slow_start".to_owned(), "hystart".to_owned())])
                }
                _ => Err(format!("{parameter}={value}")),
            };
        }
        Setting::Sysctl(key, value) => (key, value.as_str()),
    };
    let lacks = || Err(format!("{key}={value}"));
    let one = |key: &str, value: &str| Ok(vec![(key.to_owned(), value.to_owned())]);
    let flag = |on: bool| if on { "true" } else { "false" };
    let Some(name) = key.strip_prefix("net.ipv4.") else {
        return if key.starts_with("net.") { Ok(Vec::new()) } else { lacks() };
    };
    match (name, value) {
        ("tcp_sack", "0") => one("tcp.recovery", "newreno"),
        ("tcp_sack", "1") => one("tcp.recovery", "sack"),
        ("tcp_timestamps", "0") => one("tcp.timestamps", "false"),
        ("tcp_timestamps", "1" | "2") => one("tcp.timestamps", "true"),
        ("tcp_dsack", "0" | "1") => one("tcp.dsack", flag(value == "1")),
        ("tcp_fack", "0" | "1") => one("tcp.fack", flag(value == "1")),
        ("tcp_ecn", "0") => one("tcp.ecn", "false"),
        ("tcp_ecn", "1") => one("tcp.ecn", "true"),
        // The kernel accepts it, and does not ask for it.
        ("tcp_ecn", "2") => one("tcp.ecn", flag(!opens)),
        ("tcp_comp_sack_nr", "0") => one("tcp.delayed_ack.compress", "false"),
        ("tcp_slow_start_after_idle", "0") => one("tcp.after_idle", "keep"),
        // Linux's tcp_cwnd_restart.
        ("tcp_slow_start_after_idle", "1") => one("tcp.after_idle", "decay"),
        ("tcp_rto_min_us", _) => one("tcp.rto_variance_min", &format!("{value} us")),
        ("tcp_congestion_control", _) => cc(value).map(|cc| vec![("cc".to_owned(), cc)]),
        ("tcp_recovery", "0" | "1") => one("tcp.rack", flag(value == "1")),
        ("tcp_early_retrans", "0" | "3" | "4") => one("tcp.tlp", flag(value != "0")),
        ("tcp_frto", "0" | "1" | "2") => one("tcp.frto", flag(value != "0")),
        (
            "tcp_mtu_probing"
            | "tcp_abc"
            | "tcp_low_latency"
            | "tcp_shrink_window"
            | "tcp_syn_linear_timeouts",
            "0",
        )
        | ("tcp_window_scaling" | "tcp_moderate_rcvbuf", "1")
        | ("tcp_reordering", "3")
        | ("tcp_syn_retries", "5" | "6")
        | ("tcp_synack_retries", "5") => Ok(Vec::new()),
        ("tcp_rmem", _) => match value.split_whitespace().nth(2) {
            Some(most) => one("tcp.receive_buffer", &format!("{most} B")),
            None => lacks(),
        },
        _ if WITH_EFFECT.contains(&name) => lacks(),
        // Besides those without a counterpart, those that `unknown` reports.
        _ => Ok(Vec::new()),
    }
}

/// The keys among these settings that are not known here, so that a script goes on without them, with their values.
pub fn unknown(settings: &[Setting]) -> Vec<String> {
    let is_known = |key: &str| match key.strip_prefix("net.ipv4.") {
        Some("tcp_rmem" | "tcp_rto_min_us" | "tcp_congestion_control") => true,
        Some(name) => WITH_EFFECT.contains(&name) || NO_COUNTERPART_NEEDED.contains(&name),
        None => key.starts_with("net.core.") || key.starts_with("net.mptcp."),
    };
    let unknown = settings.iter().filter_map(|setting| match setting {
        Setting::Sysctl(key, value) if !is_known(key) => Some(format!("{key}={value}")),
        _ => None,
    });
    unknown.collect()
}

/// The last value of a key of the kernel among these settings.
pub fn last<'a>(settings: &'a [Setting], key: &str) -> Option<&'a str> {
    settings.iter().rev().find_map(|setting| match setting {
        Setting::Sysctl(name, value) if name == key => Some(value.as_str()),
        _ => None,
    })
}

/// The whole number in a value of a key, decimal or hexadecimal.
pub fn whole(value: &str) -> Option<u64> {
    value.strip_prefix("0x").map_or_else(|| value.parse().ok(), |digits| u64::from_str_radix(digits, 16).ok())
}

/// What settings of the kernel are together. Those of which another one is the condition are off where it is off.
pub fn of_settings(settings: &[Setting], opens: bool) -> Result<Keys, String> {
    let mut keys = Keys::new();
    for setting in settings {
        keys.extend(of_setting(setting, opens)?);
    }
    for (condition, off, dependent) in CONDITIONS {
        if keys.iter().rfind(|(key, _)| key == condition).is_some_and(|(_, value)| value == off) {
            keys.push((dependent.to_owned(), "false".to_owned()));
        }
    }
    Ok(keys)
}

/// The simulator's name of a congestion control of Linux.
pub fn cc(name: &str) -> Result<String, String> {
    let ours = match name {
        "highspeed" => "hstcp",
        "reno" | "cubic" | "bic" | "htcp" | "scalable" | "vegas" => name,
        _ => return Err(format!("congestion control {name}")),
    };
    Ok(ours.to_owned())
}

/// The stack that these keys mean, and its congestion control. Later keys replace earlier ones.
pub fn stack(keys: &Keys, file: &str) -> Result<(Config, Controller), Error> {
    let mut overrides = Vec::new();
    for (key, value) in keys {
        let key = match key.split('.').next() {
            Some("tcp") => key.clone(),
            Some("cc" | "slow_start") => format!("flow.{key}"),
            _ => {
                let mistake =
                    Mistake::new(key, "a key of tcp, such as tcp.rack, or cc, or slow_start", value);
                return Err(Error { file: file.to_owned(), mistakes: vec![mistake] });
            }
        };
        overrides.push((key, value.clone()));
    }
    let path = json!({ "rate": "100 Mbit/s", "rtt": "100 ms", "buffer": "100 packets" });
    let document = json!({ "name": "script", "duration": "1 s", "path": path, "flow": [{ "cc": "reno" }] });
    let scenario = Scenario::from_json(&document.to_string(), file, &overrides)?;
    let plan = scenario.resolve(file)?;
    let flow = &plan.flows[0];
    let algorithm = registry::find(flow.cc.name).and_then(|entry| entry.build(&flow.cc.settings()).ok());
    let Some(algorithm) = algorithm else {
        let mistake = Mistake::new("cc", "an algorithm of the simulator", format!("\"{}\"", flow.cc.name));
        return Err(Error { file: file.to_owned(), mistakes: vec![mistake] });
    };
    let start = slow_start::find(flow.slow_start.name)
        .and_then(|entry| entry.build(&flow.slow_start.settings()).ok())
        .expect("a plan names known slow starts with settings in range");
    let window = f64::from(flow.tcp.initial_window);
    Ok((flow.tcp, Controller::new(algorithm, start, flow.tcp.quantisation, window)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sysctl(key: &str, value: &str) -> Setting {
        Setting::Sysctl(format!("net.ipv4.{key}"), value.to_owned())
    }

    #[test]
    fn commands_are_those_that_a_shell_would_run() {
        let of = |command: &str| of_command(command, Path::new(""));
        let both = vec![sysctl("tcp_sack", "0"), sysctl("tcp_dsack", "1")];
        for command in [
            "sysctl -q \\\n  net.ipv4.tcp_sack=0 \\\n\tnet.ipv4.tcp_dsack=1",
            "sysctl -w net.ipv4.tcp_sack=0; sysctl net/ipv4/tcp_dsack=1 > /dev/null 2>&1",
            "../common/set_sysctls.py /proc/sys/net/ipv4/tcp_sack=0\\\n /proc/sys/net/ipv4/tcp_dsack=1",
            "echo 0 > /proc/sys/net/ipv4/tcp_sack && echo 1 > /proc/sys/net/ipv4/tcp_dsack # a comment",
        ] {
            assert_eq!(of(command), Ok(both.clone()), "{command}");
        }
        let nothing = "/tmp/sysctl_restore_${PPID}.sh; /bin/rm -f x; ethtool -K tun0 tso off; tc qdisc add dev tun0 root pfifo";
        assert_eq!(of(nothing), Ok(Vec::new()));
        let parameter = Setting::Module("tcp_cubic/parameters/hystart_detect".to_owned(), "3".to_owned());
        assert_eq!(of("echo 3 > /sys/module/tcp_cubic/parameters/hystart_detect"), Ok(vec![parameter]));
        for lacks in ["echo 1 > /etc/passwd", "tc qdisc replace dev tun0 root fq", "/bin/sh -c reboot"] {
            assert_eq!(of(lacks), Err(format!("`{lacks}`")));
        }
    }

    #[test]
    fn an_unknown_key_is_told_and_one_with_effect_is_refused() {
        let settings = [sysctl("tcp_nothing", "1"), sysctl("tcp_ecn_option", "2"), sysctl("tcp_sack", "1")];
        assert_eq!(unknown(&settings), ["net.ipv4.tcp_nothing=1"]);
        assert_eq!(of_settings(&settings, true), Ok(vec![("tcp.recovery".to_owned(), "sack".to_owned())]));
        let refused = of_settings(&[sysctl("tcp_mtu_probing", "2")], true);
        assert_eq!(refused, Err("net.ipv4.tcp_mtu_probing=2".to_owned()));
    }
}

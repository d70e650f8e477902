//! Requests of a scenario that a kernel cannot fulfil: they are refused with an error, rather than silently
//! ignored.

use elephan_scenario::Plan;
use elephan_tcp::{ByteCounting, Config, DelayedAck, Recovery};

/// The number of ports above the first limits the number of flows.
const MOST_FLOWS: usize = 50_000;

/// One line for each request of the plan that the kernel cannot fulfil: key, expected, found.
pub fn unsupported(plan: &Plan) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut need = |holds: bool, line: String| {
        if !holds && !lines.contains(&line) {
            lines.push(line);
        }
    };
    let kernel = "with the linux engine";
    need(
        plan.flows.len() <= MOST_FLOWS,
        format!("flow: expected at most {MOST_FLOWS} flows {kernel}, found {}", plan.flows.len()),
    );
    need(!plan.trace.events, format!("trace.events: expected false {kernel}, found true"));
    need(plan.trace.pcap.is_empty(), format!("trace.pcap: expected no captures {kernel}, found some"));
    need(
        plan.crowds.is_empty(),
        format!("web, arrivals: expected none {kernel}, found {}", plan.crowds.len()),
    );
    let first = plan.flows.first().map(|flow| flow.tcp).unwrap_or_default();
    for flow in &plan.flows {
        let start = flow.slow_start.name;
        need(
            start == "standard",
            format!(
                "flow.slow_start: expected \"standard\", which is the kernel's, {kernel}, found \"{start}\""
            ),
        );
        for (key, expected, found) in differences(&flow.tcp) {
            need(
                false,
                format!("tcp.{key}: expected {expected}, which is the kernel's, {kernel}, found {found}"),
            );
        }
        let same = Config { send_buffer: None, receive_buffer: None, auto_tuning: false, ..flow.tcp }
            == Config { send_buffer: None, receive_buffer: None, auto_tuning: false, ..first };
        need(
            same,
            format!("flow.tcp: expected one stack for all flows {kernel}, apart from buffers, found several"),
        );
    }
    lines
}

/// The settings of a stack that differ from the kernel's.
fn differences(tcp: &Config) -> Vec<(&'static str, &'static str, String)> {
    let default = Config::default();
    let mut different = Vec::new();
    let mut need = |holds: bool, key, expected, found: String| {
        if !holds {
            different.push((key, expected, found));
        }
    };
    need(
        tcp.recovery == Recovery::Sack,
        "recovery",
        "\"sack\"",
        format!("{:?}", tcp.recovery).to_lowercase(),
    );
    need(!tcp.fack, "fack", "false", "true".to_owned());
    need(!tcp.pacing, "pacing", "false", "true".to_owned());
    need(!tcp.rate_halving, "rate_halving", "false", "true".to_owned());
    need(!tcp.moderate_cwnd, "moderate_cwnd", "false", "true".to_owned());
    need(tcp.burst_limit.is_none(), "burst_limit", "none", format!("{:?}", tcp.burst_limit.unwrap_or(0)));
    let window = tcp.initial_window;
    need(window == default.initial_window, "initial_window", "10", window.to_string());
    let ssthresh = tcp.initial_ssthresh;
    need(ssthresh.is_none(), "initial_ssthresh", "none", ssthresh.unwrap_or(0).to_string());
    let per_ack = tcp.byte_counting == ByteCounting::PerAck;
    need(!per_ack, "byte_counting", "abc", "\"per_ack\"".to_owned());
    let segments = tcp.delayed_ack.segments;
    need(segments == DelayedAck::default().segments, "delayed_ack.segments", "2", segments.to_string());
    different
}

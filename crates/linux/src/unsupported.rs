//! Requests of a scenario that a kernel cannot fulfil: they are refused with an error, rather than silently
//! ignored.

use std::ops::RangeInclusive;

use elephan_scenario::plan::{Flow, Members, Plan};
use elephan_tcp::{AfterIdle, ByteCounting, Config, DelayedAck, Recovery, WindowReduction};
use elephan_traffic::Demand;
use elephan_units::Mistake;

use crate::path::mtu;

/// The number of ports above the first limits the number of flows, crowds and streams.
const MOST_PORTS: usize = 50_000;

/// Sizes to which the kernel limits the packets of a connection: 40 bytes more than TCP_MAXSEG allows.
const PACKETS: RangeInclusive<u64> = 128..=32_807;

/// The requests of the plan that a kernel cannot fulfil, each once. `has_events` tells whether the network between its hosts
/// keeps the events of a run.
pub fn unsupported(plan: &Plan, has_events: bool) -> Vec<Mistake> {
    let mut mistakes: Vec<Mistake> = Vec::new();
    let mut need = |holds: bool, key: String, expected: &str, found: &dyn ToString| {
        let mistake = Mistake::new(key, expected, found.to_string());
        if !holds && !mistakes.contains(&mistake) {
            mistakes.push(mistake);
        }
    };
    let ports = plan.flows.len() + plan.crowds.len() + plan.streams.len();
    let most = format!("at most {MOST_PORTS} flows, crowds and streams on a kernel");
    need(ports <= MOST_PORTS, "flow".to_owned(), &most, &ports);
    let events = !plan.trace.events || has_events;
    need(events, "trace.events".to_owned(), "false on the running kernel", &true);
    need(plan.trace.pcap.is_empty(), "trace.pcap".to_owned(), "no captures on a kernel", &"some");
    let first = groups(plan).next().map(|(_, flow)| flow.tcp).unwrap_or_default();
    let sessions = plan.crowds.iter().any(|crowd| matches!(crowd.members, Members::Sessions(_)));
    need(!sessions, "sessions".to_owned(), "none on a kernel", &"some");
    for (kind, flow) in groups(plan) {
        need(flow.host.is_none(), "host".to_owned(), "none on a kernel", &"one");
        let writes = matches!(flow.demand, Demand::App(_));
        need(!writes, format!("{kind}.app"), "none on a kernel", &"one");
        let start = format!("\"{}\"", flow.slow_start.name);
        let standard = "\"standard\", which is the kernel's";
        let hystart = flow.slow_start.name == "hystart" && flow.cc.name == "cubic";
        need(hystart || flow.slow_start.name == "standard", format!("{kind}.slow_start"), standard, &start);
        for (key, expected, found) in differences(&flow.tcp) {
            need(false, format!("tcp.{key}"), &format!("{expected}, which is the kernel's"), &found);
        }
        let packet = flow.tcp.packet.get();
        let is_fit = packet == u64::from(mtu(plan)) || PACKETS.contains(&packet);
        let fits = "128 to 32807 bytes on a kernel where other packets are larger";
        need(is_fit, "tcp.packet".to_owned(), fits, &packet);
        let one =
            "one stack for everything on a kernel, apart from packet, initial_window, pacing and buffers";
        let same = flow.tcp == of_connection(first, &flow.tcp);
        need(same, format!("{kind}.tcp"), one, &"several");
    }
    mistakes
}

/// The flows of a plan, and then its crowds, with the name of their table in a scenario.
fn groups(plan: &Plan) -> impl Iterator<Item = (&'static str, &Flow)> {
    let crowds = plan.crowds.iter().map(|crowd| match crowd.members {
        Members::Users(..) => ("web", &crowd.flow),
        Members::Arrivals(_) => ("arrivals", &crowd.flow),
        Members::Sessions(_) => ("sessions", &crowd.flow),
    });
    plan.flows.iter().map(|flow| ("flow", flow)).chain(crowds)
}

/// The stack `all` with those settings of `one` that a kernel has for each connection.
fn of_connection(all: Config, one: &Config) -> Config {
    Config {
        packet: one.packet,
        initial_window: one.initial_window,
        pacing: one.pacing,
        unsent: one.unsent,
        send_buffer: one.send_buffer,
        receive_buffer: one.receive_buffer,
        first_receive_window: one.first_receive_window,
        auto_tuning: one.auto_tuning,
        ..all
    }
}

/// The settings of a stack that differ from the kernel's.
fn differences(tcp: &Config) -> Vec<(&'static str, &'static str, String)> {
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
    let halving = tcp.window_reduction == WindowReduction::RateHalving;
    need(!halving, "window_reduction", "prr", "\"rate_halving\"".to_owned());
    need(!tcp.abe, "abe", "false", "true".to_owned());
    let validates = tcp.after_idle == AfterIdle::Validate;
    need(!validates, "after_idle", "decay", "\"validate\"".to_owned());
    need(!tcp.rate_limited_increase, "rate_limited_increase", "false", "true".to_owned());
    need(!tcp.moderate_cwnd, "moderate_cwnd", "false", "true".to_owned());
    let factor = tcp.auto_tuning_factor;
    need(factor == 2.0, "auto_tuning_factor", "2", factor.to_string());
    need(tcp.burst_limit.is_none(), "burst_limit", "none", format!("{:?}", tcp.burst_limit.unwrap_or(0)));
    let ssthresh = tcp.initial_ssthresh;
    need(ssthresh.is_none(), "initial_ssthresh", "none", ssthresh.unwrap_or(0).to_string());
    let per_ack = tcp.byte_counting == ByteCounting::PerAck;
    need(!per_ack, "byte_counting", "abc", "\"per_ack\"".to_owned());
    let per_any_ack = tcp.byte_counting == ByteCounting::PerAnyAck;
    need(!per_any_ack, "byte_counting", "abc", "\"per_any_ack\"".to_owned());
    for (key, found) in tcp.misbehave.asked() {
        need(false, key, "an honest end", found);
    }
    let segments = tcp.delayed_ack.segments;
    need(segments == DelayedAck::default().segments, "delayed_ack.segments", "2", segments.to_string());
    different
}

#[cfg(test)]
mod tests {
    use elephan_scenario::Scenario;

    use super::*;

    #[test]
    fn a_kernel_is_honest() {
        for (habit, found) in [
            ("ack_division", "2"),
            ("optimistic_acks", "3"),
            ("conceal_marks", "true"),
            ("ignore_marks", "true"),
            ("ignore_losses", "true"),
        ] {
            let toml = format!(
                "duration = \"1 s\"\nengine = \"linux\"\npath = {{ rate = \"10 Mbit/s\", rtt = \"40 ms\" }}\n\
                 tcp = {{ ecn = true, misbehave = {{ {habit} = {found} }} }}\nflow = [{{ cc = \"reno\" }}]"
            );
            let plan = Scenario::from_toml(&toml, "test", &[])
                .and_then(|file| file.resolve("test"))
                .expect("a plan");
            let expected = format!(
                "tcp.misbehave.{habit}: expected an honest end, which is the kernel's, found {found}"
            );
            assert_eq!(
                unsupported(&plan, false).iter().map(ToString::to_string).collect::<Vec<_>>(),
                [expected]
            );
        }
    }
}

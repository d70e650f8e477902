//! Shows a change of behaviour as a difference between tables: goodput, Jain's index, retransmissions and
//! drops over buffer, loss and algorithm, and over the number of flows. `cargo insta review` accepts a new
//! table.

use std::fmt::Write;

use elephan_metrics::Uncontrolled;
use elephan_sim::run_many;

use crate::common::plan;

/// Runs scenarios, and formats one line for each.
fn table(head: &str, scenarios: &[(String, String)]) -> String {
    let plans: Vec<_> = scenarios.iter().map(|(_, toml)| plan(toml)).collect();
    let mut text = format!("{head}  goodput Mbit/s    jain  retransmitted  dropped\n");
    for ((name, _), outcome) in scenarios.iter().zip(run_many(&plans, 0, |_| Uncontrolled)) {
        let summary = outcome.expect("nothing cancels it").summary;
        let again: u64 = summary.flows.iter().map(|flow| flow.retransmitted_bytes).sum();
        writeln!(
            text,
            "{name}  {:>14.3}  {:>6.3}  {:>13}  {:>7}",
            summary.goodput_bit_s / 1e6,
            summary.jain.unwrap_or(f64::NAN),
            again / 1448,
            summary.links[0].dropped
        )
        .expect("text grows");
    }
    text
}

#[test]
fn buffer_by_loss_by_algorithm() {
    let mut scenarios = Vec::new();
    for cc in [
        "tahoe", "reno", "newreno", "sack", "hstcp", "hstcp-fc", "scalable", "htcp", "bic", "fast", "ltcp",
        "cubic", "vegas", "westwood", "veno", "compound", "yeah", "illinois", "dctcp", "bbr",
    ] {
        for buffer in [5, 20, 100] {
            for loss in ["0", "1e-4", "1e-2"] {
                let toml = format!(
                    r#"duration = "30 s"
                    path = {{ rate = "50 Mbit/s", rtt = "60 ms", buffer = "{buffer}% bdp",
                              loss = {{ name = "random", probability = {loss} }} }}
                    flow = [{{ cc = "{cc}" }}, {{ cc = "{cc}", start = "5 s" }}]"#
                );
                scenarios.push((format!("{cc:<9} {buffer:>4}% {loss:>5}"), toml));
            }
        }
    }
    insta::assert_snapshot!(table("cc      buffer  loss", &scenarios));
}

#[test]
fn one_to_sixty_four_flows() {
    let mut scenarios = Vec::new();
    for cc in ["reno", "scalable", "htcp", "bic"] {
        for flows in [1, 2, 4, 8, 16, 32, 64] {
            let toml = format!(
                r#"duration = "20 s"
                path = {{ rate = "100 Mbit/s", rtt = "40 ms", buffer = "50% bdp" }}
                flow = [{{ cc = "{cc}", count = {flows}, start = {{ uniform = ["0 s", "2 s"] }} }}]"#
            );
            scenarios.push((format!("{cc:<9} {flows:>5}"), toml));
        }
    }
    insta::assert_snapshot!(table("cc        flows", &scenarios));
}

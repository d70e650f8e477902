//! Invariants of every run, whatever its plan.

use std::collections::BTreeMap;

use elephan_metrics::Outcome;
use elephan_scenario::Plan;
use elephan_scenario::plan::Flow;
use elephan_traffic::Demand;
use elephan_units::Time;

/// Number of bits by which the count may exceed what a link's rate allows: a packet of the largest size,
/// which the link began to serve before its rate fell.
const LARGEST_PACKET_BITS: f64 = 8.0 * 65_535.0;

/// Returns nothing if `holds`, otherwise the error.
fn need(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

/// Checks a counter from sample to sample.
fn grows<T: Copy + PartialOrd + std::fmt::Debug>(
    name: &str,
    who: &[u32],
    column: &[T],
) -> Result<(), String> {
    need(who.len() == column.len(), || format!("{name}: {} rows of {}", column.len(), who.len()))?;
    let mut last: BTreeMap<u32, T> = BTreeMap::new();
    for (&who, &value) in who.iter().zip(column) {
        if let Some(before) = last.insert(who, value) {
            need(before <= value, || format!("{name} of {who} fell from {before:?} to {value:?}"))?;
        }
    }
    Ok(())
}

/// Checks a column of numbers: each must be finite and not negative.
fn amounts(name: &str, column: &[f64]) -> Result<(), String> {
    let wrong = column.iter().find(|value| !value.is_finite() || **value < 0.0);
    need(wrong.is_none(), || format!("{name} of {wrong:?}"))
}

/// Checks a column of numbers that can be unknown.
fn known_amounts(name: &str, column: &[f64]) -> Result<(), String> {
    let wrong = column.iter().find(|value| value.is_infinite() || **value < 0.0);
    need(wrong.is_none(), || format!("{name} of {wrong:?}"))
}

/// Checks that what is delivered has arrived: since the beginning of the run, as much or more.
fn received(
    plan: &Plan,
    what: &str,
    who: &[u32],
    time_s: &[f64],
    [goodputs, rates]: [&[f64]; 2],
) -> Result<(), String> {
    amounts("receive_rate_bit_s", rates)?;
    let interval_s = plan.trace.interval.secs_f64();
    let mut sums: BTreeMap<u32, [f64; 3]> = BTreeMap::new();
    for (row, &who) in who.iter().enumerate() {
        let [last, delivered, arrived] = sums.entry(who).or_insert([time_s[row] - interval_s, 0.0, 0.0]);
        let span = time_s[row] - std::mem::replace(last, time_s[row]);
        *delivered += goodputs[row] * span;
        *arrived += rates[row] * span;
        // Sums of rates are exact to less than a byte.
        need(*delivered <= *arrived + 8.0, || {
            format!("{what} {who}: {delivered} bits delivered of {arrived} arrived")
        })?;
    }
    Ok(())
}

/// Returns the violated invariant of an outcome, in one line; [`crate::run`] checks it in debug builds.
pub fn check(plan: &Plan, outcome: &Outcome) -> Result<(), String> {
    outcome.summary.check()?;
    flows(plan, outcome)?;
    others(plan, outcome)?;
    links(plan, outcome)?;
    for (what, times) in [("events", &outcome.events.time_s), ("variables", &outcome.variables.time_s)] {
        let order = times.windows(2).position(|pair| pair[0] > pair[1]);
        need(order.is_none(), || format!("{what} out of order at row {order:?}"))?;
    }
    Ok(())
}

fn flows(plan: &Plan, outcome: &Outcome) -> Result<(), String> {
    let trace = &outcome.flows;
    grows("time_s of flow", &trace.flow, &trace.time_s)?;
    grows("delivered_bytes of flow", &trace.flow, &trace.delivered_bytes)?;
    grows("sent_bytes of flow", &trace.flow, &trace.sent_bytes)?;
    grows("retransmits of flow", &trace.flow, &trace.retransmits)?;
    grows("timeouts of flow", &trace.flow, &trace.timeouts)?;
    grows("congestion_events of flow", &trace.flow, &trace.congestion_events)?;
    amounts("cwnd_segments", &trace.cwnd_segments)?;
    known_amounts("srtt_s", &trace.srtt_s)?;
    amounts("rto_s", &trace.rto_s)?;
    amounts("goodput_bit_s of flow", &trace.goodput_bit_s)?;
    received(plan, "flow", &trace.flow, &trace.time_s, [&trace.goodput_bit_s, &trace.receive_rate_bit_s])?;
    // Where data is acknowledged before it has arrived, a round trip is as short as that makes it.
    let least = |flow: &Flow| match flow.tcp.misbehave.optimistic_acks {
        0 => (plan.least_delay(flow.forward) + plan.least_delay(flow.reverse))
            .since(flow.tcp.tick())
            .secs_f64(),
        _ => 0.0,
    };
    let least: Vec<f64> = plan.flows.iter().map(least).collect();
    for (&flow, &srtt_s) in trace.flow.iter().zip(&trace.srtt_s) {
        let least = least[flow as usize];
        need(srtt_s.is_nan() || srtt_s >= least, || {
            format!("flow {}: a RTT of {srtt_s} s on {least} s", flow + 1)
        })?;
    }
    for (number, (flow, least)) in outcome.summary.flows.iter().zip(&least).enumerate() {
        // A mean of equal numbers differs from them by its rounding.
        need(flow.srtt_mean_s.is_none_or(|mean| mean >= least * (1.0 - 1e-12)), || {
            format!("flow {}: a mean RTT of {:?} s on {least} s", number + 1, flow.srtt_mean_s)
        })?;
    }
    let mut written: BTreeMap<u32, u128> = BTreeMap::new();
    for (&flow, &bytes) in outcome.transfers.flow.iter().zip(&outcome.transfers.bytes) {
        *written.entry(flow).or_default() += u128::from(bytes);
    }
    for (&flow, &delivered) in trace.flow.iter().zip(&trace.delivered_bytes) {
        let is_app = matches!(plan.flows[flow as usize].demand, Demand::App(_));
        let written = written.get(&flow).copied().unwrap_or(0);
        need(!is_app || !plan.trace.transfers || u128::from(delivered) <= written, || {
            format!("flow {}: {delivered} bytes delivered of {written} written", flow + 1)
        })?;
    }
    let threshold = trace.ssthresh_segments.iter().find(|value| value.is_nan() || **value < 0.0);
    need(threshold.is_none(), || format!("ssthresh_segments of {threshold:?}"))?;
    // No more data can have been delivered since the beginning of the run than the bottleneck's rate allowed.
    let bottleneck = plan.bottleneck;
    let rates =
        plan.changes.iter().filter(|change| change.link == bottleneck).filter_map(|change| change.rate);
    let link = plan.links.get(bottleneck as usize);
    let rate = link.and_then(|link| link.config.rate).map(|rate| rates.fold(rate, Ord::max));
    let schedule = link.and_then(|link| link.config.schedule.as_ref());
    let mut through = BTreeMap::<u32, u64>::new();
    for (row, &flow) in trace.flow.iter().enumerate() {
        let (sent, delivered) = (trace.sent_bytes[row], trace.delivered_bytes[row]);
        need(delivered <= sent, || format!("flow {}: {delivered} bytes delivered of {sent} sent", flow + 1))?;
        if plan.routes[plan.flows[flow as usize].forward as usize].contains(&bottleneck) {
            through.insert(flow, delivered);
        }
        let is_last = trace.time_s.get(row + 1).is_none_or(|&next| next > trace.time_s[row]);
        if let (true, Some(rate)) = (is_last, rate) {
            let bits = through.values().map(|&bytes| bytes as f64 * 8.0).sum::<f64>();
            let allowed = schedule.map_or_else(
                || rate.bits_per_sec() as f64 * trace.time_s[row],
                |schedule| schedule.allowed(Time::from_secs_f64(trace.time_s[row])) as f64 * 1e-12,
            ) * (1.0 + 1e-9);
            need(bits <= allowed + LARGEST_PACKET_BITS, || {
                format!("{bits} bits delivered by {} s through {rate}", trace.time_s[row])
            })?;
        }
    }
    Ok(())
}

fn others(plan: &Plan, outcome: &Outcome) -> Result<(), String> {
    let trace = &outcome.crowds;
    grows("time_s of crowd", &trace.flow, &trace.time_s)?;
    grows("opened of crowd", &trace.flow, &trace.opened)?;
    grows("finished of crowd", &trace.flow, &trace.finished)?;
    grows("delivered_bytes of crowd", &trace.flow, &trace.delivered_bytes)?;
    amounts("goodput_bit_s of crowd", &trace.goodput_bit_s)?;
    received(plan, "crowd", &trace.flow, &trace.time_s, [&trace.goodput_bit_s, &trace.receive_rate_bit_s])?;
    for (opened, finished) in trace.opened.iter().zip(&trace.finished) {
        need(finished <= opened, || format!("a crowd: {finished} finished of {opened} opened"))?;
    }
    let trace = &outcome.streams;
    grows("time_s of stream", &trace.flow, &trace.time_s)?;
    grows("sent of stream", &trace.flow, &trace.sent)?;
    grows("received of stream", &trace.flow, &trace.received)?;
    amounts("goodput_bit_s of stream", &trace.goodput_bit_s)?;
    for (row, sent) in trace.sent.iter().enumerate() {
        let (received, missing) = (trace.received[row], trace.missing[row]);
        need(received + missing <= *sent, || {
            format!("a stream: {received} received and {missing} missing of {sent}")
        })?;
    }
    let trace = &outcome.transfers;
    for (&start, &end) in trace.start_s.iter().zip(&trace.end_s) {
        need(end.is_nan() || start <= end, || format!("a transfer from {start} s to {end} s"))?;
    }
    Ok(())
}

fn links(plan: &Plan, outcome: &Outcome) -> Result<(), String> {
    let trace = &outcome.queues;
    grows("time_s of link", &trace.link, &trace.time_s)?;
    for (name, column) in [
        ("offered", &trace.offered),
        ("dropped", &trace.dropped),
        ("lost", &trace.lost),
        ("marked", &trace.marked),
        ("dropped_full", &trace.dropped_full),
        ("dropped_early", &trace.dropped_early),
        ("dropped_policed", &trace.dropped_policed),
        ("dropped_down", &trace.dropped_down),
    ] {
        grows(name, &trace.link, column)?;
    }
    amounts("utilisation of link", &trace.utilisation)?;
    let mut last = vec![0.0; plan.links.len()];
    for (row, &link) in trace.link.iter().enumerate() {
        let (offered, gone) = (trace.offered[row], trace.dropped[row] + trace.lost[row]);
        need(gone + trace.packets[row] <= offered, || {
            format!("link {link}: {gone} gone and {} waiting of {offered}", trace.packets[row])
        })?;
        let reasons =
            [&trace.dropped_full, &trace.dropped_early, &trace.dropped_policed, &trace.dropped_down];
        let sum = reasons.iter().map(|column| column[row]).sum::<u64>();
        need(sum == trace.dropped[row], || {
            format!("link {link}: {} dropped, for {sum} reasons", trace.dropped[row])
        })?;
        // If the rate changes, the share is relative to the average rate.
        let changes = plan.changes.iter().any(|change| change.link == link)
            || plan.links[link as usize].config.schedule.is_some();
        let span = trace.time_s[row] - std::mem::replace(&mut last[link as usize], trace.time_s[row]);
        if let (false, Some(rate)) = (changes, plan.links[link as usize].config.rate) {
            let ahead = (trace.utilisation[row] - 1.0) * rate.bits_per_sec() as f64 * span;
            need(ahead <= LARGEST_PACKET_BITS, || {
                format!("link {link}: utilisation of {} in {span} s", trace.utilisation[row])
            })?;
        }
    }
    Ok(())
}

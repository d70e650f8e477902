//! The results of a run travel between processes without loss.

#![cfg(target_os = "linux")]

use elephan_linux::{Emulated, Measured, Quality, RealTime};
use elephan_metrics::trace::{FlowRow, KernelRow, KernelTrace, QueueRow};
use elephan_metrics::{LinkSample, LinkSummary, Outcome, Summary, TransferSummary};
use elephan_network::Lateness;
use elephan_units::Time;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// NaN does not equal itself, so texts are compared.
fn travels<T: Serialize + DeserializeOwned + std::fmt::Debug>(value: &T) {
    let bytes = rmp_serde::to_vec_named(value).unwrap();
    let arrived: T = rmp_serde::from_slice(&bytes).unwrap();
    assert_eq!(format!("{arrived:?}"), format!("{value:?}"));
}

fn outcome() -> Outcome {
    let mut outcome = Outcome::default();
    let finished = TransferSummary { count: 1, mean_s: Some(0.1), ..TransferSummary::default() };
    outcome.summary = Summary {
        fairness: Some(1.0),
        links: vec![LinkSummary { name: "bottleneck".to_owned(), ..LinkSummary::default() }],
        transfers: Some(finished),
        ..Summary::default()
    };
    outcome.flows.push(FlowRow {
        time_s: 0.1,
        flow: 0,
        cwnd_segments: 10.0,
        ssthresh_segments: f64::INFINITY,
        srtt_s: 0.082,
        rto_s: 0.3,
        pipe_bytes: 14_480,
        goodput_bit_s: f64::NEG_INFINITY,
        receive_rate_bit_s: f64::NAN,
        delivered_bytes: u64::MAX,
        sent_bytes: 1 << 40,
        retransmits: 0,
        timeouts: u32::MAX,
        congestion_events: 0,
    });
    outcome.transfers.add(0, 0, 1000, Time::ZERO, None);
    outcome
}

#[test]
fn infinities_and_what_is_missing_arrive() {
    let mut kernel = KernelTrace::default();
    kernel.push(KernelRow {
        pacing_rate_bit_s: f64::INFINITY,
        min_rtt_s: f64::MIN_POSITIVE,
        delivery_rate_bit_s: 0.0,
        busy_s: f64::NAN,
        rwnd_limited_s: -0.0,
        sndbuf_limited_s: 1.0 / 3.0,
    });
    let lateness = Lateness { packets: 3, lateness_max_s: 1e-9, ..Lateness::default() };
    let invalid_because = vec!["devices lost packets".to_owned()];
    for real_time in [None, Some(RealTime { slips: 2, slipped_s: 0.001, ..RealTime::default() })] {
        let quality =
            Quality { lateness, real_time, invalid_because: invalid_because.clone(), ..Quality::default() };
        travels(&Measured { outcome: outcome(), kernel: kernel.clone(), quality });
    }
}

#[test]
fn the_records_of_links_arrive() {
    let mut emulated = Emulated::default();
    emulated.recorded.links.push(LinkSample { allowed_bits: 1e9, bytes: 7, ..LinkSample::default() });
    emulated.recorded.queues.push(QueueRow {
        time_s: 0.0,
        link: 1,
        packets: 2,
        bytes: 3000,
        offered: 4,
        dropped: 5,
        lost: 6,
        marked: 7,
        utilisation: 1.0,
        dropped_full: 1,
        dropped_early: 2,
        dropped_policed: 3,
        dropped_down: 4,
    });
    travels(&emulated);
}

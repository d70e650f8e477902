//! The quality of a run, and the limits within which it is valid.

use elephan_network::Lateness;
use elephan_scenario::Plan;
use elephan_sys::device::DeviceDrops;
use elephan_units::Time;
use serde::{Deserialize, Serialize};

use crate::hosts::groups;
use crate::path::{Emulated, RealTime, mtu};

/// In real time, a run is valid if 99 % of its packets were at most this late, or this share of the shortest
/// round-trip time if that is more.
const LATENESS_LIMIT: Time = Time::from_millis(1);
const LATENESS_SHARE: u64 = 50;
/// A run is valid while no more than this share of it was taken out of the emulator's time.
const SLIP_SHARE: f64 = 0.01;
/// A run is valid while no more than this share of the senders' busy time was spent on buffers that no scenario asked for.
const LIMITED_SHARE: f64 = 0.05;

/// How far a run can be trusted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// Why its figures do not count; nothing where they do.
    pub invalid_because: Vec<String>,
    /// Lateness of the packets.
    #[serde(flatten)]
    pub lateness: Lateness,
    /// Packets that devices between hosts and emulator lost.
    pub device_drops: u64,
    /// Share of the senders' busy time in which the receiver's window was the limit.
    pub rwnd_limited: f64,
    /// Share of the senders' busy time in which the sender's buffer was the limit.
    pub sndbuf_limited: f64,
    /// What disturbs a run in real time; none in virtual time.
    #[serde(flatten)]
    pub real_time: Option<RealTime>,
}

/// Judges a run of `plan` by the reports of its parts.
pub fn quality(plan: &Plan, emulated: &Emulated, drops: [DeviceDrops; 2], limited: (f64, f64)) -> Quality {
    let quality = Quality {
        lateness: emulated.lateness,
        device_drops: emulated.refused
            + drops.iter().map(|drops| drops.transmit + drops.receive).sum::<u64>(),
        real_time: emulated.real_time,
        rwnd_limited: limited.0,
        sndbuf_limited: limited.1,
        invalid_because: Vec::new(),
    };
    let mut because = Vec::new();
    match &quality.real_time {
        Some(real_time) => judge_real_time(plan, &quality.lateness, real_time, &mut because),
        None => judge_virtual_time(plan, &quality.lateness, &mut because),
    }
    if quality.device_drops > 0 {
        because.push(format!(
            "devices lost {} packets that no link dropped, expected none",
            quality.device_drops
        ));
    }
    let tcp = |chosen: fn(&elephan_tcp::Config) -> bool| groups(plan).any(|flow| chosen(&flow.tcp));
    let asked =
        [tcp(|tcp| tcp.receive_buffer.is_some() || tcp.auto_tuning), tcp(|tcp| tcp.send_buffer.is_some())];
    for ((whose, share), asked) in [("receiver", limited.0), ("sender", limited.1)].into_iter().zip(asked) {
        if share > LIMITED_SHARE && !asked {
            because.push(format!(
                "the {whose}'s buffer was the limit for {:.0} % of the time, expected at most {:.0} %",
                share * 100.0,
                LIMITED_SHARE * 100.0
            ));
        }
    }
    Quality { invalid_because: because, ..quality }
}

fn judge_real_time(plan: &Plan, lateness: &Lateness, real_time: &RealTime, because: &mut Vec<String>) {
    let shortest = groups(plan).map(|flow| flow.rtt).min().unwrap_or(Time::ZERO);
    let limit_s = (shortest / LATENESS_SHARE).max(LATENESS_LIMIT).secs_f64();
    if lateness.lateness_p99_s > limit_s {
        because.push(format!(
            "the emulator fell behind: 1 % of the packets were more than {:.2} ms late, expected at most {:.2} ms",
            lateness.lateness_p99_s * 1e3,
            limit_s * 1e3
        ));
    }
    let allowed_s = SLIP_SHARE * plan.duration.secs_f64();
    let waited = [("emulator", real_time.slipped_s), ("sender of datagrams", real_time.streams_slipped_s)];
    for (who, waited_s) in waited {
        if waited_s > allowed_s {
            because.push(format!(
                "the machine kept the {who} waiting for {:.0} ms in all, expected at most {:.0} ms; its host took {:.0} ms \
                 of processor time meanwhile",
                waited_s * 1e3,
                allowed_s * 1e3,
                real_time.stolen_s * 1e3
            ));
        }
    }
}

/// In virtual time no packet may be later than a packet takes on the bottleneck.
fn judge_virtual_time(plan: &Plan, lateness: &Lateness, because: &mut Vec<String>) {
    let rate = plan.links[plan.bottleneck as usize].config.rate;
    let bits = f64::from(mtu(plan)) * 8.0;
    let limit_s = rate.map_or(LATENESS_LIMIT.secs_f64(), |rate| bits / rate.bits_per_sec() as f64);
    if lateness.lateness_max_s > limit_s {
        because.push(format!(
            "a packet was {:.3} us late, expected at most the {:.3} us that a packet takes on the bottleneck",
            lateness.lateness_max_s * 1e6,
            limit_s * 1e6
        ));
    }
}

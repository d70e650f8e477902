//! How far a run in real time can be trusted: what is known of its quality, and the limits beyond which it does not count.

use elephan_scenario::Plan;
use elephan_units::Time;

use crate::device::DeviceDrops;
use crate::emulator::Emulated;

/// A run is valid while 99 % of its packets were handed over no later than this, or than this share of the shortest
/// round-trip time, where that is more.
const LATENESS_LIMIT: Time = Time::from_millis(1);
const LATENESS_SHARE: u64 = 50;
/// A run is valid while no more than this share of it was taken out of the emulator's time.
const SLIP_SHARE: f64 = 0.01;
/// A run is valid while no more than this share of the senders' busy time was spent on buffers that no scenario asked for.
const LIMITED_SHARE: f64 = 0.05;

/// How far a run in real time can be trusted.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Quality {
    /// Why its figures do not count; nothing where they do.
    pub invalid_because: Vec<String>,
    /// Packets that the emulator handed over.
    pub packets: u64,
    /// Mean lateness of these packets, s.
    pub lateness_mean_s: f64,
    /// Median lateness, s.
    pub lateness_p50_s: f64,
    /// 99th percentile of the lateness, s.
    pub lateness_p99_s: f64,
    /// Greatest lateness, s.
    pub lateness_max_s: f64,
    /// Number of pauses that the machine imposed on the emulator and that were taken out of its time.
    pub slips: u64,
    /// Total length of these pauses, s.
    pub slipped_s: f64,
    /// Length of the longest of them, s.
    pub longest_slip_s: f64,
    /// Total length of the pauses that were taken out of the time of the sender of datagrams, s.
    pub streams_slipped_s: f64,
    /// Processor time that the host of a virtual machine gave to others meanwhile, of all processors together, s.
    pub stolen_s: f64,
    /// Packets that devices between hosts and emulator lost.
    pub device_drops: u64,
    /// CPU time of the sending application with its system calls, s.
    pub sender_cpu_s: f64,
    /// CPU time of the reading application with its system calls, s.
    pub receiver_cpu_s: f64,
    /// CPU time of the emulator, s. The kernel's TCP processes what arrives within its calls, and it waits by looking at the clock.
    pub emulator_cpu_s: f64,
    /// Time in which the emulator moved packets, s.
    pub emulator_busy_s: f64,
    /// Share of the senders' busy time in which the receiver's window was the limit.
    pub rwnd_limited: f64,
    /// Share of the senders' busy time in which the sender's buffer was the limit.
    pub sndbuf_limited: f64,
}

/// Judges a run of `plan` by what its parts tell.
pub fn quality(
    plan: &Plan,
    emulated: &Emulated,
    drops: [DeviceDrops; 2],
    limited: (f64, f64),
    streams_slipped: Time,
    stolen_s: f64,
) -> Quality {
    let punctuality = &emulated.punctuality;
    let lateness = &punctuality.lateness;
    let seconds = |micros: u64| micros as f64 * 1e-6;
    let mut quality = Quality {
        packets: lateness.len(),
        lateness_mean_s: lateness.mean() * 1e-6,
        lateness_p50_s: seconds(lateness.value_at_quantile(0.5)),
        lateness_p99_s: seconds(lateness.value_at_quantile(0.99)),
        lateness_max_s: seconds(lateness.max()),
        device_drops: punctuality.refused
            + drops.iter().map(|drops| drops.transmit + drops.receive).sum::<u64>(),
        slips: punctuality.slips,
        slipped_s: punctuality.slipped.secs_f64(),
        longest_slip_s: punctuality.longest_slip.secs_f64(),
        streams_slipped_s: streams_slipped.secs_f64(),
        stolen_s,
        emulator_cpu_s: punctuality.cpu_s,
        emulator_busy_s: punctuality.busy.secs_f64(),
        rwnd_limited: limited.0,
        sndbuf_limited: limited.1,
        ..Quality::default()
    };
    let shortest = plan.flows.iter().map(|flow| flow.rtt).min().unwrap_or(Time::ZERO);
    let limit = (shortest / LATENESS_SHARE).max(LATENESS_LIMIT).secs_f64();
    let mut because = Vec::new();
    if quality.lateness_p99_s > limit {
        because.push(format!(
            "the emulator fell behind: 1 % of the packets were more than {:.2} ms late, expected at most {:.2} ms",
            quality.lateness_p99_s * 1e3,
            limit * 1e3
        ));
    }
    let allowed = SLIP_SHARE * plan.duration.secs_f64();
    for (who, waited_s) in
        [("emulator", quality.slipped_s), ("sender of datagrams", quality.streams_slipped_s)]
    {
        if waited_s > allowed {
            because.push(format!(
                "the machine kept the {who} waiting for {:.0} ms in all, expected at most {:.0} ms; its host took {:.0} ms \
                 of processor time meanwhile",
                waited_s * 1e3,
                allowed * 1e3,
                stolen_s * 1e3
            ));
        }
    }
    if quality.device_drops > 0 {
        because.push(format!(
            "devices lost {} packets that no link dropped, expected none",
            quality.device_drops
        ));
    }
    let tcp = |chosen: fn(&elephan_tcp::Config) -> bool| plan.flows.iter().any(|flow| chosen(&flow.tcp));
    if limited.0 > LIMITED_SHARE && !tcp(|tcp| tcp.receive_buffer.is_some() || tcp.auto_tuning) {
        because.push(format!(
            "the receiver's buffer was the limit for {:.0} % of the time, expected at most {:.0} %",
            limited.0 * 100.0,
            LIMITED_SHARE * 100.0
        ));
    }
    if limited.1 > LIMITED_SHARE && !tcp(|tcp| tcp.send_buffer.is_some()) {
        because.push(format!(
            "the sender's buffer was the limit for {:.0} % of the time, expected at most {:.0} %",
            limited.1 * 100.0,
            LIMITED_SHARE * 100.0
        ));
    }
    quality.invalid_because = because;
    quality
}

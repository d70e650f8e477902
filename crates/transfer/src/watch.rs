//! Watches the streams during a transfer: progress, and what limits it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use elephan_sys::{Record, TcpInfo};
use elephan_units::Time;

use crate::stop::Stop;

/// How often the streams are looked at.
pub const LOOK: Duration = Duration::from_millis(5);
/// The rate and the limit that are shown are those of this time.
const SHOWN: Time = Time::from_secs(1);
/// What limits a transfer is what takes at least this share of the streams' time.
const SHARE: f64 = 0.3;

/// What limits a transfer now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Reading at the sender: its disk, or what fills its pipe.
    Source,
    /// Writing at the receiver: its disk, or what empties its pipe.
    Sink,
    /// The receiver's window.
    ReceiveWindow,
    /// The sender's buffer.
    SendBuffer,
    /// The congestion window, or the pacing.
    Congestion,
    /// None of these: the sender does not fill its connections, because its processor has other things to do.
    Processor,
}

impl Limit {
    /// As it is shown.
    pub fn name(self) -> &'static str {
        match self {
            Self::Source => "reading at the sender",
            Self::Sink => "writing at the receiver",
            Self::ReceiveWindow => "receive window",
            Self::SendBuffer => "send buffer",
            Self::Congestion => "congestion",
            Self::Processor => "application",
        }
    }
}

/// How far a transfer is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Bytes of all, those that the receiver has from earlier attempts included; none until the transfer is open, and of a pipe.
    pub total: Option<u64>,
    /// Of these, the bytes that the receiver has stored.
    pub stored: u64,
    /// Bytes that were stored in the last second, as a rate.
    pub rate_bit_s: f64,
    /// What limits it.
    pub limit: Option<Limit>,
}

/// What the threads of the streams share.
#[derive(Default)]
pub struct Shared {
    /// Time for which streams waited for data, all together.
    pub waited_ns: AtomicU64,
    /// The receiver's report.
    pub stored: AtomicU64,
    pub sink_waited_ns: AtomicU64,
    pub over: AtomicBool,
}

/// Looks at the streams until the transfer is over.
pub fn watch(
    began: Instant,
    infos: &dyn Fn() -> Vec<TcpInfo>,
    shared: &Shared,
    stop: &Stop,
    progress: &Mutex<Progress>,
) -> Record {
    let mut now = infos();
    let mut record = Record::of_streams(now.len());
    let mut seen: Vec<Seen> = Vec::new();
    while !shared.over.load(Ordering::Relaxed) && !stop.has_failed() {
        let at = Time::from_secs_f64(began.elapsed().as_secs_f64());
        if record.look(at, now.iter().copied().enumerate()) {
            seen.push(Seen::of(at, &now, shared));
            seen.retain(|one| at.since(one.at) <= SHOWN);
            let first = seen.first().copied().unwrap_or_default();
            let last = seen.last().copied().unwrap_or_default();
            let span = last.at.since(first.at).secs_f64();
            let mut progress = progress.lock().expect("nobody panics with it");
            progress.stored = last.stored;
            if span > 0.0 {
                progress.rate_bit_s = (last.stored.saturating_sub(first.stored)) as f64 * 8.0 / span;
                let unsent = seen.iter().filter(|one| one.unsent).count() * 2 > seen.len();
                progress.limit = Some(limit(&first, &last, span * now.len() as f64, unsent));
            }
        }
        thread::sleep(LOOK);
        now = infos();
    }
    record
}

/// What was seen of all streams together at a moment.
#[derive(Clone, Copy, Default)]
struct Seen {
    at: Time,
    stored: u64,
    waited_ns: u64,
    sink_ns: u64,
    busy_us: u64,
    window_us: u64,
    buffer_us: u64,
    /// Whether a connection had data that it could not send yet.
    unsent: bool,
}

impl Seen {
    fn of(at: Time, infos: &[TcpInfo], shared: &Shared) -> Self {
        let sum = |of: fn(&TcpInfo) -> u64| infos.iter().map(of).sum();
        Self {
            at,
            stored: shared.stored.load(Ordering::Relaxed),
            waited_ns: shared.waited_ns.load(Ordering::Relaxed),
            sink_ns: shared.sink_waited_ns.load(Ordering::Relaxed),
            busy_us: sum(|info| info.busy_time),
            window_us: sum(|info| info.rwnd_limited),
            buffer_us: sum(|info| info.sndbuf_limited),
            unsent: infos.iter().any(|info| info.notsent_bytes > 0),
        }
    }
}

/// What limited the transfer between two moments, which are `span` seconds of all streams apart. Reading and writing come
/// first: while one of them is slow, windows are small because of it.
fn limit(first: &Seen, last: &Seen, span: f64, unsent: bool) -> Limit {
    let source = last.waited_ns.saturating_sub(first.waited_ns) as f64 * 1e-9 / span;
    let sink = last.sink_ns.saturating_sub(first.sink_ns) as f64 * 1e-9 / span;
    let busy = (last.busy_us.saturating_sub(first.busy_us) as f64).max(1.0);
    let window = last.window_us.saturating_sub(first.window_us) as f64 / busy;
    let buffer = last.buffer_us.saturating_sub(first.buffer_us) as f64 / busy;
    match () {
        () if sink > SHARE && sink >= source => Limit::Sink,
        () if source > SHARE => Limit::Source,
        () if window > SHARE && window >= buffer => Limit::ReceiveWindow,
        () if buffer > SHARE => Limit::SendBuffer,
        () if unsent => Limit::Congestion,
        () => Limit::Processor,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_most_of_the_time_limits() {
        let first = Seen::default();
        let second = |waited_ns, sink_ns, window_us, buffer_us| Seen {
            waited_ns,
            sink_ns,
            window_us,
            buffer_us,
            busy_us: 1_000_000,
            ..first
        };
        for (last, unsent, expected) in [
            (second(400_000_000, 500_000_000, 900_000, 0), true, Limit::Sink),
            (second(500_000_000, 400_000_000, 900_000, 0), true, Limit::Source),
            (second(200_000_000, 200_000_000, 500_000, 400_000), true, Limit::ReceiveWindow),
            (second(0, 0, 200_000, 400_000), true, Limit::SendBuffer),
            (second(0, 0, 200_000, 200_000), true, Limit::Congestion),
            (second(0, 0, 0, 0), false, Limit::Processor),
        ] {
            assert_eq!(limit(&first, &last, 1.0, unsent), expected);
        }
    }
}

//! The TCP_INFO of each stream, sampled ten times a second, as the tables of a run: a stream is a flow.

use elephan_metrics::trace::{FlowRow, FlowTrace, KernelTrace, TransferTrace};
use elephan_metrics::{Collector, FlowCounters, FlowSample, Outcome, Setup};
use elephan_units::Time;

use crate::TcpInfo;

/// Time between samples, at first.
pub const INTERVAL: Time = Time::from_millis(100);
/// The most samples of all streams that are kept. Beyond it every other one goes, and the interval doubles, so that a
/// transfer of days needs no more memory than one of an hour.
const MOST_SAMPLES: usize = 1 << 16;
/// The most reductions of windows whose times are kept.
const MOST_REDUCTIONS: usize = 1 << 16;

/// What is sampled of the streams of a transfer.
pub struct Record {
    interval: Time,
    samples: Vec<(Time, Vec<(TcpInfo, u64)>)>,
    states: Vec<u8>,
    reductions: Vec<u64>,
    times: Vec<(u32, Time)>,
    next: Time,
}

/// The record of a transfer, as an engine gives that of a run.
pub struct Recorded {
    /// Tables and summary. There are no links: a sender does not see any.
    pub outcome: Outcome,
    /// The kernel's own columns.
    pub kernel: KernelTrace,
    /// Names of the flows.
    pub labels: Vec<String>,
    /// Time of the last sample, s.
    pub duration_s: f64,
    /// Time between samples, s.
    pub interval_s: f64,
    /// The shortest round-trip time that the kernel has measured, s.
    pub min_rtt_s: f64,
    /// The highest goodput of all streams together between two samples, bit/s.
    pub fastest_bit_s: f64,
    /// Packets on the wire: maximum segment size of the first stream, with the headers of IPv4 and TCP and its time stamps,
    /// bytes.
    pub packet_bytes: u32,
}

impl Record {
    /// For so many streams, which begin now.
    pub fn new(streams: usize) -> Self {
        Self {
            interval: INTERVAL,
            samples: Vec::new(),
            states: vec![0; streams],
            reductions: vec![0; streams],
            times: Vec::new(),
            next: Time::ZERO,
        }
    }

    /// Looks at the streams. A reduction of a window is seen if its recovery lasts until the next look; samples are kept at
    /// the interval. Returns whether this look was kept.
    pub fn look(&mut self, now: Time, infos: &[TcpInfo]) -> bool {
        for (stream, info) in infos.iter().enumerate() {
            let before = std::mem::replace(&mut self.states[stream], info.ca_state);
            if info.reduced_since(before) {
                self.reductions[stream] += 1;
                if self.times.len() < MOST_REDUCTIONS {
                    self.times.push((stream as u32, now));
                }
            }
        }
        if now < self.next {
            return false;
        }
        // A late look is one of the time that it was due at, unless it is later than a whole interval.
        let due = if now < self.next.saturating_add(self.interval) {
            self.next
        } else {
            self.interval * (now.picos() / self.interval.picos())
        };
        self.samples.push((due, infos.iter().copied().zip(self.reductions.iter().copied()).collect()));
        if self.samples.len() * self.states.len() > MOST_SAMPLES {
            self.interval = self.interval * 2;
            let interval = self.interval.picos();
            self.samples.retain(|(at, _)| at.picos() % interval == 0);
        }
        self.next = due.saturating_add(self.interval);
        true
    }

    /// The tables, at the end of the transfer, with a last look.
    pub fn finish(self, end: Time, last: &[TcpInfo]) -> Recorded {
        let labels: Vec<String> = (1..=self.states.len()).map(|number| format!("stream {number}")).collect();
        let rtt = last.iter().map(|info| info.min_rtt).filter(|&rtt| rtt > 0).min().unwrap_or(1);
        let rtt = Time::from_micros(u64::from(rtt));
        let mut collector = Collector::new(Setup {
            from: Time::ZERO,
            to: end,
            interval: self.interval,
            flows: labels.iter().map(|label| (label.clone(), rtt)).collect(),
            bottleneck: None,
        });
        let (mut flows, mut kernel) = (FlowTrace::default(), KernelTrace::default());
        let mut transfers = TransferTrace::default();
        for stream in 0..labels.len() as u32 {
            collector.flow_started(stream, Time::ZERO);
            collector.open_window(stream, FlowCounters::default());
        }
        for &(stream, at) in &self.times {
            collector.congestion(stream, at.min(end));
        }
        let mut before: Vec<(Time, u64)> = vec![(Time::ZERO, 0); labels.len()];
        let mut fastest_bit_s = 0.0_f64;
        for (at, infos) in &self.samples {
            let mut sum = 0.0;
            for (stream, (info, reductions)) in infos.iter().enumerate() {
                let (then, delivered) = std::mem::replace(&mut before[stream], (*at, info.bytes_acked));
                let span = at.since(then).secs_f64();
                let bits = info.bytes_acked.saturating_sub(delivered) as f64 * 8.0;
                let goodput_bit_s = if span > 0.0 { bits / span } else { 0.0 };
                sum += goodput_bit_s;
                flows.push(FlowRow {
                    goodput_bit_s,
                    congestion_events: *reductions as u32,
                    ..info.flow_row(*at, stream as u32)
                });
                kernel.push(info.kernel_row());
                collector.sample(stream as u32, &sample(info), *at);
            }
            fastest_bit_s = fastest_bit_s.max(sum);
        }
        for (stream, info) in last.iter().enumerate() {
            let counters = FlowCounters {
                delivered_bytes: info.bytes_acked,
                sent_bytes: info.bytes_sent.max(info.bytes_retrans),
                retransmitted_bytes: info.bytes_retrans,
                congestion_events: self.reductions[stream],
                timeouts: info.timeouts().unwrap_or(0),
                host: None,
            };
            collector.close_window(stream as u32, counters);
            collector.transfer(info.bytes_acked, Time::ZERO, end);
            transfers.add(stream as u32, 0, info.bytes_acked, Time::ZERO, Some(end));
        }
        let whole_bit_s = last.iter().map(|info| info.bytes_acked).sum::<u64>() as f64 * 8.0 / end.secs_f64();
        let segments_delivered = last.iter().map(|info| u64::from(info.delivered)).sum();
        let outcome = Outcome {
            summary: collector.finish(),
            flows,
            transfers,
            segments_delivered,
            ..Outcome::default()
        };
        Recorded {
            outcome,
            kernel,
            labels,
            duration_s: end.secs_f64(),
            interval_s: self.interval.secs_f64(),
            min_rtt_s: rtt.secs_f64(),
            fastest_bit_s: fastest_bit_s.max(whole_bit_s),
            packet_bytes: last.first().map_or(0, |info| info.snd_mss + 52),
        }
    }
}

fn sample(info: &TcpInfo) -> FlowSample {
    FlowSample {
        delivered_bytes: info.bytes_acked,
        cwnd: f64::from(info.snd_cwnd),
        srtt: Time::from_micros(u64::from(info.rtt)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(second: f64) -> TcpInfo {
        let bytes = (second * 1e6) as u64;
        TcpInfo {
            bytes_acked: bytes,
            bytes_sent: bytes,
            min_rtt: 20_000,
            snd_mss: 1448,
            snd_cwnd: 10,
            ..TcpInfo::default()
        }
    }

    #[test]
    fn samples_become_the_tables_of_a_run() {
        let mut record = Record::new(2);
        for step in 0..400_u64 {
            let mut seen = [info(step as f64 * 0.01); 2];
            seen[1].ca_state = if (100..110).contains(&step) { 3 } else { 0 };
            record.look(Time::from_millis(step * 10), &seen);
        }
        let found = record.finish(Time::from_secs(4), &[info(4.0); 2]);
        assert_eq!(found.outcome.flows.flow.len(), 80);
        assert_eq!(found.min_rtt_s, 0.02);
        assert!((found.fastest_bit_s - 16e6).abs() < 1e3, "{}", found.fastest_bit_s);
        assert!((found.outcome.summary.goodput_bit_s - 16e6).abs() < 1e3);
        let reductions: Vec<_> =
            found.outcome.summary.flows.iter().map(|flow| flow.congestion_events).collect();
        assert_eq!(reductions, [0, 1]);
        assert_eq!(found.outcome.summary.check(), Ok(()));
    }

    #[test]
    fn a_long_transfer_is_thinned_out() {
        let mut record = Record::new(1);
        for step in 0..200_000_u64 {
            record.look(Time::from_millis(step * 100), &[info(step as f64 * 0.1)]);
        }
        let found = record.finish(Time::from_secs(20_000), &[info(20_000.0)]);
        assert!(found.outcome.flows.flow.len() <= MOST_SAMPLES);
        assert!((found.interval_s - 0.4).abs() < 1e-9);
        let times = &found.outcome.flows.time_s;
        assert!(times.windows(2).all(|two| (two[1] - two[0] - 0.4).abs() < 1e-9));
    }
}

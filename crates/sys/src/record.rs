//! The TCP_INFO of connections, sampled ten times a second, as the tables of a run: a connection is a flow.

use elephan_metrics::trace::{FlowRow, FlowTrace, KernelTrace, TransferTrace};
use elephan_metrics::{Collector, FlowCounters, FlowSample, Outcome, Setup};
use elephan_units::Time;

use crate::TcpInfo;

/// Time between samples, at first.
pub const INTERVAL: Time = Time::from_millis(100);
/// The most samples of all connections that are kept. Beyond it every other one goes, and the interval doubles, so that a
/// transfer of days needs no more memory than one of an hour.
const MOST_SAMPLES: usize = 1 << 16;
/// The most reductions of windows whose times are kept.
const MOST_REDUCTIONS: usize = 1 << 16;

/// The most connections of a record.
const MOST_CONNECTIONS: usize = 1000;

/// The bytes that a connection has sent, as far as they are acknowledged, and received.
type Bytes = fn(&TcpInfo) -> u64;
const DIRECTIONS: [Bytes; 2] = [|info| info.bytes_acked, |info| info.bytes_received];

/// What is sampled of connections.
pub struct Record {
    interval: Time,
    next: Time,
    connections: Vec<Connection>,
    /// The number of samples of all connections.
    kept: usize,
    /// The connections whose windows were reduced, and when.
    times: Vec<(usize, Time)>,
}

struct Connection {
    label: String,
    start: Time,
    end: Option<Time>,
    last: TcpInfo,
    reductions: u64,
    samples: Vec<Sample>,
}

/// A state of a connection, stamped with the time at which it was due.
struct Sample {
    due: Time,
    seen: Time,
    info: TcpInfo,
    reductions: u64,
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
    /// The highest rate between two samples at which all connections together sent or received, bit/s: a lower bound of the
    /// path's rate. Zero if they did neither.
    pub fastest_bit_s: f64,
    /// Packets on the wire: maximum segment size of the connection that delivered most, with the headers of IPv4 and TCP and its
    /// time stamps, bytes.
    pub packet_bytes: u32,
}

impl Record {
    /// Without connections; samples are kept at the interval.
    pub fn new(interval: Time) -> Self {
        Self { interval, next: Time::ZERO, connections: Vec::new(), kept: 0, times: Vec::new() }
    }

    /// For so many streams, which begin now.
    pub fn of_streams(streams: usize) -> Self {
        let mut record = Self::new(INTERVAL);
        for number in 1..=streams {
            record.begin(format!("stream {number}"), Time::ZERO);
        }
        record
    }

    /// Adds a connection, and returns its number. If there are as many as a record has, it takes the place of the one that has
    /// ended and delivered least; none if none has ended.
    pub fn begin(&mut self, label: String, start: Time) -> Option<usize> {
        let last = TcpInfo::default();
        let new = Connection { label, start, end: None, last, reductions: 0, samples: Vec::new() };
        if self.connections.len() < MOST_CONNECTIONS {
            self.connections.push(new);
            return Some(self.connections.len() - 1);
        }
        let ended = self.connections.iter_mut().enumerate().filter(|(_, one)| one.end.is_some());
        let (number, least) = ended.min_by_key(|(_, one)| one.last.bytes_acked)?;
        self.kept -= least.samples.len();
        self.times.retain(|&(other, _)| other != number);
        *least = new;
        Some(number)
    }

    /// A connection has ended, after it was looked at for the last time.
    pub fn end(&mut self, number: usize, at: Time) {
        let connection = &mut self.connections[number];
        connection.end = Some(at.max(connection.start));
    }

    /// Looks at connections, by number. A reduction of a window is seen if its recovery lasts until the next look; samples are
    /// kept at the interval. Returns whether this look was kept.
    pub fn look(&mut self, now: Time, infos: impl IntoIterator<Item = (usize, TcpInfo)>) -> bool {
        for (number, info) in infos {
            let connection = &mut self.connections[number];
            // The counters of a socket that is disconnected begin at zero again.
            if info.bytes_acked < connection.last.bytes_acked {
                continue;
            }
            let before = std::mem::replace(&mut connection.last, info).ca_state;
            if info.reduced_since(before) {
                connection.reductions += 1;
                if self.times.len() < MOST_REDUCTIONS {
                    self.times.push((number, now));
                }
            }
        }
        if now < self.next {
            return false;
        }
        // A late sample is stamped with its due time, unless it is late by more than one interval.
        let due = if now < self.next.saturating_add(self.interval) {
            self.next
        } else {
            self.interval * (now.picos() / self.interval.picos())
        };
        for connection in &mut self.connections {
            if connection.end.is_none() && connection.start <= due {
                let Connection { last: info, reductions, .. } = *connection;
                connection.samples.push(Sample { due, seen: now, info, reductions });
                self.kept += 1;
            }
        }
        if self.kept > MOST_SAMPLES {
            self.interval = self.interval * 2;
            let interval = self.interval.picos();
            for connection in &mut self.connections {
                connection.samples.retain(|sample| sample.due.picos() % interval == 0);
            }
            self.kept = self.connections.iter().map(|one| one.samples.len()).sum();
        }
        self.next = due.saturating_add(self.interval);
        true
    }

    /// The tables, at the end of all, with a last look at connections that have not ended.
    pub fn finish(mut self, end: Time, last: impl IntoIterator<Item = (usize, TcpInfo)>) -> Recorded {
        for (number, info) in last {
            self.connections[number].last = info;
        }
        for connection in &mut self.connections {
            // Between two samples a connection may deliver all that it has.
            if let Some(end) = connection.end {
                let Connection { last: info, reductions, .. } = *connection;
                connection.samples.retain(|sample| sample.due < end);
                connection.samples.push(Sample { due: end, seen: end, info, reductions });
            }
        }
        let rtt = self
            .connections
            .iter()
            .filter_map(|one| one.last.min_rtt())
            .filter(|&rtt| rtt > 0)
            .min()
            .unwrap_or(1);
        let rtt = Time::from_micros(u64::from(rtt));
        let labels: Vec<String> = self.connections.iter().map(|one| one.label.clone()).collect();
        let mut collector = Collector::new(Setup {
            from: Time::ZERO,
            to: end,
            interval: self.interval,
            rtts: vec![rtt; labels.len()],
            bottleneck: None,
        });
        let mut transfers = TransferTrace::default();
        for (flow, connection) in (0..).zip(&self.connections) {
            collector.flow_started(flow, connection.start);
            collector.open_window(flow, FlowCounters::default());
        }
        for &(number, at) in &self.times {
            collector.congestion(number as u32, at.min(end));
        }
        let (flows, kernel, fastest_bit_s) = self.series(&mut collector);
        for (flow, connection) in (0..).zip(&self.connections) {
            let Connection { start, last, .. } = connection;
            let counters = FlowCounters {
                delivered_bytes: last.bytes_acked,
                sent_bytes: last.bytes_sent.max(last.bytes_retrans),
                retransmitted_bytes: last.bytes_retrans,
                congestion_events: connection.reductions,
                timeouts: last.timeouts(),
                host: None,
            };
            collector.close_window(flow, counters);
            let end = connection.end.unwrap_or(end);
            collector.transfer(last.bytes_acked, *start, end);
            transfers.add(flow, 0, last.bytes_acked, *start, Some(end));
        }
        let sum = |of: Bytes| self.connections.iter().map(|one| of(&one.last)).sum::<u64>();
        let bytes = DIRECTIONS.map(sum).into_iter().fold(0, u64::max);
        let whole_bit_s = bytes as f64 * 8.0 / end.secs_f64();
        let segments_delivered = sum(|info| u64::from(info.delivered));
        let most = self.connections.iter().max_by_key(|one| one.last.bytes_acked);
        let outcome = Outcome {
            summary: collector.finish(labels.iter().map(String::as_str)),
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
            packet_bytes: most.map_or(0, |one| one.last.snd_mss + 52),
        }
    }

    /// The samples by time, and the highest rate of all connections together.
    fn series(&self, collector: &mut Collector) -> (FlowTrace, KernelTrace, f64) {
        let (mut flows, mut kernel) = (FlowTrace::default(), KernelTrace::default());
        let mut rows: Vec<(Time, usize, usize)> = Vec::new();
        for (number, connection) in self.connections.iter().enumerate() {
            rows.extend(connection.samples.iter().enumerate().map(|(row, sample)| (sample.due, number, row)));
        }
        rows.sort_unstable();
        let (mut fastest_bit_s, mut sums_bit_s, mut now) = (0.0_f64, [0.0; 2], Time::ZERO);
        for (at, number, row) in rows {
            let connection = &self.connections[number];
            let Sample { seen, info, reductions, .. } = &connection.samples[row];
            // It may have begun an interval before it was found.
            let (due, begun) = (connection.start, connection.start.since(self.interval));
            let first = Sample { due, seen: begun, info: TcpInfo::default(), reductions: 0 };
            let before = row.checked_sub(1).map_or(&first, |before| &connection.samples[before]);
            let rate = |span: Time, of: Bytes| {
                let bits = of(info).saturating_sub(of(&before.info)) as f64 * 8.0;
                if span > Time::ZERO { bits / span.secs_f64() } else { 0.0 }
            };
            let goodput_bit_s = rate(at.since(before.due), DIRECTIONS[0]);
            if at > now {
                (sums_bit_s, now) = ([0.0; 2], at);
            }
            let span = seen.since(before.seen);
            // In a shorter time more may be acknowledged than the path has carried.
            if span * 2 >= self.interval {
                for (sum, of) in sums_bit_s.iter_mut().zip(DIRECTIONS) {
                    *sum += rate(span, of);
                    fastest_bit_s = fastest_bit_s.max(*sum);
                }
            }
            let flow = number as u32;
            flows.push(FlowRow {
                goodput_bit_s,
                congestion_events: *reductions as u32,
                ..info.flow_row(at, flow)
            });
            kernel.push(info.kernel_row());
            collector.sample(flow, &sample(info), at);
        }
        (flows, kernel, fastest_bit_s)
    }
}

fn sample(info: &TcpInfo) -> FlowSample {
    FlowSample { delivered_bytes: info.bytes_acked, cwnd: f64::from(info.snd_cwnd), srtt: info.srtt() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp_info::from_bytes;

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
        let mut record = Record::of_streams(2);
        for step in 0..400_u64 {
            let mut seen = [info(step as f64 * 0.01); 2];
            seen[1].ca_state = if (100..110).contains(&step) { 3 } else { 0 };
            record.look(Time::from_millis(step * 10), seen.into_iter().enumerate());
        }
        let found = record.finish(Time::from_secs(4), [info(4.0); 2].into_iter().enumerate());
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
    fn connections_begin_and_end_at_their_own_times() {
        let mut record = Record::new(INTERVAL);
        let long = record.begin("long".to_owned(), Time::ZERO).unwrap();
        let late = record.begin("late".to_owned(), Time::from_millis(330)).unwrap();
        for step in 0..100_u64 {
            let at = Time::from_millis(step * 10);
            let (of_long, of_late) = ((long, info(step as f64 * 0.01)), (late, info(1.0)));
            record.look(at, [of_long].into_iter().chain((40..=45).contains(&step).then_some(of_late)));
        }
        // A socket that was reset counts from zero again.
        record.look(Time::from_millis(452), [(late, TcpInfo::default())]);
        record.end(late, Time::from_millis(452));
        let found = record.finish(Time::from_secs(1), [(long, info(1.0))]);
        let rows = |flow| {
            let trace = &found.outcome.flows;
            let rows = trace.flow.iter().zip(&trace.time_s).zip(&trace.delivered_bytes);
            rows.filter(|((of, _), _)| **of == flow).map(|((_, at), bytes)| (*at, *bytes)).collect::<Vec<_>>()
        };
        assert_eq!(rows(0).len(), 10);
        assert_eq!(rows(1), [(Time::from_millis(400).secs_f64(), 1_000_000), (0.452, 1_000_000)]);
        assert_eq!(found.outcome.transfers.start_s, [0.0, 0.33]);
        assert_eq!(found.outcome.transfers.end_s, [1.0, 0.452]);
        assert_eq!(found.outcome.summary.check(), Ok(()));
    }

    #[test]
    fn the_fastest_rate_is_that_of_the_direction_with_more_bytes() {
        for (bytes_acked, bytes_received) in [(1, 50_000), (50_000, 1), (0, 0)] {
            let mut record = Record::new(INTERVAL);
            let number = record.begin("a connection".to_owned(), Time::ZERO).unwrap();
            for (at, share) in [(0, 0), (100, 1), (200, 2)] {
                let seen = TcpInfo {
                    bytes_acked: bytes_acked * share,
                    bytes_received: bytes_received * share,
                    ..TcpInfo::default()
                };
                record.look(Time::from_millis(at), [(number, seen)]);
            }
            let fastest_bit_s = record.finish(Time::from_millis(250), []).fastest_bit_s;
            let expected = if bytes_acked + bytes_received > 0 { 4e6 } else { 0.0 };
            assert!((fastest_bit_s - expected).abs() < 1.0, "{fastest_bit_s}");
        }
    }

    /// The highest rate of a connection that delivers a megabyte per second, and was there before it was found at 99.9 ms.
    fn fastest_bit_s(looks_ms: &[u64], end_us: u64) -> f64 {
        let mut record = Record::new(INTERVAL);
        let number = record.begin("a connection".to_owned(), Time::from_micros(99_900)).unwrap();
        for &at in looks_ms {
            record.look(Time::from_millis(at), [(number, info(at as f64 * 1e-3))]);
        }
        // What was acknowledged last had been on its way for some time.
        record.look(Time::from_micros(end_us), [(number, info(end_us as f64 * 1e-6 + 0.01))]);
        record.end(number, Time::from_micros(end_us));
        record.finish(Time::from_micros(end_us), []).fastest_bit_s
    }

    #[test]
    fn the_fastest_rate_is_a_lower_bound_of_the_paths() {
        // It has 100 kB when it is found; its last 10 kB are acknowledged within 1 ms; looks may be late.
        for (looks, end_us) in
            [(&[100_u64, 200][..], 201_000), (&[100, 200, 390, 400], 500_000), (&[100], 101_000)]
        {
            let fastest_bit_s = fastest_bit_s(looks, end_us);
            assert!((4e6..8.9e6).contains(&fastest_bit_s), "{looks:?}: {fastest_bit_s}");
        }
    }

    #[test]
    fn a_round_trip_time_that_the_kernel_has_not_measured_is_none() {
        let mut record = Record::new(INTERVAL);
        for min_rtt in [u32::MAX, 20_000, 0] {
            let number = record.begin("a connection".to_owned(), Time::ZERO).unwrap();
            record.look(Time::from_millis(1), [(number, TcpInfo { min_rtt, ..TcpInfo::default() })]);
        }
        assert_eq!(record.finish(Time::from_millis(2), []).min_rtt_s, 0.02);
        let mut unknown = Record::of_streams(1);
        unknown.look(Time::ZERO, [(0, TcpInfo { min_rtt: u32::MAX, ..TcpInfo::default() })]);
        let recorded = unknown.finish(Time::from_millis(2), []);
        assert_eq!(recorded.min_rtt_s, 1e-6);
        assert!(recorded.kernel.min_rtt_s[0].is_nan());
    }

    #[test]
    fn timeouts_that_the_kernel_does_not_report_are_not_zero() {
        for (told, count, in_row) in [(from_bytes(&[0; 80]), None, u32::MAX), (info(0.0), Some(0), 0)] {
            let mut record = Record::of_streams(1);
            record.look(Time::ZERO, [(0, told)]);
            let outcome = record.finish(Time::from_secs(1), [(0, told)]).outcome;
            assert_eq!((outcome.summary.flows[0].timeouts, outcome.flows.timeouts[0]), (count, in_row));
        }
    }

    #[test]
    fn of_too_many_connections_the_smallest_that_have_ended_go() {
        let mut record = Record::new(INTERVAL);
        for number in 0..MOST_CONNECTIONS {
            record.begin(number.to_string(), Time::ZERO);
        }
        assert_eq!(record.begin("none has ended".to_owned(), Time::ZERO), None);
        for (number, bytes) in [(3, 2.0), (5, 1.0)] {
            record.look(Time::from_millis(5), [(number, info(bytes))]);
            record.end(number, Time::from_millis(5));
        }
        assert_eq!(record.begin("new".to_owned(), Time::from_millis(5)), Some(5));
        assert_eq!(record.finish(Time::from_millis(6), []).labels[5], "new");
    }

    #[test]
    fn a_long_transfer_is_thinned_out() {
        let mut record = Record::of_streams(1);
        for step in 0..200_000_u64 {
            record.look(Time::from_millis(step * 100), [(0, info(step as f64 * 0.1))]);
        }
        let found = record.finish(Time::from_secs(20_000), [(0, info(20_000.0))]);
        assert!(found.outcome.flows.flow.len() <= MOST_SAMPLES);
        assert!((found.interval_s - 0.4).abs() < 1e-9);
        let times = &found.outcome.flows.time_s;
        assert!(times.windows(2).all(|two| (two[1] - two[0] - 0.4).abs() < 1e-9));
    }
}

//! Samples of flows, crowds and streams, at equal intervals.

use elephan_metrics::FlowSamples;
use elephan_metrics::trace::{CrowdRow, CrowdTrace, FlowRow, StreamRow, StreamTrace, seconds};
use elephan_units::Time;

use crate::state::State;

/// Samples so far.
pub struct Samples {
    /// Samples of the flows that have started.
    pub flows: FlowSamples,
    /// Samples of the crowds.
    pub crowds: CrowdTrace,
    /// Samples of the streams that have started.
    pub streams: StreamTrace,
    /// Bytes delivered, and payload arrived, of each flow at its last sample.
    flow_bytes: Vec<[u64; 2]>,
    /// The same of each crowd.
    crowd_bytes: Vec<[u64; 2]>,
    /// Packets received of each stream at its last sample.
    stream_packets: Vec<u64>,
    last: Time,
}

impl Samples {
    /// Empty samples for `state`.
    pub fn new(state: &State<'_>) -> Self {
        Self {
            flows: FlowSamples::of(state.plan.flows.len()),
            crowds: CrowdTrace::default(),
            streams: StreamTrace::default(),
            flow_bytes: vec![[0; 2]; state.plan.flows.len()],
            crowd_bytes: vec![[0; 2]; state.plan.crowds.len()],
            stream_packets: vec![0; state.plan.streams.len()],
            last: Time::ZERO,
        }
    }

    /// Takes the samples at `now`.
    pub fn take(&mut self, state: &State<'_>, now: Time) {
        let span = now.since(self.last).secs_f64();
        self.take_flows(state, now, span);
        self.take_crowds(state, now, span);
        self.take_streams(state, now, span);
        self.last = now;
    }

    fn take_flows(&mut self, state: &State<'_>, now: Time, span: f64) {
        for (number, flow) in state.flows().enumerate() {
            let Some(sender) = flow.slot.sender() else { continue };
            let (snapshot, counters) = (sender.snapshot(), flow.counters());
            let delivered = counters.bytes_delivered;
            let [goodput_bit_s, receive_rate_bit_s] =
                rates(&mut self.flow_bytes[number], [delivered, flow.arrived], span);
            self.flows.push(FlowRow {
                time_s: now.secs_f64(),
                flow: number as u32,
                cwnd_segments: snapshot.cwnd,
                ssthresh_segments: snapshot.ssthresh,
                srtt_s: seconds(sender.srtt()),
                rto_s: snapshot.rto.secs_f64(),
                pipe_bytes: snapshot.pipe,
                goodput_bit_s,
                receive_rate_bit_s,
                delivered_bytes: delivered,
                sent_bytes: counters.bytes_sent,
                retransmits: counters.segments_retransmitted,
                timeouts: counters.timeouts as u32,
                congestion_events: counters.reductions as u32,
            });
        }
    }

    fn take_crowds(&mut self, state: &State<'_>, now: Time, span: f64) {
        for (number, (crowd, counters)) in state.crowds().enumerate() {
            let delivered = counters.bytes_delivered;
            let [goodput_bit_s, receive_rate_bit_s] =
                rates(&mut self.crowd_bytes[number], [delivered, state.arrived_of(number, crowd)], span);
            self.crowds.push(CrowdRow {
                time_s: now.secs_f64(),
                flow: (state.plan.flows.len() + number) as u32,
                open: state.slots_of(number, crowd).filter(|slot| slot.connection.is_some()).count() as u32,
                opened: crowd.opened,
                finished: crowd.finished,
                delivered_bytes: delivered,
                goodput_bit_s,
                receive_rate_bit_s,
            });
        }
    }

    fn take_streams(&mut self, state: &State<'_>, now: Time, span: f64) {
        let before = state.plan.flows.len() + state.plan.crowds.len();
        for (number, (stream, reception)) in state.streams().enumerate() {
            if stream.started.is_none() {
                continue;
            }
            let received = reception.received();
            let since =
                received.packets - std::mem::replace(&mut self.stream_packets[number], received.packets);
            let bits = since as f64 * state.plan.streams[number].datagrams.payload_bytes() as f64 * 8.0;
            self.streams.push(StreamRow {
                time_s: now.secs_f64(),
                flow: (before + number) as u32,
                sent: stream.sent,
                received: received.packets,
                missing: received.lost(),
                goodput_bit_s: if span > 0.0 { bits / span } else { 0.0 },
            });
        }
    }
}

/// What counters of bytes grew by since the last sample, `span` seconds ago, in bit/s; they are now those of the last sample.
fn rates(last: &mut [u64; 2], now: [u64; 2], span: f64) -> [f64; 2] {
    let before = std::mem::replace(last, now);
    let rate = |now: u64, before: u64| if span > 0.0 { (now - before) as f64 * 8.0 / span } else { 0.0 };
    [rate(now[0], before[0]), rate(now[1], before[1])]
}

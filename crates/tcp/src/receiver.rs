//! The receiving half: what arrived, what to acknowledge and when, how much more to admit.

use std::collections::VecDeque;

use elephan_units::Time;

use crate::config::Config;
use crate::segment::SackBlocks;
use crate::sequence;

/// The largest window that TCP can express: 16 bits shifted by 14 (RFC 7323, section 2.3).
const MAX_WINDOW: u64 = 65_535 << 14;
/// Where dynamic right-sizing starts: the largest window without scaling.
const FIRST_WINDOW: u64 = 65_535;

/// The receiving half of an endpoint. Offsets count the peer's payload; a FIN takes one.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// Everything below was received.
    next: u64,
    /// What arrived beyond a hole: disjoint runs `[left, right)` in order.
    beyond: VecDeque<(u64, u64)>,
    /// The runs that changed last, the newest first: what SACK blocks report (RFC 2018, section 4).
    recent: SackRuns,
    /// What arrived twice and was not reported yet (RFC 2883).
    duplicate: Option<(u64, u64)>,
    /// Offset of the peer's FIN.
    fin: Option<u64>,
    /// Payload handed to the application.
    delivered: u64,
    /// Whether the application reads what arrives at once.
    reading: bool,
    /// Payload received in order that the application did not read.
    unread: u64,
    /// Right edge of the window that was advertised: it never moves back.
    advertised: u64,
    buffer: u64,
    /// What is advertised now, at most: grows to `buffer` with dynamic right-sizing.
    window: u64,
    /// Offset and time at which the present measurement of right-sizing began.
    measured_from: (u64, Time),
    auto_tuning: bool,
    dsack: bool,
    /// Payload in order since the last ACK.
    unacknowledged: u32,
    delayed_ack_bytes: u32,
    delayed_ack_timeout: Time,
    quick_left: u32,
    /// When a delayed ACK is due; `Time::MAX` where none is pending.
    pub deadline: Time,
    /// Whether an ACK must go out now.
    pub ack_now: bool,
}

/// Up to four runs of offsets, the newest first.
#[derive(Clone, Copy, Debug, Default)]
struct SackRuns {
    runs: [(u64, u64); 4],
    count: usize,
}

impl SackRuns {
    /// `run` changed: it comes first, and what it swallowed goes.
    fn touch(&mut self, run: (u64, u64)) {
        let old = *self;
        self.runs[0] = run;
        self.count = 1;
        for &(left, right) in &old.runs[..old.count] {
            if self.count < 4 && !(run.0 <= left && right <= run.1) {
                self.runs[self.count] = (left, right);
                self.count += 1;
            }
        }
    }

    /// Everything below `next` was acknowledged.
    fn forget_below(&mut self, next: u64) {
        let old = *self;
        self.count = 0;
        for &run in &old.runs[..old.count] {
            if run.0 > next {
                self.runs[self.count] = run;
                self.count += 1;
            }
        }
    }
}

impl Receiver {
    /// A receiver of a connection with this stack and payload size.
    pub fn new(config: &Config, mss: u32) -> Self {
        let buffer = config.receive_buffer.map_or(MAX_WINDOW, |bytes| bytes.get().min(MAX_WINDOW));
        let window = if config.auto_tuning { buffer.min(FIRST_WINDOW) } else { buffer };
        Self {
            next: 0,
            beyond: VecDeque::new(),
            recent: SackRuns::default(),
            duplicate: None,
            fin: None,
            delivered: 0,
            reading: true,
            unread: 0,
            advertised: window,
            buffer,
            window,
            measured_from: (0, Time::ZERO),
            auto_tuning: config.auto_tuning,
            dsack: config.dsack,
            unacknowledged: 0,
            delayed_ack_bytes: u32::from(config.delayed_ack.segments.max(1)) * mss,
            delayed_ack_timeout: config.delayed_ack.timeout,
            quick_left: config.delayed_ack.quick,
            deadline: Time::MAX,
            ack_now: false,
        }
    }

    /// The offset that the cumulative acknowledgment names.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Payload bytes handed to the application.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Whether all that the peer will ever send has arrived.
    pub fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    /// The window to advertise, in bytes, and the shift that its field needs.
    pub fn shift(&self) -> u8 {
        (0..14).find(|shift| self.buffer >> shift <= 65_535).unwrap_or(14)
    }

    /// The window to advertise now, in bytes from the acknowledgment. Notes that it was advertised.
    pub fn advertise(&mut self, mss: u32) -> u64 {
        let free = self.window.saturating_sub(self.unread);
        let held = self.advertised.saturating_sub(self.next);
        // Silly window avoidance (RFC 9293, section 3.8.6.2.2): open by a segment or half the buffer, or not at all.
        let step = u64::from(mss).min(self.buffer / 2);
        if free >= held + step {
            self.advertised = self.next + free;
        }
        self.advertised.saturating_sub(self.next)
    }

    /// Whether a closed window has opened far enough to tell the peer.
    fn has_opened(&self, mss: u32) -> bool {
        let free = self.window.saturating_sub(self.unread);
        let held = self.advertised.saturating_sub(self.next);
        held < u64::from(mss) && free >= held + u64::from(mss).min(self.buffer / 2)
    }

    /// The application begins or stops reading what arrives.
    pub fn set_reading(&mut self, reading: bool, mss: u32) {
        self.reading = reading;
        if reading {
            self.delivered += self.unread;
            self.unread = 0;
            self.ack_now |= self.has_opened(mss);
        }
    }

    /// Payload `[left, right)` arrived, with the FIN at `right` where `fin`.
    pub fn receive(&mut self, left: u64, right: u64, fin: bool, srtt: Time, now: Time) {
        if fin {
            self.fin = Some(right);
        }
        let right = right + u64::from(fin);
        let limit = self.advertised.max(self.next) + 1;
        if right <= self.next || left >= limit {
            // Nothing new, or beyond the window: an ACK at once (RFC 9293, section 3.10.7.4).
            if left < right {
                self.duplicate = self.dsack.then_some((left, right.min(self.next)));
            }
            self.ack_now = true;
            return;
        }
        if left < self.next {
            self.duplicate = self.dsack.then_some((left, self.next));
        }
        if left <= self.next {
            self.receive_in_order(right, now);
        } else {
            self.receive_beyond(left, right);
            self.ack_now = true;
        }
        if self.auto_tuning {
            self.right_size(srtt, now);
        }
    }

    fn receive_in_order(&mut self, right: u64, now: Time) {
        let before = self.next;
        self.next = right;
        let filled_a_hole = !self.beyond.is_empty();
        if filled_a_hole {
            while let Some(&(left, end)) = self.beyond.front() {
                if left > self.next {
                    break;
                }
                self.next = self.next.max(end);
                self.beyond.pop_front();
            }
            self.recent.forget_below(self.next);
        }
        let past_fin = u64::from(self.fin.is_some_and(|fin| self.next > fin));
        let payload = self.next - before - past_fin;
        if self.reading {
            self.delivered += payload;
        } else {
            self.unread += payload;
        }
        self.unacknowledged = self.unacknowledged.saturating_add((right - before) as u32);
        // RFC 5681, section 4.2: at once where a hole is filled; else for every so many segments.
        if filled_a_hole
            || past_fin > 0
            || self.quick_left > 0
            || self.unacknowledged >= self.delayed_ack_bytes
        {
            self.quick_left = self.quick_left.saturating_sub(1);
            self.ack_now = true;
        } else if self.deadline == Time::MAX {
            self.deadline = now + self.delayed_ack_timeout;
        }
    }

    fn receive_beyond(&mut self, left: u64, right: u64) {
        // Most arrivals extend the newest run; the others are found by bisection.
        let at = match self.beyond.back() {
            Some(&(last_left, _)) if left >= last_left => {
                self.beyond.len() - usize::from(self.beyond.back().is_some_and(|run| run.1 >= left))
            }
            _ => self.beyond.partition_point(|run| run.1 < left),
        };
        let mut merged = (left, right);
        let mut last = at;
        while let Some(&(run_left, run_right)) = self.beyond.get(last) {
            if run_left > right {
                break;
            }
            if self.dsack && run_left < right && left < run_right {
                self.duplicate = Some((left.max(run_left), right.min(run_right)));
            }
            merged = (merged.0.min(run_left), merged.1.max(run_right));
            last += 1;
        }
        match last - at {
            0 => self.beyond.insert(at, merged),
            1 => self.beyond[at] = merged,
            _ => {
                self.beyond[at] = merged;
                self.beyond.drain(at + 1..last);
            }
        }
        self.recent.touch(merged);
    }

    /// Dynamic right-sizing (Fisk and Feng 2001): twice what the application took in a round trip.
    fn right_size(&mut self, srtt: Time, now: Time) {
        let (offset, since) = self.measured_from;
        if srtt == Time::ZERO || now.since(since) >= srtt {
            self.window = self.window.max(2 * (self.next - offset)).min(self.buffer);
            self.measured_from = (self.next, now);
        }
    }

    /// The delayed-ACK timer.
    pub fn on_timer(&mut self, now: Time) {
        if now >= self.deadline {
            self.ack_now = true;
        }
    }

    /// The SACK blocks of an ACK: a duplicate first, then the runs that changed last.
    pub fn take_blocks(&mut self, irs: u32, at_most: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if self.duplicate.is_none() && self.recent.count == 0 {
            return blocks;
        }
        let wire = |offset| sequence::wire(offset, irs);
        if let Some((left, right)) = self.duplicate.take() {
            blocks.push(wire(left), wire(right));
        }
        for &(left, right) in &self.recent.runs[..self.recent.count] {
            if blocks.as_slice().len() < at_most {
                blocks.push(wire(left), wire(right));
            }
        }
        blocks
    }

    /// An acknowledgment went out, alone or on data.
    pub fn acknowledged(&mut self) {
        self.ack_now = false;
        self.deadline = Time::MAX;
        self.unacknowledged = 0;
    }
}

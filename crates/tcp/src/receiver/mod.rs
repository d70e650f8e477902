//! The receiving half: what arrived, what to acknowledge and when, and which window to advertise.

mod beyond;
mod compression;
mod next;
mod right_sizing;
mod sack;
mod spacing;

use elephan_units::{Bytes, Time};

use crate::config::Config;
use crate::segment::SackBlocks;
use crate::sender::TICK;

use beyond::Beyond;
use compression::Compression;
use right_sizing::{FIRST_WINDOW, RightSizing};
use spacing::Spacing;

/// The largest window that TCP can express: 16 bits shifted by 14 (RFC 7323, section 2.3).
const MAX_WINDOW: u32 = 65_535 << 14;
/// The same without scaling.
const MAX_UNSCALED_WINDOW: u32 = 65_535;
/// Linux (net/ipv4/tcp_input.c, `tcp_event_data_recv`): shorter segments do not let the window grow.
const SHORTEST_THAT_GROWS: u64 = 128;
/// Linux (net/ipv4/tcp_input.c, `TCP_SACK_BLOCKS_EXPECTED`): number of blocks that an ACK is trusted to report.
const BLOCKS_EXPECTED: usize = 2;

/// Memory that Linux takes for a segment with `payload` bytes which a device has written into a buffer of its own, in bytes: a
/// descriptor, and a head of a power of two with the headers (IPv4, and TCP with timestamps) and `skb_shared_info`
/// (include/linux/skbuff.h, `SKB_TRUESIZE`; net/core/skbuff.c, `kmalloc_reserve`, where the smallest head has
/// `SKB_SMALL_HEAD_CACHE_SIZE`).
fn truesize(payload: u64) -> u64 {
    let head = payload + 20 + 32 + 320;
    256 + if head <= 576 { 576 } else { head.next_power_of_two() }
}

/// The window that Linux offers for this memory of its buffer, in bytes, where full segments have a payload of `mss`
/// (include/net/tcp.h, `tcp_win_from_space`, with the ratio of `tcp_measure_rcv_mss`).
pub fn window_of_memory(memory: u64, mss: u32) -> u64 {
    let payload = u64::from(mss);
    (memory * ((payload << 8) / truesize(payload))) >> 8
}

/// How the application takes data that arrives in order.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reading {
    /// At once, and its ACKs are delayed for a time that is always the same.
    Plain,
    /// At once, and its ACKs are delayed by the time between segments.
    Spaced,
    /// It does not read.
    None,
}

/// The receiving half of an endpoint. Offsets count the peer's payload; a FIN takes one.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Receiver {
    /// Everything below this was received.
    next: u64,
    /// Right edge of the advertised window; it never moves back.
    advertised: u64,
    /// Payload of all segments that have arrived, duplicates included.
    arrived: u64,
    /// When a delayed ACK is due; `Time::MAX` if none is pending.
    pub deadline: Time,
    /// Until when an ACK was last delayed.
    delayed_until: Time,
    delayed_ack_timeout: Time,
    /// In-order payload since the last ACK.
    unacknowledged: u32,
    mss: u32,
    /// The maximum window advertised now; it grows to `buffer` with dynamic right-sizing.
    window: u32,
    /// Payload received in order that the application has not read.
    unread: u32,
    /// The same, or less where memory is short, so rounded that scaling leaves it.
    grown: u32,
    buffer: u32,
    /// Whether an ACK must be sent now.
    pub ack_now: bool,
    /// Whether such a segment has arrived since the last ACK.
    pushed: bool,
    delayed_ack_segments: u8,
    reading: Reading,
    dsack: bool,
    /// Whether blocks are sent; known after the handshake.
    sack: bool,
    /// Whether what ends a write is acknowledged when it is read.
    pub hurries_reads: bool,
    /// So many segments are acknowledged at once after a duplicate.
    quick: u8,
    /// The part of a window that scaling cuts off.
    cut: u16,
    quick_left: u16,
    /// The window advertised at most until more data has arrived (Linux's `rcv_ssthresh`); `u32::MAX` if it
    /// does not grow so.
    threshold: u32,
    /// Offset of the peer's FIN; `u64::MAX` before it arrives.
    fin: u64,
    /// What SACK blocks report: none if nothing is missing and no duplicate is to be reported.
    beyond: Option<Box<Beyond>>,
    right_sizing: Option<Box<RightSizing>>,
    /// How reports of out-of-order data are held back.
    compression: Option<Box<Compression>>,
}

impl Receiver {
    /// The receiver of a connection with this stack configuration.
    pub fn new(config: &Config) -> Self {
        let bytes = |bytes: Bytes| u32::try_from(bytes.get()).unwrap_or(u32::MAX);
        let buffer = config.receive_buffer.map_or(MAX_WINDOW, bytes).min(MAX_WINDOW);
        let threshold = config.first_receive_window.map_or(u32::MAX, bytes);
        let window = match config.first_receive_window {
            _ if !config.auto_tuning => buffer,
            Some(first) => buffer.min(bytes(first).max(FIRST_WINDOW as u32)),
            None => buffer.min(FIRST_WINDOW as u32),
        };
        Self {
            next: 0,
            beyond: None,
            fin: u64::MAX,
            arrived: 0,
            reading: if config.delayed_ack.compress { Reading::Spaced } else { Reading::Plain },
            unread: 0,
            advertised: u64::from(window.min(threshold).min(MAX_UNSCALED_WINDOW)),
            buffer,
            window,
            right_sizing: config.auto_tuning.then(|| {
                let grows = config.first_receive_window.is_some();
                Box::new(if grows {
                    RightSizing::linux(config.mss())
                } else {
                    RightSizing::new(config.auto_tuning_factor)
                })
            }),
            threshold,
            grown: threshold,
            cut: 0,
            dsack: config.dsack,
            sack: false,
            compression: config.delayed_ack.compress.then(Box::default),
            unacknowledged: 0,
            delayed_ack_segments: config.delayed_ack.segments.max(1),
            mss: config.mss(),
            delayed_ack_timeout: config.delayed_ack.timeout,
            hurries_reads: config.delayed_ack.read,
            pushed: false,
            quick_left: config.delayed_ack.quick,
            quick: config.delayed_ack.quick.min(u8::MAX.into()) as u8,
            deadline: Time::MAX,
            delayed_until: Time::ZERO,
            ack_now: false,
        }
    }

    /// Sets the negotiated values: the payload of a full segment, and whether windows are scaled and SACK
    /// blocks sent.
    pub fn agree(&mut self, mss: u32, scaling: bool, sack: bool) {
        self.mss = mss;
        self.sack = sack;
        if !sack {
            (self.compression, self.dsack) = (None, false);
            self.set_reading(self.reading != Reading::None);
        }
        if scaling {
            self.cut = (1 << self.shift()) - 1;
            self.grown = self.rounded(self.threshold);
            // The window of the SYN was not scaled; below the scale's unit it would be none.
            self.advertised = self.advertised.max(self.next + self.free());
        } else {
            self.buffer = self.buffer.min(MAX_UNSCALED_WINDOW);
            self.window = self.window.min(self.buffer);
        }
    }

    /// The handshake is complete, and measured this round-trip time.
    pub fn establish(&mut self, rtt: Option<Time>, now: Time) {
        if let Some(reports) = &mut self.compression {
            reports.rtt = rtt.unwrap_or(Time::ZERO);
            reports.spacing = Spacing::new(now);
        }
    }

    /// The window field of a SYN, which is never scaled.
    pub fn first_window(&self) -> u16 {
        self.advertised.min(u64::from(MAX_UNSCALED_WINDOW)) as u16
    }

    /// Whether dynamic right-sizing is in use, which measures round-trip times.
    #[inline]
    pub fn is_tuned(&self) -> bool {
        self.right_sizing.is_some()
    }

    /// Payload of a full segment, in bytes.
    pub fn mss(&self) -> u32 {
        self.mss
    }

    /// The offset of the cumulative acknowledgment.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Payload bytes handed to the application: what is in order, less what it has not read.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.next - u64::from(self.next > self.fin) - u64::from(self.unread)
    }

    /// Payload bytes of all segments that have arrived, duplicates included.
    pub fn arrived(&self) -> u64 {
        self.arrived
    }

    /// A segment with `len` bytes of payload arrived, to be kept or discarded; [`Receiver::receive_next`] counts its own.
    pub fn count(&mut self, len: u32) {
        self.arrived += u64::from(len);
    }

    /// Whether everything up to and including the peer's FIN has arrived.
    pub fn is_finished(&self) -> bool {
        self.next > self.fin
    }

    /// The shift that the window field needs (RFC 7323, section 2.3). Of a window that grows by less than a factor of two the first
    /// one, and a segment, decides (Linux, net/ipv4/tcp_output.c, `tcp_select_initial_window`): what the field cannot hold is not
    /// offered.
    pub fn shift(&self) -> u8 {
        let needed = (0..14).find(|shift| self.buffer >> shift <= 65_535).unwrap_or(14);
        let first = self.threshold.saturating_add(self.mss);
        if self.buffer / 2 < first { needed.min(first.ilog2().saturating_sub(15) as u8) } else { needed }
    }

    /// The window to advertise now, in bytes from the acknowledgment. Records that it was advertised.
    #[inline(always)]
    pub fn advertise(&mut self) -> u64 {
        let edge = self.next + self.free();
        if edge >= self.advertised.max(self.next) + self.step() {
            self.advertised = edge;
        }
        self.advertised.saturating_sub(self.next)
    }

    /// The window that the last acknowledgment advertised, if nothing has arrived since.
    #[inline(always)]
    pub fn advertised_window(&self) -> u64 {
        self.advertised - self.next
    }

    /// The available window: the limit set by right-sizing or the buffer, less the unread data; or what the
    /// window has grown to, so rounded that scaling leaves it (Linux, `__tcp_select_window`).
    fn free(&self) -> u64 {
        u64::from(self.window.saturating_sub(self.unread).min(self.grown))
    }

    fn rounded(&self, window: u32) -> u32 {
        let cut = u32::from(self.cut);
        window.saturating_add(cut) & !cut
    }

    /// A segment of `len` bytes arrived: the window grows by two segments, and the segment is acknowledged at
    /// once (Linux, net/ipv4/tcp_input.c, `tcp_grow_window`). What waits beyond a hole takes room, and so does the segment if it is in order: another is charged
    /// later. Segments are not merged, as in a kernel whose device writes each into memory of its own.
    #[inline(never)]
    fn grow_window(&mut self, left: u64, len: u64) {
        let in_order = if left <= self.next { len } else { 0 };
        let room = self.room_beside(in_order).saturating_sub(self.threshold.into());
        if room > 0 {
            self.threshold += room.min(2 * len.max(u64::from(self.mss))) as u32;
            self.grown = self.rounded(self.threshold);
            self.quick_left |= 1;
            if let Some(reports) = &mut self.compression {
                reports.spacing.deflate(self.delayed_ack_timeout);
            }
        }
    }

    /// The window that memory admits while `in_order` bytes that have just arrived are not read, and while others wait beyond a
    /// hole (Linux, `tcp_space`).
    fn room_beside(&self, in_order: u64) -> u64 {
        let waiting = in_order + self.beyond.as_ref().map_or(0, |beyond| beyond.bytes);
        let memory = waiting.div_ceil(self.mss.into()) * truesize(self.mss.into());
        let taken = u64::from(self.unread) + window_of_memory(memory, self.mss);
        u64::from(self.window).saturating_sub(taken)
    }

    /// Whether what waits beyond a hole takes room of the window.
    fn is_weighed(&self) -> bool {
        self.compression.is_some() && self.threshold < u32::MAX
    }

    /// Data arrived, `in_order` bytes of it, and waits beyond a hole, or did until now: nothing of it is read when the window of
    /// the ACK is chosen, and there is less of it (Linux, net/ipv4/tcp_output.c, `__tcp_select_window`).
    fn weigh(&mut self, in_order: u64) {
        if self.is_weighed() {
            let room = self.room_beside(in_order);
            self.grown = self.rounded(room.min(self.threshold.into()) as u32);
            if room < u64::from(self.window / 2) {
                self.quick_left = 0;
            }
        }
    }

    /// So many of the next segments are acknowledged without delay.
    pub fn hurry(&mut self, segments: u16) {
        self.quick_left = self.quick_left.max(segments);
    }

    /// Whether a sequence number lies within the advertised window.
    pub fn is_in_window(&self, offset: u64) -> bool {
        (self.next..self.advertised).contains(&offset)
    }

    /// How far the right edge could advance.
    fn opens_by(&self) -> u64 {
        (self.next + self.free()).saturating_sub(self.advertised.max(self.next))
    }

    /// Silly window avoidance (RFC 9293, section 3.8.6.2.2): the right edge advances only by at least a
    /// segment or half the buffer.
    fn step(&self) -> u64 {
        u64::from(self.mss.min(self.buffer / 2))
    }

    /// The application starts or stops reading.
    pub fn set_reading(&mut self, reading: bool) {
        self.reading = match self.compression {
            _ if !reading => Reading::None,
            Some(_) => Reading::Spaced,
            None => Reading::Plain,
        };
        if reading {
            self.read(u64::MAX);
        }
    }

    /// Payload received in order that the application has not read.
    pub fn unread(&self) -> u64 {
        u64::from(self.unread)
    }

    /// The application reads at most this number of bytes, and gets the number that it read.
    pub fn read(&mut self, most: u64) -> u64 {
        let taken = most.min(self.unread());
        self.unread -= taken as u32;
        // A window that had less than a full segment has opened: the sender waits for this update.
        let was_closed = self.advertised < self.next + u64::from(self.mss);
        self.ack_now |= was_closed && self.opens_by() >= self.step();
        if taken > 0 {
            self.acknowledge_read();
        }
        taken
    }

    /// A segment has arrived that ends a write: it is acknowledged as soon as everything is read.
    pub fn on_push(&mut self) {
        self.pushed = true;
        self.acknowledge_read();
    }

    /// Acknowledges what was read, if a write ends in it, and everything that has arrived was.
    fn acknowledge_read(&mut self) {
        self.ack_now |= self.pushed && self.deadline < Time::MAX && self.unread == 0 && !self.has_holes();
    }

    /// Payload `[left, right)` arrived, with the FIN at `right` if `fin` is set. `echo` is the age of the
    /// echoed timestamp, if there was one.
    pub fn receive(&mut self, left: u64, right: u64, fin: bool, echo: Option<Time>, now: Time) {
        let limit = self.advertised.max(self.next);
        if right > limit {
            // Data beyond the window is cut off, with the FIN behind it; an immediate ACK reports it (RFC 9293,
            // section 3.10.7.4).
            self.ack_now = true;
            if left < limit {
                self.receive(left, limit, false, echo, now);
            }
            return;
        }
        let end = right + u64::from(fin);
        if end <= self.next {
            self.report_duplicate(left, end);
            return;
        }
        if fin {
            self.fin = right;
        }
        let in_order = left <= self.next;
        if in_order && left < right {
            self.note_spacing(now);
        } else if self.compression.as_ref().is_some_and(|reports| reports.spacing.is_new()) {
            // The budget of the start belongs to data in order (Linux, net/ipv4/tcp_input.c, `tcp_event_data_recv`).
            self.quick_left = 0;
        }
        if self.threshold < self.window
            && if in_order { right - left >= SHORTEST_THAT_GROWS } else { self.sack }
        {
            self.grow_window(left, right - left);
        }
        if in_order {
            self.receive_in_order(left, end, now);
        } else {
            self.receive_beyond(left, end, now);
        }
        self.right_size(echo, now);
    }

    /// Acknowledges everything below `offset` whether it has arrived or not, and nothing above it, as if it had arrived in order; `fin` says
    /// that the FIN at `offset` has arrived. `echo` is as in [`Receiver::receive`].
    pub fn claim(&mut self, offset: u64, fin: bool, echo: Option<Time>, now: Time) {
        if self.fin == u64::MAX && offset < self.next {
            self.unread = self.unread.saturating_sub((self.next - offset) as u32);
            self.next = offset;
            self.ack_now = true;
        }
        let right = offset.min(self.fin);
        if right + u64::from(fin) > self.next {
            self.receive(self.next, right, fin, echo, now);
        } else {
            self.ack_now = true;
        }
    }

    /// `[left, end)` is discarded; the first part that had arrived before is reported as duplicate (RFC
    /// 2883).
    pub fn report_duplicate(&mut self, left: u64, end: u64) {
        self.ack_now = true;
        if left >= self.next && self.compression.is_some() {
            // An old timestamp only: Linux acknowledges, and no more (net/ipv4/tcp_input.c, `tcp_send_dupack`).
            return;
        }
        // Linux, net/ipv4/tcp_input.c, `tcp_data_queue`: an ACK may have been lost, or was late. This ACK is one of them if data waited
        // for it (`tcp_dec_quickack_mode`).
        self.hurry(self.quick.into());
        if self.compression.is_some() && self.deadline < Time::MAX {
            self.quick_left = self.quick_left.saturating_sub(1);
        }
        if !self.dsack || left == end {
            return;
        }
        if left < self.next {
            self.note_duplicate(left, end.min(self.next));
        } else if let Some(beyond) = &mut self.beyond {
            beyond.report_duplicate(left, end);
        }
    }

    fn receive_in_order(&mut self, left: u64, right: u64, now: Time) {
        let before = self.next;
        let reported = left < before;
        if reported {
            self.note_duplicate(left, before);
        }
        self.next = right;
        let filled_a_hole = self.has_holes();
        if filled_a_hole {
            self.fill_hole(reported);
            self.weigh(self.next - before);
            // The ACK comes before what was filled is read.
            if !(self.sack && self.is_weighed()) {
                self.forget_reported();
            }
        }
        let past_fin = u64::from(self.next > self.fin);
        let payload = self.next - before - past_fin;
        if self.reading == Reading::None {
            self.unread += payload as u32;
        }
        self.unacknowledged = self.unacknowledged.saturating_add((self.next - before) as u32);
        // RFC 5681, section 4.2: an immediate ACK if a hole is filled; otherwise one for a given number of
        // segments.
        if filled_a_hole && self.may_hold(self.next - before) {
            self.report(now);
        } else {
            self.acknowledge(filled_a_hole || past_fin > 0, now);
        }
    }

    /// Everything below `next` is now in order, and so are the runs that this reaches. `reported` says whether a
    /// duplicate was found in the same segment.
    #[inline(never)]
    fn fill_hole(&mut self, reported: bool) {
        let Some(beyond) = &mut self.beyond else { return };
        let (next, doubled) = beyond.fill(self.next);
        self.next = next;
        if let Some((left, right)) = doubled
            && !reported
        {
            self.note_duplicate(left, right);
        }
    }

    fn receive_beyond(&mut self, left: u64, right: u64, now: Time) {
        let beyond = self.beyond.get_or_insert_default();
        let is_first = !beyond.has_holes();
        let (run, doubled) = beyond.insert(left, right);
        if let Some((left, right)) = doubled {
            self.note_duplicate(left, right);
        }
        if self.compression.is_some() {
            self.report_beyond((left, right), is_first, now);
        } else {
            self.ack_now = true;
            self.beyond.get_or_insert_default().touch(run);
        }
    }

    /// Whether data is missing below what was received.
    #[inline]
    fn has_holes(&self) -> bool {
        self.beyond.as_ref().is_some_and(|beyond| beyond.has_holes())
    }

    /// Frees the memory of reports, if there is nothing to report.
    fn forget_reported(&mut self) {
        if self.beyond.take_if(|beyond| beyond.is_empty()).is_some() {
            self.grown = self.rounded(self.threshold);
        }
    }

    /// A segment arrived beyond a hole; decides whether it is reported now, with compression.
    #[inline(never)]
    fn report_beyond(&mut self, segment: (u64, u64), is_first: bool, now: Time) {
        let (Some(reports), Some(beyond)) = (&mut self.compression, &mut self.beyond) else { return };
        if self.deadline == Time::MAX || is_first {
            reports.held = 0;
        }
        let before = beyond.recent();
        let is_new = beyond.duplicate != Some(segment);
        if is_new {
            beyond.extend(segment);
        }
        if is_new && reports.held > 0 && before.touching(segment) >= BLOCKS_EXPECTED {
            // Linux (`tcp_sack_compress_send_ack`): what is held back is told before this segment takes a place among the blocks. The
            // ACK that is due for it counts as sent (`tcp_ack_snd_check`): the next one tells of it.
            reports.early = Some(before);
            reports.held = 0;
            self.acknowledged();
            self.ack_now = true;
        } else if beyond.duplicate.is_some() {
            self.ack_now = true;
        } else if self.quick_left > 0 {
            self.quick_left -= 1;
            self.ack_now = true;
        } else {
            self.report(now);
        }
        self.weigh(0);
    }

    /// The SACK blocks of an ACK that does not tell of what arrived last.
    #[inline(never)]
    pub fn take_early(&mut self, origin: u32, at_most: usize) -> Option<SackBlocks> {
        let runs = self.compression.as_mut()?.early.take()?;
        let mut blocks = SackBlocks::default();
        runs.push_to(&mut blocks, None, origin, at_most);
        Some(blocks)
    }

    /// Whether the ACK of data that moved the left edge by `advance`, and left holes, is a report among others: more than a
    /// segment is acknowledged beside the reports unless memory is short (Linux, net/ipv4/tcp_input.c, `__tcp_ack_snd_check`: the
    /// window would have to shrink).
    fn may_hold(&self, advance: u64) -> bool {
        let since = u64::from(self.unacknowledged);
        self.compression.is_some()
            && self.has_holes()
            && self.quick_left == 0
            && (since <= u64::from(self.mss) || {
                let window = self.room_beside(advance).min(self.threshold.into());
                u64::from(self.rounded(window as u32)) < self.advertised.saturating_sub(self.next - since)
            })
    }

    /// Out-of-order data is to be reported, with compression.
    #[inline(never)]
    fn report(&mut self, now: Time) {
        if let Some(reports) = &mut self.compression {
            reports.begin(self.deadline);
        }
        let measured = self.right_sizing.as_ref().map_or(Time::ZERO, |sizing| sizing.rtt());
        match self.compression.as_mut().and_then(|reports| reports.hold(self.next, measured)) {
            Some(delay) => self.deadline = self.deadline.min(now + delay).min(self.delay_ends(now)),
            None => self.ack_now = true,
        }
    }

    /// When the timer of the last delayed ACK runs out. An ACK does not stop it, and it lets go what is held back then (Linux,
    /// net/ipv4/tcp_timer.c, `tcp_delack_timer_handler`). It counts whole ticks.
    fn delay_ends(&self, now: Time) -> Time {
        let due = TICK * (self.delayed_until.picos() / TICK.picos() + 1);
        if self.delayed_until > Time::ZERO && due > now { due } else { Time::MAX }
    }

    /// `[left, right)`, the first part of a segment that had arrived before, is to be reported: RFC 2883, section
    /// 4.2, reports no other.
    fn note_duplicate(&mut self, left: u64, right: u64) {
        if self.dsack {
            self.beyond.get_or_insert_default().duplicate = Some((left, right));
        }
    }

    /// The delayed-ACK timer. A kernel's counts whole ticks; what lets reports go does not.
    pub fn on_timer(&mut self, now: Time) {
        if now < self.deadline {
            return;
        }
        let is_delayed_ack = self.deadline == self.delayed_until;
        let until = self.delay_ends(now);
        if is_delayed_ack && self.compression.is_some() && until < Time::MAX {
            self.deadline = until;
        } else {
            self.ack_now = true;
            if let Some(reports) = self.compression.as_mut().filter(|reports| reports.held == 0) {
                reports.spacing.inflate(reports.rtt);
            }
        }
    }

    /// Whether an ACK is sent before the application is awake: a report, or that of more than a segment (Linux,
    /// net/ipv4/tcp_input.c, `__tcp_ack_snd_check`). A FIN is acknowledged by what the application does.
    pub fn acknowledges_at_once(&self) -> bool {
        self.ack_now && (self.has_blocks() || self.unacknowledged > self.mss)
    }

    /// Whether an ACK without data is required to carry SACK blocks.
    pub fn has_blocks(&self) -> bool {
        self.beyond.is_some()
    }

    /// The SACK blocks of an ACK: a duplicate first, then the runs that changed last.
    pub fn take_blocks(&mut self, origin: u32, at_most: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if let Some(beyond) = &mut self.beyond {
            beyond.take_blocks(&mut blocks, origin, at_most);
        }
        self.forget_reported();
        blocks
    }

    /// An acknowledgment was sent, alone or with data.
    pub fn acknowledged(&mut self) {
        (self.ack_now, self.pushed) = (false, false);
        self.deadline = Time::MAX;
        self.unacknowledged = 0;
    }
}

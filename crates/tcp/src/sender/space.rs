//! The send sequence space (RFC 9293, section 3.3.1): what was written, sent and acknowledged.

/// What Linux begins with: `net.ipv4.tcp_wmem[1]`.
const FIRST_BUFFER: u64 = 16 << 10;
/// The smallest number of segments that Linux expects in flight: `TCP_INIT_CWND`.
const FEWEST_SEGMENTS: f64 = 10.0;
/// Bytes that Linux allows for a segment's headers and shared info, and for its `sk_buff` (x86-64).
const HEADERS: u32 = 320 + 320;
const SK_BUFF: u64 = 256;

/// The send sequence space, as offsets from the first byte of data; a FIN takes one byte.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct SendSpace {
    /// Everything below this is acknowledged.
    pub una: u64,
    /// The next new byte to send.
    pub next: u64,
    /// Right edge of the peer's window.
    pub window_edge: u64,
    /// End of the data that the application wrote; an endless writer never reaches it.
    pub written: u64,
    /// Send buffer: maximum number of unacknowledged bytes.
    buffer: u64,
    /// None where the buffer has its size, and all is written at once.
    socket: Option<Box<Socket>>,
    /// The largest window that the peer has offered (RFC 9293 calls it Max(SND.WND)).
    largest_window: u32,
    /// Whether a window below a segment is to be filled now: its timer has run out.
    pub fills_small_window: bool,
    /// Whether something is to be sent before the first data.
    pub holds: bool,
    /// Whether the application has closed: a FIN follows the written data.
    pub closed: bool,
}

/// A socket whose buffer grows, or whose application keeps little unsent.
#[derive(Clone, Copy, Debug)]
struct Socket {
    /// What the send buffer may grow to.
    most: u64,
    /// Bytes that the application keeps unsent at most.
    unsent: u64,
    /// End of the last write.
    end: u64,
    /// End of the first write that is not sent whole.
    push: u64,
}

impl SendSpace {
    /// An empty space with a send buffer of `most` bytes, or one that is tuned up to that, and an application that keeps at most
    /// `unsent` bytes unsent.
    pub fn new(most: u64, tuned: bool, unsent: Option<u64>) -> Self {
        let unsent = unsent.unwrap_or(u64::MAX);
        Self {
            buffer: if tuned { most.min(FIRST_BUFFER) } else { most },
            socket: (tuned || unsent < u64::MAX).then(|| Box::new(Socket { most, unsent, end: 0, push: 0 })),
            ..Self::default()
        }
    }

    /// Whether the buffer may grow, or the application keeps little unsent.
    #[inline]
    pub fn has_socket(&self) -> bool {
        self.socket.is_some()
    }

    /// Whether the send buffer can still grow.
    #[inline]
    pub fn is_tuned(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| self.buffer < socket.most)
    }

    /// Sets the send buffer for a window of `cwnd` segments of `mss` bytes: twice the memory of these segments
    /// (Linux, net/ipv4/tcp_input.c, `tcp_sndbuf_expand`). Linux counts a segment as if it had a power of two of
    /// memory of its own; what a bulk writer's data really takes is hardly more than its payload, which is
    /// what counts here.
    pub fn tune_buffer(&mut self, cwnd: f64, mss: u32) {
        let most = self.socket.as_ref().map_or(self.buffer, |socket| socket.most);
        let memory = u64::from((mss + HEADERS).next_power_of_two()) + SK_BUFF;
        let segments = cwnd.max(FEWEST_SEGMENTS).floor();
        // A window without bounds makes a buffer without bounds: the conversion saturates.
        self.buffer = self.buffer.max((2.0 * segments * memory as f64) as u64).min(most);
    }

    /// The peer's SYN offered this window.
    pub fn open(&mut self, window: u64) {
        (self.window_edge, self.largest_window) = (window, window as u32);
    }

    /// Whether `ahead`, the distance of an acknowledgment from `una`, is one that the peer can have sent: no
    /// data beyond `next` (RFC 9293, section 3.10.7.4), nothing older than the largest window (RFC 5961,
    /// section 5.2), nor than the connection.
    pub fn may_be_acknowledged(&self, ahead: i32) -> bool {
        let oldest = self.una.min(self.largest_window.into());
        u64::from(ahead.unsigned_abs()) <= if ahead < 0 { oldest } else { self.outstanding() }
    }

    /// The application writes `bytes` more.
    pub fn write(&mut self, bytes: u64) {
        let written = self.written.saturating_add(bytes);
        if let Some(socket) = &mut self.socket
            && socket.push == self.written
        {
            socket.push = written;
        }
        self.written = written;
    }

    /// End of the first write, or of the part of it that the socket took at once, that is not sent whole: the segment there has
    /// PSH.
    #[inline]
    pub fn push(&self) -> u64 {
        self.socket.as_ref().map_or(self.written, |socket| socket.push)
    }

    /// What an ACK releases is sent: the application that waited for it writes on, in segments of `mss` bytes, if less than half of
    /// what it keeps unsent is left (Linux, `sk_stream_write_space`).
    pub fn refill(&mut self, mss: u32) {
        if let Some(socket) = &mut self.socket
            && socket.end < self.written
            && socket.end.saturating_sub(self.next) < socket.unsent.div_ceil(2)
        {
            let most = socket.unsent.checked_next_multiple_of(mss.into()).unwrap_or(u64::MAX);
            let end = self.next.saturating_add(most).min(self.written);
            if socket.end <= self.next {
                socket.push = end;
            }
            socket.end = end;
        }
    }

    /// A write was sent whole.
    pub fn end_write(&mut self) {
        if let Some(socket) = &mut self.socket {
            socket.push = if socket.end > self.next { socket.end } else { self.written };
        }
    }

    /// Discards data that was written but not sent, and closes.
    pub fn stop(&mut self) {
        self.written = self.next.min(self.written);
        if let Some(socket) = &mut self.socket {
            socket.push = self.written;
        }
        self.closed = true;
    }

    /// Whether all written data is acknowledged, and the FIN if there is one.
    pub fn is_finished(&self) -> bool {
        self.una >= self.written.saturating_add(u64::from(self.closed))
    }

    /// Payload bytes and FIN not yet acknowledged.
    #[inline(always)]
    pub fn outstanding(&self) -> u64 {
        self.next - self.una
    }

    /// The next new segment of at most `mss` bytes, regardless of the window: its payload bytes, and whether
    /// it carries the FIN.
    #[inline]
    pub fn next_new(&self, mss: u32) -> Option<(u16, bool)> {
        let left = self.written.saturating_sub(self.next);
        let len = left.min(u64::from(mss));
        let fin = self.closed && len == left && self.has_fin(len);
        (len > 0 || fin).then_some((len as u16, fin))
    }

    /// Whether a segment with the last `len` bytes carries the FIN.
    #[cold]
    fn has_fin(&self, len: u64) -> bool {
        self.next <= self.written && !(len > 0 && self.closes_late())
    }

    /// Whether the application closes after its last write has been sent, in a segment for the FIN alone: it writes no more than
    /// the socket takes, and what the first window admits leaves while it writes.
    fn closes_late(&self) -> bool {
        self.closes_apart() && self.una == 0
    }

    /// Whether the application's writes and its close come one after another.
    pub fn closes_apart(&self) -> bool {
        self.socket.as_ref().is_some_and(|socket| socket.unsent < u64::MAX)
    }

    /// Whether there is such a segment.
    pub fn has_new(&self) -> bool {
        self.next < self.written || self.closed && self.next == self.written
    }

    /// Whether the peer's window and the send buffer have room for `bytes` more.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.next + bytes <= self.limit()
    }

    /// The offset up to which the peer's window and the send buffer have room.
    #[inline(always)]
    pub fn limit(&self) -> u64 {
        self.window_edge.min(self.una.saturating_add(self.buffer))
    }

    /// The end of the data that waits in the send buffer: what was written, as far as the buffer holds it.
    pub fn queued(&self) -> u64 {
        self.written.min(self.una.saturating_add(self.buffer))
    }

    /// The largest window that the peer has offered.
    pub fn largest_window(&self) -> u64 {
        self.largest_window.into()
    }

    /// The room left, if a segment without enough room is to be cut to it: the sender's silly window
    /// avoidance (RFC 9293, section 3.8.6.2.1) allows this for half of the largest window, or when a timer has
    /// run out.
    pub fn small_room(&self) -> Option<u16> {
        let room = self.limit().saturating_sub(self.next);
        (room > 0 && (self.fills_small_window || 2 * room >= self.largest_window())).then_some(room as u16)
    }

    /// The peer's window, in bytes beyond `una`.
    #[inline]
    pub fn window(&self) -> u64 {
        self.window_edge - self.una
    }

    /// Everything below `offset` is acknowledged, which is new, and the peer accepts `window` bytes beyond it.
    #[inline(always)]
    pub fn advance(&mut self, offset: u64, window: u64) {
        // A window is below 2^30 (RFC 7323, section 2.3).
        self.largest_window = self.largest_window.max(window as u32);
        (self.una, self.window_edge) = (offset, offset + window);
    }

    /// Sets the peer's `window`, in bytes beyond `offset`; returns whether it changed. As in Linux
    /// (`tcp_may_update_window`), an ACK without new data can open or close the window, but not move its edge
    /// back, because the ACK may be an old one.
    #[inline]
    pub fn take_window(&mut self, offset: u64, window: u64) -> bool {
        let edge = offset + window;
        // A window is below 2^30 (RFC 7323, section 2.3).
        self.largest_window = self.largest_window.max(window as u32);
        let changed = edge != self.window_edge && offset == self.una;
        if offset > self.una || changed && (edge > self.window_edge || window == 0) {
            self.window_edge = edge;
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tuned_buffer_follows_the_window_up_to_its_limit() {
        // Linux: 16 KiB, then 87,040 bytes for ten segments of Ethernet, and 4352 for each half segment of cwnd.
        let mut space = SendSpace::new(4_000_000, true, None);
        space.window_edge = u64::MAX;
        assert!(space.has_room(16_384) && !space.has_room(16_385));
        for (cwnd, buffer) in [(2.0, 87_040), (100.0, 870_400), (5.0, 870_400), (1000.0, 4_000_000)] {
            space.tune_buffer(cwnd, 1460);
            assert!(space.has_room(buffer) && !space.has_room(buffer + 1), "{cwnd}");
        }
        assert!(!space.is_tuned());
        let mut endless = SendSpace::new(u64::MAX, true, None);
        endless.tune_buffer(1e18, 1460);
        assert!(!endless.is_tuned());
        assert!(!SendSpace::new(10_000, false, None).is_tuned());
    }

    #[test]
    fn an_application_that_keeps_little_unsent_writes_when_half_of_it_is_sent() {
        // Of 1000 bytes and segments of 300, 1200 are written when 300 are sent: up to 1500. 500 unsent are not less than half;
        // 400 are.
        let mut space = SendSpace::new(u64::MAX, false, Some(1000));
        space.write(u64::MAX);
        let mut ends = Vec::new();
        for next in [300, 600, 1000, 1100, 1400, 1500, 2300, 2600] {
            space.next = next;
            if next >= space.push() {
                space.end_write();
            }
            space.refill(300);
            ends.push(space.push());
        }
        assert_eq!(ends, [1500, 1500, 1500, 1500, 1500, 2300, 3500, 3500]);
        space.stop();
        assert_eq!(space.push(), space.next);
        // All that there is, if it is less.
        let mut short = SendSpace::new(u64::MAX, false, Some(1000));
        short.write(500);
        short.next = 300;
        short.refill(300);
        assert_eq!(short.push(), 500);
        short.write(100);
        assert_eq!(short.push(), 600);
    }
}

//! The send sequence space (RFC 9293, section 3.3.1): what was written, sent and acknowledged.

/// The send sequence space, as offsets from the first byte of data; a FIN takes one byte.
#[derive(Clone, Copy, Debug)]
pub struct SendSpace {
    /// Everything below this is acknowledged.
    pub una: u64,
    /// The next new byte to send.
    pub next: u64,
    /// Right edge of the peer's window.
    pub window_edge: u64,
    /// The largest window that the peer has offered (RFC 9293 calls it Max(SND.WND)).
    largest_window: u64,
    /// Whether a window below a segment is to be filled now: its timer has run out.
    pub fills_small_window: bool,
    /// End of the data that the application wrote; an endless writer never reaches it.
    pub written: u64,
    /// Whether the application has closed: a FIN follows the written data.
    pub closed: bool,
    /// Send buffer: maximum number of unacknowledged bytes.
    buffer: u64,
}

impl SendSpace {
    /// An empty space with a send buffer of `buffer` bytes.
    pub fn new(buffer: u64) -> Self {
        Self {
            una: 0,
            next: 0,
            window_edge: 0,
            largest_window: 0,
            fills_small_window: false,
            written: 0,
            closed: false,
            buffer,
        }
    }

    /// The peer's SYN offered this window.
    pub fn open(&mut self, window: u64) {
        (self.window_edge, self.largest_window) = (window, window);
    }

    /// Whether `ahead`, the distance of an acknowledgment from `una`, is one that the peer can have sent: no
    /// data beyond `next` (RFC 9293, section 3.10.7.4), nothing older than the largest window (RFC 5961,
    /// section 5.2), nor than the connection.
    pub fn may_be_acknowledged(&self, ahead: i32) -> bool {
        let oldest = self.una.min(self.largest_window);
        u64::from(ahead.unsigned_abs()) <= if ahead < 0 { oldest } else { self.outstanding() }
    }

    /// The application writes `bytes` more.
    pub fn write(&mut self, bytes: u64) {
        self.written = self.written.saturating_add(bytes);
    }

    /// Discards data that was written but not sent, and closes.
    pub fn stop(&mut self) {
        self.written = self.next.min(self.written);
        self.closed = true;
    }

    /// Whether all written data is acknowledged, and the FIN if there is one.
    pub fn is_finished(&self) -> bool {
        self.una >= self.written.saturating_add(u64::from(self.closed))
    }

    /// Payload bytes and FIN not yet acknowledged.
    pub fn outstanding(&self) -> u64 {
        self.next - self.una
    }

    /// The next new segment of at most `mss` bytes, regardless of the window: its payload bytes, and whether
    /// it carries the FIN.
    pub fn next_new(&self, mss: u32) -> Option<(u16, bool)> {
        let left = self.written.saturating_sub(self.next);
        let len = left.min(u64::from(mss));
        let fin = self.closed && len == left && self.next <= self.written;
        (len > 0 || fin).then_some((len as u16, fin))
    }

    /// Whether the peer's window and the send buffer have room for `bytes` more.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.next + bytes <= self.limit()
    }

    fn limit(&self) -> u64 {
        self.window_edge.min(self.una.saturating_add(self.buffer))
    }

    /// The room left, if a segment without enough room is to be cut to it: the sender's silly window
    /// avoidance (RFC 9293, section 3.8.6.2.1) allows this for half of the largest window, or when a timer has
    /// run out.
    pub fn small_room(&self) -> Option<u16> {
        let room = self.limit().saturating_sub(self.next);
        (room > 0 && (self.fills_small_window || 2 * room >= self.largest_window)).then_some(room as u16)
    }

    /// Sets the peer's `window`, in bytes beyond `offset`; returns whether it changed. As in Linux
    /// (`tcp_may_update_window`), an ACK without new data can open or close the window, but not move its edge
    /// back, because the ACK may be an old one.
    pub fn take_window(&mut self, offset: u64, window: u64) -> bool {
        let edge = offset + window;
        self.largest_window = self.largest_window.max(window);
        let changed = edge != self.window_edge && offset == self.una;
        if offset > self.una || changed && (edge > self.window_edge || window == 0) {
            self.window_edge = edge;
        }
        changed
    }
}

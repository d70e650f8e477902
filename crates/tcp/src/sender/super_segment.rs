//! Super-segments: several segments that leave at once, of the size that Linux gives them for segmentation offload (TSO, GSO),
//! and what it waits for before it sends one (net/ipv4/tcp_output.c, `tcp_write_xmit`). New data only: a retransmission leaves
//! by itself, which makes no difference but to pacing.

use elephan_cc::State;
use elephan_units::Time;

use super::Sender;
use crate::config::BurstSize;

/// In the place of the number of segments since the last ACK: new data waits for the next ACK or timer, because a larger super-segment
/// can then be sent.
pub const DEFERRED: u32 = u32::MAX;
/// Bytes of a super-segment, without headers: a device's 64 KiB less those of any network (net/core/sock.c, `sk_dst_gso_max_size`:
/// `GSO_LEGACY_MAX_SIZE`, `MAX_TCP_HEADER`).
const MOST_BYTES: u64 = 65_536 - (320 + 1);
/// Of the bytes of a second, a super-segment has this fraction (include/net/sock.h, `sk_pacing_shift`).
const PER_SECOND: f64 = 1024.0;
/// It has more where the smallest round-trip time is short: `MOST_BYTES`, halved for each of so many microseconds
/// (`net.ipv4.tcp_tso_rtt_log` of 9).
const HALVING_US: u64 = 512;
/// The fewest segments (`net.ipv4.tcp_min_tso_segs`), where the window admits them; below this rate, in bytes per second, a governor's
/// fewest are one (net/ipv4/tcp_bbr.c, `bbr_min_tso_segs`).
const FEWEST: u64 = 2;
const SLOW_GOVERNOR: f64 = 1_200_000.0 / 8.0;
/// A window of this fraction is not waited with (`net.ipv4.tcp_tso_win_divisor`).
const WINDOW_DIVISOR: u64 = 3;
/// The longest wait: neither later than this after the last transmission, nor for an ACK that is expected later.
const LONGEST_WAIT: Time = Time::from_millis(1);
/// Up to this window of a peer, in bytes, a buffer has the whole of it, and beyond half of it (include/net/tcp.h,
/// `tcp_bound_to_half_wnd` and `TCP_MSS_DEFAULT`).
const SMALL_WINDOW: u64 = 536;

/// The super-segment that is being sent, and what the size of the next follows from.
#[derive(Clone, Copy, Debug)]
pub struct SuperSegments {
    /// Segments of the largest.
    most: u64,
    /// Segments of the current one that are yet to be sent, and the bytes of it that were sent.
    pub left: u32,
    bytes: u64,
    /// The pacing rate after the last ACK, in bytes per second, unless a governor has one of its own; infinite before the first
    /// round-trip time.
    pub rate: f64,
    /// Where the first buffer of data that waits to be sent ends. TCP has its data in buffers of up to 64 KiB, and does not wait
    /// once the window admits the rest of a buffer.
    buffer_end: u64,
}

impl SuperSegments {
    /// None where each segment leaves by itself.
    pub fn new(burst: BurstSize) -> Option<Self> {
        let most = burst.gso_max_segs().map_or(u64::MAX, u64::from);
        (most > 1).then_some(Self { most, left: 0, bytes: 0, rate: f64::INFINITY, buffer_end: 0 })
    }

    /// A segment of `bytes` was sent; returns the bytes of the super-segment that it ends.
    pub fn take_sent(&mut self, bytes: u64) -> Option<u64> {
        self.bytes += bytes;
        (self.left == 0).then(|| std::mem::take(&mut self.bytes))
    }
}

/// What is to be sent of new data.
enum Next {
    /// A super-segment of so many segments; the buffer at whose end or in whose middle it ends.
    Send(u64, u64),
    /// Nothing before the next ACK. Tells whether the congestion window is why.
    Defer(bool),
}

impl Sender {
    fn supers(&mut self) -> Option<&mut SuperSegments> {
        self.pacer.as_mut().and_then(|pacer| pacer.supers.as_mut())
    }

    /// Whether the pacer, which there is, lets a segment leave now.
    #[inline(never)]
    pub(super) fn pacing_admits(&mut self, now: Time) -> bool {
        if self.burst == 0 {
            let rate = self.linux_pacing_rate();
            if let Some(supers) = self.supers() {
                // The first since an ACK.
                (supers.rate, supers.left) = (rate, 0);
            }
        }
        self.pacer.as_ref().is_none_or(|pacer| pacer.may_send(now))
    }

    /// Takes a segment of the current super-segment, or begins one; returns false if a larger one is waited for. The window admits
    /// a segment.
    #[inline(never)]
    pub(super) fn take_of_super_segment(&mut self, now: Time) -> bool {
        let Some(&mut current) = self.supers() else { return true };
        let next = match current.left {
            0 => self.next_super_segment(current, now),
            left => Next::Send(left.into(), current.buffer_end),
        };
        match next {
            Next::Send(segments, buffer_end) => {
                if let Some(supers) = self.supers() {
                    (supers.left, supers.buffer_end) = (segments as u32 - 1, buffer_end);
                }
                true
            }
            Next::Defer(limited) => {
                self.burst = DEFERRED;
                if limited {
                    self.note_usage(true);
                }
                false
            }
        }
    }

    /// Whether new data that the window admits waits for the next ACK.
    pub(super) fn would_defer(&self, now: Time) -> bool {
        let Some(mut supers) = self.pacer.as_ref().and_then(|pacer| pacer.supers) else { return false };
        if self.burst == 0 {
            (supers.rate, supers.left) = (self.linux_pacing_rate(), 0);
        }
        supers.left == 0
            && !self.repairs_first()
            && matches!(self.next_super_segment(supers, now), Next::Defer(_))
    }

    /// Linux's pacing rate in bytes per second, which it computes at each ACK whether or not it paces (net/ipv4/tcp_input.c,
    /// `tcp_update_pacing_rate`).
    fn linux_pacing_rate(&self) -> f64 {
        let srtt = self.rtt.srtt();
        let Some(pacer) = self.pacer.as_ref().filter(|_| srtt > Time::ZERO) else { return f64::INFINITY };
        let cwnd = self.cwnd().floor();
        // Half of ssthresh is whole.
        let gain = pacer.gain(cwnd, 2.0 * (self.controller.ssthresh() / 2.0).floor());
        gain * cwnd.max(self.board.len() as f64) * f64::from(self.settings.mss) / srtt.secs_f64()
    }

    /// Segments of a full super-segment (`tcp_tso_autosize`).
    fn full_super_segment(&self, supers: SuperSegments) -> u64 {
        let own = self.controller.pacing_rate();
        let (rate, fewest) = match own > 0.0 {
            true if own < SLOW_GOVERNOR => (own, 1),
            true => (own, FEWEST),
            false => (supers.rate, FEWEST),
        };
        let halvings = self.rtt.min().picos() / 1_000_000 / HALVING_US;
        let more =
            u32::try_from(halvings).ok().and_then(|halvings| MOST_BYTES.checked_shr(halvings)).unwrap_or(0);
        let bytes = ((rate / PER_SECOND) as u64).saturating_add(more).min(MOST_BYTES);
        (bytes / u64::from(self.settings.mss)).max(fewest).min(supers.most)
    }

    /// The next super-segment of new data, or whether it waits (`tcp_write_xmit`, `tcp_tso_should_defer`).
    fn next_super_segment(&self, supers: SuperSegments, now: Time) -> Next {
        let (next, mss) = (self.space.next, u64::from(self.settings.mss));
        let full = self.full_super_segment(supers);
        let cwnd = self.cwnd() as u64;
        // At least two super-segments make a window (`tcp_cwnd_test`).
        let admitted = self.admitted() / mss;
        let quota = admitted.min((cwnd / 2).max(1)).min(full).max(1);

        // The buffer at the head of the queue (`tcp_xmit_size_goal`) gets what it lacks from the one behind (`tcp_grow_skb`).
        let window = self.space.largest_window();
        let half = if window > SMALL_WINDOW { window / 2 } else { window };
        let goal = (MOST_BYTES.min(half) / mss).min(supers.most).max(1) * mss;
        let mut buffer_end = supers.buffer_end;
        if buffer_end <= next {
            buffer_end = next + goal;
        }
        let queued = self.space.queued();
        let len = (buffer_end - next).max(quota * mss).min(queued.saturating_sub(next));
        let is_last = next + len >= queued;

        let offered = self.space.window_edge.saturating_sub(next);
        let room = (admitted * mss).min(offered);
        let recovers = matches!(self.state(), State::Recovery | State::Loss);
        let waits = len > mss
            && !recovers
            && room < full * mss
            && (is_last || room < len)
            && room < (self.space.window_edge - self.space.una).min(cwnd * mss) / WINDOW_DIVISOR
            && !self.is_late(now);
        if waits {
            let is_cwnd = admitted * mss < offered;
            // The last of the data does not wait for more of it.
            if !(is_last && self.space.closed) || room <= len {
                return Next::Defer(is_cwnd && room <= len);
            }
        }
        let segments = quota.min(len.min(offered).div_ceil(mss)).max(1);
        while buffer_end < next + segments * mss {
            buffer_end += goal;
        }
        Next::Send(segments, buffer_end)
    }

    /// Whether nothing was sent for a while, or the next ACK is not expected for a while.
    fn is_late(&self, now: Time) -> bool {
        let Some(front) = self.board.front() else { return true };
        let last = self.pacer.as_ref().map_or(Time::ZERO, |pacer| pacer.next()).max(self.last_sent);
        let srtt = self.rtt.srtt();
        let expected = front.sent_at + srtt;
        now.since(last) > LONGEST_WAIT || expected.since(now) > LONGEST_WAIT.min(srtt / 2)
    }
}

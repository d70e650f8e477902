//! The fast path of data in order, and what it shares with the processing of any data.

use elephan_units::Time;

use super::{Reading, Receiver};

impl Receiver {
    /// Whether the next data needs no other rules than those of [`Receiver::receive_next`]: none is missing, no FIN has arrived, the
    /// application reads at once and is not waited for, the window does not grow, and ACKs are delayed for one time.
    pub fn is_usual(&self) -> bool {
        self.beyond.is_none()
            && self.fin == u64::MAX
            && self.reading == Reading::Plain
            && self.threshold >= self.window
            && self.right_sizing.is_none()
            && self.quick_left == 0
            && !self.hurries_reads
    }

    /// Whether an acknowledgment that says what the last one said leaves the receiver as it is: everything is acknowledged, and the
    /// window has not opened.
    pub fn is_still(&self) -> bool {
        !self.ack_now
            && !self.pushed
            && self.deadline == Time::MAX
            && self.unacknowledged == 0
            && self.opens_by() < self.step()
            && self.advertised >= self.next
    }

    /// The fast path of [`Receiver::receive`] for a receiver that [`is usual`](Receiver::is_usual): the next `len` bytes arrived, without
    /// a FIN. Returns false, with nothing changed, if they do not fit into the window.
    #[inline(always)]
    pub fn receive_next(&mut self, len: u64, now: Time) -> bool {
        debug_assert!(self.is_usual());
        let next = self.next + len;
        if next > self.advertised {
            return false;
        }
        self.next = next;
        self.arrived += len;
        self.unacknowledged = self.unacknowledged.saturating_add(len as u32);
        self.acknowledge(false, now);
        true
    }

    /// Data arrived in order: an ACK is due `at_once`, or for a given number of segments, or when its timer runs
    /// out (RFC 5681, section 4.2).
    #[inline(always)]
    pub(super) fn acknowledge(&mut self, at_once: bool, now: Time) {
        if at_once
            || self.quick_left > 0
            || self.unacknowledged >= u32::from(self.delayed_ack_segments) * self.mss
        {
            self.quick_left = self.quick_left.saturating_sub(1);
            self.ack_now = true;
        } else if self.deadline == Time::MAX {
            let delay =
                if self.compression.is_some() { self.spaced_delay() } else { self.delayed_ack_timeout };
            self.deadline = now.saturating_add(delay);
            self.delayed_until = self.deadline;
        }
    }

    /// For how long an ACK is delayed, with compression.
    #[cold]
    fn spaced_delay(&self) -> Time {
        let least = self.delayed_ack_timeout;
        self.compression.as_ref().map_or(least, |reports| reports.spacing.delay(least, reports.rtt))
    }

    /// Data arrived in order: after a silence it is acknowledged at once, with compression.
    #[cold]
    #[inline(never)]
    pub(super) fn note_spacing(&mut self, now: Time) {
        let Some(reports) = &mut self.compression else { return };
        reports.begin(self.deadline);
        if reports.spacing.on_data(now, self.delayed_ack_timeout, reports.rtt) {
            self.hurry(self.quick.into());
        } else if self.quick_left > 0 {
            reports.spacing.deflate(self.delayed_ack_timeout);
        }
    }

    /// Data arrived, with an echoed timestamp of this age: the window follows the rate of reading, if it is tuned.
    #[inline(always)]
    pub(super) fn right_size(&mut self, echo: Option<Time>, now: Time) {
        let delivered = self.delivered();
        if let Some(sizing) = &mut self.right_sizing {
            let window = u64::from(self.window);
            let asked = sizing.on_data(echo, [self.next, delivered], window, self.mss, now);
            self.window = window.max(asked.min(u64::from(self.buffer))) as u32;
        }
    }
}

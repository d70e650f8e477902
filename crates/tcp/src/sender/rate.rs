//! Samples of the delivery rate (draft-ietf-ccwg-bbr, section on the delivery rate; Linux, net/ipv4/tcp_rate.c).
//!
//! A sample is of the newest segment that an ACK delivered: how much was delivered between the moment when that segment
//! was sent and now, and the longer of two times: in which it was sent, and in which it was acknowledged. So neither a
//! burst of data nor a burst of ACKs looks like a higher rate.

use std::collections::VecDeque;

use elephan_cc::governor::{Rate, Snapshot, nanos};
use elephan_units::Time;

/// Segments that were delivered: all, and those whose ACK echoed a mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub all: u64,
    pub marked: u64,
}

/// What is known of a segment in flight since its last transmission.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// What was delivered then, and when the last of that was.
    delivered: Counts,
    delivered_at: Time,
    /// When the sample that ends with this segment begins to be sent.
    begins_at: Time,
    /// Bytes not cumulatively acknowledged, itself included.
    unacknowledged: u32,
    /// Segments in flight, itself included.
    in_flight: u32,
    /// Transmissions taken as lost, wrapping.
    losses: u32,
    is_app_limited: bool,
}

/// A connection when it sends a segment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sending {
    /// Whether nothing was in flight before.
    pub is_first: bool,
    pub delivered: Counts,
    /// Bytes not cumulatively acknowledged, the segment included.
    pub unacknowledged: u64,
    /// Segments in flight, itself included.
    pub in_flight: u32,
    /// Transmissions taken as lost so far, wrapping.
    pub losses: u32,
}

/// The sampler of one connection.
#[derive(Clone, Debug, Default)]
pub struct RateSampler {
    /// By id on the scoreboard, from `first` on.
    sent: VecDeque<Sent>,
    first: u64,
    /// When the last segment was delivered.
    delivered_at: Time,
    /// When the newest segment that was delivered was sent: there the next sample begins.
    begins_at: Time,
    /// Transmissions taken as lost when the last ACK was processed, wrapping.
    losses: u32,
    /// Samples are limited by the application until this number of segments is delivered; 0: they are not.
    app_limited: u64,
}

impl RateSampler {
    /// A segment is sent: `id` is that of the next new one, or of one that is retransmitted.
    #[inline(never)]
    pub fn on_sent(&mut self, id: u64, sending: Sending, now: Time) {
        if sending.is_first {
            (self.begins_at, self.delivered_at) = (now, now);
        }
        let sent = Sent {
            delivered: sending.delivered,
            delivered_at: self.delivered_at,
            begins_at: self.begins_at,
            unacknowledged: u32::try_from(sending.unacknowledged).unwrap_or(u32::MAX),
            in_flight: sending.in_flight,
            losses: sending.losses,
            is_app_limited: self.app_limited > 0,
        };
        match self.sent.get_mut((id - self.first) as usize) {
            Some(before) => *before = sent,
            None => self.sent.push_back(sent),
        }
    }

    /// What is known of segment `id`, unless it was acknowledged before the last ACK.
    pub fn snapshot(&self, id: u64, has_sack: bool) -> Option<Snapshot> {
        let sent = self.sent.get(id.checked_sub(self.first)? as usize)?;
        Some(Snapshot {
            number: id,
            delivered: sent.delivered.all,
            lost: sent.losses.into(),
            in_flight: sent.in_flight,
            is_app_limited: sent.is_app_limited,
            has_sack,
        })
    }

    /// The application has no more to send, though the window has room: samples are limited by it until what is in
    /// flight, with what was delivered, is delivered: `until` segments.
    pub fn on_app_limited(&mut self, until: u64) {
        self.app_limited = until.max(1);
    }

    /// An ACK was taken into the scoreboard, which now begins at `first`. `newest` is the last transmission that it
    /// delivered: its id, and when it was sent. `delivered` includes what it delivered, and `losses`
    /// transmissions were taken as lost so far.
    pub fn sample(
        &mut self,
        newest: Option<(u64, Time)>,
        first: u64,
        delivered: Counts,
        losses: u32,
        min_rtt: Time,
        now: Time,
    ) -> Rate {
        if delivered.all > self.app_limited {
            self.app_limited = 0;
        }
        let lost = losses.wrapping_sub(std::mem::replace(&mut self.losses, losses));
        let mut rate = Rate { lost, ..Rate::default() };
        if let Some((id, sent_at)) = newest
            && let Some(sent) = id.checked_sub(self.first).and_then(|place| self.sent.get(place as usize))
        {
            self.begins_at = sent_at;
            let interval = sent_at.since(sent.begins_at).max(now.since(sent.delivered_at));
            rate = Rate {
                // Shorter than a round trip: what was delivered was retransmitted, and the original has arrived.
                interval_ns: if interval < min_rtt { -1 } else { nanos(interval).cast_signed() },
                prior_delivered: sent.delivered.all,
                prior_delivered_ce: sent.delivered.marked,
                delivered: (delivered.all - sent.delivered.all) as u32,
                delivered_ce: (delivered.marked - sent.delivered.marked) as u32,
                lost,
                is_app_limited: u32::from(sent.is_app_limited),
                is_ack_delayed: 0,
                sent_in_flight: sent.unacknowledged,
            };
            self.delivered_at = now;
        }
        while self.first < first {
            self.sent.pop_front();
            self.first += 1;
        }
        rate
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sending(is_first: bool, delivered: Counts) -> Sending {
        Sending { is_first, delivered, unacknowledged: 1000, ..Sending::default() }
    }

    /// What a naive sampler remembers: everything, in order.
    #[derive(Clone, Copy, Debug)]
    enum Entry {
        /// A segment is sent with nothing in flight.
        Begin(Time),
        /// An ACK delivered data, the newest of which was sent at the second time.
        Delivered(Time, Time),
    }

    /// A segment: when it was sent, how long the log was, what was delivered, and whether it has arrived.
    #[derive(Clone, Copy, Debug)]
    struct Segment {
        sent_at: Time,
        log: usize,
        delivered: u64,
        arrived: bool,
    }

    /// A step: segments sent after a wait, segments that an ACK delivers after another, and of which of them are the oldest.
    #[derive(Clone, Debug)]
    struct Step {
        wait: u64,
        sent: usize,
        again: bool,
        ack_wait: u64,
        oldest: usize,
        beyond: Option<usize>,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = (
            0u64..20,
            0usize..4,
            prop::bool::weighted(0.1),
            0u64..20,
            0usize..4,
            prop::option::of(0usize..6),
        );
        let step = step.prop_map(|(wait, sent, again, ack_wait, oldest, beyond)| Step {
            wait,
            sent,
            again,
            ack_wait,
            oldest,
            beyond,
        });
        prop::collection::vec(step, 1..60)
    }

    proptest! {
        #[test]
        fn samples_are_those_of_a_sampler_that_remembers_everything(steps in steps()) {
            let mut sampler = RateSampler::default();
            let (mut segments, mut log): (Vec<Segment>, Vec<Entry>) = (Vec::new(), Vec::new());
            let (mut now, mut first, mut delivered) = (Time::from_millis(1), 0, Counts::default());
            for step in steps {
                now += Time::from_millis(step.wait);
                let waits = segments[first..].iter().position(|segment| !segment.arrived).map(|place| first + place);
                let again = waits.filter(|_| step.again);
                for id in again.into_iter().chain(segments.len()..segments.len() + step.sent) {
                    let begins = first == segments.len();
                    if begins {
                        log.push(Entry::Begin(now));
                    }
                    sampler.on_sent(id as u64, sending(begins, delivered), now);
                    let segment = Segment { sent_at: now, log: log.len(), delivered: delivered.all, arrived: false };
                    match segments.get_mut(id) {
                        Some(known) => *known = segment,
                        None => segments.push(segment),
                    }
                }
                now += Time::from_millis(step.ack_wait);
                // The oldest, and one beyond them.
                let until = segments.len().min(first + step.oldest);
                let beyond = step.beyond.map(|place| until + place).filter(|&id| id < segments.len());
                let mut newest: Option<usize> = None;
                for id in (first..until).chain(beyond) {
                    if std::mem::replace(&mut segments[id].arrived, true) {
                        continue;
                    }
                    delivered.all += 1;
                    // A retransmitted segment was sent after those that were sent before.
                    if newest.is_none_or(|known| (segments[known].sent_at, known) <= (segments[id].sent_at, id)) {
                        newest = Some(id);
                    }
                }
                first = until;
                let sample = newest.map(|id| (id as u64, segments[id].sent_at));
                let rate = sampler.sample(sample, first as u64, delivered, 0, Time::ZERO, now);
                let Some(id) = newest else {
                    prop_assert_eq!(rate.interval_ns, 0);
                    continue;
                };
                let segment = segments[id];
                let (acked_from, sent_from) = match log[..segment.log].last().expect("a beginning") {
                    Entry::Begin(at) => (*at, *at),
                    Entry::Delivered(at, sent_at) => (*at, *sent_at),
                };
                let interval = now.since(acked_from).max(segment.sent_at.since(sent_from));
                prop_assert_eq!(rate.interval_ns as u64, nanos(interval));
                prop_assert_eq!(rate.prior_delivered, segment.delivered);
                prop_assert_eq!(u64::from(rate.delivered), delivered.all - segment.delivered);
                log.push(Entry::Delivered(now, segment.sent_at));
            }
        }
    }

    #[test]
    fn a_sample_shorter_than_a_round_trip_is_none() {
        let mut sampler = RateSampler::default();
        let ms = Time::from_millis;
        sampler.on_sent(0, sending(true, Counts::default()), ms(1));
        sampler.on_sent(0, sending(false, Counts::default()), ms(90));
        let delivered = Counts { all: 1, marked: 0 };
        // The ACK of the first transmission, 10 ms after the second: the flight has lasted 100 ms.
        let rate = sampler.sample(Some((0, ms(90))), 1, delivered, 1, ms(100), ms(101));
        assert_eq!((rate.interval_ns, rate.lost), (100_000_000, 1));
        sampler.on_sent(1, sending(true, delivered), ms(200));
        let rate = sampler.sample(Some((1, ms(200))), 2, Counts { all: 2, marked: 1 }, 0, ms(100), ms(250));
        assert_eq!((rate.interval_ns, rate.delivered_ce), (-1, 1));
    }

    #[test]
    fn a_bubble_marks_samples_until_it_is_delivered() {
        let mut sampler = RateSampler::default();
        let mut limited = Vec::new();
        let ms = Time::from_millis;
        let counts = |all| Counts { all, marked: 0 };
        // Two are in flight when the application has no more; it goes on with four.
        sampler.on_sent(0, sending(true, counts(0)), ms(0));
        sampler.on_sent(1, sending(false, counts(0)), ms(0));
        sampler.on_app_limited(2);
        for id in 2..6 {
            sampler.on_sent(id, sending(false, counts(0)), ms(5));
        }
        for id in 0..8 {
            let sent_at = if id < 2 {
                ms(0)
            } else if id < 6 {
                ms(5)
            } else {
                ms(110)
            };
            let rate = sampler.sample(Some((id, sent_at)), id + 1, counts(id + 1), 0, ms(1), ms(100 + id));
            limited.push(rate.is_app_limited);
            if id == 4 {
                sampler.on_sent(6, sending(false, counts(5)), ms(110));
                sampler.on_sent(7, sending(false, counts(5)), ms(110));
            }
        }
        assert_eq!(limited, [0, 0, 1, 1, 1, 1, 0, 0]);
    }

    #[test]
    fn a_segment_is_known_as_it_was_sent_last_until_it_is_acknowledged() {
        let mut sampler = RateSampler::default();
        let ms = Time::from_millis;
        let counts = |all| Counts { all, marked: 0 };
        let sent =
            |delivered, in_flight, losses| Sending { in_flight, losses, ..sending(false, counts(delivered)) };
        for id in 0..3 {
            sampler.on_sent(id, sent(0, id as u32 + 1, 0), ms(0));
        }
        // The second is lost; the third has arrived when it is retransmitted.
        sampler.sample(Some((2, ms(0))), 1, counts(2), 1, ms(1), ms(100));
        sampler.on_app_limited(3);
        sampler.on_sent(1, sent(2, 1, 1), ms(100));
        let known = |number, delivered, lost, in_flight, is_app_limited| Snapshot {
            number,
            delivered,
            lost,
            in_flight,
            is_app_limited,
            has_sack: true,
        };
        assert_eq!(sampler.snapshot(0, true), None);
        assert_eq!(sampler.snapshot(1, true), Some(known(1, 2, 1, 1, true)));
        assert_eq!(sampler.snapshot(2, true), Some(known(2, 0, 0, 3, false)));
        assert_eq!(sampler.snapshot(3, true), None);
    }
}

//! Applications that limit a flow: they write in chunks on one connection, by a clock or after an acknowledgment.

use elephan_units::{Rate, Seed, Stream, Time};

use crate::arrivals::Sizes;
use crate::datagrams::PICOS_BITS;
use crate::distribution::Distribution;
use crate::periods::{Pattern, Periods};

/// An application that writes in chunks on one connection.
#[derive(Clone, Debug, PartialEq)]
pub struct App {
    /// Payload of a chunk.
    pub chunks: Sizes,
    /// Chunks of another size in between; none means none.
    pub key_frames: Option<KeyFrames>,
    /// When it writes.
    pub pace: Pace,
}

/// The larger frames of a video, which the others refer to.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyFrames {
    /// The first chunk and each that follows so many later is one.
    pub every: u64,
    /// Their payload.
    pub size: Sizes,
}

/// When an application writes the next chunk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// After the time that the last chunk takes at this rate, of on-time.
    Rate(Rate, Pattern),
    /// At equal intervals, so many in a second of on-time.
    PerSecond(f64, Pattern),
    /// So many seconds after the acknowledgment of all that was written.
    Pause(Distribution),
}

/// An application while it runs: determines when it writes, and how much. Times and sizes come from separate random streams: a change of
/// the sizes does not change on and off times and pauses.
#[derive(Clone, Debug)]
pub struct Writer {
    chunks: Sizes,
    key_frames: Option<KeyFrames>,
    sizes: Stream,
    key_sizes: Stream,
    clock: Clock,
    /// Number of chunks written.
    count: u64,
}

/// When an application writes next.
#[derive(Clone, Debug)]
enum Clock {
    /// When the last chunk has taken its time at this rate; `carry` is the remainder of it, in units of 1/rate picoseconds.
    Rate { bits_per_sec: u64, carry: u64, periods: Periods },
    /// After so many of equal intervals, of which there are `chunks` in a second.
    PerSecond { chunks: f64, passed: u64, periods: Periods },
    /// At this time; `Time::MAX` while a chunk is not acknowledged. The pause after it is drawn from the stream.
    Pause { pause: Distribution, at: Time, stream: Stream },
}

impl Writer {
    /// The application of flow number `index` of a run, which writes its first chunk at `start`. The rate is not zero.
    pub fn new(app: &App, seed: Seed, index: u64, start: Time) -> Self {
        let App { chunks, key_frames, pace } = app.clone();
        let times = seed.stream("times of an application", index);
        let clock = match pace {
            Pace::Rate(rate, pattern) => Clock::Rate {
                bits_per_sec: rate.bits_per_sec(),
                carry: 0,
                periods: Periods::new(pattern, times, start),
            },
            Pace::PerSecond(chunks, pattern) => {
                Clock::PerSecond { chunks, passed: 0, periods: Periods::new(pattern, times, start) }
            }
            Pace::Pause(pause) => Clock::Pause { pause, at: start, stream: times },
        };
        Self {
            chunks,
            key_frames,
            sizes: seed.stream("sizes of chunks", index),
            key_sizes: seed.stream("sizes of key frames", index),
            clock,
            count: 0,
        }
    }

    /// When it next writes, or the earliest time at which it may; `Time::MAX` while it waits for an acknowledgment.
    pub fn next(&self) -> Time {
        match &self.clock {
            Clock::Rate { periods, .. } | Clock::PerSecond { periods, .. } => periods.next(),
            Clock::Pause { at, .. } => *at,
        }
    }

    /// The time of [`Writer::next`] has come: the payload of the chunk that it writes, bytes. If it writes none, there is a later time for
    /// the next call.
    pub fn write(&mut self) -> Option<u64> {
        if let Clock::Rate { periods, .. } | Clock::PerSecond { periods, .. } = &mut self.clock
            && !periods.has_come()
        {
            return None;
        }
        let bytes = self.size();
        self.count += 1;
        match &mut self.clock {
            Clock::Rate { bits_per_sec, carry, periods } => {
                let rate = u128::from(*bits_per_sec);
                let picos = u128::from(bytes) * PICOS_BITS + u128::from(*carry);
                *carry = (picos % rate) as u64;
                periods.advance(Time::from_picos((picos / rate).try_into().unwrap_or(u64::MAX)));
            }
            Clock::PerSecond { chunks, passed, periods } => {
                // Each time is rounded by itself, so that they do not drift.
                let after = |count: u64| Time::from_secs_f64(count as f64 / *chunks);
                periods.advance(after(*passed + 1).since(after(*passed)));
                *passed += 1;
            }
            Clock::Pause { at, .. } => *at = Time::MAX,
        }
        Some(bytes)
    }

    /// All that was written is acknowledged.
    pub fn acknowledged(&mut self, now: Time) {
        if let Clock::Pause { pause, at, stream } = &mut self.clock
            && *at == Time::MAX
        {
            *at = now.saturating_add(Time::from_secs_f64(pause.draw(stream)));
        }
    }

    /// The payload of the next chunk.
    fn size(&mut self) -> u64 {
        match &self.key_frames {
            Some(KeyFrames { every, size }) if self.count.is_multiple_of(*every) => {
                size.next(self.count / every, &mut self.key_sizes)
            }
            Some(KeyFrames { every, .. }) => {
                self.chunks.next(self.count - 1 - self.count / every, &mut self.sizes)
            }
            None => self.chunks.next(self.count, &mut self.sizes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 7661;

    fn constant(bytes: f64) -> Sizes {
        Sizes::Drawn(Distribution::Constant(bytes))
    }

    fn app(chunks: Sizes, pace: Pace) -> App {
        App { chunks, key_frames: None, pace }
    }

    /// When chunks are written, and how large they are, by an application whose acknowledgments take `rtt`.
    fn written(app: &App, rtt: Time, seconds: u64) -> Vec<(Time, u64)> {
        let mut writer = Writer::new(app, Seed::new(SEED), 0, Time::ZERO);
        let mut written = Vec::new();
        while writer.next() < Time::from_secs(seconds) {
            let now = writer.next();
            if let Some(bytes) = writer.write() {
                written.push((now, bytes));
                writer.acknowledged(now + rtt);
            }
        }
        written
    }

    #[test]
    fn chunks_at_a_rate_do_not_drift() {
        // 622.08 Mbit/s is 51 840 chunks of 1500 bytes a second; drawn sizes keep the rate to a chunk.
        let rate = "622.08 Mbit/s".parse().unwrap();
        let even = written(&app(constant(1500.0), Pace::Rate(rate, Pattern::Constant)), Time::ZERO, 3);
        assert_eq!((even.len(), even[51_840]), (3 * 51_840, (Time::from_secs(1), 1500)));
        let drawn = Sizes::Drawn(Distribution::Exponential(1e5));
        let drawn = app(drawn, Pace::Rate("8 Mbit/s".parse().unwrap(), Pattern::Constant));
        let mut before = 0;
        for (at, bytes) in written(&drawn, Time::ZERO, 100) {
            // 1 MB/s: what was written before is what the rate allows.
            assert!((at.secs_f64() * 1e6 - before as f64).abs() < 1e-3, "{at} {before}");
            before += bytes;
        }
    }

    #[test]
    fn frames_come_at_their_rate_and_key_frames_among_them() {
        let key_frames = Some(KeyFrames { every: 3, size: constant(900.0) });
        let frames = app(Sizes::Listed([1, 2].into()), Pace::PerSecond(30.0, Pattern::Constant));
        let video = App { key_frames, ..frames };
        let written = written(&video, Time::ZERO, 10);
        assert_eq!((written.len(), written[30].0), (300, Time::from_secs(1)));
        let sizes: Vec<u64> = written[..7].iter().map(|&(_, bytes)| bytes).collect();
        assert_eq!(sizes, [900, 1, 2, 900, 1, 2, 900]);
    }

    #[test]
    fn an_application_is_silent_in_off_periods_and_keeps_its_share() {
        // On for 100 ms, off for 300 ms; 12.5 kB at 1 Mbit/s take 100 ms, so a chunk in each on period.
        let constant_off = |seconds| Distribution::Constant(seconds);
        let pattern = Pattern::OnOff { on: constant_off(0.1), off: constant_off(0.3) };
        let source = app(constant(2500.0), Pace::Rate("1 Mbit/s".parse().unwrap(), pattern));
        let times: Vec<Time> = written(&source, Time::ZERO, 1).into_iter().map(|(at, _)| at).collect();
        let expected =
            [0, 20, 40, 60, 80, 400, 420, 440, 460, 480, 800, 820, 840, 860, 880].map(Time::from_millis);
        assert_eq!(times, expected);
        let pattern =
            Pattern::OnOff { on: Distribution::Exponential(0.02), off: Distribution::Exponential(0.06) };
        let source = app(constant(1500.0), Pace::PerSecond(1000.0, pattern));
        let count = written(&source, Time::ZERO, 2000).len() as f64;
        assert!((count / 500_000.0 - 1.0).abs() < 0.03, "seed {SEED}: {count}");
    }

    #[test]
    fn a_pause_follows_an_acknowledgment() {
        let source = app(constant(10.0), Pace::Pause(Distribution::Constant(0.5)));
        let at: Vec<Time> =
            written(&source, Time::from_millis(100), 2).into_iter().map(|(at, _)| at).collect();
        assert_eq!(at, [0, 600, 1200, 1800].map(Time::from_millis));
        let mut writer = Writer::new(&source, Seed::new(SEED), 0, Time::ZERO);
        writer.write();
        assert_eq!(writer.next(), Time::MAX);
        writer.acknowledged(Time::from_secs(1));
        // Another acknowledgment draws no other pause.
        writer.acknowledged(Time::from_secs(2));
        assert_eq!(writer.next(), Time::from_millis(1500));
    }

    #[test]
    fn other_sizes_are_written_at_the_same_times() {
        let pattern =
            Pattern::OnOff { on: Distribution::Exponential(0.1), off: Distribution::Exponential(0.1) };
        for pace in [Pace::PerSecond(50.0, pattern), Pace::Pause(Distribution::Exponential(0.2))] {
            let times = |sizes| {
                let written = written(&app(sizes, pace), Time::from_millis(1), 20);
                written.into_iter().map(|(at, _)| at).collect::<Vec<_>>()
            };
            let drawn = Sizes::Drawn(Distribution::Pareto { minimum: 1000.0, shape: 1.2 });
            assert_eq!(times(drawn), times(constant(5.0)));
        }
    }
}

//! Sessions: connections on which both ends write, requests and responses with times to think between them.
//!
//! The model is that of Tmix (Weigle, Adurthi, Hernandez-Campos, Jeffay and Smith, "Tmix: a tool for generating realistic TCP
//! application workloads in ns-2", CCR 36(3), 2006): a connection vector says when a connection starts, and lists its application data
//! units (ADUs) with the waits before them. The network decides when they arrive; it changes neither sizes nor waits.

use std::sync::Arc;

use elephan_units::{Seed, Stream, Time};
use rand::RngExt;

use crate::distribution::Distribution;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The end that opens it.
    Initiator,
    /// The end that is asked.
    Acceptor,
}

/// What the wait before a data unit begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The end wrote its last unit, or the connection began for it.
    Sent,
    /// All units of the other end that are listed before have arrived.
    Received,
}

/// An application data unit (ADU).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataUnit {
    /// The end that writes it.
    pub side: Side,
    /// What the wait before it begins with.
    pub after: After,
    /// The wait.
    pub wait: Time,
    /// Its payload; zero means that the end closes.
    pub bytes: u64,
}

/// A connection vector.
#[derive(Clone, Debug, PartialEq)]
pub struct Vector {
    /// When the initiator opens the connection.
    pub start: Time,
    /// Its data units. Of those of one end the last one closes, or the end closes when the other has.
    pub units: Arc<[DataUnit]>,
}

impl Vector {
    /// Payload that the two ends write.
    pub fn bytes(&self) -> [u64; 2] {
        [Side::Initiator, Side::Acceptor].map(|side| {
            let own = self.units.iter().filter(|unit| unit.side == side);
            own.fold(0, |sum, unit| unit.bytes.saturating_add(sum))
        })
    }
}

/// Sessions of one kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Sessions {
    /// Connection vectors.
    Listed {
        /// In order of their starts.
        vectors: Arc<[Vector]>,
        /// Their starts are divided into bins of this length, which are shuffled.
        bin: Option<Time>,
    },
    /// Sessions that arrive in a Poisson process, of requests and responses in turn.
    Drawn(Drawn),
}

/// Sessions of which everything is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    /// Mean number of sessions that begin in a second.
    pub per_second: f64,
    /// Number of requests of a session; rounded, at least one, and at most [`Self::MOST_EPOCHS`].
    pub epochs: Distribution,
    /// Payload of a request, bytes; rounded, and at least one.
    pub request: Distribution,
    /// Payload of a response, bytes; rounded, and at least one.
    pub response: Distribution,
    /// Time from the end of a response to the next request, s.
    pub think: Distribution,
    /// Time from the end of a request to its response, s.
    pub serve: Distribution,
}

impl Drawn {
    /// The most requests of a session: their data units are drawn when it begins.
    pub const MOST_EPOCHS: f64 = 1e5;

    /// Payload of a session that one end writes, on average: the larger of the two, bytes.
    pub fn mean_bytes(&self) -> f64 {
        self.epochs.mean_count() * self.request.mean().max(self.response.mean())
    }

    /// The data units of a session.
    fn units(&self, stream: &mut Stream) -> Arc<[DataUnit]> {
        let size = |distribution: &Distribution, stream: &mut Stream| {
            distribution.draw(stream).round().max(1.0) as u64
        };
        let epochs = self.epochs.draw(stream).round().clamp(1.0, Self::MOST_EPOCHS) as u64;
        let mut units = Vec::new();
        for epoch in 0..epochs {
            let think = if epoch > 0 { self.think.draw(stream) } else { 0.0 };
            let after = if epoch > 0 { After::Received } else { After::Sent };
            let bytes = size(&self.request, stream);
            units.push(DataUnit { side: Side::Initiator, after, wait: Time::from_secs_f64(think), bytes });
            let serve = Time::from_secs_f64(self.serve.draw(stream));
            let bytes = size(&self.response, stream);
            units.push(DataUnit { side: Side::Acceptor, after: After::Received, wait: serve, bytes });
        }
        units.push(DataUnit { side: Side::Acceptor, after: After::Sent, wait: Time::ZERO, bytes: 0 });
        units.into()
    }
}

/// The sessions of a crowd, by number: the same for both ends of a connection, whatever the network does.
#[derive(Clone, Debug)]
pub struct Script {
    sessions: Sessions,
    seed: Seed,
    index: u64,
}

impl Script {
    /// Sessions number `index` of a run.
    pub fn new(sessions: &Sessions, seed: Seed, index: u64) -> Self {
        let sessions = match sessions {
            Sessions::Listed { vectors, bin: Some(bin) } => {
                let mut stream = seed.stream("shuffle of sessions", index);
                Sessions::Listed { vectors: shuffled(vectors, *bin, &mut stream).into(), bin: None }
            }
            other => other.clone(),
        };
        Self { sessions, seed, index }
    }

    /// The data units of session number `number`.
    pub fn units(&self, number: u64) -> Arc<[DataUnit]> {
        match &self.sessions {
            Sessions::Listed { vectors, .. } => vectors[number as usize].units.clone(),
            Sessions::Drawn(drawn) => {
                drawn.units(&mut self.seed.stream("session", self.index << 40 | number))
            }
        }
    }
}

/// The vectors with the bins of their starts in random order (Fisher and Yates; draft-irtf-iccrg-tcpeval-01, section 2.3.2).
fn shuffled(vectors: &[Vector], bin: Time, stream: &mut Stream) -> Vec<Vector> {
    let last = vectors.last().map_or(Time::ZERO, |vector| vector.start);
    let mut places: Vec<u64> = (0..=last.picos() / bin.picos()).collect();
    for place in (1..places.len()).rev() {
        places.swap(place, stream.random_range(0..=place));
    }
    let moved = |vector: &Vector| {
        let (number, within) = (vector.start.picos() / bin.picos(), vector.start.picos() % bin.picos());
        let start = bin.picos().saturating_mul(places[number as usize]).saturating_add(within);
        Vector { start: Time::from_picos(start), units: vector.units.clone() }
    };
    let mut vectors: Vec<Vector> = vectors.iter().map(moved).collect();
    vectors.sort_by_key(|vector| vector.start);
    vectors
}

/// Sessions while they begin one after the other.
#[derive(Clone, Debug)]
pub struct Opening {
    /// What they say.
    pub script: Script,
    times: Stream,
    start: Time,
    next: Time,
    count: u64,
}

impl Opening {
    /// The sessions of a script, whose time zero is `start`.
    pub fn new(script: Script, start: Time) -> Self {
        let times = script.seed.stream("times of sessions", script.index);
        let mut opening = Self { script, times, start, next: start, count: 0 };
        opening.next = opening.find_next();
        opening
    }

    fn find_next(&mut self) -> Time {
        match &self.script.sessions {
            Sessions::Listed { vectors, .. } => vectors
                .get(self.count as usize)
                .map_or(Time::MAX, |vector| self.start.saturating_add(vector.start)),
            Sessions::Drawn(drawn) => {
                let gap = Distribution::Exponential(1.0 / drawn.per_second).draw(&mut self.times);
                self.next.saturating_add(Time::from_secs_f64(gap))
            }
        }
    }

    /// When the next session begins; `Time::MAX` for never.
    pub fn next(&self) -> Time {
        self.next
    }

    /// The next session begins; returns its number.
    pub fn open(&mut self) -> u64 {
        self.count += 1;
        self.next = self.find_next();
        self.count - 1
    }
}

/// What an end of a session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It writes a unit of this payload.
    Write(u64),
    /// It closes.
    Close,
}

/// An end of a session while it runs.
#[derive(Clone, Debug)]
pub struct Talk {
    units: Arc<[DataUnit]>,
    side: Side,
    /// The place from which its next unit is looked for.
    place: usize,
    /// What it does next and when; none after it has closed, or where it waits only for the other end to close.
    next: Option<(Time, Act)>,
    /// Payload of the other end that must have arrived before, and what has.
    expected: u64,
    delivered: u64,
    /// The wait after that.
    wait: Time,
}

impl Talk {
    /// The end `side` of a session, for which the connection begins at `now`.
    pub fn new(units: Arc<[DataUnit]>, side: Side, now: Time) -> Self {
        let mut talk =
            Self { units, side, place: 0, next: None, expected: 0, delivered: 0, wait: Time::ZERO };
        talk.advance(now);
        talk
    }

    /// Finds its next unit: the last was written at `now`, or the connection has begun.
    fn advance(&mut self, now: Time) {
        self.next = None;
        while let Some(&DataUnit { side, after, wait, bytes }) = self.units.get(self.place) {
            self.place += 1;
            if side != self.side {
                self.expected = self.expected.saturating_add(bytes);
                continue;
            }
            let act = if bytes > 0 { Act::Write(bytes) } else { Act::Close };
            let waits = after == After::Received && self.delivered < self.expected;
            self.wait = wait;
            self.next = Some((if waits { Time::MAX } else { now.saturating_add(wait) }, act));
            return;
        }
    }

    /// When it next does something; `Time::MAX` while it waits for the other end.
    pub fn turn(&self) -> Time {
        self.next.map_or(Time::MAX, |(at, _)| at)
    }

    /// So much payload of the other end has arrived.
    pub fn receive(&mut self, delivered: u64, now: Time) {
        self.delivered = delivered;
        if let Some((at, _)) = &mut self.next
            && *at == Time::MAX
            && delivered >= self.expected
        {
            *at = now.saturating_add(self.wait);
        }
    }

    /// The other end has closed: without more to write, this one closes too.
    pub fn end(&mut self, now: Time) {
        if self.next.is_none() && self.place == self.units.len() {
            self.place += 1;
            self.next = Some((now, Act::Close));
        }
    }

    /// The time of [`Talk::turn`] has come: what it does.
    pub fn act(&mut self, now: Time) -> Option<Act> {
        let (_, act) = self.next.take_if(|(at, _)| *at <= now)?;
        match act {
            Act::Write(_) => self.advance(now),
            Act::Close => self.place = self.units.len() + 1,
        }
        Some(act)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use After::{Received, Sent};
    use Side::{Acceptor, Initiator};

    const SEED: u64 = 2006;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn unit(side: Side, after: After, wait_ms: u64, bytes: u64) -> DataUnit {
        DataUnit { side, after, wait: ms(wait_ms), bytes }
    }

    #[test]
    fn each_end_waits_for_what_it_needs() {
        let units: Arc<[DataUnit]> = [
            unit(Initiator, Sent, 0, 100),
            unit(Acceptor, Received, 5, 1000),
            unit(Acceptor, Sent, 20, 2000),
            unit(Initiator, Received, 7, 10),
            unit(Initiator, Sent, 3, 0),
        ]
        .into();
        let mut asks = Talk::new(units.clone(), Initiator, ms(10));
        assert_eq!((asks.turn(), asks.act(ms(10))), (ms(10), Some(Act::Write(100))));
        let mut answers = Talk::new(units, Acceptor, ms(20));
        assert_eq!((answers.turn(), answers.act(ms(20))), (Time::MAX, None));
        answers.receive(99, ms(30));
        assert_eq!(answers.turn(), Time::MAX);
        answers.receive(100, ms(31));
        assert_eq!((answers.turn(), answers.act(ms(36))), (ms(36), Some(Act::Write(1000))));
        assert_eq!((answers.turn(), answers.act(ms(56))), (ms(56), Some(Act::Write(2000))));
        answers.end(ms(57));
        assert_eq!(asks.turn(), Time::MAX);
        asks.receive(2999, ms(60));
        assert_eq!(asks.turn(), Time::MAX);
        asks.receive(3000, ms(70));
        // What comes later changes nothing.
        asks.receive(3000, ms(75));
        assert_eq!((asks.turn(), asks.act(ms(77))), (ms(77), Some(Act::Write(10))));
        assert_eq!((asks.turn(), asks.act(ms(80))), (ms(80), Some(Act::Close)));
        asks.end(ms(90));
        assert_eq!(asks.turn(), Time::MAX);
        // The acceptor has no close of its own: it closes once, when the initiator has.
        assert_eq!((answers.turn(), answers.act(ms(100))), (ms(57), Some(Act::Close)));
        answers.end(ms(110));
        assert_eq!(answers.turn(), Time::MAX);
    }

    #[test]
    fn bins_are_shuffled_and_keep_their_starts() {
        let vectors: Vec<Vector> =
            (0..100).map(|n| Vector { start: ms(37 * n), units: Arc::new([]) }).collect();
        let bin = ms(500);
        let script = |index| {
            let sessions = Sessions::Listed { vectors: vectors.clone().into(), bin: Some(bin) };
            Script::new(&sessions, Seed::new(SEED), index)
        };
        let starts = |script: Script| {
            let mut opening = Opening::new(script, Time::ZERO);
            let mut starts = Vec::new();
            while opening.next() < Time::MAX {
                starts.push(opening.next());
                opening.open();
            }
            starts
        };
        let shuffled = starts(script(0));
        assert_eq!(shuffled, starts(script(0)));
        assert_ne!(shuffled, starts(script(1)));
        assert!(shuffled.is_sorted());
        // The same times within bins, as many in each of as many bins.
        let bins = |starts: &[Time]| {
            let mut bins = vec![Vec::new(); 8];
            for start in starts {
                bins[(start.picos() / bin.picos()) as usize].push(start.picos() % bin.picos());
            }
            bins
        };
        let (mut before, mut after) =
            (bins(&vectors.iter().map(|vector| vector.start).collect::<Vec<_>>()), bins(&shuffled));
        assert_ne!(before, after);
        before.sort();
        after.sort();
        assert_eq!(before, after);
    }

    #[test]
    fn drawn_sessions_have_their_means_and_their_numbers() {
        let drawn = Drawn {
            per_second: 50.0,
            epochs: Distribution::Pareto { minimum: 1.0, shape: 2.43 },
            request: Distribution::Constant(300.0),
            response: Distribution::Exponential(10_000.0),
            think: Distribution::Exponential(1.0),
            serve: Distribution::Constant(0.0),
        };
        let script = Script::new(&Sessions::Drawn(drawn), Seed::new(SEED), 3);
        assert_eq!(script.units(7), script.units(7));
        assert_ne!(script.units(7), script.units(8));
        let mut opening = Opening::new(script.clone(), Time::from_secs(1));
        let (mut count, mut bytes) = (0, [0; 2]);
        while opening.next() < Time::from_secs(2001) {
            let vector = Vector { start: Time::ZERO, units: script.units(opening.open()) };
            let [sent, received] = vector.bytes();
            (count, bytes) = (count + 1, [bytes[0] + sent, bytes[1] + received]);
        }
        // A standard deviation of 0.3 %; sessions have 1.54 epochs with one of 1.5 or so.
        let count = f64::from(count);
        assert!((count / 100_000.0 - 1.0).abs() < 0.013, "seed {SEED}: {count}");
        let each = bytes.map(|bytes| bytes as f64 / count);
        assert!((each[1] / drawn.mean_bytes() - 1.0).abs() < 0.02, "seed {SEED}: {each:?}");
        assert!((each[0] / (300.0 * drawn.epochs.mean_count()) - 1.0).abs() < 0.02, "seed {SEED}: {each:?}");
    }
}

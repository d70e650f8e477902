//! Tests the scoreboard against a plain model. The model keeps the state of each segment and evaluates the
//! rules as the RFCs state them, from scratch each time. For any sequence of sending, acknowledgment, loss
//! and retransmission both must agree.

use proptest::prelude::*;
use proptest::strategy::Just;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};

use super::tests::check;
use super::*;

const MSS: u32 = 1000;

/// A segment that was sent.
#[derive(Clone, Debug)]
struct Segment {
    offset: u64,
    len: u16,
    fin: bool,
    sent_at: Time,
    /// The number of its last transmission.
    transmission: u32,
    arrived: bool,
    lost: bool,
    /// A retransmission is in flight.
    again: bool,
    /// Whether it was ever retransmitted.
    ambiguous: bool,
}

impl Segment {
    fn end(&self) -> u64 {
        self.offset + u64::from(self.len) + u64::from(self.fin)
    }
    fn waits(&self) -> bool {
        self.lost && !self.arrived && !self.again
    }
}

/// All segments since the connection began; those below `first` are acknowledged cumulatively.
#[derive(Clone, Debug)]
struct Model {
    finds_lost_retransmissions: bool,
    /// Whether losses are found by time and not by count.
    by_time: bool,
    segments: Vec<Segment>,
    first: usize,
    una: u64,
    now: Time,
    transmissions: u32,
    latest_arrived: u32,
    /// Segments whose retransmission was lost, in the order in which the losses were detected.
    lost_again: VecDeque<usize>,
    /// What the last transition delivered or detected.
    outcome: Outcome,
}

/// The result of a transition.
#[derive(Clone, Debug, Default, PartialEq)]
struct Outcome {
    bytes: u64,
    cumulative: u64,
    segments: u64,
    newest: Option<Time>,
    ambiguous: Option<Time>,
    /// Offset of the highest segment newly marked lost, and the last retransmission marked lost.
    lost: Option<u64>,
    lost_again: Option<u32>,
    /// When the last segment was sent that may become overdue.
    pending: Option<Time>,
    /// The segment that is retransmitted.
    again: Option<usize>,
}

#[derive(Clone, Debug)]
enum Step {
    /// So many segments at one time; a FIN comes alone.
    Send {
        len: u16,
        count: u32,
        fin: bool,
    },
    /// Acknowledges this number of bytes beyond the acknowledged data; segments sent after `age` are too
    /// recent to have been acknowledged.
    Acknowledge {
        bytes: u64,
        age: u64,
    },
    /// This number of bytes, starting at this distance beyond the acknowledged data.
    Sack {
        from: u64,
        bytes: u64,
        age: u64,
    },
    Detect {
        fack: bool,
    },
    /// Losses by time: what was overtaken, and was sent this long ago or longer.
    DetectOverdue {
        wait: u64,
    },
    FrontIsLost,
    SendLost,
    SendUnknown,
    SendLast,
    SendFront,
    Timeout,
    /// A timeout that marks only the first segment, and what was sent this long ago or longer.
    TimeoutOfOld {
        age: u64,
    },
    Undo,
}

impl Model {
    fn outstanding(&self) -> impl Iterator<Item = (usize, &Segment)> {
        self.segments.iter().enumerate().skip(self.first)
    }

    fn next(&self) -> u64 {
        self.segments.last().map_or(0, Segment::end)
    }

    fn is_closed(&self) -> bool {
        self.segments.last().is_some_and(|last| last.fin)
    }

    fn has_arrived(&self, id: usize) -> bool {
        self.segments[id].arrived
    }

    fn arrives(&mut self, id: usize, horizon: Time) {
        let segment = &mut self.segments[id];
        segment.arrived = true;
        self.outcome.bytes += u64::from(segment.len);
        if segment.ambiguous {
            self.outcome.ambiguous = self.outcome.ambiguous.or(Some(segment.sent_at));
        } else {
            self.outcome.newest = self.outcome.newest.max(Some(segment.sent_at));
        }
        // The ACK came too soon for the retransmission, so the original arrived.
        if !segment.ambiguous || segment.sent_at <= horizon {
            self.latest_arrived = self.latest_arrived.max(segment.transmission);
        }
    }

    /// Segments above `id` that arrived.
    fn arrived_above(&self, id: usize) -> usize {
        self.outstanding().filter(|&(other, segment)| other > id && segment.arrived).count()
    }

    /// The highest segment that arrived.
    fn highest(&self) -> Option<usize> {
        self.outstanding().filter(|(_, segment)| segment.arrived).map(|(id, _)| id).last()
    }

    fn send_again(&mut self, id: usize) {
        self.transmissions += 1;
        let segment = &mut self.segments[id];
        (segment.sent_at, segment.transmission) = (self.now, self.transmissions);
        (segment.again, segment.ambiguous) = (true, true);
    }

    /// RFC 6675's NextSeg, rule 1. Segments that were lost twice come before it.
    fn next_lost(&mut self) -> Option<usize> {
        // A retransmitted segment keeps its place in the order until the next one is requested.
        self.outstanding().find(|(_, segment)| segment.waits())?;
        while self.lost_again.pop_front_if(|id| *id < self.first || !self.segments[*id].waits()).is_some() {}
        let first = || self.outstanding().find(|(_, segment)| segment.waits()).map(|(id, _)| id);
        self.lost_again.front().copied().or_else(first)
    }

    /// Rule 3: a segment below the highest that arrived, of unknown state, and never retransmitted.
    fn next_unknown(&self) -> Option<usize> {
        let highest = self.highest()?;
        let unknown = |(id, s): &(usize, &Segment)| *id < highest && !s.arrived && !s.lost && !s.ambiguous;
        self.outstanding().find(unknown).map(|(id, _)| id)
    }

    /// Marks losses and lost retransmissions.
    fn detect(&mut self, fack: bool) {
        for id in self.first..self.segments.len() {
            // RFC 6675's IsLost(); with forward acknowledgment, three below the highest that arrived.
            let is_lost = if fack {
                self.highest().is_some_and(|highest| id + 3 <= highest)
            } else {
                self.arrived_above(id) >= 3
            };
            let segment = &mut self.segments[id];
            if is_lost && !segment.arrived && !segment.lost {
                segment.lost = true;
                self.outcome.lost = Some(segment.offset);
            }
        }
        let mut overtaken = Vec::new();
        for id in self.first..self.segments.len() {
            let segment = &mut self.segments[id];
            // Three segments that were sent later have arrived.
            let is_overtaken = segment.transmission + 3 <= self.latest_arrived;
            if self.finds_lost_retransmissions && segment.again && !segment.arrived && is_overtaken {
                segment.again = false;
                overtaken.push((segment.transmission, id));
            }
        }
        overtaken.sort_unstable();
        self.outcome.lost_again = overtaken.last().map(|&(transmission, _)| transmission);
        let segments = &self.segments;
        self.lost_again.extend(overtaken.iter().map(|&(_, id)| id).filter(|&id| segments[id].lost));
    }

    /// Marks what was overtaken and is overdue (RFC 8985, section 6.2, step 5).
    fn detect_overdue(&mut self, wait: Time) {
        let mut overdue: Vec<_> = self
            .outstanding()
            .filter(|(_, segment)| !segment.arrived && !segment.waits())
            .filter(|(_, segment)| segment.transmission < self.latest_arrived)
            .map(|(id, segment)| (segment.transmission, id))
            .collect();
        overdue.sort_unstable();
        let now = self.now;
        for (transmission, id) in overdue {
            let segment = &mut self.segments[id];
            if segment.sent_at + wait > now {
                self.outcome.pending = self.outcome.pending.max(Some(segment.sent_at));
                continue;
            }
            if segment.ambiguous {
                self.outcome.lost_again = self.outcome.lost_again.max(Some(transmission));
                if segment.again && segment.lost {
                    self.lost_again.push_back(id);
                }
            } else {
                self.outcome.lost = self.outcome.lost.max(Some(segment.offset));
            }
            (segment.lost, segment.again) = (true, false);
        }
    }

    /// Marks segments that have not arrived as lost: all, or those sent this long ago and the first.
    fn time_out(&mut self, age: Option<Time>) {
        let (first, now) = (self.first, self.now);
        let outstanding = &mut self.segments[first..];
        // The receiver discarded data that it had reported (reneging).
        let reneged = outstanding.first().is_some_and(|front| front.arrived);
        if reneged {
            for segment in outstanding.iter_mut() {
                segment.arrived = false;
            }
        }
        for (at, segment) in outstanding.iter_mut().enumerate() {
            if reneged || at == 0 || age.is_none_or(|age| segment.sent_at <= now.since(age)) {
                segment.lost |= !segment.arrived;
                segment.again = false;
            }
        }
        self.lost_again.clear();
    }

    /// RFC 6675's pipe: originals that are not known to have arrived or to be lost, and retransmissions.
    fn pipe(&self) -> u64 {
        let copies = |segment: &Segment| u64::from(!segment.lost) + u64::from(segment.again);
        let missing = self.outstanding().filter(|(_, segment)| !segment.arrived);
        missing.map(|(_, segment)| copies(segment) * u64::from(segment.len)).sum()
    }
}

impl ReferenceStateMachine for Model {
    type State = Self;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Self> {
        any::<[bool; 2]>()
            .prop_map(|[by_time, finds]| Self {
                finds_lost_retransmissions: by_time || finds,
                by_time,
                segments: Vec::new(),
                first: 0,
                una: 0,
                now: Time::ZERO,
                transmissions: 0,
                latest_arrived: 0,
                lost_again: VecDeque::new(),
                outcome: Outcome::default(),
            })
            .boxed()
    }

    fn transitions(state: &Self) -> BoxedStrategy<Step> {
        let outstanding = state.next() - state.una;
        let len = prop_oneof![3 => Just(MSS as u16), 1 => 1..MSS as u16];
        let age = 0u64..40;
        // Blocks mostly end at segment boundaries.
        let edge = prop_oneof![
            3 => (0..=state.segments.len() - state.first).prop_map({
                let ends: Vec<u64> = std::iter::once(state.una)
                    .chain(state.outstanding().map(|(_, s)| s.end()))
                    .map(|end| end - state.una)
                    .collect();
                move |at| ends[at.min(ends.len() - 1)]
            }),
            1 => 0..=outstanding,
        ];
        // Nothing follows a FIN.
        let send = if state.is_closed() {
            Just(Step::SendLost).boxed()
        } else {
            (len, 1u32..6, prop::bool::weighted(0.01))
                .prop_map(|(len, count, fin)| Step::Send { len, count: if fin { 1 } else { count }, fin })
                .boxed()
        };
        let common = prop_oneof![
            8 => send,
            2 => (edge.clone(), age.clone()).prop_map(|(bytes, age)| Step::Acknowledge { bytes, age }),
            6 => (edge.clone(), edge, age).prop_map(|(a, b, age)| Step::Sack { from: a.min(b), bytes: a.abs_diff(b), age }),
            5 => Just(Step::SendLost),
            1 => Just(Step::SendLast),
            1 => Just(Step::Undo),
        ];
        if state.by_time {
            prop_oneof![
                23 => common,
                6 => (0u64..20).prop_map(|wait| Step::DetectOverdue { wait }),
                1 => (0u64..20).prop_map(|age| Step::TimeoutOfOld { age }),
            ]
            .boxed()
        } else {
            prop_oneof![
                23 => common,
                6 => any::<bool>().prop_map(|fack| Step::Detect { fack }),
                1 => Just(Step::FrontIsLost),
                1 => Just(Step::SendUnknown),
                1 => Just(Step::SendFront),
                1 => Just(Step::Timeout),
            ]
            .boxed()
        }
    }

    fn preconditions(state: &Self, step: &Step) -> bool {
        match *step {
            Step::Send { .. } => !state.is_closed(),
            Step::Detect { .. } | Step::Timeout => !state.by_time,
            Step::DetectOverdue { .. } | Step::TimeoutOfOld { .. } => state.by_time,
            Step::Acknowledge { bytes, .. } => state.una + bytes <= state.next(),
            Step::Sack { from, bytes, .. } => state.una + from + bytes <= state.next(),
            _ => true,
        }
    }

    fn apply(mut state: Self, step: &Step) -> Self {
        state.now += Time::from_millis(1);
        state.outcome = Outcome::default();
        let horizon = |age: u64| state.now.since(Time::from_millis(age));
        match *step {
            Step::Send { len, count, fin } => {
                for _ in 0..count {
                    state.transmissions += 1;
                    state.segments.push(Segment {
                        offset: state.next(),
                        len,
                        fin,
                        sent_at: state.now,
                        transmission: state.transmissions,
                        arrived: false,
                        lost: false,
                        again: false,
                        ambiguous: false,
                    });
                }
            }
            Step::Acknowledge { bytes, age } => {
                let horizon = horizon(age);
                state.una += bytes;
                while state.first < state.segments.len() && state.segments[state.first].end() <= state.una {
                    let id = state.first;
                    state.first += 1;
                    state.outcome.segments += 1;
                    state.outcome.cumulative += u64::from(state.segments[id].len);
                    if !state.has_arrived(id) {
                        state.arrives(id, horizon);
                    }
                }
            }
            Step::Sack { from, bytes, age } => {
                let horizon = horizon(age);
                let (left, right) = (state.una + from, state.una + from + bytes);
                for id in state.first..state.segments.len() {
                    let segment = &state.segments[id];
                    if segment.offset >= left && segment.end() <= right && !segment.arrived {
                        state.arrives(id, horizon);
                    }
                }
            }
            Step::Detect { fack } => state.detect(fack),
            Step::DetectOverdue { wait } => state.detect_overdue(Time::from_millis(wait)),
            Step::FrontIsLost => {
                if let Some(front) = state.segments.get_mut(state.first)
                    && !front.arrived
                {
                    front.lost = true;
                }
            }
            Step::SendLost => state.outcome.again = state.next_lost(),
            Step::SendUnknown => state.outcome.again = state.next_unknown(),
            // Rule 4.
            Step::SendLast => {
                let last = state.outstanding().last().filter(|(_, segment)| !segment.arrived);
                state.outcome.again = last.map(|(id, _)| id);
            }
            Step::SendFront => {
                let front = state.outstanding().next().filter(|(_, segment)| !segment.arrived);
                state.outcome.again = front.map(|(id, _)| id);
            }
            Step::Timeout => state.time_out(None),
            Step::TimeoutOfOld { age } => state.time_out(Some(Time::from_millis(age))),
            Step::Undo => {
                let first = state.first;
                for segment in &mut state.segments[first..] {
                    segment.lost &= segment.arrived;
                }
                state.lost_again.clear();
            }
        }
        if let Some(id) = state.outcome.again {
            state.send_again(id);
        }
        state
    }
}

/// The first transmission number, chosen so that the numbers wrap.
const BEGIN: u32 = u32::MAX - 50;

/// The scoreboard under test.
struct Board;

impl StateMachineTest for Board {
    type SystemUnderTest = Scoreboard;
    type Reference = Model;

    fn init_test(model: &Model) -> Scoreboard {
        let board = Scoreboard::new(model.finds_lost_retransmissions);
        Scoreboard { transmissions: BEGIN, latest_arrived: BEGIN, ..board }
    }

    fn apply(mut board: Scoreboard, model: &Model, step: Step) -> Scoreboard {
        let now = model.now;
        let new = |age: u64| Delivered::new(now.since(Time::from_millis(age)));
        let told = |delivered: &Delivered| Outcome {
            bytes: delivered.bytes,
            cumulative: delivered.cumulative,
            segments: delivered.segments,
            newest: delivered.newest,
            ambiguous: delivered.ambiguous,
            ..Outcome::default()
        };
        let again = match step {
            Step::SendLost => board.next_lost(),
            Step::SendUnknown => board.next_unknown(),
            Step::SendLast => board.last_unknown(),
            Step::SendFront if model.outcome.again.is_some() => board.front_id(),
            _ => None,
        };
        if let Some(id) = again {
            let record = board.retransmit(id, now);
            let segment = &model.segments[id as usize];
            assert_eq!(
                (record.offset, record.len, record.is_fin()),
                (segment.offset, segment.len, segment.fin),
                "what is retransmitted"
            );
        }
        let mut outcome = Outcome { again: again.map(|id| id as usize), ..Outcome::default() };
        match step {
            Step::Send { len, count, fin } => {
                let last = model.segments.last().expect("it was sent").offset;
                let offset = last - u64::from(count - 1) * u64::from(len);
                if count > 1 {
                    board.push_many(offset, len, count - 1, now);
                }
                board.push(last, len, fin, now);
            }
            Step::Acknowledge { age, .. } => {
                let mut delivered = new(age);
                let mut plain = board.clone();
                board.acknowledge(model.una, &mut delivered);
                outcome = told(&delivered);
                // The fast path either does the same or changes nothing.
                let before = format!("{plain:?}");
                let acked = if plain.is_untouched() { plain.acknowledge_untouched(model.una) } else { None };
                if let Some(acked) = acked {
                    assert_eq!((acked.bytes, Some(acked.sent_at)), (outcome.bytes, outcome.newest));
                    assert_eq!(outcome.ambiguous, None);
                    assert_eq!(
                        format!("{:?}", plain.recorded_all()),
                        format!("{:?}", board.recorded_all()),
                        "the fast path"
                    );
                } else {
                    assert_eq!(format!("{plain:?}"), before, "the fast path");
                }
            }
            Step::Sack { from, bytes, age } => {
                let mut delivered = new(age);
                board.sack(model.una + from, model.una + from + bytes, MSS, &mut delivered);
                outcome = told(&delivered);
            }
            Step::Detect { fack } => {
                outcome.lost = board.detect_losses(fack);
                let number = board.detect_lost_retransmissions();
                outcome.lost_again = number.map(|number| number.wrapping_sub(BEGIN));
            }
            Step::DetectOverdue { wait } => {
                let found = board.detect_overdue(Time::from_millis(wait), now);
                outcome.lost = found.lost;
                outcome.lost_again = found.lost_again.map(|number| number.wrapping_sub(BEGIN));
                // It may be later than it need be, but nothing is forgotten.
                let latest = board.latest_sent_at;
                assert_eq!(found.pending.is_some(), model.outcome.pending.is_some(), "pending");
                assert!(found.pending >= model.outcome.pending && found.pending <= Some(latest));
                outcome.pending = model.outcome.pending;
            }
            Step::FrontIsLost => board.front_is_lost(),
            Step::Timeout => board.all_is_lost(),
            Step::TimeoutOfOld { age } => board.old_is_lost(now.since(Time::from_millis(age))),
            Step::Undo if model.by_time => board.nothing_is_overdue(true),
            Step::Undo => board.nothing_is_lost(),
            Step::SendLost | Step::SendUnknown | Step::SendLast | Step::SendFront => {}
        }
        assert_eq!(outcome, model.outcome);
        board
    }

    fn check_invariants(board: &Scoreboard, model: &Model) {
        check(board);
        assert_eq!(board.pipe(), model.pipe(), "pipe");
        assert_eq!(board.len(), model.outstanding().count() as u64, "outstanding");
        assert_eq!(board.is_empty(), model.outstanding().next().is_none());
        let waiting = model.outstanding().filter(|(_, segment)| segment.waits()).count() as u64;
        assert_eq!((board.waiting(), board.has_waiting()), (waiting, waiting > 0), "waiting");
        assert_eq!(board.transmissions(), BEGIN.wrapping_add(model.transmissions));
        // The hint may be set where there is no such segment, but a segment is never missed.
        assert!(board.has_unknown() || model.next_unknown().is_none(), "unknown");
        let (front, first) = (board.front(), model.outstanding().next());
        assert_eq!(front.map(|front| front.offset), first.map(|(_, segment)| segment.offset), "front");
        assert_eq!(board.front_id(), first.map(|(id, _)| id as u64));
        for (record, (_, segment)) in board.recorded_all().records.iter().zip(model.outstanding()) {
            assert_eq!(record.end(), segment.end());
            assert_eq!(record.sent_at, segment.sent_at);
            for number in [0, segment.transmission - 1, segment.transmission, model.transmissions] {
                let later = record.was_sent_after(BEGIN.wrapping_add(number));
                assert_eq!(later, segment.transmission > number);
            }
        }
    }
}

prop_state_machine! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn the_scoreboard_agrees_with_its_model(sequential 1..120 => Board);
}

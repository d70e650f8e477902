use super::*;
use proptest::prelude::*;

const MSS: u32 = 1000;

fn sent(count: u64) -> Scoreboard {
    let mut board = Scoreboard::new(true);
    for id in 0..count {
        board.push(id * 1000, 1000, false, Time::from_millis(id));
    }
    board
}

#[test]
fn three_segments_above_make_a_hole_a_loss() {
    // RFC 6675, IsLost: segment 0 is lost once three above it are acknowledged, not before.
    let mut board = sent(6);
    let mut delivered = Delivered::new(Time::MAX);
    board.sack(1000, 3000, MSS, &mut delivered);
    assert_eq!(board.detect_losses(false), None);
    board.sack(1000, 4000, MSS, &mut delivered);
    assert_eq!(board.detect_losses(false), Some(0));
    assert_eq!(delivered.bytes, 3000);
    // Six sent, three arrived, one lost: two in the pipe.
    assert_eq!(board.pipe(), 2000);
    assert_eq!(board.next_lost(), Some(0));
}

#[test]
fn fack_counts_holes_below_the_highest() {
    let mut board = sent(8);
    board.sack(5000, 6000, MSS, &mut Delivered::new(Time::MAX));
    assert_eq!(board.detect_losses(false), None);
    assert_eq!(board.detect_losses(true), Some(2000));
    // 5 is acknowledged; 0, 1 and 2 are three or more below it.
    assert_eq!(board.pipe(), 8000 - 1000 - 3000);
}

#[test]
fn a_lost_retransmission_is_found_by_later_arrivals() {
    let mut board = sent(6);
    let mut delivered = Delivered::new(Time::MAX);
    board.sack(1000, 5000, MSS, &mut delivered);
    board.detect_losses(false);
    board.retransmit(0, Time::from_millis(50));
    for id in 6..10 {
        board.push(id * 1000, 1000, false, Time::from_millis(60 + id));
    }
    board.sack(1000, 8000, MSS, &mut delivered);
    board.detect_lost_retransmissions();
    assert_eq!(board.next_lost(), None);
    board.sack(1000, 9000, MSS, &mut delivered);
    board.detect_lost_retransmissions();
    assert_eq!(board.next_lost(), Some(0));
    board.check();
}

#[test]
fn short_segments_are_found_too() {
    let mut board = Scoreboard::new(true);
    let mut offset = 0;
    for len in [1000, 10, 1000, 1, 999, 1000] {
        board.push(offset, len, false, Time::ZERO);
        offset += u64::from(len);
    }
    let mut delivered = Delivered::new(Time::MAX);
    board.sack(1010, 2011, MSS, &mut delivered);
    assert_eq!(delivered.bytes, 1001);
    board.check();
}

#[derive(Clone, Debug)]
enum Step {
    Push,
    Ack(u64),
    Sack(u64, u64),
    Detect(bool),
    Retransmit,
    Rescue,
    Timeout,
    Undo,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Push),
        2 => (0u64..8).prop_map(Step::Ack),
        4 => (0u64..40, 1u64..6).prop_map(|(left, len)| Step::Sack(left, len)),
        4 => any::<bool>().prop_map(Step::Detect),
        4 => Just(Step::Retransmit),
        1 => Just(Step::Rescue),
        1 => Just(Step::Timeout),
        1 => Just(Step::Undo),
    ]
}

proptest! {
    #[test]
    fn counters_equal_a_recount(steps in prop::collection::vec(step(), 1..200)) {
        let mut board = Scoreboard::new(true);
        let (mut next, mut una, mut total) = (0, 0, 0);
        for (tick, step) in steps.into_iter().enumerate() {
            let now = Time::from_millis(tick as u64);
            let mut delivered = Delivered::new(Time::MAX);
            match step {
                Step::Push => {
                    board.push(next * 1000, 1000, false, now);
                    next += 1;
                }
                Step::Ack(count) => {
                    una = (una + count).min(next);
                    board.acknowledge(una * 1000, &mut delivered);
                }
                Step::Sack(left, len) => {
                    let (left, right) = (una + 1 + left, (una + 1 + left + len).min(next));
                    if left < right {
                        board.sack(left * 1000, right * 1000, MSS, &mut delivered);
                    }
                }
                Step::Detect(fack) => {
                    board.detect_losses(fack);
                    board.detect_lost_retransmissions();
                }
                Step::Retransmit => {
                    if let Some(id) = board.next_lost() {
                        board.retransmit(id, now);
                    }
                }
                Step::Rescue => {
                    if let Some(id) = board.last_unknown() {
                        board.retransmit(id, now);
                    }
                }
                // A receiver that keeps what it acknowledged never leaves a front like this.
                Step::Timeout if board.front().is_some_and(|front| front.flags & SACKED != 0) => {}
                Step::Timeout => board.all_is_lost(),
                Step::Undo => board.nothing_is_lost(),
            }
            total += delivered.bytes;
            board.check();
            prop_assert!(total <= next * 1000, "nothing is delivered twice");
        }
        let mut delivered = Delivered::new(Time::MAX);
        board.acknowledge(next * 1000, &mut delivered);
        prop_assert_eq!(total + delivered.bytes, next * 1000);
        prop_assert_eq!(board.pipe(), 0);
    }
}

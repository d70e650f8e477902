use super::*;

const MSS: u32 = 1000;

fn sent(count: u64) -> Scoreboard {
    let mut board = Scoreboard::new(true);
    for id in 0..count {
        board.push(id * 1000, 1000, false, Time::from_millis(id));
    }
    board
}

/// Recomputes the values that the scoreboard keeps as counters and runs.
pub fn check(board: &Scoreboard) {
    let board = &board.recorded_all();
    assert_eq!(board.len(), board.records.len() as u64, "len");
    assert_eq!(board.pipe, board.records.iter().map(Record::in_pipe).sum::<u64>(), "pipe");
    let waiting = board.records.iter().filter(|r| r.flags & (SACKED | LOST | IN_FLIGHT_AGAIN) == LOST);
    assert_eq!(board.waiting(), waiting.count() as u64, "waiting");
    let lost = board.records.iter().filter(|r| r.flags & (SACKED | LOST) == LOST);
    assert_eq!(board.lost(), lost.count() as u64, "lost");
    let again = board.records.iter().filter(|r| r.flags & (SACKED | IN_FLIGHT_AGAIN) == IN_FLIGHT_AGAIN);
    assert_eq!(board.retransmitted(), again.count() as u64, "retransmitted");
    let sacked = board.records.iter().filter(|r| r.flags & SACKED != 0);
    assert_eq!(board.sacked(), sacked.count() as u64, "sacked");
    let sacked: Vec<u64> =
        (board.first..board.next_id()).filter(|&id| board.get(id).flags & SACKED != 0).collect();
    let in_runs: Vec<u64> = board.runs.iter().flat_map(|(left, right)| left..right).collect();
    assert_eq!(sacked, in_runs, "runs");
    assert!(board.runs.iter().zip(board.runs.iter().skip(1)).all(|(a, b)| a.1 < b.0), "runs are apart");
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
    check(&board);
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
    check(&board);
}

#[test]
fn a_repeated_block_tells_something_new_only_after_reneging() {
    let mut board = sent(6);
    let block = (0, 3000);
    assert!(!board.last_blocks().contains(&block));
    board.note_block(1, block);
    board.sack(block.0, block.1, MSS, &mut Delivered::new(Time::MAX));
    assert!(board.last_blocks().contains(&block));
    board.all_is_lost();
    assert!(!board.last_blocks().contains(&block));
}

/// The bound of what may become overdue; `wait` and `now` in ms.
fn pending(board: &mut Scoreboard, wait: u64, now: u64) -> Option<Time> {
    board.detect_overdue(Time::from_millis(wait), Time::from_millis(now)).pending
}

#[test]
fn pending_covers_what_was_overtaken_above_the_highest_sacked() {
    // After reneging: 9 arrived once and overtook 6, 7 and 8, which are above the highest SACKed segment now.
    let mut board = sent(10);
    board.sack(0, 10_000, MSS, &mut Delivered::new(Time::MAX));
    board.old_is_lost(Time::from_millis(10));
    board.sack(4000, 6000, MSS, &mut Delivered::new(Time::MAX));
    board.nothing_is_overdue(true);
    assert_eq!(pending(&mut board, 20, 11), Some(Time::from_millis(9)));
}

#[test]
fn pending_covers_what_a_retransmission_overtook() {
    // The retransmission of 0 overtook 5, which is above the highest SACKed segment, but not 6.
    let mut board = sent(6);
    board.sack(4000, 5000, MSS, &mut Delivered::new(Time::MAX));
    assert_eq!(pending(&mut board, 10, 10), Some(Time::from_millis(3)));
    board.retransmit(0, Time::from_millis(11));
    board.push(6000, 1000, false, Time::from_millis(12));
    board.acknowledge(1000, &mut Delivered::new(Time::MAX));
    assert_eq!(pending(&mut board, 15, 13), Some(Time::from_millis(11)));
}

#[test]
fn pending_covers_what_follows_a_retransmission_above_the_highest_sacked() {
    // The retransmission of 0 overtook 6, but neither the retransmission of 5 nor 7.
    let mut board = sent(7);
    board.sack(4000, 5000, MSS, &mut Delivered::new(Time::MAX));
    assert_eq!(pending(&mut board, 10, 10), Some(Time::from_millis(3)));
    board.retransmit(0, Time::from_millis(11));
    board.retransmit(5, Time::from_millis(12));
    board.push(7000, 1000, false, Time::from_millis(13));
    board.acknowledge(1000, &mut Delivered::new(Time::MAX));
    assert_eq!(pending(&mut board, 15, 14), Some(Time::from_millis(11)));
}

#[test]
fn pending_is_exact_where_nothing_was_overtaken_above_the_highest_sacked() {
    // 5 was retransmitted as a probe, after all that has arrived.
    let mut board = sent(6);
    board.sack(4000, 5000, MSS, &mut Delivered::new(Time::MAX));
    board.retransmit(5, Time::from_millis(9));
    assert_eq!(pending(&mut board, 20, 10), Some(Time::from_millis(3)));
}

#[test]
fn an_ack_of_all_but_a_fin_that_came_alone_leaves_the_fin() {
    let mut board = sent(2);
    board.push(2000, 0, true, Time::from_millis(2));
    assert_eq!(
        board.acknowledge_untouched(2000).map(|removed| (removed.bytes, removed.count)),
        Some((2000, 2))
    );
    assert!(board.acknowledge_untouched(2000).is_none());
    assert_eq!((board.len(), board.pipe()), (1, 0));
    check(&board);
    assert_eq!(board.acknowledge_untouched(2001).map(|removed| removed.count), Some(1));
    assert!(board.is_empty());
}

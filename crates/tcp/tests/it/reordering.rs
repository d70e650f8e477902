//! Reordering and duplication: what is no loss, and what is taken back.

use crate::common::{Script, config, eager, stamped};
use elephan_tcp::{Config, Segment};

/// Segment 0 is late: 1, 2 and 3 overtake it, and it is retransmitted.
fn first_is_late() -> Script {
    let mut tcp = Script::sending(config(), 100);
    tcp.until(100).sack(0, &[1..2]).sack(0, &[1..3]).sack(0, &[1..4]).sends([10, 11, 0]);
    assert_eq!((tcp.cwnd(), tcp.ssthresh()), (5.0, 5.0));
    tcp
}

#[test]
fn dsack_undoes_a_spurious_reduction() {
    // Undo (RFC 2883; RFC 3708, section 2): the late segment arrives, then its retransmission, which the receiver reports as a
    // duplicate. All that was retransmitted was for nothing: the window is 10 again, and without a threshold.
    let mut tcp = first_is_late();
    tcp.until(110).ack(4).ack(12).sent();
    tcp.until(200).sack(14, &[0..1]);
    assert_eq!((tcp.cwnd() >= 10.0, tcp.ssthresh()), (true, f64::INFINITY));
    let counters = tcp.end.counters();
    assert_eq!((counters.reductions, counters.undos), (1, 1));
}

#[test]
fn undo_ends_a_recovery_that_is_still_on_its_way() {
    // Undo during recovery: 1 and 2 are late too. After the undo nothing is thought lost, and the window
    // that comes back is filled.
    let mut tcp = first_is_late();
    tcp.until(110).ack(4).sent();
    assert!(tcp.snapshot().in_recovery);
    tcp.until(120).sack(4, &[0..1]);
    assert!(!tcp.snapshot().in_recovery);
    assert_eq!(tcp.cwnd(), 10.0);
    // 12 were sent and 4 acknowledged: 8 are in flight.
    tcp.sends([12, 13]);
}

#[test]
fn one_report_does_not_undo_two_retransmissions() {
    // Undo needs a report for every retransmission: 0 and 4 were late, but 5 was lost.
    let mut tcp = first_is_late();
    tcp.sack(0, &[6..9, 1..4]).sends([4]);
    tcp.sack(0, &[6..12, 1..4]);
    assert_eq!(tcp.sent()[0], 5);
    tcp.until(200).sack(4, &[0..1, 6..12]);
    tcp.until(210).sack(5, &[4..5, 6..12]);
    assert_eq!(tcp.end.counters().undos, 0);
    assert_eq!(tcp.ssthresh(), 5.0);
}

#[test]
fn a_duplicate_by_the_network_undoes_nothing() {
    // RFC 3708, section 2: reports of segments that were not retransmitted are the network's duplicates; so is a report that
    // comes twice.
    let mut tcp = first_is_late();
    tcp.until(200).ack(12).sent();
    tcp.sack(12, &[3..4]).sack(12, &[7..8]);
    assert_eq!(tcp.end.counters().undos, 0);
    tcp.sack(12, &[0..1]);
    assert_eq!(tcp.end.counters().undos, 1);
    tcp.sack(12, &[0..1]);
    assert_eq!(tcp.end.counters().undos, 1);
}

#[test]
fn without_dsack_nothing_is_undone() {
    // D-SACK as an option.
    let mut tcp = Script::sending(Config { dsack: false, ..config() }, 100);
    tcp.until(100).sack(0, &[1..4]).ack(4).sack(12, &[0..1]);
    assert_eq!((tcp.end.counters().undos, tcp.cwnd()), (0, 5.0));
}

#[test]
fn dsack_undoes_a_spurious_timeout() {
    // Undo after a timeout: the ACKs were only late, and the retransmission is reported as a duplicate.
    let mut tcp = Script::sending(config(), 100);
    tcp.until(1000);
    assert_eq!((tcp.sent(), tcp.cwnd()), (vec![0], 1.0));
    tcp.until(1010).sack(10, &[0..1]);
    assert_eq!((tcp.cwnd() >= 10.0, tcp.ssthresh()), (true, f64::INFINITY));
    // No longer doubled. The late ACK is no sample: without timestamps it may be of either 0 (Karn).
    assert_eq!(tcp.snapshot().rto, elephan_units::Time::from_secs(1));
}

#[test]
fn what_is_lost_after_an_undo_is_found_again() {
    // After an undo every hole is looked at again: 5 really is lost. The ACK of the undo counts towards growth.
    let mut tcp = first_is_late();
    tcp.until(110).ack(4).sent();
    tcp.until(120).sack(5, &[0..1]);
    assert_eq!(tcp.cwnd(), 11.0);
    tcp.sent();
    tcp.until(130).sack(5, &[6..9]);
    assert_eq!(tcp.sent()[0], 5);
    assert_eq!(tcp.end.counters().reductions, 2);
}

#[test]
fn paws_drops_segments_from_a_window_long_past() {
    // PAWS (RFC 7323, section 5): a segment whose timestamp is older than the last one in order is
    // acknowledged and dropped, although its numbers fit.
    let mut tcp = Script::receiver(Config { delayed_ack: eager().delayed_ack, ..stamped() });
    tcp.until(100).data(0).take_bare(1);
    let old = Segment { len: 1000, ..tcp.segment_at(1000) };
    tcp.receive(Segment { ts_val: old.ts_val.wrapping_sub(1), ..old }).acks(1000, &[]);
    assert_eq!(tcp.end.counters().bytes_delivered, 1000);
    // The clock wraps: this timestamp is newer.
    tcp.receive(Segment { ts_val: old.ts_val.wrapping_add(1 << 30), ..old }).acks(2000, &[]);
}

#[test]
fn paws_lets_overtaken_acks_pass() {
    // Linux (tcp_disordered_ack): an ACK without data that was overtaken is harmless; its news count.
    let mut tcp = Script::sending(stamped(), 100);
    tcp.until(100);
    let overtaken = Segment { ack: tcp.bare_segment().ack.wrapping_add(2000), ..tcp.bare_segment() };
    tcp.until(105).sack(0, &[]);
    tcp.receive(overtaken);
    tcp.take_bare(0);
    assert_eq!(tcp.end.counters().bytes_acked, 2000);
    // An old one from before the last timeout is dropped.
    tcp.receive(Segment {
        ack: overtaken.ack.wrapping_add(2000),
        ts_val: overtaken.ts_val.wrapping_sub(5000),
        ..overtaken
    });
    assert_eq!(tcp.end.counters().bytes_acked, 2000);
}

#[test]
fn a_report_beyond_a_hole_counts_too() {
    // RFC 2883, section 4: the first block is a duplicate where the second one covers it. 0 and 4 are late and are
    // retransmitted; the copy of 4 is reported while 0 is still missing, that of 0 when all else is acknowledged.
    let mut tcp = Script::sending(config(), 100);
    tcp.until(100).sack(0, &[1..4]).sack(0, &[5..8, 1..4]).sack(0, &[5..10, 1..4]);
    tcp.until(150).sack(0, &[1..10]);
    assert_eq!(tcp.end.counters().segments_retransmitted, 2);
    tcp.until(200).sack(0, &[4..5, 1..10]);
    assert_eq!(tcp.end.counters().undos, 0);
    tcp.until(250).ack(10);
    tcp.until(300).sack(10, &[0..1]);
    assert_eq!((tcp.end.counters().undos, tcp.ssthresh()), (1, f64::INFINITY));
}

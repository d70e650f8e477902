//! Losses that duplicate ACKs show: the Tahoe, Reno and NewReno forms, without SACK.

use crate::common::{Script, config};
use elephan_tcp::{Config, Recovery, Segment};
use elephan_units::Time;

fn with(recovery: Recovery) -> Config {
    Config { recovery, ..config() }
}

/// Ten segments are sent, and number 0 is lost; the first two duplicates release 10 and 11.
fn first_is_lost(recovery: Recovery) -> Script {
    let mut tcp = Script::sender(with(recovery));
    tcp.write(100).sends([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    tcp.until(100).dupacks(0, 2).sends([10, 11]);
    tcp
}

#[test]
fn tahoe_starts_slowly_after_a_fast_retransmit() {
    // Fast retransmit (Jacobson 1988): ssthresh is half of the 10 in flight; the two that limited transmit
    // added do not count; the window restarts from 1.
    let mut tcp = first_is_lost(Recovery::Tahoe);
    tcp.dupacks(0, 1).sends([0]);
    assert_eq!((tcp.cwnd(), tcp.ssthresh()), (1.0, 5.0));
    // Later duplicates change nothing.
    tcp.dupacks(0, 8).silent();
    tcp.until(200).ack(12).sends([12]);
    // Slow start: 1, 2, 4.
    tcp.until(300).ack(13).sends([13, 14]);
    tcp.until(400).ack(14).ack(15).sends([15, 16, 17, 18]);
}

#[test]
fn tahoe_goes_back_over_what_arrived() {
    // Go-back-N: 0 and 3 are lost. After the hole at 0 the window is 2, and 3 and 4 are retransmitted, though 4
    // had arrived.
    let mut tcp = first_is_lost(Recovery::Tahoe);
    tcp.dupacks(0, 1).sends([0]);
    tcp.until(200).ack(3).sends([3, 4]);
    assert_eq!(tcp.end.counters().reductions, 1);
    // 3 fills the last hole.
    tcp.until(300).ack(12).sends([12, 13]);
    // The duplicate for 4 does not show a loss, nor do three of them (RFC 6582, section 3.2, step 2).
    tcp.dupacks(12, 3);
    assert!(!tcp.snapshot().in_recovery);
    assert_eq!(tcp.end.counters().reductions, 1);
}

#[test]
fn reno_inflates_and_deflates() {
    // Fast recovery (RFC 5681, section 3.2): cwnd 5 + 3, and 1 for each further duplicate; 12 are
    // outstanding, so the eighth duplicate allows a thirteenth.
    let mut tcp = first_is_lost(Recovery::Reno);
    tcp.dupacks(0, 1).sends([0]);
    assert_eq!((tcp.cwnd(), tcp.ssthresh()), (5.0, 5.0));
    tcp.dupacks(0, 4).silent();
    tcp.dupacks(0, 1).sends([12]);
    tcp.dupacks(0, 1).sends([13]);
    // The ACK that ends recovery deflates the window to 5: two are in flight, three follow. The window does
    // not grow.
    tcp.until(200).ack(12).sends([14, 15, 16]);
    assert_eq!(tcp.cwnd(), 5.0);
}

#[test]
fn reno_ends_recovery_at_a_partial_ack() {
    // Reno with two losses in a window: 0 and 3. The partial ACK ends fast recovery. The second hole needs
    // three more duplicates; there is no second reduction, because it belongs to the same window.
    let mut tcp = first_is_lost(Recovery::Reno);
    tcp.dupacks(0, 6).sends([0, 12]);
    tcp.until(200).ack(3);
    assert!(!tcp.snapshot().in_recovery);
    tcp.sends([]);
    tcp.dupacks(3, 3).sends([3]);
    assert_eq!(tcp.end.counters().reductions, 1);
    assert_eq!(tcp.cwnd(), 5.0);
    tcp.until(300).ack(13).sends([13, 14, 15, 16, 17]);
}

#[test]
fn newreno_repairs_one_hole_in_each_round_trip() {
    // Partial ACKs (RFC 6582, section 3.2, step 3): 0, 3 and 7 are lost. Each partial ACK retransmits the
    // next hole at once and deflates the window by the acknowledged data, less one segment.
    let mut tcp = first_is_lost(Recovery::NewReno);
    tcp.dupacks(0, 5).sends([0]);
    // 5 + 3 + 4 = 12 are allowed. 3 are acknowledged and one is added back: 10, and 9 are outstanding.
    tcp.until(200).ack(3).sends([3, 12]);
    // 4 more are acknowledged and one is added back: 7, and 6 are outstanding.
    tcp.until(300).ack(7).sends([7, 13]);
    assert!(tcp.snapshot().in_recovery);
    tcp.until(400).ack(12);
    assert!(!tcp.snapshot().in_recovery);
    tcp.sends([14, 15, 16]);
    assert_eq!((tcp.end.counters().reductions, tcp.end.counters().timeouts), (1, 0));
    assert_eq!(tcp.cwnd(), 5.0);
}

#[test]
fn newreno_is_impatient() {
    // The impatient variant (RFC 6582, section 4): only the first partial ACK restarts the timer, so many
    // losses end in a timeout. The timeout belongs to the same window: cwnd is 1, ssthresh is unchanged.
    let config = Config { rto_min: Time::from_millis(200), ..with(Recovery::NewReno) };
    let mut tcp = Script::sender(config);
    tcp.write(10);
    // The handshake's sample of 100 ms makes a timeout of 100 + 4 * 50 ms.
    assert_eq!(tcp.snapshot().rto, Time::from_millis(300));
    tcp.until(100).dupacks(0, 3);
    for (at, next) in [(200, 2), (310, 4), (420, 6)] {
        tcp.until(at).ack(next);
    }
    tcp.sent();
    tcp.until(499).silent();
    assert_eq!(tcp.end.counters().timeouts, 0);
    tcp.until(500).sends([6]);
    let counters = tcp.end.counters();
    assert_eq!((counters.timeouts, counters.reductions), (1, 1));
    assert_eq!((tcp.cwnd(), tcp.ssthresh()), (1.0, 5.0));
}

#[test]
fn two_duplicates_are_reordering() {
    // The duplicate ACK threshold (RFC 5681, section 3.2) is three; a new ACK resets the count.
    let mut tcp = Script::sending(with(Recovery::NewReno), 100);
    tcp.until(100).dupacks(0, 2).ack(4).dupacks(4, 2).ack(8);
    assert_eq!(tcp.end.counters().segments_retransmitted, 0);
    assert_eq!(tcp.end.counters().reductions, 0);
}

#[test]
fn a_window_update_is_no_duplicate() {
    // The definition of a duplicate ACK (RFC 5681, section 2): no data, and the same window. A reordered ACK
    // of old data is not a duplicate either.
    let mut tcp = Script::sending(with(Recovery::Reno), 100);
    tcp.until(100).ack(2).sent();
    for kilobytes in 1..=5 {
        tcp.window = (1 << 22) + (kilobytes << 10);
        tcp.ack(2);
    }
    tcp.dupacks(1, 5);
    assert_eq!(tcp.end.counters().segments_retransmitted, 0);
    // A segment with data is not a duplicate either (its window is the same).
    let ack = tcp.bare_segment().ack.wrapping_add(2000);
    for number in 0..5 {
        tcp.receive(Segment { len: 1000, ack, ..tcp.segment_at(number * 1000) });
    }
    assert_eq!(tcp.end.counters().segments_retransmitted, 0);
}

#[test]
fn limited_transmit_is_an_option() {
    // RFC 3042: without it the first two duplicates send nothing, and with SACK the data that they report still counts as
    // in flight.
    for recovery in [Recovery::Reno, Recovery::Sack] {
        let mut tcp = Script::sending(Config { limited_transmit: false, ..with(recovery) }, 100);
        tcp.until(100).sack(0, &[1..2]).sack(0, &[1..3]).silent();
        tcp.sack(0, &[1..4]).sends([0]);
        assert_eq!(tcp.ssthresh(), 5.0, "{recovery:?}");
    }
}

#[test]
fn limited_transmit_saves_a_small_window_from_the_timer() {
    // Limited transmit: a window of 3 that loses its first segment gives only two duplicates; the two new
    // segments elicit the third.
    let mut tcp = Script::sender(Config { initial_window: 3, ..with(Recovery::NewReno) });
    tcp.write(100).sends([0, 1, 2]);
    tcp.until(100).dupacks(0, 2).sends([3, 4]);
    tcp.until(200).dupacks(0, 1).sends([0]);
    assert_eq!(tcp.end.counters().timeouts, 0);
}

#[test]
fn acks_of_an_idle_connection_are_no_duplicates() {
    // RFC 5681, section 2: a duplicate ACK requires outstanding data; keep-alives and their answers are not
    // duplicates.
    let mut tcp = Script::sending(with(Recovery::NewReno), 2);
    tcp.until(100).ack(2).dupacks(2, 5).silent();
    assert!(!tcp.snapshot().in_recovery);
    // Two duplicates are below the threshold of three; limited transmit sends one segment for each.
    tcp.write(100);
    let sent = tcp.sent().len() as u64;
    tcp.dupacks(2, 2).sends([sent + 2, sent + 3]);
    assert_eq!(tcp.end.counters().reductions, 0);
}

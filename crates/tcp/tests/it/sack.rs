//! Losses that selective acknowledgments show (RFC 6675), and its options.

use crate::common::{Script, config, stamped};
use elephan_tcp::{Config, WindowReduction};

/// Ten segments are sent; number 0 is lost, and 1, 2 and 3 are reported one by one.
fn first_is_lost(config: Config) -> Script {
    let mut tcp = Script::sender(config);
    tcp.write(100).sends([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    tcp.until(100).sack(0, &[1..2]).sack(0, &[1..3]).sends([10, 11]);
    tcp.sack(0, &[1..4]);
    tcp
}

#[test]
fn sack_keeps_the_pipe_at_cwnd() {
    // RFC 6675, section 5: cwnd is half of the 10 in flight. With 12 sent, 3 arrived, 1 lost and
    // retransmitted the pipe is 9; it must fall below 5 before new data is sent.
    let mut tcp = first_is_lost(config());
    tcp.sends([0]);
    assert_eq!((tcp.cwnd(), tcp.ssthresh(), tcp.pipe()), (5.0, 5.0, 9));
    for end in 5..=8 {
        tcp.sack(0, &[1..end]);
    }
    tcp.silent();
    assert_eq!(tcp.pipe(), 5);
    tcp.sack(0, &[1..9]).sack(0, &[1..10]).sends([12, 13]);
    tcp.until(200).sack(0, &[1..11]).sack(0, &[1..12]).sends([14, 15]);
    // The retransmission arrives: recovery ends, and one more segment fills the window.
    tcp.ack(12).sends([16]);
    assert!(!tcp.snapshot().in_recovery);
    assert_eq!((tcp.cwnd(), tcp.end.counters().reductions), (5.0, 1));
}

#[test]
fn sack_repairs_many_losses_in_one_round_trip() {
    // NextSeg, rule 1 (RFC 6675, section 4): lost segments are sent before new data, in order: 0, then 4 and
    // 5 once three segments above them have arrived.
    let mut tcp = first_is_lost(config());
    tcp.sends([0]);
    tcp.sack(0, &[6..7, 1..4]).sack(0, &[6..8, 1..4]).silent();
    assert_eq!(tcp.pipe(), 7);
    // 4 and 5 are lost: 12 - 6 arrived - 3 lost + 1 retransmitted = 4; one segment may be sent.
    tcp.sack(0, &[6..9, 1..4]).sends([4]);
    tcp.sack(0, &[6..10, 1..4]).sends([5]);
    tcp.until(200).sack(0, &[6..12, 1..4]).sends([12, 13]);
    tcp.ack(4).ack(5).ack(12);
    assert_eq!((tcp.end.counters().reductions, tcp.end.counters().segments_retransmitted), (1, 3));
}

#[test]
fn three_segments_must_arrive_above_a_loss() {
    // IsLost (RFC 6675, section 4): two segments that arrived above a hole do not show a loss, however often
    // they are reported.
    let mut tcp = Script::sending(config(), 10);
    tcp.until(100).sack(0, &[8..10]).sack(0, &[8..10]).sack(0, &[8..10]).silent();
    tcp.sack(0, &[7..10]);
    assert_eq!(tcp.sent()[0], 0);
}

#[test]
fn fack_takes_holes_for_losses() {
    // Forward acknowledgment (Mathis and Mahdavi 1996): one block more than three segments above snd.una is
    // enough. Three segments lie between the highest byte and 0 or 1, but not between it and 3.
    let mut tcp = Script::sending(Config { fack: true, ..config() }, 10);
    tcp.until(100).sack(0, &[2..3]).silent();
    tcp.sack(0, &[4..5, 2..3]);
    assert!(tcp.snapshot().in_recovery);
    tcp.sends([0]);
    // 10 sent, 2 arrived, 0 and 1 lost, 0 retransmitted: 7 in the pipe, above the window of 5.
    assert_eq!(tcp.pipe(), 7);
}

#[test]
fn a_lost_retransmission_is_found_and_reduces_again() {
    // The loss of a retransmission is detected when three segments sent after it arrive, as in Linux. It is a
    // second indication of congestion (RFC 5681, section 4.3): 5 becomes 2.5.
    let mut tcp = first_is_lost(config());
    tcp.sends([0]);
    tcp.sack(0, &[1..12]).sends([12, 13, 14, 15]);
    tcp.until(200).sack(0, &[1..13]).sack(0, &[1..14]).sends([16, 17]);
    tcp.sack(0, &[1..15]);
    assert_eq!((tcp.cwnd(), tcp.end.counters().reductions), (2.5, 2));
    // 15, 16 and 17 fill the window; then 0 is sent for the third time.
    tcp.silent();
    tcp.sack(0, &[1..16]).silent();
    tcp.until(300).sack(0, &[1..17]).sends([0]);
    tcp.sack(0, &[1..18]).sends([18]);
    tcp.until(400).ack(18);
    assert_eq!((tcp.end.counters().timeouts, tcp.end.counters().reductions), (0, 2));
}

#[test]
fn without_that_a_lost_retransmission_waits_for_the_timer() {
    // RFC 6675 leaves the loss of a retransmission to the timer, which counts from the retransmission at 100
    // ms; sending within the pipe's limit continues.
    let mut tcp = first_is_lost(Config { lost_retransmission: false, ..config() });
    tcp.sends([0]);
    tcp.until(200).sack(0, &[1..12]).sack(0, &[1..16]);
    assert_eq!(tcp.end.counters().reductions, 1);
    tcp.sent();
    tcp.until(1099).silent();
    tcp.until(1100).sends([0]);
    assert_eq!((tcp.end.counters().timeouts, tcp.end.counters().reductions), (1, 2));
}

#[test]
fn a_loss_of_data_sent_in_recovery_is_another_event() {
    // Losses in two successive windows are two indications (RFC 5681, section 4.3): 13 was sent after the
    // reduction. Its loss causes another reduction although the first recovery is still in progress.
    let mut tcp = first_is_lost(config());
    tcp.sends([0]);
    tcp.sack(0, &[1..12]).sends([12, 13, 14, 15]);
    tcp.until(200).ack(13);
    assert!(!tcp.snapshot().in_recovery);
    tcp.sends([16, 17]);
    tcp.sack(13, &[14..16]).sends([18, 19]);
    tcp.until(300).sack(13, &[14..17]).sends([13]);
    assert_eq!(tcp.end.counters().reductions, 2);
}

#[test]
fn new_data_that_is_lost_after_a_timeout_is_an_event_of_its_own() {
    // During the recovery after a timeout, SACK shows a loss of data that was sent since.
    let mut tcp = Script::sending(Config { lost_retransmission: false, ..config() }, 100);
    tcp.until(1000).sends([0]);
    // Slow start, by one segment for each ACK (RFC 3465, section 2.3).
    tcp.until(1100).ack(5).sends([5, 6]);
    tcp.until(1200).ack(7).sends([7, 8, 9]);
    tcp.until(1300).ack(9).sends([10, 11, 12]);
    // 9 is lost again, and 10 for the first time.
    tcp.until(1400).sack(9, &[11..12]).sack(9, &[11..13]).sends([13, 14]);
    assert_eq!((tcp.cwnd(), tcp.end.counters().reductions), (4.0, 1));
    tcp.until(1500).sack(9, &[11..14]);
    assert_eq!((tcp.cwnd(), tcp.end.counters().reductions), (2.0, 2));
    tcp.sack(9, &[11..15]).sends([10]);
}

#[test]
fn proportional_rate_reduction_sends_for_every_second_delivery() {
    // PRR (RFC 6937): 12 outstanding, ssthresh 5. After d deliveries ceil(5 d / 12) segments may have been
    // sent: at 1 the retransmission, and at 3, 5 and 8 one more each; at 7 and 8 the pipe has reached
    // ssthresh.
    let mut tcp = first_is_lost(Config { window_reduction: WindowReduction::PrrRfc6937, ..config() });
    tcp.sends([0]);
    for (delivery, sends) in [(2, None), (3, Some(12)), (4, None), (5, Some(13)), (6, None), (7, None)] {
        tcp.sack(0, &[1..delivery + 3]);
        assert_eq!(tcp.sent(), Vec::from_iter(sends), "delivery {delivery}");
    }
    assert_eq!(tcp.pipe(), 5);
    // From here on the pipe stays at ssthresh.
    tcp.sack(0, &[1..11]).sends([14]);
    tcp.sack(0, &[1..12]).sends([15]);
    tcp.until(200).ack(12);
    assert_eq!((tcp.cwnd(), tcp.pipe()), (5.0, 5));
}

#[test]
fn proportional_rate_reduction_is_bound_after_heavy_losses() {
    // PRR's slow start reduction bound (RFC 6937, section 3.1): 0 to 6 are lost, and the pipe of 2 is below
    // ssthresh 5. Each delivery allows two segments, not all three that are missing.
    let mut tcp = Script::sending(Config { window_reduction: WindowReduction::PrrRfc6937, ..config() }, 100);
    tcp.until(100).sack(0, &[7..8]).sack(0, &[7..9]).sent();
    tcp.sack(0, &[7..10]);
    assert_eq!(tcp.ssthresh(), 5.0);
    tcp.sends([0, 1]);
    // 10 arrives: pipe 3, two delivered, two sent; max(0, 1) + 1 = 2.
    tcp.until(200).sack(0, &[7..11]).sends([2, 3]);
    tcp.sack(0, &[7..12]).sends([4]);
}

#[test]
fn rate_halving_sends_for_every_second_ack() {
    // Linux 2.4 (tcp_cwnd_down): 12 sent, 3 arrived, 1 lost and retransmitted: 9 in flight, which is the
    // window. Every second ACK reduces it by one; each of the others releases one segment.
    let mut tcp = first_is_lost(Config { window_reduction: WindowReduction::RateHalving, ..config() });
    assert_eq!((tcp.ssthresh(), tcp.sent()), (5.0, vec![0]));
    for (arrives, sends) in [(5, None), (6, Some(12)), (7, None), (8, Some(13)), (9, None), (10, Some(14))] {
        tcp.sack(0, &[1..arrives]);
        assert_eq!(tcp.sent(), Vec::from_iter(sends), "up to {arrives}");
    }
    assert_eq!(tcp.pipe(), 6);
    // At the end of the recovery the window is at most ssthresh, as without this option.
    tcp.until(200).ack(15);
    assert_eq!(tcp.cwnd(), 5.0);
}

#[test]
fn rate_halving_takes_what_a_stretched_ack_tells_of_off_the_window() {
    // The ACKs of 5 to 10 are lost, and one ACK covers all: 2 are in flight, and one more may be sent. The
    // window stays at this value when the recovery ends, and slow start raises it to ssthresh. Without this
    // option the window is ssthresh at once.
    for (window_reduction, sends, cwnd) in
        [(WindowReduction::RateHalving, vec![12], 3.0), (WindowReduction::AtOnce, vec![12, 13, 14], 5.0)]
    {
        let mut tcp = first_is_lost(Config { window_reduction, ..config() });
        tcp.sends([0]);
        tcp.sack(0, &[1..11]).sends(sends);
        tcp.until(200).ack(12);
        assert_eq!((tcp.cwnd(), tcp.ssthresh()), (cwnd, 5.0));
    }
}

#[test]
fn the_last_segment_is_rescued() {
    // NextSeg, rule 4 (RFC 6675, section 4): 3 and 9 of ten are lost, and there is no new data. No ACK can
    // show the loss of 9; it is sent once more, and only once.
    let mut tcp = Script::sending(config(), 10);
    tcp.until(100).ack(3).sack(3, &[4..5]).sack(3, &[4..6]).sack(3, &[4..7]).sends([3]);
    // The window is half of 7 in flight. 3 and 9 are in the pipe, and there is room for another.
    tcp.sack(3, &[4..8]).sack(3, &[4..9]).sends([9]);
    tcp.sack(3, &[4..9]).silent();
    tcp.until(200).ack(9).ack(10);
    assert!(tcp.end.is_finished());
}

#[test]
fn what_may_be_lost_goes_when_there_is_nothing_better() {
    // NextSeg, rule 3: only 9 has arrived above 8, so 8 is not marked lost; without new data it is
    // retransmitted nevertheless.
    let mut tcp = Script::sending(config(), 10);
    tcp.until(100).ack(2).sack(2, &[3..8, 9..10]).sends([2, 8]);
    tcp.until(200).ack(10);
    assert_eq!(tcp.end.counters().timeouts, 0);
}

#[test]
fn blocks_of_a_short_segment_are_found() {
    // Segment boundaries follow the application's writes: the fourth segment has 300 bytes.
    let mut tcp = Script::sender(config());
    tcp.write_bytes(3300);
    tcp.write_bytes(4000).sent();
    tcp.until(100);
    for end in [3300, 4300, 5300] {
        tcp.sack_bytes(2000, std::slice::from_ref(&(3000..end)));
    }
    tcp.sends([2]);
    assert_eq!(tcp.snapshot().pipe, 1000 + 2000);
    tcp.until(200).sack_bytes(7300, &[]);
    assert!(tcp.end.is_finished());
}

#[test]
fn a_peer_without_sack_gets_newreno() {
    // Negotiation (RFC 2018, section 2): without the peer's permission there is no SACK.
    let mut tcp = Script::sending(Config { recovery: elephan_tcp::Recovery::Reno, ..stamped() }, 10);
    tcp.until(100).sack(0, &[1..2]).sack(0, &[1..3]).sack(0, &[1..4]);
    // The blocks are ignored: three duplicates trigger Reno's recovery.
    tcp.sends([0]);
    assert_eq!(tcp.pipe(), 10);
}

#[test]
fn a_block_of_what_was_never_sent_says_nothing() {
    // Only ranges within the outstanding data can have arrived.
    let mut tcp = Script::sending(config(), 10);
    tcp.until(100).sack(0, &[5..12]).sack(0, &[5..11]).silent();
    assert_eq!((tcp.pipe(), tcp.snapshot().in_recovery), (10, false));
    // A block that begins below the current cumulative acknowledgment is old, except for its end.
    tcp.ack(4);
    tcp.sack(4, &[6..7, 3..6]);
    assert_eq!(tcp.pipe(), 3);
}

//! Loss detection by time, and probes for a lost tail (RFC 8985).

use crate::common::{ISS, Script, config, ms};
use elephan_cc::State;
use elephan_tcp::{Config, Flags, Recovery};
use elephan_units::Bytes;

fn rack() -> Config {
    Config { rack: true, ..config() }
}

/// Writes one segment at each of these times.
fn written_at(times: &[u64], config: Config) -> Script {
    let mut tcp = Script::sender(config);
    for &at in times {
        tcp.until(at).write(1);
    }
    tcp.sent();
    tcp
}

/// Reordering was seen: 0 arrives after 1. 2 to 11 are then sent at 110 ms.
fn reordered(config: Config) -> Script {
    let mut tcp = Script::sender(config);
    tcp.write(2).until(100).sack(0, &[1..2]).until(110).ack(2);
    tcp.write(10).sent();
    tcp
}

#[test]
fn reordering_within_the_window_is_no_loss() {
    // Section 6.2, step 4: the reordering window is a quarter of the smallest round-trip time of 100 ms. Four segments
    // overtake 2 by 20 ms, three of them more than the duplicate ACK threshold allows.
    let mut tcp = reordered(rack());
    tcp.until(210).sack(2, &[3..7]);
    tcp.until(230).silent();
    tcp.ack(7);
    tcp.until(240).ack(12);
    assert_eq!((tcp.end.counters().segments_retransmitted, tcp.end.counters().reductions), (0, 0));
    assert_eq!(tcp.end.poll_timeout(), elephan_units::Time::MAX);
}

#[test]
fn beyond_the_window_it_is_a_loss() {
    // Section 6.2, step 5: the timer runs out a round trip and the window after 2 was sent, at 110 + 100 + 25 ms.
    let mut tcp = reordered(rack());
    tcp.until(210).sack(2, &[3..7]).until(400);
    assert_eq!(tcp.sent_at(), [(2, 235.0)]);
    assert_eq!((tcp.end.counters().loss_events, tcp.end.counters().timeouts), (1, 0));
    assert!(tcp.snapshot().in_recovery);
}

#[test]
fn a_coarse_timer_adds_to_what_it_waits_for() {
    // Linux (`tcp_rack_mark_lost`): the timer is set for 2 ms after 2 is overdue, at 235 ms, and runs out at the end of that tick.
    let mut tcp = reordered(Config { timer_margin: ms(2), ..rack() });
    tcp.until(210).sack(2, &[3..7]).until(400);
    assert_eq!(tcp.sent_at(), [(2, 238.0)]);
}

#[test]
fn a_kernel_counts_the_timeout_of_a_probe_from_the_oldest_segment() {
    // Section 7.2: a probe is due two round trips after 2 was sent, at 140 + 200 ms, and no later than the retransmission
    // timeout, which restarted at the ACK at 100 ms: 350 ms. In Linux (`tcp_rto_delta_us`) that timeout counts from the
    // transmission of 1 at 50 ms, and the timer runs out at the end of its slot of 8 ms, 300 to 308 ms.
    for (timer_margin, probe) in [(0, 340), (2, 308)] {
        let timer_margin = ms(timer_margin);
        let mut tcp = written_at(&[0, 50], Config { tlp: true, rto_min: ms(1), timer_margin, ..rack() });
        tcp.until(100).ack(1).until(140).write(1).sent();
        tcp.until(probe - 1).silent();
        tcp.until(probe).sends([2]);
    }
}

#[test]
fn without_reordering_three_segments_are_enough() {
    // Section 6.2, step 4: no reordering was seen, and three segments are selectively acknowledged: the window is zero.
    let mut tcp = Script::sending(rack(), 10);
    tcp.until(100).sack(0, &[1..2]).sack(0, &[1..3]).silent();
    tcp.sack(0, &[1..4]).sends([0]);
}

#[test]
fn three_segments_need_not_lie_above_each_loss() {
    // Once three segments have arrived, all that was sent before them is lost: 8 has one segment above it, and the pipe is
    // empty but for the retransmissions. For RFC 6675, 8 is still in flight.
    for (config, pipe) in [(rack(), 2), (config(), 3)] {
        let mut tcp = Script::sending(config, 10);
        tcp.until(100).sack(0, &[9..10, 1..8]);
        assert_eq!((tcp.sent(), tcp.pipe()), (vec![0, 8], pipe));
    }
}

#[test]
fn fewer_than_three_duplicates_retransmit_early() {
    // Early retransmit: only two segments can arrive above 0. It is lost a quarter of a round trip later, where RFC 6675
    // needs the retransmission timer.
    let mut tcp = written_at(&[0, 0, 0], rack());
    tcp.until(100).sack(0, &[1..2]).sack(0, &[1..3]).until(300);
    assert_eq!(tcp.sent_at(), [(0, 125.0)]);
    tcp.ack(3);
    assert_eq!((tcp.end.counters().timeouts, tcp.end.counters().loss_events), (0, 1));
}

#[test]
fn the_window_counts_from_the_transmission() {
    // Section 6.2, step 5: remaining = Segment.xmit_ts + RACK.rtt + RACK.reo_wnd - now. 1 and 2 were sent 10 and 20 ms
    // after 0 and took 100 ms: 0 is lost at 125 ms.
    let mut tcp = written_at(&[0, 10, 20], rack());
    tcp.until(110).sack(0, &[1..2]).until(120).sack(0, &[1..3]).until(300);
    assert_eq!(tcp.sent_at(), [(0, 125.0)]);
    // Where 1 was sent more than a quarter of a round trip after it, 0 is lost at once.
    let mut tcp = written_at(&[0, 30], rack());
    tcp.until(130).sack(0, &[1..2]);
    assert_eq!(tcp.sent_at(), [(0, 130.0)]);
}

#[test]
fn what_was_sent_later_is_not_lost() {
    // Section 6.2, step 5: 1 was sent after 0, which has arrived.
    let mut tcp = written_at(&[0, 50], rack());
    tcp.until(100).ack(1).until(250).silent();
}

#[test]
fn a_lost_retransmission_is_found() {
    // The retransmission of 0 at 100 ms is lost. 10 was sent after it, and one segment is enough. It is another indication
    // of congestion, unless the settings say otherwise.
    for (reduce_again, reductions) in [(true, 2), (false, 1)] {
        let mut tcp = Script::sending(Config { reduce_again, ..rack() }, 13);
        tcp.until(100).sack(0, &[1..4]).sends([0]);
        tcp.until(110).sack(0, &[1..10]).sends([10, 11, 12]);
        tcp.until(210).sack(0, &[1..11]);
        assert_eq!(tcp.sent(), if reduce_again { vec![] } else { vec![0] });
        tcp.sack(0, &[1..13]);
        assert_eq!(tcp.sent(), if reduce_again { vec![0] } else { vec![] });
        tcp.until(310).ack(13);
        let counters = tcp.end.counters();
        assert_eq!((counters.timeouts, counters.reductions), (0, reductions));
        assert!(!tcp.snapshot().in_recovery);
    }
}

#[test]
fn a_retransmission_of_a_retransmission_is_found_too() {
    // The second retransmission is lost as well: 14 was sent after it, and arrives.
    let mut tcp = Script::sending(Config { reduce_again: false, ..rack() }, 20);
    tcp.until(100).sack(0, &[1..4]);
    tcp.until(110).sack(0, &[1..10]).sends([0, 10, 11, 12, 13]);
    tcp.until(210).sack(0, &[1..11]).sends([0, 14]);
    tcp.sack(0, &[1..14]).sends([15, 16, 17]);
    tcp.until(310).sack(0, &[1..15]).sends([0, 18]);
    tcp.until(410).ack(19);
    assert_eq!((tcp.end.counters().timeouts, tcp.end.counters().segments_retransmitted), (0, 3));
}

#[test]
fn an_original_that_comes_late_says_nothing_of_retransmissions() {
    // Section 6.2, step 2: the ACK of 3 comes 5 ms after its retransmission, sooner than the smallest round-trip time: it
    // was the original that arrived, and the retransmissions of 0 to 2 are not lost. Without RACK likewise.
    for config in [rack(), config()] {
        let mut tcp = Script::sending(Config { initial_window: 20, dsack: false, ..config }, 20);
        tcp.until(100).sack(0, &[4..20]).sends([0, 1, 2, 3]);
        tcp.until(105).sack(0, &[3..20]).silent();
        tcp.until(200).ack(20);
        let counters = tcp.end.counters();
        let numbers = (counters.timeouts, counters.segments_retransmitted, counters.reductions);
        assert_eq!(numbers, (0, 4, 1), "RACK: {}", config.rack);
    }
}

#[test]
fn duplicates_widen_the_window() {
    // Section 6.2, step 4: the retransmission of 2 was spurious, as the D-SACK shows: the window is two quarters of the
    // smallest round-trip time, once for each round trip.
    let mut tcp = reordered(rack());
    tcp.until(210).sack(2, &[3..7]).until(235).sends([2]);
    tcp.until(240).ack(7);
    tcp.until(335).sack(12, &[2..3]);
    assert_eq!(tcp.end.counters().undos, 1);
    tcp.write(10).sent();
    // 12 is overtaken by 40 ms, which is now within the window.
    tcp.until(435).sack(12, &[13..17]).until(475).silent();
    tcp.ack(22);
    assert_eq!(tcp.end.counters().reductions, 1);
    assert_eq!(tcp.snapshot().min_rtt, ms(100));
}

#[test]
fn a_wider_window_lasts_for_sixteen_recoveries() {
    // Section 6.2, step 4: after 16 recoveries without a D-SACK the window is a quarter of the smallest round-trip time
    // again. Each recovery here ends with the timer, 100 ms and the window after the lost segment was sent.
    let mut tcp = reordered(Config { initial_window: 20, rto_min: ms(5000), ..rack() });
    tcp.until(210).sack(2, &[3..7]).until(235).ack(7);
    tcp.until(335).sack(12, &[2..3]).sent();
    let (mut at, mut next) = (1000, 12);
    for recovery in 1..=17 {
        tcp.until(at).write(2).sent();
        tcp.until(at + 100).sack(next, &[next + 1..next + 2]).until(at + 160);
        let window = if recovery <= 16 { 50 } else { 25 };
        assert_eq!(rounded(tcp.sent_at()), [(next, at + 100 + window)], "{recovery}");
        next += 2;
        tcp.until(at + 260).ack(next);
        at += 300;
    }
}

#[test]
fn a_timeout_loses_only_what_is_overdue() {
    // Section 6.3: 1 was sent a second ago, 2 and 3 in the last 50 ms. Only 1 is lost; RFC 5681 sends all again.
    for (config, last) in [(rack(), 1), (config(), 3)] {
        let mut tcp = Script::sender(config);
        tcp.write(1).until(100).ack(1).write(1).until(1050).write(1).until(1060).write(1).sent();
        tcp.until(1100).sends([1]);
        tcp.until(1140).ack(2).until(1160).ack(4);
        let counters = tcp.end.counters();
        assert_eq!((counters.timeouts, counters.segments_retransmitted), (1, last));
    }
}

#[test]
fn without_sack_there_is_no_rack() {
    // The peer does not offer SACK: three duplicate ACKs show a loss.
    let config = Config { recovery: Recovery::NewReno, rack: false, ..rack() };
    let mut tcp = Script::sender(config);
    tcp.write(10).until(100).sent();
    tcp.dupacks(0, 3);
    assert_eq!(tcp.sent()[..1], [0]);
    let mistakes = Config { rack: true, ..config }.mistakes();
    assert_eq!(mistakes.len(), 1);
    assert_eq!(Config { fack: true, ..rack() }.mistakes().len(), 1);
    assert_eq!(Config { tlp: true, ..config }.mistakes().len(), 1);
}

/// Segments and their times in whole milliseconds.
fn rounded(sent: Vec<(u64, f64)>) -> Vec<(u64, u64)> {
    sent.into_iter().map(|(number, at)| (number, at.round() as u64)).collect()
}

fn probing() -> Config {
    Config { tlp: true, ..rack() }
}

#[test]
fn a_lost_tail_is_probed_and_repaired() {
    // RFC 8985's example of probe and repair: 0 arrives, 1 to 3 are lost. Two round trips later 3 is sent as a probe; its
    // report shows that 1 and 2 are lost. The retransmission of 1 is lost again, and that of 2 shows it.
    let mut tcp = Script::sender(Config { reduce_again: false, ..probing() });
    tcp.write(4).until(100).sent();
    tcp.ack(1).until(399);
    assert_eq!(tcp.sent_at(), [(3, 300.0)]);
    tcp.until(400).sack(1, &[3..4]).sends([1, 2]);
    tcp.until(500).sack(1, &[2..4]).sends([1]);
    tcp.until(600).ack(4);
    let counters = tcp.end.counters();
    assert_eq!((counters.timeouts, counters.reductions, counters.segments_retransmitted), (0, 1, 4));
    assert!(!tcp.snapshot().in_recovery);
}

#[test]
fn a_probe_does_not_wake_the_application() {
    // Linux (`tcp_send_loss_probe` without `tcp_check_space`): the first write ends 4 segments beyond the 10 that the window holds,
    // and not beyond the probe with the eleventh.
    let mut tcp = Script::sender(Config { unsent: Some(Bytes::new(4000)), ..probing() });
    tcp.write(30).until(300);
    assert_eq!(tcp.end.snapshot().unacked, 11);
    tcp.ack(11).until(400).ack(30);
    let pushed: Vec<_> =
        tcp.take_data().iter().filter(|data| data.flags.contains(Flags::PSH)).map(|data| data.seq).collect();
    assert_eq!(pushed.first(), Some(&ISS.wrapping_add(1 + 13_000)));
}

#[test]
fn a_single_segment_waits_for_a_delayed_ack() {
    // Section 7.2: PTO is 2 SRTT, and the delay of an ACK more where one segment is outstanding. It never exceeds the RTO.
    for (segments, rto_min, at) in [(2, 1000, 200), (1, 1000, 400), (1, 350, 350)] {
        let mut tcp = Script::sending(Config { rto_min: ms(rto_min), ..probing() }, segments);
        tcp.until(450);
        assert_eq!(rounded(tcp.sent_at()), [(segments - 1, at)]);
        // The retransmission timer restarts.
        assert_eq!(tcp.end.counters().timeouts, 0);
        assert_eq!(tcp.end.poll_timeout(), ms(100) + ms(at) + tcp.snapshot().rto);
    }
}

#[test]
fn new_data_is_the_better_probe() {
    // Section 7.3: new data goes first, regardless of the window, and its ACK is no sign of a loss.
    let mut tcp = Script::sender(Config { initial_window: 2, ..probing() });
    tcp.write(10).sends([0, 1]);
    tcp.until(200).sends([2]);
    tcp.until(900).silent();
    tcp.ack(3);
    assert_eq!(tcp.end.counters().reductions, 0);
    assert_eq!(tcp.sent().first(), Some(&3));
}

#[test]
fn a_fin_that_waits_for_the_window_is_a_probe() {
    // tcp_send_loss_probe.
    let mut tcp = Script::sender(Config { unsent: Some(Bytes::new(100_000)), ..probing() });
    tcp.write(10).end.close();
    assert_eq!(tcp.take_data().len(), 10);
    let probe = tcp.expire().take_data();
    assert_eq!(
        probe.iter().map(|fin| (fin.len, fin.flags.contains(Flags::FIN))).collect::<Vec<_>>(),
        [(0, true)]
    );
}

#[test]
fn a_loss_that_the_probe_repairs_reduces_the_window_once() {
    // Section 7.4: 9 was lost, and its probe fills the hole. The next ACK of new data comes without a D-SACK: the reaction.
    let mut tcp = Script::sender(probing());
    tcp.write(10).until(100).ack(9).until(500);
    assert_eq!(tcp.sent().last(), Some(&9));
    tcp.ack(10);
    let cwnd = tcp.cwnd();
    assert_eq!(tcp.end.counters().reductions, 0);
    tcp.write(1).until(600).ack(11).write(1).until(700).ack(12);
    assert_eq!((tcp.end.counters().loss_events, tcp.end.counters().timeouts), (1, 0));
    assert!(tcp.cwnd() < cwnd);
}

#[test]
fn a_probe_for_nothing_reduces_nothing() {
    // Section 7.4: the D-SACK tells that 9 had arrived: only its ACK was late. So does a plain duplicate ACK.
    for report in [vec![9..10], vec![]] {
        let mut tcp = Script::sender(probing());
        tcp.write(10).until(100).ack(9).until(500);
        assert_eq!(tcp.sent().last(), Some(&9));
        tcp.ack(10).until(510).sack(10, &report);
        tcp.write(1).until(610).ack(11).write(1).until(710).ack(12);
        assert_eq!((tcp.end.counters().reductions, tcp.end.counters().undos), (0, 0), "{report:?}");
    }
}

#[test]
fn a_report_of_a_later_probe_undoes_no_earlier_reaction() {
    // The reaction to a probe that repaired a loss stands, although the next probe was for nothing.
    let mut tcp = Script::sender(probing());
    tcp.write(10).until(100).ack(9).until(500).ack(10);
    tcp.write(1).until(600).ack(11);
    assert_eq!(tcp.end.counters().reductions, 1);
    tcp.write(1).sent();
    tcp.until(1500).ack(12).sack(12, &[11..12]);
    assert_eq!(tcp.sent()[0], 11);
    assert_eq!((tcp.end.counters().reductions, tcp.end.counters().undos), (1, 0));
}

#[test]
fn one_probe_at_a_time_and_none_where_reports_came() {
    // Section 7.3: no second probe before the first was acknowledged: then the retransmission timer. Section 7.2: where
    // segments are selectively acknowledged, the reordering timer is in charge.
    let mut tcp = Script::sending(probing(), 4);
    tcp.until(1300);
    assert_eq!(rounded(tcp.sent_at()), [(3, 200), (0, 1200)]);
    assert_eq!(tcp.end.counters().timeouts, 1);
    let mut tcp = Script::sender(probing());
    tcp.write(4).until(100).sent();
    tcp.sack(0, &[1..2]).until(600);
    assert_eq!(tcp.sent_at(), [(0, 125.0)]);
}

#[test]
fn a_snapshot_counts_as_a_kernel_does() {
    // The fields of TCP_INFO: 12 sent, 1 to 3 and 6 to 9 reported; 0, 4 and 5 lost, of which 0 is in flight again.
    let mut tcp = Script::sending(rack(), 12);
    assert_eq!(tcp.snapshot().state, State::Open);
    tcp.until(100).sack(0, &[1..2]);
    assert_eq!((tcp.snapshot().state, tcp.snapshot().reordering), (State::Disorder, 3));
    tcp.sack(0, &[1..4]);
    let snapshot = tcp.snapshot();
    assert_eq!((snapshot.unacked, snapshot.sacked, snapshot.lost, snapshot.retransmitted), (11, 3, 1, 1));
    assert_eq!(snapshot.state, State::Recovery);
    let snapshot = tcp.sack(0, &[6..10, 1..4]).snapshot();
    assert_eq!((snapshot.unacked, snapshot.sacked, snapshot.lost), (12, 7, 3));
    tcp.until(1300);
    assert_eq!(tcp.snapshot().state, State::Loss);
    // 6 overtakes 0: the distance is from the beginning of 0 to the end of 6.
    let mut tcp = Script::sender(rack());
    tcp.write(12).until(100).sack(0, &[6..7]).until(110).ack(1);
    assert_eq!((tcp.snapshot().reordering, tcp.snapshot().state), (7, State::Disorder));
}

//! Where Linux differs from the RFCs in what it does after losses and timeouts (net/ipv4/tcp_input.c).

use crate::common::{Script, config, ms, stamped};
use elephan_cc::slow_start::SlowStart;
use elephan_cc::{Controller, Quantisation, Undo, registry};
use elephan_tcp::{ByteCounting, Config, SsthreshBase, WindowReduction};
use elephan_units::Bytes;

/// RACK, and Linux's rules of an undo.
fn linux() -> Config {
    Config { rack: true, undo: Undo::Windows, reduce_again: false, initial_window: 20, ..config() }
}

/// 0 arrives after 100 ms. 1 to 10 are sent then, and 11 to 15 at `later` ms; the timer sends 1 again at 1100 ms.
fn timed_out(config: Config, later: u64) -> Script {
    let mut tcp = Script::sender(config);
    tcp.write(1).until(100).ack(1).write(10).until(later).write(5).until(1100);
    assert_eq!(tcp.sent().last(), Some(&1));
    tcp
}

#[test]
fn a_timeout_leaves_a_window_of_what_may_still_arrive() {
    // tcp_enter_loss, tcp_timeout_mark_lost: of 15 segments in flight, 5 are younger than the last round trip of 100 ms; the window is
    // 5, and 1 for the retransmission. RFC 5681, section 3.1: the loss window. RFC 8985, section 6.3: a reordering window is
    // added, here of 25 ms.
    for (undo, later, cwnd, pipe) in [
        (Undo::Windows, 1050, 6.0, 6),
        (Undo::Windows, 990, 1.0, 1),
        (Undo::State, 1050, 1.0, 6),
        (Undo::State, 990, 1.0, 6),
    ] {
        let tcp = timed_out(Config { undo, ..linux() }, later);
        assert_eq!((tcp.cwnd(), tcp.pipe()), (cwnd, pipe), "{undo:?} {later}");
    }
}

#[test]
fn a_retransmission_into_nothing_is_a_start() {
    // tcp_event_data_sent, tcp_vegas_cwnd_event: after a timeout with nothing in flight Vegas forgets the path of 100 ms, and takes
    // 1200 ms for its delay without a queue. Otherwise it would see a queue of eleven twelfths of its window.
    let vegas =
        registry::find("vegas").expect("registered").build(&[("form", "linux".into())]).expect("a form");
    let vegas = Controller::new(vegas, SlowStart::Standard, Quantisation::None, 10.0);
    let mut tcp = Script::controlled(vegas, linux());
    tcp.write(1000).until(100).ack(5).until(1100);
    let (mut at, mut next) = (2300, tcp.take_data().len() as u64 - 2);
    tcp.until(at).ack(next);
    for _ in 0..8 {
        at += 1200;
        tcp.until(at);
        for _ in 0..tcp.take_data().len() {
            next += 1;
            tcp.ack(next);
        }
    }
    assert!(tcp.cwnd() > 8.0, "{}", tcp.cwnd());
}

#[test]
fn a_fin_alone_that_arrives_counts_as_a_segment() {
    // tcp_cwnd_reduction: of 9 lost segments one is sent for the FIN that arrived, and not what the window before would admit.
    let config = Config {
        byte_counting: ByteCounting::Delivered,
        window_reduction: WindowReduction::Prr,
        ssthresh_base: SsthreshBase::Cwnd,
        unsent: Some(Bytes::new(100_000)),
        initial_window: 10,
        ..linux()
    };
    let mut tcp = Script::sender(config);
    tcp.write(10).end.close();
    tcp.until(100).ack(1);
    assert_eq!(tcp.take_data().last().map(|fin| fin.len), Some(0));
    tcp.until(200).sack_bytes(1000, std::slice::from_ref(&(10_000..10_001))).sends([1]);
}

#[test]
fn reports_of_what_came_before_a_retransmission_restart_its_timer() {
    // tcp_clean_rtx_queue: 0 is retransmitted at 100 ms, and segments that were sent before arrive until 150 ms. RFC 6298, section 5: no.
    for (timer_margin, from) in [(ms(2), 150), (ms(0), 100)] {
        let mut tcp = Script::sending(Config { timer_margin, rto_min: ms(200), ..linux() }, 30);
        tcp.until(100).sack(0, &[1..4]).until(150).sack(0, &[1..20]);
        let (due, rto) = (tcp.end.poll_timeout() - ms(100 + from), tcp.snapshot().rto);
        assert!(due >= rto && due <= rto + ms(8), "{timer_margin:?}: {due:?} {rto:?}");
    }
}

#[test]
fn no_more_is_retransmitted_than_is_lost_whatever_it_is() {
    // tcp_xmit_retransmit_queue: the timeout was spurious, and the retransmission of 1 is still out when only 2 is lost.
    let mut tcp = timed_out(Config { frto: true, ..linux() }, 1050);
    tcp.until(1200).sack(1, &[3..4]);
    assert_eq!(tcp.end.counters().undos, 1);
    tcp.sack(1, &[3..16]).until(1250);
    assert!(!tcp.sent().contains(&2));
    tcp.ack(2).sack(2, &[3..16]).sends([2]);
}

#[test]
fn a_needed_timeout_leaves_the_window() {
    // tcp_process_loss, step 3a: the duplicate ACK shows that 2 was lost; the window stays. RFC 5682: 3 at most.
    let mut tcp = timed_out(Config { frto: true, ..linux() }, 1050);
    tcp.write(100).until(1200).ack(2);
    let sent = tcp.sent();
    assert!(sent.iter().all(|&segment| segment >= 16) && !sent.is_empty(), "{sent:?}");
    let window = tcp.cwnd();
    assert!(window >= 6.0 && tcp.pipe() as f64 <= window, "{window} {}", tcp.pipe());
    tcp.until(1300).sack(2, &[16..17]);
    assert!(tcp.cwnd() >= window, "{}", tcp.cwnd());
    assert_eq!(tcp.sent().first(), Some(&2));
}

#[test]
fn any_credible_duplicate_counts_and_others_are_the_networks() {
    // tcp_check_dsack, tcp_dsack_seen: 0 is retransmitted. A report of 1, which was not, counts all the same, because no more duplicates
    // are reported than segments were retransmitted; a report of two segments says nothing.
    for (block, undos) in [(1..2, 1), (1..3, 0)] {
        let mut tcp = Script::sending(linux(), 100);
        tcp.until(100).sack(0, &[1..20]).until(110).ack(20);
        assert_eq!((tcp.end.counters().segments_retransmitted, tcp.ssthresh()), (1, 10.0));
        tcp.sack(20, std::slice::from_ref(&block));
        assert_eq!(tcp.end.counters().undos, undos, "{block:?}");
    }
}

#[test]
fn a_report_that_comes_twice_counts_twice() {
    // tcp_check_dsack: two retransmissions, and two reports of the first.
    let mut tcp = Script::sending(linux(), 100);
    tcp.until(100).sack(0, &[1..4, 5..12]);
    assert_eq!(tcp.end.counters().segments_retransmitted, 2);
    tcp.until(110).ack(12).sack(12, &[0..1]);
    assert_eq!(tcp.end.counters().undos, 0);
    tcp.sack(12, &[0..1]);
    assert_eq!(tcp.end.counters().undos, 1);
}

#[test]
fn after_a_timeout_a_report_counts_where_the_left_edge_moves() {
    // tcp_process_loss asks for an undo only then.
    let mut tcp = timed_out(linux(), 1050);
    tcp.until(1200).ack(2).sack(2, &[1..2]);
    assert_eq!((tcp.end.counters().undos, tcp.snapshot().in_recovery), (0, true));
}

#[test]
fn a_mark_confirms_the_reduction_for_a_loss() {
    // tcp_fastretrans_alert, A: an echoed mark in the recovery, and then a report that it was spurious: it ends, and the window stays.
    for (marked, ssthresh) in [(true, 10.0), (false, f64::INFINITY)] {
        let mut tcp = Script::sending(Config { ecn: true, ..linux() }, 100);
        tcp.until(100).sack(0, &[1..4]);
        assert_eq!(tcp.ssthresh(), 10.0);
        tcp.ece = marked;
        tcp.sack(0, &[1..5]);
        tcp.ece = false;
        tcp.until(110).ack(5).sack(5, &[0..1]);
        assert_eq!(
            (tcp.end.counters().undos, tcp.ssthresh(), tcp.snapshot().in_recovery),
            (1, ssthresh, false)
        );
    }
}

/// The same with timestamps, 0 to 19 sent at once and 0 again at 100 ms; the timestamp of the originals.
fn recovering(config: Config) -> (Script, u32) {
    let mut tcp = Script::sender(config);
    tcp.write(100);
    let original = tcp.take_data()[0].ts_val;
    tcp.echo = original;
    tcp.until(100).sack(0, &[1..4]);
    assert_eq!(tcp.sent().first(), Some(&0));
    (tcp, original)
}

#[test]
fn a_timeout_in_a_recovery_does_not_hide_that_this_was_spurious() {
    // tcp_enter_loss keeps undo_marker and retrans_stamp where the state is Recovery: the original of 0 comes very late.
    for (undo, undos) in [(Undo::Windows, 1), (Undo::State, 0)] {
        let config = Config { eifel: true, dsack: false, undo, ..Config { initial_window: 20, ..stamped() } };
        let (mut tcp, original) = recovering(Config { rack: true, reduce_again: false, ..config });
        tcp.until(1500).take_data();
        assert_eq!(tcp.end.counters().timeouts, 1);
        tcp.echo = original;
        tcp.ack(1);
        assert_eq!(tcp.end.counters().undos, undos, "{undo:?}");
    }
}

#[test]
fn an_original_that_arrives_before_a_retransmission_undoes_the_recovery() {
    // tcp_packet_delayed: retrans_stamp is zero, because the pace holds back the retransmission.
    let config = Config { eifel: true, dsack: false, pacing: true, pacing_slow_start: 0.9, ..stamped() };
    let config =
        Config { rack: true, reduce_again: false, undo: Undo::Windows, initial_window: 20, ..config };
    let mut tcp = Script::sender(config);
    tcp.write(100).until(99);
    tcp.echo = tcp.take_data()[0].ts_val;
    tcp.until(100).sack(0, &[1..4]);
    assert_eq!((tcp.snapshot().in_recovery, tcp.end.counters().segments_retransmitted), (true, 0));
    tcp.ack(4);
    assert_eq!((tcp.end.counters().undos, tcp.end.counters().segments_retransmitted), (1, 0));
}

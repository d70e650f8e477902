//! Timeouts and fast retransmits for nothing: F-RTO (RFC 5682) and the Eifel algorithm (RFC 3522, RFC 4015).

use crate::common::{Script, config, ms, stamped};
use elephan_tcp::{Config, Profile, Recovery};
use elephan_units::Bytes;

/// F-RTO with SACK, and without.
fn both() -> [Config; 2] {
    [Config { frto: true, ..config() }, Config { frto: true, recovery: Recovery::NewReno, ..config() }]
}

/// 0 to 9 are sent at once, and the timer sends 0 again at 1000 ms.
fn timed_out(config: Config) -> Script {
    let mut tcp = Script::sending(config, 100);
    tcp.until(1000);
    assert_eq!((tcp.sent(), tcp.cwnd()), (vec![0], 1.0));
    tcp
}

#[test]
fn a_delay_spike_costs_one_segment() {
    // RFC 5682, steps 1 to 3b: the ACKs of the originals come 1.2 s late. The first one releases two new segments, the
    // second one shows that 1 has arrived, which was sent once: window and threshold are what they were.
    for config in both() {
        let mut tcp = timed_out(config);
        tcp.until(1200).ack(1).sends([10, 11]);
        tcp.ack(2);
        assert_eq!((tcp.cwnd() >= 10.0, tcp.ssthresh()), (true, f64::INFINITY), "{config:?}");
        assert!(!tcp.snapshot().in_recovery);
        for next in 3..=10 {
            tcp.ack(next);
        }
        let sent = tcp.sent();
        assert_eq!(sent, (12..12 + sent.len() as u64).collect::<Vec<_>>());
        let counters = tcp.end.counters();
        assert_eq!((counters.segments_retransmitted, counters.timeouts, counters.undos), (1, 1, 1));
    }
}

#[test]
fn a_real_loss_is_repaired_in_slow_start() {
    // RFC 5682, step 3a: all were lost. The ACK of 0 releases two new segments; what they bring is a duplicate ACK.
    for config in both() {
        let mut tcp = timed_out(config);
        tcp.until(1100).ack(1).sends([10, 11]);
        tcp.until(1200).sack(1, &[10..11]);
        assert_eq!(tcp.sent(), [1], "{config:?}");
        tcp.until(1300).sack(2, &[10..12]);
        assert_eq!(tcp.sent()[0], 2);
        assert_eq!((tcp.end.counters().undos, tcp.ssthresh()), (0, 5.0));
        assert!(tcp.cwnd() <= 3.0 && tcp.snapshot().in_recovery);
    }
}

#[test]
fn without_new_data_nothing_is_known() {
    // RFC 5682, step 2b: with nothing new to send, recovery is the usual one. Step 2a: likewise where the first ACK covers
    // all.
    for config in both() {
        let mut tcp = Script::sender(config);
        tcp.write(10).until(1000).sent();
        tcp.until(1100).ack(1).sends([1, 2]);
        let mut tcp = timed_out(config);
        tcp.until(1100).ack(10);
        assert_eq!((tcp.sent(), tcp.end.counters().undos), (vec![10], 0));
    }
}

#[test]
fn a_second_timeout_is_taken_for_real() {
    // RFC 5682, step 1: a timer that expires in the recovery after a timeout is not examined.
    for config in both() {
        let mut tcp = timed_out(config);
        tcp.until(3000).sends([0]);
        tcp.until(3100).ack(1).sends([1, 2]);
    }
}

#[test]
fn reports_of_what_came_before_the_timeout_are_no_sign() {
    // RFC 5682, section 3, step 2: a duplicate ACK before the retransmission is acknowledged only adds to what is known.
    // Step 3b: then 2, which was sent once, is reported to have arrived.
    let mut tcp = timed_out(both()[0]);
    tcp.until(1010).sack(0, &[5..6]).silent();
    tcp.until(1100).sack(1, &[5..6]).sends([10, 11]);
    tcp.sack(1, &[2..3, 5..6]);
    assert_eq!((tcp.end.counters().undos, tcp.ssthresh()), (1, f64::INFINITY));
}

fn eifel() -> Config {
    Config { eifel: true, dsack: false, ..stamped() }
}

/// 0 to 9 are sent at once; the timestamp of 0.
fn stamped_flight(config: Config) -> (Script, u32) {
    let mut tcp = Script::sender(config);
    tcp.write(100);
    let original = tcp.take_data()[0].ts_val;
    (tcp, original)
}

#[test]
fn an_old_timestamp_undoes_a_timeout() {
    // RFC 3522: the first ACK after the retransmission echoes the timestamp of the original. RFC 4015: nothing else is
    // retransmitted, the window is what it was, and the timeout takes the next sample, of 1200 ms, as its first.
    for recovery in [Recovery::NewReno, Recovery::Sack] {
        let (mut tcp, original) = stamped_flight(Config { recovery, ..eifel() });
        tcp.until(1000);
        assert_eq!((tcp.sent(), tcp.cwnd()), (vec![0], 1.0));
        tcp.echo = original;
        tcp.until(1200).ack(1);
        assert_eq!((tcp.cwnd() >= 10.0, tcp.ssthresh()), (true, f64::INFINITY));
        tcp.sends([10, 11]);
        tcp.ack(2).ack(10);
        let counters = tcp.end.counters();
        assert_eq!((counters.segments_retransmitted, counters.undos), (1, 1));
        assert!(tcp.snapshot().srtt >= ms(1000) && tcp.snapshot().rto >= ms(2000), "{:?}", tcp.snapshot());
    }
}

#[test]
fn the_timestamp_of_the_retransmission_undoes_nothing() {
    // RFC 3522: the retransmission was needed.
    let (mut tcp, _) = stamped_flight(eifel());
    tcp.until(1000);
    tcp.echo = tcp.take_data()[0].ts_val;
    tcp.until(1100).ack(1).sends([1, 2]);
    assert_eq!(tcp.end.counters().undos, 0);
}

#[test]
fn after_two_timeouts_the_first_retransmission_counts() {
    // RFC 3522, step 2: RetransmitTS is that of the first retransmission: an older echo is of the original, however often
    // the timer ran out since.
    let (mut tcp, original) = stamped_flight(eifel());
    tcp.until(3000).sends([0, 0]);
    tcp.echo = original;
    tcp.until(3100).ack(1);
    assert_eq!((tcp.cwnd() >= 10.0, tcp.ssthresh(), tcp.end.counters().undos), (true, f64::INFINITY, 1));
}

#[test]
fn reordering_beyond_three_segments_is_undone() {
    // RFC 3522: three segments overtake 0, which is retransmitted; then the original arrives. There is no D-SACK.
    for recovery in [Recovery::NewReno, Recovery::Sack] {
        let (mut tcp, original) = stamped_flight(Config { recovery, ..eifel() });
        tcp.echo = original;
        tcp.until(100).sack(0, &[1..2]).sack(0, &[1..3]).sack(0, &[1..4]);
        assert_eq!((tcp.sent().last(), tcp.ssthresh()), (Some(&0), 5.0));
        tcp.until(120).ack(4);
        assert_eq!((tcp.cwnd() >= 10.0, tcp.ssthresh()), (true, f64::INFINITY), "{recovery:?}");
        assert_eq!((tcp.end.counters().undos, tcp.end.counters().segments_retransmitted), (1, 1));
        assert!(!tcp.snapshot().in_recovery);
    }
}

#[test]
fn only_the_first_ack_after_the_retransmission_is_asked() {
    // RFC 3522, step 5: the first ACK that moves the left edge decides. That of the retransmission comes first; an older
    // echo after it changes nothing.
    let (mut tcp, original) = stamped_flight(eifel());
    tcp.echo = original;
    tcp.until(100).sack(0, &[1..4]);
    tcp.echo = tcp.take_data().last().expect("the retransmission").ts_val;
    tcp.until(200).ack(4);
    tcp.echo = original;
    tcp.until(210).ack(5);
    assert_eq!(tcp.end.counters().undos, 0);
}

#[test]
fn a_retransmission_of_an_earlier_recovery_is_no_sign() {
    // Linux, tcp_enter_recovery: retrans_stamp is that of the oldest retransmission in flight. 20 is retransmitted in the
    // recovery of 0, and arrives in that of 24, whose own retransmission comes later: this is needed all the same.
    let once = Config { initial_window: 20, lost_retransmission: false, reduce_again: false, ..eifel() };
    let (mut tcp, original) = stamped_flight(once);
    tcp.echo = original;
    tcp.until(100).sack(0, &[1..20]).sends([0, 20, 21, 22, 23, 24, 25, 26, 27, 28]);
    tcp.until(200).sack(0, &[1..20, 21..24]);
    assert_eq!(tcp.sent()[0], 20);
    tcp.echo = original + 100;
    tcp.until(210).sack(20, &[21..24]);
    assert_eq!(tcp.end.counters().reductions, 2);
    tcp.until(300).sack(20, &[21..24, 25..29]);
    assert_eq!(tcp.sent()[0], 24);
    tcp.echo = original + 200;
    tcp.until(310).sack(24, &[25..29]);
    assert_eq!((tcp.end.counters().undos, tcp.snapshot().in_recovery), (0, true));
}

#[test]
fn a_retransmission_of_an_undone_recovery_is_no_sign() {
    // The same where the first recovery was undone, because 0 was late. 4 was lost, and 8 is lost in the next window.
    let (mut tcp, original) = stamped_flight(Config { reduce_again: false, ..eifel() });
    tcp.echo = original;
    tcp.until(100).sack(0, &[1..4]).sack(0, &[1..4, 5..8]).sends([0, 4, 10]);
    tcp.until(120).sack(4, &[5..8]);
    assert_eq!(tcp.end.counters().undos, 1);
    tcp.until(150).sack(4, &[5..8, 9..12]);
    assert!(tcp.sent().contains(&8));
    tcp.echo = original + 100;
    tcp.until(200).sack(8, &[9..12]);
    assert_eq!((tcp.end.counters().undos, tcp.snapshot().in_recovery), (1, true));
}

#[test]
fn a_linux_stack_survives_a_delay_spike() {
    // All of the above together with RACK and probes, in the profile of a kernel: the path stands still for 2 s, in which
    // the probe and the timer send a segment each.
    let profile = Profile::Linux6.config();
    let mut tcp = Script::sender(Config { packet: Bytes::new(1052), ..profile });
    tcp.write(1000);
    let original = tcp.take_data()[0].ts_val;
    tcp.echo = original;
    tcp.until(2000);
    let sent = tcp.sent().len() as u64;
    for next in 1..=10 {
        tcp.ack(next);
    }
    let counters = tcp.end.counters();
    assert!(sent <= 4 && counters.segments_retransmitted <= 3, "{sent} {counters:?}");
    assert!(tcp.cwnd() >= 10.0 && tcp.ssthresh().is_infinite(), "{:?}", tcp.snapshot());
    assert!(!tcp.snapshot().in_recovery);
}

#[test]
fn eifel_needs_timestamps() {
    assert_eq!(Config { eifel: true, ..config() }.mistakes().len(), 1);
    assert_eq!(eifel().mistakes().len(), 0);
}

//! Explicit congestion notification (RFC 3168).

use crate::common::{IRS, ISS, Script, config, eager, ms};
use elephan_cc::State;
use elephan_tcp::{Config, DelayedAck, Flags, Recovery, Segment, SsthreshBase, WindowReduction};
use elephan_units::Time;

fn ecn() -> Config {
    Config { ecn: true, ..config() }
}

#[test]
fn both_ends_must_take_part() {
    // Negotiation (section 6.1.1): ECE and CWR on the SYN, ECE on the SYN-ACK; without them nothing.
    for (offers, answers) in [(true, true), (true, false), (false, true)] {
        let mut opener = Script::connecting(&Config { ecn: offers, ..config() });
        let syn = opener.take_bare(1)[0];
        assert_eq!(syn.flags.contains(Flags::ECE | Flags::CWR), offers);
        let mut answerer = Script::listening(&Config { ecn: answers, ..config() }, IRS, ms(50));
        answerer.receive(syn);
        let answer = answerer.take_bare(1)[0];
        assert_eq!(answer.flags.contains(Flags::ECE), offers && answers);
        assert!(!answer.flags.contains(Flags::CWR));
        opener.receive(answer);
        opener.end.write(1000);
        assert!(opener.end.poll_transmit(opener.now).is_some_and(|segment| segment.len > 0));
        assert_eq!(opener.end.ecn_capable(), offers && answers);
    }
}

#[test]
fn a_mark_is_echoed_until_the_sender_says_that_it_reduced() {
    // The receiver (section 6.1.3): ECE on every ACK from the mark on until CWR; a mark on the segment with
    // CWR restarts the count.
    let mut tcp = Script::receiver(Config { ecn: true, ..eager() });
    let mut echoes = |number: u32, marked: bool, cwr: bool| {
        let flags = if cwr { Flags::ACK | Flags::CWR } else { Flags::ACK };
        tcp.marked = marked;
        tcp.receive(Segment { len: 1000, flags, ..tcp.segment_at(number * 1000) });
        tcp.take_bare(1)[0].flags.contains(Flags::ECE)
    };
    assert!(!echoes(0, false, false));
    assert!(echoes(1, true, false));
    assert!(echoes(2, false, false));
    assert!(!echoes(3, false, true));
    assert!(echoes(4, true, true));
    assert!(echoes(5, false, false));
}

#[test]
fn an_echo_begins_at_once_where_marks_are_quick() {
    // Linux, `__tcp_ecn_check_ce` and `tcp_ecn_accept_cwr`: the marked segment, the next, and one with CWR, do not wait for another.
    for quick_marks in [false, true] {
        let delayed_ack = DelayedAck { quick_marks, ..config().delayed_ack };
        let mut tcp = Script::receiver(Config { delayed_ack, ..ecn() });
        let mut acks = |number: u32, marked: bool, flags: Flags| {
            tcp.marked = marked;
            tcp.receive(Segment { len: 1000, flags, ..tcp.segment_at(number * 1000) });
            tcp.take_all_bare().len()
        };
        let (plain, cwr) = (Flags::ACK, Flags::ACK | Flags::CWR);
        let counts =
            [acks(0, true, plain), acks(1, false, plain), acks(2, false, plain), acks(3, false, plain)];
        assert_eq!(counts, if quick_marks { [1, 1, 0, 1] } else { [0, 1, 0, 1] });
        assert_eq!(acks(4, false, cwr), usize::from(quick_marks));
    }
}

#[test]
fn a_mark_reduces_over_a_round_trip_where_a_loss_does() {
    // Linux, `tcp_enter_cwr`: 10 in flight, ssthresh 5, one new segment for two that arrive; above what was sent when it
    // began it ends, and the window may grow.
    let reduction = |window_reduction| {
        let mut tcp = Script::sending(Config { window_reduction, ..ecn() }, 100);
        tcp.ece = true;
        tcp.until(100);
        let windows: Vec<_> = [1, 3, 5, 7, 10].map(|offset| tcp.ack(offset).cwnd()).to_vec();
        let sent = tcp.take_data().len();
        tcp.ece = false;
        tcp.until(200).ack(11);
        (windows, sent, tcp.ssthresh(), tcp.end.snapshot().state)
    };
    assert_eq!(reduction(WindowReduction::Prr), (vec![10.0, 9.0, 8.0, 7.0, 5.0], 5, 5.0, State::Open));
    assert_eq!(reduction(WindowReduction::AtOnce), (vec![5.0; 5], 5, 5.0, State::Open));
}

#[test]
fn a_window_holds_until_an_ack_delivers_something() {
    // The device's queue is full while 4 of a window of 10 are in flight. Linux (`tcp_init_cwnd_reduction`): the window stays, so that
    // 6 more may leave. Elsewhere none does.
    for (ssthresh_base, cwnd, more) in [(SsthreshBase::Cwnd, 10.0, 6), (SsthreshBase::FlightSize, 4.0, 0)] {
        let mut tcp =
            Script::sender(Config { window_reduction: WindowReduction::Prr, ssthresh_base, ..ecn() });
        tcp.write(5).until(100).ack(1).sends([0, 1, 2, 3, 4]);
        tcp.end.on_local_congestion(tcp.now);
        assert_eq!((tcp.snapshot().state, tcp.snapshot().cwnd), (State::Cwr, cwnd));
        assert_eq!(tcp.write(20).take_data().len(), more);
    }
}

#[test]
fn a_mark_reduces_once_in_a_window_and_says_so() {
    // The sender (section 6.1.2): half the window at the first echo, CWR on the next new segment, nothing
    // more until data sent after that is acknowledged.
    let mut tcp = Script::sending(ecn(), 100);
    tcp.ece = true;
    tcp.until(100).ack(2).ack(4);
    assert_eq!((tcp.cwnd(), tcp.ssthresh()), (5.0, 5.0));
    let counters = tcp.end.counters();
    assert_eq!((counters.ecn_events, counters.reductions, counters.loss_events), (1, 1, 0));
    tcp.ack(6).ack(8);
    let data = tcp.take_data();
    assert_eq!(data.iter().map(|s| s.flags.contains(Flags::CWR)).collect::<Vec<_>>(), [true, false, false]);
    // The last ACK of the old window still echoes; the first of the new one only if there was another mark.
    tcp.ack(10);
    assert_eq!(tcp.end.counters().reductions, 1);
    tcp.until(200).ack(11);
    assert_eq!(tcp.end.counters().reductions, 2);
}

#[test]
fn a_mark_leaves_more_than_a_loss_where_the_stack_says_so() {
    // RFC 8511, section 3: 0.8 of 10 segments for a mark, and half for a loss.
    for (abe, marked) in [(true, 8.0), (false, 5.0)] {
        let mut tcp = Script::sending(Config { abe, ..ecn() }, 100);
        tcp.ece = true;
        tcp.until(100).ack(2);
        assert_eq!((tcp.cwnd(), tcp.ssthresh()), (marked, marked));
        let mut tcp = Script::sending(Config { abe, ..ecn() }, 100);
        tcp.until(100).sack(0, &[1..4]);
        assert_eq!(tcp.ssthresh(), 5.0);
    }
}

#[test]
fn a_mark_and_a_loss_in_one_window_are_one_event() {
    // Section 6.1.2: one reduction for a window of data, whatever its signs; here the mark comes first, then
    // the other way round. CWR follows a reduction for a loss too, or the echo would go on.
    let mut tcp = Script::sending(ecn(), 100);
    tcp.ece = true;
    tcp.until(100).ack(1);
    assert_eq!(tcp.cwnd(), 5.0);
    tcp.sack(1, &[2..3]).sack(1, &[2..4]).sack(1, &[2..5]).sends([1]);
    assert_eq!((tcp.cwnd(), tcp.end.counters().reductions), (5.0, 1));

    let mut tcp = Script::sending(ecn(), 100);
    tcp.until(100).sack(0, &[1..4]);
    tcp.ece = true;
    tcp.sack(0, &[1..10]);
    assert_eq!(tcp.end.counters().reductions, 1);
    let data = tcp.take_data();
    assert!(!data[0].flags.contains(Flags::CWR), "a retransmission");
    assert!(data[1].flags.contains(Flags::CWR), "the first new segment");
    tcp.until(200).ack(10);
    assert_eq!(tcp.end.counters().reductions, 1);
}

#[test]
fn only_new_data_is_sent_capable() {
    // Sections 6.1.4 and 6.1.5: ACKs alone and retransmissions are not ECN-capable.
    let mut tcp = Script::sender(Config { recovery: Recovery::NewReno, ..ecn() });
    tcp.end.write(100_000);
    while let Some(segment) = tcp.end.poll_transmit(tcp.now) {
        assert!(segment.len > 0 && tcp.end.ecn_capable());
    }
    let duplicate = tcp.bare_segment();
    for _ in 0..3 {
        tcp.end.on_segment(&duplicate, false, tcp.now);
    }
    let again = tcp.end.poll_transmit(tcp.now).expect("a retransmission");
    assert_eq!((again.seq, tcp.end.ecn_capable()), (ISS.wrapping_add(1), false));
    while tcp.end.poll_transmit(tcp.now).is_some() {
        assert!(tcp.end.ecn_capable());
    }
    let data = Segment { len: 1000, ..tcp.segment_at(1000) };
    tcp.end.on_segment(&data, false, tcp.now);
    let ack = tcp.end.poll_transmit(tcp.now).expect("an ACK");
    assert_eq!((ack.len, tcp.end.ecn_capable()), (0, false));
}

#[test]
fn an_echo_does_not_hold_back_the_repair_after_a_timeout() {
    // Section 6.1.2 lets no ACK that echoes a mark raise the window. But CWR, which ends the echo, is carried by new
    // data alone, and after a timeout there is none before what was lost is repaired: an echo of what the reduction
    // answered must not keep that at one segment for each round trip.
    let mut tcp = Script::sending(ecn(), 10);
    tcp.ece = true;
    tcp.until(1000).sends([0]);
    assert_eq!((tcp.cwnd(), tcp.ssthresh()), (1.0, 5.0));
    tcp.until(1100).ack(1);
    assert_eq!((tcp.cwnd(), tcp.sent()), (2.0, vec![1, 2]));
    // RFC 3465's limit of one segment after a timeout: from 2 to 3.
    tcp.until(1200).ack(3);
    assert_eq!((tcp.cwnd(), tcp.sent(), tcp.end.counters().reductions), (3.0, vec![3, 4, 5], 1));
}

/// An end that offered ECN or not, and whose peer answered its SYN with these flags.
fn answered(offers: bool, flags: Flags) -> Script {
    let mut tcp = Script::connecting(&Config { ecn: offers, ..config() });
    tcp.take_bare(1);
    tcp.now = ms(100);
    let flags = Flags::SYN | Flags::ACK | flags;
    tcp.receive(Segment { flags, window: 65_535, sack_permitted: true, ..tcp.syn_ack() }).take_bare(1);
    tcp
}

#[test]
fn without_an_agreement_nothing_is_made_of_marks() {
    // Section 6.1.1: only where the SYN offered ECN and the SYN-ACK accepted it, with ECE and without CWR (some hosts
    // reflect the bits of the SYN), do the bits mean something afterwards.
    for (offers, flags, agreed) in [
        (true, Flags::ECE, true),
        (true, Flags::ACK, false),
        (true, Flags::ECE | Flags::CWR, false),
        (false, Flags::ECE, false),
    ] {
        let mut tcp = answered(offers, flags);
        tcp.window = 60_000 << 7;
        // As a sender: no reduction for an echo, and no CWR.
        tcp.write(100).sent();
        tcp.ece = true;
        tcp.until(100).ack(2);
        let expected = if agreed { (1, 5.0) } else { (0, 12.0) };
        assert_eq!((tcp.end.counters().reductions, tcp.cwnd()), expected, "{offers}, {flags:?}");
        tcp.ack(10);
        assert_eq!(tcp.take_data().iter().any(|segment| segment.flags.contains(Flags::CWR)), agreed);
        // As a receiver: no echo of a mark.
        tcp.marked = true;
        tcp.ece = false;
        tcp.data(0).data(1);
        assert_eq!(tcp.take_bare(1)[0].flags.contains(Flags::ECE), agreed, "{offers}, {flags:?}");
    }
}

#[test]
fn a_listener_agrees_only_to_a_whole_offer() {
    // Section 6.1.1: an offer is ECE and CWR on the SYN.
    for (flags, agrees) in [(Flags::ECE | Flags::CWR, true), (Flags::ECE, false), (Flags::CWR, false)] {
        let mut tcp = Script::listening(&ecn(), ISS, Time::ZERO);
        tcp.receive(Segment { flags: Flags::SYN | flags, ..tcp.syn() });
        assert_eq!(tcp.take_bare(1)[0].flags.contains(Flags::ECE), agrees, "{flags:?}");
    }
}

#[test]
fn no_reduction_is_announced_without_an_agreement() {
    // CWR (section 6.1.2) after a loss too is for the peer that echoes marks.
    let mut tcp = Script::sending(config(), 100);
    tcp.until(100).sack(0, &[1..4]).sack(0, &[1..10]);
    assert_eq!(tcp.end.counters().reductions, 1);
    let data = tcp.take_data();
    assert!(data.len() > 1 && data.iter().all(|segment| !segment.flags.contains(Flags::CWR)));
}

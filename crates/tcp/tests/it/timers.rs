//! The retransmission timer (RFC 6298), what it does to the windows, and the persist timer.

use crate::common::{ISS, MSS, Script, config, ms, stamped};
use elephan_tcp::{Config, DelayedAck, Flags, Recovery};
use elephan_units::{Bytes, Time};

#[test]
fn a_timeout_sends_the_first_segment_and_backs_off() {
    // RTO and back-off (RFC 6298, section 5; RFC 5681, section 3.1): 1, 2, 4 s; ssthresh is half of the
    // flight at the first and is then held, because it is the same segment.
    let mut tcp = Script::sending(config(), 8);
    tcp.until(999).silent();
    tcp.until(1000).sends([0]);
    assert_eq!((tcp.cwnd(), tcp.ssthresh()), (1.0, 4.0));
    tcp.until(2999).silent();
    tcp.until(7000);
    assert_eq!(tcp.sent_at(), [(0, 3000.0), (0, 7000.0)]);
    assert_eq!((tcp.cwnd(), tcp.ssthresh()), (1.0, 4.0));
    let counters = tcp.end.counters();
    assert_eq!((counters.timeouts, counters.reductions, counters.loss_events), (3, 1, 0));
}

#[test]
fn karn_keeps_the_back_off_until_a_sample() {
    // Karn's algorithm (RFC 6298, sections 3 and 5): the ACK of a retransmission gives no sample, and the
    // timeout stays doubled until one of a segment that was sent once.
    let mut tcp = Script::sending(config(), 2);
    tcp.until(1000).sends([0]);
    tcp.until(1100).ack(1).sends([1]);
    tcp.until(1200).ack(2);
    assert_eq!((tcp.snapshot().rto, tcp.snapshot().srtt), (Time::from_secs(2), ms(100)));
    tcp.write(1).sent();
    tcp.until(1300).ack(3);
    assert_eq!(tcp.snapshot().rto, Time::from_secs(1));
}

#[test]
fn timestamps_give_a_sample_whichever_transmission_arrived() {
    // RTTM (RFC 7323, section 4): the echo names the transmission, the original or its retransmission at 1000 ms, and the
    // ACK at 1150 ms ends the back-off. SRTT = 7/8 * 100 + 1/8 * sample.
    let mut tcp = Script::sender(stamped());
    tcp.write(2);
    let original = tcp.take_data()[0].ts_val;
    tcp.until(1000);
    let again = tcp.take_data()[0].ts_val;
    assert_eq!(again, original + 1000);
    for (echo, srtt_us, rto_us) in [(original, 231_250, 1_431_250), (again, 106_250, 1_000_000)] {
        let mut tcp = Script::sender(stamped());
        tcp.write(2).until(1000);
        tcp.echo = echo;
        tcp.until(1150).ack(1);
        let estimate = (tcp.snapshot().srtt, tcp.snapshot().rto);
        assert_eq!(estimate, (Time::from_micros(srtt_us), Time::from_micros(rto_us)), "echo {echo}");
    }
}

#[test]
fn delayed_acks_longer_than_the_timeout_do_not_stop_a_flow_of_one_segment() {
    // An initial window of 1, a timeout of 200 ms and ACKs that take 300: each comes after a retransmission, and
    // echoes the original (RFC 7323, section 4.3). The samples raise the timeout above 300 ms.
    let mut tcp = Script::sender(Config { initial_window: 1, rto_min: ms(200), ..stamped() });
    tcp.write(100);
    for number in 0..6 {
        tcp.echo = tcp.take_data()[0].ts_val;
        tcp.until(300 * (number + 1)).ack(number + 1);
    }
    assert_eq!(tcp.snapshot().rto.max(ms(300)), tcp.snapshot().rto);
    assert!(tcp.end.counters().timeouts <= 2, "{:?}", tcp.end.counters());
}

#[test]
fn a_flow_of_one_segment_outgrows_delayed_acks_as_long_as_its_timeout() {
    // Each ACK comes when the retransmission has arrived, reports it as a duplicate and echoes it: no sample tells of
    // the delay. The undo leaves a window of 1 that may grow, and two segments are acknowledged at once.
    let mut tcp = Script::sender(Config { initial_window: 1, rto_min: ms(200), ..stamped() });
    tcp.write(100).sends([0]);
    tcp.until(301);
    tcp.echo = tcp.take_data()[0].ts_val;
    tcp.until(361).sack_bytes(MSS, &[0..MSS]);
    assert_eq!((tcp.cwnd(), tcp.sent()), (2.0, vec![1, 2]));
}

#[test]
fn the_two_minimums_of_the_timeout() {
    // RFC 6298, section 2.4, bounds the timeout; Linux bounds its variance term. A round-trip time of 100 ms with a
    // variation of 50 ms: 100 + 4 * 50 = 300 ms.
    for (rto_min, variance_min, rto) in
        [(1, 0, 300), (400, 0, 400), (1, 200, 300), (1, 250, 350), (400, 250, 400)]
    {
        let tcp =
            Script::sender(Config { rto_min: ms(rto_min), rto_variance_min: ms(variance_min), ..config() });
        assert_eq!(tcp.snapshot().rto, ms(rto));
    }
}

#[test]
fn what_arrived_long_before_gives_no_sample() {
    // 0 is lost, and so is its first retransmission, and the reports of what arrived above 3. The ACK that the second one
    // brings at 1200 ms is of segments that were sent at 100 ms too; its echo says that 100 ms are what it took.
    let mut tcp = Script::sender(stamped());
    tcp.write(12);
    tcp.echo = tcp.take_data()[0].ts_val;
    tcp.until(100).sack(0, &[1..2]).sack(0, &[1..3]).sack(0, &[1..4]).sent();
    let srtt = tcp.snapshot().srtt;
    tcp.until(1100);
    tcp.echo = tcp.take_data()[0].ts_val;
    tcp.until(1200).ack(12);
    assert_eq!((srtt, tcp.snapshot().srtt), (ms(100), ms(100)));
}

#[test]
fn an_ack_of_what_was_sent_again_gives_no_sample() {
    // Karn's algorithm: 0 is lost, and the reports of what arrived above it too. The ACK at 1100 ms is of the second
    // transmission of 0, and of 1 to 9, which arrived a second ago: none of them shows a round-trip time, and the
    // timeout stays doubled. Where timestamps say which transmission of 0 it answers, that one shows it.
    let newreno = |config| Config { recovery: Recovery::NewReno, ..config };
    for (config, srtt, rto) in [
        (config(), 100, 2000),
        (newreno(config()), 100, 2000),
        (newreno(stamped()), 100, 1000),
        (stamped(), 100, 1000),
    ] {
        let mut tcp = Script::sending(config, 10);
        tcp.until(1000);
        tcp.echo = tcp.take_data()[0].ts_val;
        let snapshot = tcp.until(1100).ack(10).snapshot();
        let estimate = (snapshot.srtt, snapshot.rto, snapshot.min_rtt);
        assert_eq!(estimate, (ms(srtt), ms(rto), ms(100)), "{config:?}");
    }
}

#[test]
fn the_echo_of_a_late_original_measures_its_delay() {
    // RFC 7323, section 4.3: the peer echoes the segment that filled the hole. Here it was the original, which was
    // only late, by 950 ms: SRTT = 7/8 * 100 + 1/8 * 1050 ms, RTTVAR = 3/4 * 50 + 1/4 * 950 ms. Nothing says when 1 to
    // 9, which are acknowledged with it, arrived.
    let mut tcp = Script::sender(Config { recovery: Recovery::NewReno, ..stamped() });
    tcp.write(10);
    tcp.echo = tcp.take_data()[0].ts_val;
    let snapshot = tcp.until(1050).ack(10).snapshot();
    assert_eq!((snapshot.srtt, snapshot.rto), (Time::from_micros(218_750), Time::from_micros(1_318_750)));
    assert_eq!(snapshot.min_rtt, ms(100));
}

#[test]
fn an_echo_that_is_newer_than_what_it_acknowledges_measures_itself() {
    // The reports of 1 to 9 were lost, and 0 arrives late, at 600 ms, retransmitted at 500 ms by the peer's count: the
    // echo is of a transmission later than that of 9, which the ACK covers too.
    let mut tcp = Script::sender(stamped());
    tcp.write(10);
    let first = tcp.take_data()[0].ts_val;
    tcp.echo = first + 500;
    tcp.until(600).ack(10);
    // 7/8 * 100 + 1/8 * 100.
    assert_eq!(tcp.snapshot().srtt, ms(100));
}

#[test]
fn an_ack_sooner_than_any_round_trip_is_not_of_the_retransmission() {
    // A path of 10 us. 1 is late, 2 to 4 are not, and it arrives 1 us after its retransmission, in the same tick of the
    // timestamp clock: the echo is that of both, and nothing makes the round trip in 1 us. The sample is the age of the
    // tick, at most.
    let mut tcp = Script::sender(stamped());
    let after = |tcp: &mut Script, us| tcp.now += Time::from_micros(us);
    tcp.write(1);
    tcp.echo = tcp.take_data()[0].ts_val;
    after(&mut tcp, 10);
    tcp.ack(1).write(4).sends([1, 2, 3, 4]);
    after(&mut tcp, 10);
    tcp.sack(1, &[2..5]).sends([1]);
    after(&mut tcp, 1);
    let srtt = tcp.snapshot().srtt;
    let snapshot = tcp.ack(5).snapshot();
    assert_eq!(snapshot.min_rtt, Time::from_micros(10));
    assert_eq!(snapshot.srtt, srtt - srtt / 8 + Time::from_micros(21) / 8);
}

#[test]
fn samples_are_finer_than_the_timestamp_clock() {
    // The sample is the time since the segment was sent: with ticks of 1 ms it is exact all the same.
    let mut tcp = Script::sender(stamped());
    for number in 0..200 {
        tcp.write(1);
        tcp.echo = tcp.take_data()[0].ts_val;
        tcp.now += Time::from_micros(100_250);
        tcp.ack(number + 1);
    }
    let srtt = tcp.snapshot().srtt.secs_f64();
    assert!((srtt - 0.100_25).abs() < 1e-9, "{srtt}");
    assert_eq!(tcp.snapshot().min_rtt, ms(100));
}

#[test]
fn a_new_ack_restarts_the_timer_and_the_last_stops_it() {
    // RFC 6298, sections 5.2 and 5.3.
    let mut tcp = Script::sending(config(), 3);
    tcp.until(900).ack(1);
    // SRTT = 7/8 * 100 + 900/8 = 200 ms; RTTVAR = 3/4 * 50 + 800/4 = 237.5 ms; RTO = 1150 ms.
    assert_eq!(tcp.end.poll_timeout() - tcp.now, ms(1150));
    tcp.until(2049).silent();
    tcp.until(2050).sends([1]);
    tcp.until(2100).ack(3);
    assert_eq!(tcp.end.poll_timeout(), Time::MAX);
}

#[test]
fn after_a_timeout_sack_sends_only_what_is_missing() {
    // RFC 6675, section 5.1: what was selectively acknowledged is not retransmitted. 0, 3 and 5 are lost, with too little above
    // them to tell.
    let mut tcp = Script::sending(config(), 6);
    tcp.until(100).sack(0, &[1..3]).silent();
    tcp.until(1000).sends([0]);
    tcp.until(1100).ack(3).sends([3, 4]);
    assert_eq!(tcp.end.counters().segments_retransmitted, 3);
}

#[test]
fn a_receiver_that_reneges_gets_everything_again() {
    // Reneging (RFC 2018, section 8): the receiver reports 1 and 2, then acknowledges 0 only. A timeout
    // while the front is reported forgets all reports.
    let mut tcp = Script::sending(config(), 6);
    tcp.until(100).sack(0, &[1..3]).ack(1).silent();
    assert_eq!(tcp.pipe(), 3);
    tcp.until(1100).sends([1]);
    tcp.until(1200).ack(2).sends([2, 3]);
    tcp.until(1300).ack(3).ack(4).sends([4, 5]);
}

#[test]
fn a_timeout_in_recovery_answers_the_lost_retransmission() {
    // The loss of a retransmission is a second indication (RFC 5681, section 4.3): the segment was sent
    // after the first reduction, to 5, and is lost. Reno's second hole was sent before, and is not.
    let mut tcp = Script::sending(Config { recovery: Recovery::NewReno, ..config() }, 10);
    tcp.until(100).dupacks(0, 9);
    assert_eq!((tcp.sent(), tcp.cwnd()), (vec![0], 5.0));
    tcp.until(1100).sends([0]);
    assert_eq!((tcp.cwnd(), tcp.ssthresh(), tcp.end.counters().reductions), (1.0, 2.5, 2));

    let mut tcp = Script::sending(Config { recovery: Recovery::Reno, ..config() }, 10);
    tcp.until(100).dupacks(0, 8);
    tcp.until(200).ack(5).dupacks(5, 1).sends([0]);
    tcp.until(1200).sends([5]);
    assert_eq!((tcp.cwnd(), tcp.ssthresh(), tcp.end.counters().reductions), (1.0, 5.0, 1));
}

#[test]
fn duplicates_of_what_a_timeout_sent_again_tell_of_no_loss() {
    // RFC 6582, section 3.2, step 2: only the ACKs of 0 to 9 were lost. 3 to 5 go again for nothing, and
    // three duplicates come for them, below and at the end of what was outstanding at the timeout.
    let mut tcp = Script::sending(Config { recovery: Recovery::NewReno, ..config() }, 100);
    tcp.until(1000).sends([0]);
    tcp.until(1100).ack(1).ack(2).sends([1, 2, 3, 4]);
    tcp.ack(10).sent();
    tcp.until(1200).dupacks(10, 4);
    assert_eq!((tcp.end.counters().segments_retransmitted, tcp.end.counters().reductions), (5, 1));
    assert!(!tcp.snapshot().in_recovery);
    // Once new data is acknowledged, duplicates count again.
    tcp.until(1300).ack(12).sent();
    tcp.dupacks(12, 3);
    assert_eq!(tcp.sent().last(), Some(&12));
}

#[test]
fn a_dead_peer_is_given_up() {
    // R2 (RFC 9293, section 3.8.3): after 16 timeouts in a row, 1 + 2 + ... + 32 + 10 * 60 s, the connection
    // is reset. An ACK in between restarts the count.
    let mut tcp = Script::sending(config(), 2);
    tcp.until(662_999);
    assert!(!tcp.end.is_reset());
    assert_eq!(tcp.sent().len(), 15);
    tcp.until(663_000);
    assert!(tcp.end.is_reset());
    assert!(tcp.take_bare(1)[0].flags.contains(Flags::RST));
    assert_eq!(tcp.end.poll_timeout(), Time::MAX);

    let mut tcp = Script::sending(config(), 2);
    tcp.until(600_000).ack(1);
    tcp.until(700_000);
    assert!(!tcp.end.is_reset());
}

#[test]
fn a_closed_window_is_probed() {
    // Zero-window probes (RFC 9293, section 3.8.6.1): after a timeout, then backed off; an old sequence
    // number without data, for which the peer must answer. They go on as long as it does.
    let mut tcp = Script::sending(config(), 2);
    tcp.window = 0;
    tcp.until(100).ack(2).write(5).silent();
    tcp.until(1099).silent();
    tcp.until(1100);
    let probe = tcp.take_bare(1)[0];
    assert_eq!((probe.len, probe.seq), (0, ISS.wrapping_add(2000)));
    tcp.until(1200).ack(2);
    tcp.until(3199).silent();
    tcp.until(3200).take_bare(1);
    assert_eq!(tcp.end.counters().timeouts, 0);
    // The window opens: the timer is no longer backed off.
    tcp.window = 4 << 10;
    tcp.until(3300).ack(2).sends([2, 3, 4, 5]);
    assert_eq!(tcp.end.poll_timeout() - tcp.now, Time::from_secs(1));
}

#[test]
fn a_lost_window_update_does_not_stop_the_sender() {
    // The persist timer's reason: the probe's answer tells of the open window.
    let mut tcp = Script::receiver(Config { receive_buffer: Some(Bytes::new(2000)), ..config() });
    tcp.end.set_reading(false);
    tcp.data(0).data(1);
    assert_eq!(tcp.take_bare(1)[0].window, 0);
    // There is no room for another; it is refused, and acknowledged at once.
    tcp.data(2).acks(2000, &[]);
    assert_eq!(tcp.end.counters().bytes_delivered, 0);
    tcp.end.set_reading(true);
    tcp.pump();
    // This update is lost; the probe is answered with another.
    assert!(tcp.take_bare(1)[0].window > 0);
    tcp.receive(tcp.segment_at(1999));
    assert!(tcp.take_bare(1)[0].window > 0);
    tcp.data(2).data(3);
    assert_eq!(tcp.end.counters().bytes_delivered, 4000);
}

#[test]
fn silly_windows_are_not_offered() {
    // Silly window avoidance (RFC 9293, section 3.8.6.2.2): the right edge moves by a full segment or not
    // at all; it never moves back.
    let delayed_ack = DelayedAck { quick: 100, ..DelayedAck::default() };
    let mut tcp =
        Script::receiver(Config { receive_buffer: Some(Bytes::new(5000)), delayed_ack, ..config() });
    let edge = |from: u64, bytes: u64, reads: bool, tcp: &mut Script| {
        tcp.end.set_reading(reads);
        tcp.data_bytes(from..from + bytes);
        let ack = tcp.take_bare(1)[0];
        u64::from(ack.window) + from + bytes
    };
    assert_eq!(edge(0, 400, true, &mut tcp), 5000);
    assert_eq!(edge(400, 400, true, &mut tcp), 5000);
    assert_eq!(edge(800, 400, true, &mut tcp), 6200);
    assert_eq!(edge(1200, 900, false, &mut tcp), 6200);
    assert_eq!(edge(2100, 900, false, &mut tcp), 6200);
}

#[test]
fn one_sample_is_taken_for_each_flight() {
    // RFC 6298, section 3: without timestamps one for each window of data; with them each ACK gives one. 0 took 100 ms,
    // 1 took 180 ms: SRTT = 7/8 * 100 + 1/8 * 180 = 110 ms.
    for (config, srtt) in [(config(), 100), (stamped(), 110)] {
        let mut tcp = Script::sender(config);
        tcp.write(100);
        tcp.echo = tcp.take_data()[0].ts_val;
        tcp.until(100).ack(1).until(180).ack(2);
        assert_eq!(tcp.snapshot().srtt, ms(srtt), "{config:?}");
    }
    // The ten that were sent by then are one flight; what follows is the next: 10 took 180 ms.
    let mut tcp = Script::sender(config());
    tcp.write(100).until(100).ack(1).until(180).ack(10);
    assert_eq!(tcp.snapshot().srtt, ms(100));
    tcp.until(280).ack(11);
    assert_eq!(tcp.snapshot().srtt, ms(110));
}

#[test]
fn a_full_window_does_not_put_off_a_retransmission() {
    // RFC 6298, section 5.1: the timer runs for what is outstanding. The peer's window has no room for more, and what it
    // sends in between makes us look for something to send: the timer runs on.
    let mut tcp = Script::sender(config());
    tcp.write(2).until(100);
    tcp.window = 2 << 10;
    tcp.ack(2).write(5).sends([0, 1, 2, 3]);
    tcp.until(600).data(0).data(1).until(1200);
    assert_eq!(tcp.sent_at(), [(2, 1100.0)]);
}

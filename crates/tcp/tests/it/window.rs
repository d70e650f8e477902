//! How far the window opens, what allows it to grow, and what limits sending.

use crate::common::{Script, config, controller, ms, starting};
use elephan_cc::Quantisation;
use elephan_tcp::{AfterIdle, ByteCounting, Config, SsthreshBase};
use elephan_units::Bytes;

/// A window of 10 in congestion avoidance.
fn avoiding() -> Config {
    Config { initial_ssthresh: Some(10), ..config() }
}

#[test]
fn the_initial_window_is_sent_at_once() {
    // Initial window (RFC 6928; RFC 5681, section 3.1).
    for window in [1, 2, 10] {
        let mut tcp = Script::sender(Config { initial_window: window, ..config() });
        tcp.write(100);
        assert_eq!(tcp.sent().len() as u32, window);
    }
}

#[test]
fn an_ack_is_worth_what_byte_counting_says() {
    // Appropriate byte counting (RFC 3465, section 2.2): in slow start an ACK of 5 segments counts for L at
    // most, or 1 without it; in congestion avoidance all 5 count, by 1/10 each.
    let abc = |limit| ByteCounting::Abc { limit };
    for (byte_counting, start, avoidance) in
        [(abc(1), 11.0, 10.5), (abc(2), 12.0, 10.5), (abc(8), 15.0, 10.5), (ByteCounting::PerAck, 11.0, 10.1)]
    {
        for (config, expected) in [(config(), start), (avoiding(), avoidance)] {
            let mut tcp = Script::sender(Config { byte_counting, ..config });
            tcp.write(100).until(100).ack(5);
            assert!((tcp.cwnd() - expected).abs() < 1e-9, "{byte_counting:?}: {}", tcp.cwnd());
        }
    }
}

#[test]
fn hystart_plus_plus_has_a_limit_of_its_own_and_none_where_segments_are_paced() {
    // RFC 9406, sections 4.2 and 4.3: an ACK of 12 segments adds L = 8, whatever byte counting's limit, or all 12 where the
    // sender paces. Standard slow start adds 2 (RFC 3465).
    for (start, pacing, cwnd) in
        [("standard", false, 22.0), ("hystart++", false, 28.0), ("hystart++", true, 32.0)]
    {
        let config = Config { pacing, initial_window: 20, ..config() };
        let mut tcp = Script::controlled(starting("reno", start, &config), config);
        tcp.write(100).until(99).sent();
        assert_eq!(tcp.until(100).ack(12).cwnd(), cwnd, "{start}");
    }
}

#[test]
fn after_a_timeout_an_ack_is_worth_one_segment() {
    // RFC 3465, section 2.3: L = 1 in the slow start after a timeout, with SACK or without, because an ACK
    // may cover data that had arrived long before.
    let mut tcp = Script::sender(Config { byte_counting: ByteCounting::Abc { limit: 8 }, ..config() });
    tcp.write(100).until(1000);
    assert_eq!(tcp.cwnd(), 1.0);
    tcp.until(1100).ack(4);
    assert_eq!(tcp.cwnd(), 2.0);
}

#[test]
fn the_window_does_not_grow_when_it_is_not_the_limit() {
    // Application-limited (RFC 7661, in Linux's form): in slow start an ACK counts if more than half of the window was
    // outstanding; beyond ssthresh it counts only if the window was full.
    let grown = |config: Config, segments: u64| {
        let mut tcp = Script::sender(config);
        tcp.write(segments).until(100).ack(2);
        tcp.cwnd() > 10.0
    };
    assert!(!grown(config(), 5));
    assert!(grown(config(), 6));
    assert!(!grown(avoiding(), 9));
    assert!(grown(avoiding(), 10));
    assert!(grown(avoiding(), 11));
}

#[test]
fn what_was_outstanding_in_the_round_trip_counts_and_not_what_is_left() {
    // Ten segments, and five ACKs of two: each counts, though less and less is in flight (Linux, tcp_cwnd_validate,
    // takes the maximum of the round trip). In the next round trip only two segments are sent.
    let mut tcp = Script::sender(config());
    tcp.write(10).until(100);
    for (next, cwnd) in [(2, 12.0), (4, 14.0), (6, 16.0), (8, 18.0), (10, 20.0)] {
        assert_eq!(tcp.ack(next).cwnd(), cwnd);
    }
    tcp.write(2).until(200);
    assert_eq!(tcp.ack(12).cwnd(), 20.0);
}

#[test]
fn a_paced_window_grows_as_an_unpaced_one() {
    // Congestion avoidance at 10 segments, each acknowledged 100 ms after it was sent: a segment more in each round
    // trip, paced or not. The pacing rate leaves the window full at the end of each round trip only.
    let grown = |pacing: bool| {
        let mut tcp = Script::sender(Config { pacing, ..avoiding() });
        tcp.write(10_000);
        let (mut flight, mut acked) = (Vec::new(), 0);
        for at in 0..2000 {
            tcp.until(at);
            flight.extend(tcp.sent_at());
            while flight.first().is_some_and(|&(_, sent)| sent + 100.0 <= at as f64) {
                flight.remove(0);
                acked += 1;
                tcp.ack(acked);
                flight.extend(tcp.sent_at());
            }
        }
        tcp.cwnd()
    };
    let (paced, unpaced) = (grown(true), grown(false));
    assert!(unpaced > 28.0 && (paced - unpaced).abs() < 1.5, "{paced} {unpaced}");
}

#[test]
fn after_an_idle_time_the_window_restarts_or_decays_or_stays() {
    // A window of 40, and silence for 0.9 to 9.5 timeouts of 1 s. RFC 5681, section 4.1, restarts from the initial
    // window of 10 after more than a timeout; RFC 2861 halves for each, to the initial window at least; or nothing happens.
    for (after_idle, idle, cwnd) in [
        (AfterIdle::Restart, 900, 40.0),
        (AfterIdle::Restart, 1500, 10.0),
        (AfterIdle::Decay, 1500, 20.0),
        (AfterIdle::Decay, 2500, 10.0),
        (AfterIdle::Decay, 9500, 10.0),
        (AfterIdle::Keep, 9500, 40.0),
    ] {
        let mut tcp = Script::sender(Config { after_idle, ..config() });
        tcp.write(30).until(100);
        for next in 1..=30 {
            tcp.ack(next);
        }
        assert_eq!(tcp.cwnd(), 40.0);
        tcp.until(100 + idle).write(100);
        assert_eq!((tcp.cwnd(), tcp.pipe()), (cwnd, cwnd as u64), "{after_idle:?} after {idle} ms");
    }
}

/// Validates its window (RFC 7661).
fn validating() -> Config {
    Config { after_idle: AfterIdle::Validate, ..config() }
}

/// A window of 40 of which all was used, at 200 ms: 10 and then 20 segments were sent at once and arrived.
fn used(config: Config) -> Script {
    let mut tcp = Script::sender(config);
    for (at, number) in [(100, 10), (200, 20)] {
        tcp.write(number).until(at);
        let sent = tcp.sent();
        for next in sent {
            tcp.ack(next + 1);
        }
    }
    assert_eq!(tcp.cwnd(), 40.0);
    tcp
}

/// `number` segments are written, and arrive 100 ms later, at `at`.
fn use_some(tcp: &mut Script, at: u64, number: u64) {
    tcp.until(at - 100).write(number).until(at);
    for next in tcp.sent() {
        tcp.ack(next + 1);
    }
}

#[test]
fn a_validated_window_grows_and_another_only_where_it_is_full() {
    // RFC 7661, sections 4.3 and 4.4: 20 segments arrived in a round trip, half of the window of 40, which may grow for a
    // second, though 4 of it are used. Then 4 arrived in the last second: the window is kept, and grows if it is full.
    let mut tcp = used(validating());
    use_some(&mut tcp, 400, 4);
    // At the first of these ACKs 2 * 20 >= 40; at the second 2 * 20 < 41.
    assert_eq!(tcp.cwnd(), 41.0);
    for at in [600, 800, 1000, 1200, 1400] {
        use_some(&mut tcp, at, 4);
    }
    assert_eq!(tcp.cwnd(), 41.0);
    tcp.until(1500).write(100).until(1600).sent();
    assert_eq!((tcp.pipe(), tcp.ack(55).cwnd()), (41, 42.0));
}

#[test]
fn pipe_ack_is_undefined_until_a_round_trip_is_over() {
    // RFC 7661, section 4.2: the first ACKs are of 1 and 2 of 4 segments, less than half of the window of 10; they count all the
    // same. The fourth completes the round trip: 4 of 13 are less than half, and nothing grows.
    let mut tcp = Script::sender(validating());
    use_some(&mut tcp, 100, 4);
    assert_eq!(tcp.cwnd(), 13.0);
    use_some(&mut tcp, 300, 4);
    assert_eq!(tcp.cwnd(), 13.0);
}

#[test]
fn a_window_is_kept_for_five_minutes_and_then_halved() {
    // RFC 7661, sections 4.4.3 and 5: from 1 s after the last sample of 20 on, the window is not validated; 300 s later it is
    // half, and so on, down to the initial window, with ssthresh at three quarters of what it was.
    for (idle, cwnd, ssthresh) in [
        (1_500, 40.0, f64::INFINITY),
        (300_900, 40.0, f64::INFINITY),
        (301_100, 20.0, f64::INFINITY),
        (601_100, 10.0, f64::INFINITY),
        (2_000_000, 10.0, f64::INFINITY),
    ] {
        let mut tcp = used(validating());
        tcp.until(200 + idle).write(100);
        assert_eq!((tcp.cwnd(), tcp.ssthresh()), (cwnd, ssthresh), "after {idle} ms");
        assert_eq!(tcp.pipe(), cwnd as u64);
    }
    // Not idle, but with 4 segments in each 10 s. Beyond ssthresh this follows.
    let mut tcp = used(validating());
    tcp.write(40).until(300).sack(30, &[31..70]).until(400).ack(70);
    let mut windows = vec![(tcp.cwnd(), tcp.ssthresh())];
    for at in (10_000..=620_000).step_by(10_000) {
        use_some(&mut tcp, at, 4);
        windows.push((tcp.cwnd(), tcp.ssthresh()));
    }
    windows.dedup();
    // Undefined at the first ACKs after the recovery, and not validated from 10 s on: halved after 310 s and 610 s.
    let [(20.0, 20.0), (cwnd, 20.0), (half, ssthresh), (last, _)] = windows[..] else {
        panic!("{windows:?}")
    };
    assert!(cwnd > 20.0 && cwnd < 20.2);
    assert_eq!((half, ssthresh, last), (cwnd / 2.0, 20.0, 10.0));
}

#[test]
fn a_loss_in_a_window_that_is_not_validated_leaves_half_of_what_was_used() {
    // RFC 7661, section 4.4.1: 8 segments in each round trip of the last second, in a window of 40; then 12 in flight, of which 2 are
    // lost. Max(8, 12)/2 = 6 in the recovery, (12 - 2)/2 = 5 after it. The standard method leaves half of FlightSize; of
    // a validated window, 40 in flight, 20.
    let mut tcp = used(validating());
    let mut at = 400;
    while at <= 1600 {
        use_some(&mut tcp, at, 8);
        at += 200;
    }
    let (first, cwnd) = (30 + 7 * 8, tcp.cwnd());
    assert!(cwnd >= 40.0);
    tcp.write(12).until(1700).sack(first, &[first + 1..first + 3, first + 4..first + 12]);
    assert_eq!((tcp.cwnd(), tcp.ssthresh()), (6.0, 6.0));
    assert_eq!(tcp.sent()[12..], [first, first + 3]);
    tcp.until(1800).ack(first + 12);
    assert_eq!((tcp.cwnd(), tcp.ssthresh(), tcp.snapshot().in_recovery), (5.0, 5.0, false));
    // pipeACK is undefined after it, so that the standard methods hold.
    tcp.write(4).until(1900).ack(first + 13);
    assert_eq!(tcp.cwnd(), 5.2);

    let mut tcp = used(validating());
    tcp.write(40).until(300).sack(30, &[31..70]);
    tcp.until(400).ack(70);
    assert_eq!((tcp.cwnd(), tcp.ssthresh()), (20.0, 20.0));
}

#[test]
fn a_mark_in_a_window_that_is_not_validated_leaves_half_of_what_was_used() {
    // RFC 7661, section 4.4.1, where nothing is retransmitted; and a timeout has its usual response: half of what was in flight.
    let prepared = || {
        let mut tcp = used(Config { ecn: true, ..validating() });
        let mut at = 400;
        while at <= 1600 {
            use_some(&mut tcp, at, 8);
            at += 200;
        }
        tcp
    };
    let mut tcp = prepared();
    tcp.write(12).until(1700);
    tcp.ece = true;
    tcp.ack(87);
    assert_eq!((tcp.cwnd(), tcp.ssthresh()), (6.0, 6.0));
    let mut tcp = prepared();
    tcp.write(12).until(3000);
    assert_eq!((tcp.cwnd(), tcp.ssthresh()), (1.0, 6.0));
}

#[test]
fn cubic_does_not_grow_by_a_silence() {
    // RFC 9438, sections 4.2 and 5.8: a window of 100, then 10 s without data or with a closed window, and five round
    // trips of 100 ms. They add as much as without the silence.
    let grown = |silence: u64, closed: bool| {
        let after_idle = AfterIdle::Keep;
        let config = Config { initial_window: 100, initial_ssthresh: Some(100), after_idle, ..config() };
        let mut tcp = Script::controlled(controller("cubic", &config), config);
        // The peer acknowledges what was sent, segment by segment, at `at` ms, and lastly with this window.
        let acknowledge = |tcp: &mut Script, at: u64, window: u64| {
            let sent = tcp.until(at).sent();
            for number in &sent {
                if Some(number) == sent.last() {
                    tcp.window = window;
                }
                tcp.ack(number + 1);
            }
        };
        let open = tcp.window;
        tcp.write(100);
        acknowledge(&mut tcp, 100, open);
        tcp.write(100);
        acknowledge(&mut tcp, 200, if closed { 0 } else { open });
        let before = tcp.cwnd();
        if closed {
            tcp.write(1000).until(200 + silence).take_data();
            tcp.window = open;
            tcp.ack(200);
        } else {
            tcp.until(200 + silence).write(1000);
        }
        for round_trip in 1..=5 {
            acknowledge(&mut tcp, 200 + silence + 100 * round_trip, open);
        }
        tcp.cwnd() - before
    };
    let usual = grown(0, false);
    assert!(usual < 10.0, "{usual}");
    for (silence, closed) in [(10_000, false), (10_000, true)] {
        let growth = grown(silence, closed);
        assert!((growth - usual).abs() < 1.0, "{growth}, expected {usual}; closed: {closed}");
    }
}

#[test]
fn a_loss_halves_what_is_in_flight_or_the_window() {
    // 4 of a window of 10 are in flight (RFC 5681, equation 4; Linux, tcp_reno_ssthresh).
    for (ssthresh_base, ssthresh) in [(SsthreshBase::FlightSize, 2.0), (SsthreshBase::Cwnd, 5.0)] {
        let mut tcp = Script::sender(Config { ssthresh_base, ..config() });
        tcp.write(4).until(100).sack(0, &[1..2]).sack(0, &[1..3]).sack(0, &[1..4]);
        assert_eq!(tcp.ssthresh(), ssthresh);
    }
}

#[test]
fn the_ack_that_ends_a_recovery_counts_where_all_that_is_delivered_counts() {
    // 0 of 10 is lost; the window is 5. The ACK of 0 delivers one segment (Linux, tcp_cong_avoid): 5 + 1/5.
    for (byte_counting, cwnd) in [(ByteCounting::Delivered, 5.2), (ByteCounting::Abc { limit: 2 }, 5.0)] {
        let mut tcp = Script::sender(Config { byte_counting, ..config() });
        tcp.write(10).until(100).sack(0, &[1..2]).sack(0, &[1..3]).sack(0, &[1..10]);
        assert_eq!(tcp.until(200).ack(10).cwnd(), cwnd, "{byte_counting:?}");
    }
}

#[test]
fn the_peers_window_and_the_send_buffer_limit_too() {
    // Receive window and send buffer: the data in flight exceeds neither; and no growth, as above.
    let mut tcp = Script::sender(Config { send_buffer: Some(Bytes::new(4500)), ..avoiding() });
    tcp.write(100).sends([0, 1, 2, 3]);
    tcp.until(100).ack(4).sends([4, 5, 6, 7]);
    assert_eq!(tcp.cwnd(), 10.0);
    let mut tcp = Script::sender(avoiding());
    tcp.write(2).until(100);
    tcp.window = 3 << 10;
    tcp.ack(2).write(100).sends([0, 1, 2, 3, 4]);
    tcp.until(200).ack(5).sends([5, 6, 7]);
    assert_eq!(tcp.cwnd(), 10.0);
}

#[test]
fn a_window_that_the_peer_takes_back_is_respected() {
    // RFC 9293, section 3.8.6: a sender must accept a window that shrinks. An old ACK does not shrink it.
    let mut tcp = Script::sender(config());
    tcp.write(2).until(100).ack(1);
    tcp.window = 2 << 10;
    tcp.ack(1).write(1).sends([0, 1, 2]);
    tcp.until(110).ack(3).write(100).sends([3, 4]);
}

#[test]
fn a_burst_limit_spreads_what_a_large_ack_sets_free() {
    // Burst limit: three segments for each ACK, however much it acknowledges.
    let mut tcp = Script::sender(Config { burst_limit: Some(3), initial_window: 3, ..config() });
    tcp.write(100).sends([0, 1, 2]);
    tcp.until(100).ack(1).ack(2).ack(3).sends([3, 4, 5, 6, 7, 8]);
    // The window is 7.
    tcp.until(200).ack(9).sends([9, 10, 11]);
    tcp.until(1000).sends([]);
}

#[test]
fn pacing_spreads_segments_over_the_round_trip() {
    // Pacing, as Linux does it: at twice cwnd / SRTT in slow start, here 200 segments a second; at 1.2 times
    // beyond, 120 a second.
    for (config, gap) in [(config(), 5.0), (avoiding(), 1000.0 / 120.0)] {
        let mut tcp = Script::sender(Config { pacing: true, ..config });
        tcp.write(100).until(99);
        let sent = tcp.sent_at();
        assert_eq!(sent.len(), 10);
        for (number, (segment, at)) in sent.into_iter().enumerate() {
            assert_eq!(segment, number as u64);
            assert!((at - gap * number as f64).abs() < 1e-6, "{segment} at {at}");
        }
    }
}

#[test]
fn pacing_does_not_hold_back_what_the_window_holds_back() {
    // Pacing wakes the endpoint only for segments that may be sent: in this case the only timer is the
    // retransmission timer.
    let mut tcp = Script::sender(Config { pacing: true, ..config() });
    tcp.write(100).until(60);
    assert_eq!(tcp.sent().len(), 10);
    assert_eq!(tcp.end.poll_timeout(), ms(100) + ms(1000));
    // An ACK releases a segment at once if the last one was sent long enough ago.
    tcp.until(100).ack(1).sends([10]);
}

#[test]
fn moderation_brings_the_window_down_to_what_is_in_flight_when_a_recovery_ends() {
    // Congestion window moderation of Linux 2.4 and 2.6 (tcp_moderate_cwnd; thesis, section 9.1.7): 0 of 20 is lost,
    // and ssthresh is 10. The ACK that ends the recovery leaves 22, 23 and a rescue
    // retransmission in flight: the window is 6. Other ACKs change
    // nothing, however much they cover.
    for (moderate_cwnd, cwnd) in [(true, 6.0), (false, 10.0)] {
        let mut tcp = Script::sender(Config { moderate_cwnd, initial_window: 20, ..config() });
        tcp.write(24).until(100).sack(0, &[1..2]).sack(0, &[1..3]).sent();
        tcp.sack(0, &[1..4]);
        assert_eq!((tcp.sent(), tcp.ssthresh()), (vec![0], 10.0));
        tcp.sack(0, &[1..20]).until(200).ack(22);
        assert_eq!(tcp.cwnd(), cwnd);
        let mut tcp = Script::sender(Config { moderate_cwnd, ..avoiding() });
        tcp.write(100).until(100).ack(8);
        assert!(tcp.cwnd() > 10.0);
    }
}

#[test]
fn moderation_acts_at_an_ack_that_shows_a_hole_and_at_those_until_it_is_filled() {
    // Linux 2.4 (tcp_ack_is_dubious, tcp_try_to_open). Of a window of 20, an ACK covers 10 segments and reports 2 behind a hole:
    // 8 are in flight, the window is 11, and 3 segments follow. The ACK of the first 20 fills the hole and leaves those 3: the
    // window is 6. After that no segment is missing, and an ACK of all that is in flight lets the window grow.
    let config = Config { initial_window: 20, initial_ssthresh: Some(1), ..config() };
    for moderate_cwnd in [true, false] {
        let mut tcp = Script::sender(Config { moderate_cwnd, ..config });
        tcp.write(200).until(100).sent();
        let at_hole = tcp.sack(10, &[12..14]).cwnd();
        let filled = tcp.ack(20).cwnd();
        let next = 1 + tcp.sent().last().unwrap();
        tcp.until(200).ack(next);
        assert!(tcp.cwnd() > filled);
        if moderate_cwnd {
            assert_eq!((at_hole, filled, next), (11.0, 6.0, 26));
        } else {
            assert!(at_hole > 20.0 && filled > at_hole);
        }
    }
}

#[test]
fn moderation_acts_for_a_round_trip_after_a_recovery() {
    // Linux 2.4 stays in the state of disorder until data is acknowledged that was sent after the recovery, in case D-SACK shows
    // it to have been spurious. 0 of 20 is lost. The ACK of all but the last 4 of what was sent ends the recovery, and
    // the window is 7. The next ACK covers 7 segments: none is in flight, and the window is 3. It covers the first segment sent
    // after the recovery, so the ACK after it lets the window grow.
    let mut tcp = Script::sender(Config { moderate_cwnd: true, initial_window: 20, ..config() });
    tcp.write(200).until(100).sack(0, &[1..2]).sack(0, &[1..3]).sack(0, &[1..4]).sack(0, &[1..20]);
    let next = 1 + tcp.sent().into_iter().max().unwrap();
    tcp.until(200).ack(next - 4);
    assert_eq!((tcp.cwnd(), tcp.sent().len()), (7.0, 3));
    tcp.until(300).ack(next + 3);
    assert_eq!((tcp.cwnd(), tcp.sent().len()), (3.0, 3));
    tcp.until(400).ack(next + 6);
    assert!(tcp.cwnd() > 3.0);
}

#[test]
fn moderation_acts_at_every_ack_after_a_timeout_and_at_one_that_says_nothing() {
    // Linux 2.4 (tcp_fastretrans_alert, state Loss): all 20 are lost. An ACK of all that is in flight leaves a window of 3.
    let config = Config { moderate_cwnd: true, initial_window: 20, ..config() };
    let mut tcp = Script::sender(config);
    tcp.write(200).until(1000).ack(1).ack(3);
    assert_eq!((tcp.cwnd(), tcp.pipe()), (3.0, 3));
    tcp.ack(6);
    assert_eq!((tcp.cwnd(), tcp.pipe()), (3.0, 3));
    // The application writes 12 segments for a window of 20. A duplicate without SACK blocks leaves 12 and 3.
    let mut tcp = Script::sender(config);
    tcp.write(12).until(100).ack(0);
    assert_eq!(tcp.cwnd(), 15.0);
}

#[test]
fn a_window_of_whole_segments() {
    // Quantisation: the window is an integer with a counter; ten ACKs of one segment each add one segment.
    let mut tcp = Script::sender(Config { quantisation: Quantisation::RoundUp, ..avoiding() });
    tcp.write(100).until(100);
    for next in 1..=9 {
        tcp.ack(next);
        assert_eq!(tcp.cwnd(), 10.0);
    }
    tcp.ack(10).ack(11);
    assert_eq!(tcp.cwnd(), 11.0);
}

#[test]
fn segments_are_full_until_the_last() {
    // Segment boundaries: full segments as long as there is enough data; a short one at the end of the
    // written data.
    let mut tcp = Script::sender(config());
    tcp.write_bytes(2500);
    let lens: Vec<u16> = tcp.take_data().iter().map(|segment| segment.len).collect();
    assert_eq!(lens, [1000, 1000, 500]);
    assert_eq!(tcp.end.counters().bytes_sent, 2500);
}

#[test]
fn what_is_in_flight_never_exceeds_the_window() {
    // A window of 10.5 allows ten full segments and a short one.
    let mut tcp = Script::sending(avoiding(), 100);
    tcp.until(100).ack(5);
    assert_eq!((tcp.cwnd(), tcp.pipe()), (10.5, 10));
    let mut tcp = Script::sender(avoiding());
    tcp.write_bytes(15_400).sent();
    tcp.until(100).ack(5);
    assert_eq!(tcp.snapshot().pipe, 10_400);
}

/// Grows at a limited rate by the largest amount in flight.
fn rate_limited(config: Config) -> Config {
    Config { rate_limited_increase: true, ..config }
}

#[test]
fn a_rate_limited_window_grows_to_twice_the_largest_flight_in_slow_start() {
    // The example of draft-ietf-ccwg-ratelimited-increase-10, appendix A: 4, 8, 4 and 20 segments in four round trips.
    let mut tcp = Script::sender(rate_limited(config()));
    for (at, number, cwnd) in [(200, 4, 14.0), (400, 8, 20.0), (600, 4, 20.0), (800, 20, 40.0)] {
        use_some(&mut tcp, at, number);
        assert_eq!(tcp.cwnd(), cwnd, "after {number} segments");
    }
    // Section 3.1: 10 segments and, after a pause, 4 more leave 20.
    let mut tcp = Script::sender(rate_limited(config()));
    use_some(&mut tcp, 200, 10);
    use_some(&mut tcp, 400, 4);
    assert_eq!(tcp.cwnd(), 20.0);
}

#[test]
fn a_rate_limited_window_grows_by_a_round_trip_in_congestion_avoidance() {
    // limit(maxFS) = maxFS + 1 with Standard TCP, and maxFS was the initial window of 10, of which 4 are used. Without the rule
    // the window stays.
    for (config, expected) in [(rate_limited(avoiding()), 11.0), (avoiding(), 10.0)] {
        let mut tcp = Script::sender(config);
        for at in (200..=2000).step_by(200) {
            use_some(&mut tcp, at, 4);
        }
        assert_eq!(tcp.cwnd(), expected);
    }
}

#[test]
fn a_reduction_measures_the_largest_flight_again() {
    // 40 in flight, of which one is lost: 20 are left, and then 4 are used. When the recovery begins 40 are in flight, so that maxFS is 40, and
    // the window grows; after an idle time it restarts from 10, and 4 are all that was in flight since: it does not grow.
    let mut tcp = used(rate_limited(config()));
    tcp.write(40).until(300).sack(30, &[31..70]).until(400).ack(70);
    assert_eq!(tcp.cwnd(), 20.0);
    use_some(&mut tcp, 600, 4);
    assert!(tcp.cwnd() > 20.15 && tcp.cwnd() < 20.25, "{}", tcp.cwnd());
    use_some(&mut tcp, 4000, 4);
    assert_eq!(tcp.cwnd(), 10.0);
    use_some(&mut tcp, 4200, 4);
    assert_eq!(tcp.cwnd(), 10.0);
}

//! Super-segments: how many segments leave at once, and what is waited for (Linux, net/ipv4/tcp_output.c, `tcp_write_xmit`).

use crate::common::{Script, config, controller, ms};
use elephan_cc::Quantisation;
use elephan_cc::governor::{Fault, Governor, Limits, Report};
use elephan_cc::registry::AnyAlgorithm;
use elephan_cc::{Cause, Controller, slow_start};
use elephan_tcp::{BurstSize, Config, WindowReduction};

/// A window of this many segments beyond slow start, and super-segments.
fn bursting(window: u32) -> Config {
    Config {
        burst: BurstSize::Tso,
        initial_window: window,
        initial_ssthresh: Some(1),
        quantisation: Quantisation::RoundDown,
        ..config()
    }
}

/// A sender whose first window left at 0 ms, and to which its first ACK has come at 100 ms: that the window may be full, an ACK
/// for each further segment releases what the rule says.
fn clocked(config: Config) -> Script {
    let mut tcp = Script::sender(config);
    tcp.write(100_000);
    assert_eq!(tcp.sent().len() as u32, config.initial_window);
    tcp.until(100).ack(1);
    tcp
}

/// How many segments leave at each ACK of one segment, from the second ACK on.
fn released(tcp: &mut Script, acks: u64) -> Vec<usize> {
    (2..2 + acks).map(|next| tcp.ack(next).sent().len()).filter(|&count| count > 0).collect()
}

#[test]
fn a_super_segment_is_what_is_sent_in_a_millisecond() {
    // tcp_update_pacing_rate: 1.2 cwnd / srtt, and 2 in slow start below half of ssthresh; tcp_tso_autosize: of a 1024th second. 1000
    // segments in 100 ms: 11.7 segments in avoidance, about 20 in slow start. 20 segments: two at least. 4000: 65,215 bytes at most.
    for (window, starts, segments) in [(1000, false, 11), (1000, true, 19), (20, false, 2), (4000, true, 65)]
    {
        let config = bursting(window);
        let initial_ssthresh = if starts { None } else { config.initial_ssthresh };
        let mut tcp = clocked(Config { initial_ssthresh, ..config });
        // Nothing was sent for more than a millisecond.
        let mut next = u64::from(window) + tcp.sent().len() as u64;
        // Acknowledged is what was sent at 0 ms.
        let bursts = released(&mut tcp, 150.min(u64::from(window) - 2));
        assert!(bursts.len() >= 2);
        // In slow start the rate grows meanwhile.
        for burst in bursts.into_iter().take(if starts { 1 } else { 150 }) {
            next += burst as u64;
            // What is left of a buffer of 65 segments is not waited with.
            let is_rest = burst < segments && next.is_multiple_of(65);
            assert!(burst == segments || is_rest, "{window} {starts}: {burst}");
        }
    }
}

#[test]
fn a_number_is_the_most_segments_and_one_is_none_at_all() {
    for (burst, segments) in [(4, 4), (1, 1)] {
        let mut tcp = clocked(Config { burst: BurstSize::Segments(burst), ..bursting(1000) });
        assert_eq!(tcp.sent().len(), 1);
        // The buffers have as many, so the rest of the first leaves before.
        let bursts = released(&mut tcp, 43);
        assert!(
            bursts[0] == segments.max(2) - 1 && bursts[1..].iter().all(|&burst| burst == segments),
            "{bursts:?}"
        );
    }
}

#[test]
fn over_a_short_round_trip_a_super_segment_is_larger() {
    // tcp_tso_autosize adds 65,215 bytes, halved for each 512 us of the smallest round-trip time: 32,607 after one of 1 ms. The rate is
    // 1.2 * 200 segments in the smoothed time, 100 ms less an eighth of 99 ms: 2675 bytes. So 35 segments.
    let mut tcp = Script::sender(Config { pacing: true, ..bursting(200) });
    tcp.write(100_000).until(1).ack(1).sent();
    tcp.until(60);
    let sent = tcp.sent_at();
    let bursts: Vec<usize> = sent.chunk_by(|a, b| a.1 == b.1).map(<[_]>::len).collect();
    assert_eq!(bursts[..3], [35, 35, 35]);
}

#[test]
fn a_third_of_the_window_is_not_waited_with() {
    // Super-segments have two segments. A third of a window of three is one, of twelve more than one.
    let mut tcp = clocked(bursting(3));
    assert_eq!(tcp.sent().len(), 1);
    tcp.ack(2).sends([4]);
    let mut tcp = clocked(bursting(12));
    assert_eq!(tcp.sent().len(), 1);
    assert_eq!(released(&mut tcp, 4), [2, 2]);
}

#[test]
fn an_ack_a_millisecond_after_the_last_transmission_releases_what_the_window_admits() {
    let mut tcp = clocked(bursting(1000));
    tcp.sends([1000]).ack(2).silent().until(101).ack(3).silent();
    assert!(!tcp.end.would_send(tcp.now));
    // More than 1 ms.
    tcp.until(102).ack(4).sends([1001, 1002, 1003]);
    // Time alone releases nothing: only an ACK does, or a timer of the sender.
    tcp.ack(5).silent().until(150).silent();
    assert!(!tcp.end.would_send(tcp.now));
    tcp.ack(6).sends([1004, 1005]);
}

#[test]
fn an_ack_that_is_expected_late_is_not_waited_for() {
    // At 50 ms the first ACK comes early: the next one is expected at 93 ms.
    let mut tcp = Script::sender(bursting(1000));
    tcp.write(100_000).sent();
    tcp.until(50).ack(1).sends([1000]).ack(2).sends([1001]);
}

#[test]
fn nothing_waits_in_a_recovery() {
    // 0 is lost of 1000. In disorder the window admits a segment for each that arrives; in recovery each leaves at once.
    let config = Config { window_reduction: WindowReduction::Prr, ..bursting(1000) };
    let mut tcp = Script::sender(config);
    tcp.write(100_000).sent();
    tcp.until(100).sack(0, &[1..2]).sends([1000]);
    tcp.sack(0, &[1..3]).silent().sack(0, &[1..4]).sends([0]);
    let sent: Vec<usize> = (5..25).map(|right| tcp.sack(0, &[1..right]).sent().len()).collect();
    assert!(sent.contains(&1) && sent.iter().all(|&count| count <= 1), "{sent:?}");
}

#[test]
fn the_last_data_does_not_wait_for_more() {
    // The window admits all that is left, and the FIN is behind it; without, the application may write more.
    for closes in [true, false] {
        let mut tcp = Script::sender(bursting(1000));
        tcp.write(1006).until(0);
        if closes {
            tcp.end.close();
        }
        tcp.pump();
        assert_eq!(tcp.sent().len(), 1000);
        tcp.until(100).ack(1).sends([1000]);
        tcp.ack(2).silent();
        tcp.ack(3).ack(4).ack(5);
        assert!(tcp.sent().is_empty());
        tcp.ack(8);
        if closes {
            tcp.sends([1001, 1002, 1003, 1004, 1005]);
        } else {
            // It does, and the window admits a full one.
            tcp.silent().write(20).silent().ack(11).silent();
            assert_eq!(tcp.ack(12).sent().len(), 11);
        }
    }
}

#[test]
fn what_waits_for_a_burst_counts_as_limited_by_the_window() {
    let grown = |burst| {
        let mut tcp = Script::sender(Config { burst, ..bursting(40) });
        tcp.write(1_000_000).sent();
        let (mut acked, mut ends) = (0, 40);
        for round in 1..=20 {
            tcp.until(100 * round);
            while acked < ends {
                acked += 1;
                tcp.ack(acked);
            }
            ends = acked + tcp.snapshot().unacked;
            tcp.sent();
        }
        tcp.cwnd()
    };
    let (bursts, singly) = (grown(BurstSize::Tso), grown(BurstSize::Segments(1)));
    assert!(singly >= 59.0 && (bursts - singly).abs() <= 1.0, "{bursts} {singly}");
}

#[test]
fn paced_super_segments_leave_one_by_one() {
    // tcp_update_skb_after_send: the first ten segments are not paced. Twice 40 segments in 100 ms: 2.5 ms for two.
    let mut tcp = Script::sender(Config {
        burst: BurstSize::Tso,
        pacing: true,
        initial_window: 40,
        quantisation: Quantisation::RoundDown,
        ..config()
    });
    tcp.write(100).until(99);
    let sent = tcp.sent_at();
    assert_eq!(sent.len(), 40);
    for (number, (segment, at)) in sent.into_iter().enumerate() {
        let expected = if number < 10 { 0.0 } else { 2.5 * ((number - 8) / 2) as f64 };
        assert_eq!(segment, number as u64);
        assert!((at - expected).abs() < 1e-6, "{segment} at {at}");
    }
    // The first after a pause is late: what it is late makes the gap shorter, by half at most.
    tcp.until(100).ack(20);
    tcp.until(103);
    let times: Vec<f64> = tcp.sent_at().into_iter().map(|(_, at)| at).collect();
    assert!(times[..2].iter().all(|at| (at - 100.0).abs() < 1e-6), "{times:?}");
    assert!(times[2] > 100.5 && times[2] < 101.3, "{times:?}");
}

/// A governor with this pacing rate, in bytes per second.
#[derive(Clone)]
struct Paced(f64);

impl Paced {
    fn set(&self, limits: &mut Limits) {
        (limits.cwnd, limits.pacing_rate) = (100.0, self.0);
    }
}

impl Governor for Paced {
    fn start(&mut self, limits: &mut Limits, _: &Report) -> Result<(), Fault> {
        self.set(limits);
        Ok(())
    }
    fn ack(&mut self, limits: &mut Limits, _: &Report) -> Result<(), Fault> {
        self.set(limits);
        Ok(())
    }
    fn congestion(&mut self, limits: &mut Limits, _: &Report, _: Cause) -> Result<(), Fault> {
        self.set(limits);
        Ok(())
    }
    fn state(&mut self, limits: &mut Limits, _: &Report) -> Result<(), Fault> {
        self.set(limits);
        Ok(())
    }
    fn event(
        &mut self,
        limits: &mut Limits,
        _: &Report,
        _: elephan_cc::governor::Event,
    ) -> Result<(), Fault> {
        self.set(limits);
        Ok(())
    }
    fn fresh(&self, _: u64) -> Box<dyn Governor> {
        Box::new(self.clone())
    }
    fn boxed(&self) -> Box<dyn Governor> {
        Box::new(self.clone())
    }
}

#[test]
fn a_governors_rate_makes_its_super_segments() {
    // bbr_min_tso_segs: below 1.2 Mbit/s one segment, otherwise two or what is sent in a millisecond.
    for (rate, segments, gap_ms) in [(100e3, 1, 10.0), (200e3, 2, 10.0), (10.24e6, 10, 0.976_562_5)] {
        let config = Config { burst: BurstSize::Tso, ..config() };
        let start = slow_start::find("standard").expect("registered").build(&[]).expect("no settings");
        let algorithm = AnyAlgorithm::Governor(Box::new(Paced(rate)));
        let mut tcp =
            Script::controlled(Controller::new(algorithm, start, config.quantisation, 10.0), config);
        tcp.write(1000).until(90);
        let times: Vec<f64> = tcp.sent_at().into_iter().map(|(_, at)| at).skip(10).collect();
        let first = times.iter().position(|&at| at > times[0]).unwrap();
        let bursts: Vec<&[f64]> = times[first..].chunk_by(|a, b| a == b).take(3).collect();
        assert!(bursts.iter().all(|burst| burst.len() == segments), "{rate}: {bursts:?}");
        assert!((bursts[1][0] - bursts[0][0] - gap_ms).abs() < 1e-6, "{rate}: {bursts:?}");
    }
}

#[test]
fn a_window_makes_two_super_segments_at_least() {
    // tcp_cwnd_test: half of a window of 30, although a super-segment at this rate has 40 segments: over 1 ms, so that the pacer
    // shows it.
    let mut tcp = Script::controlled(
        controller("reno", &config()),
        Config { burst: BurstSize::Tso, pacing: true, initial_window: 30, ..config() },
    );
    tcp.write(1000).until(1);
    let sent = tcp.sent_at();
    assert!(sent.len() >= 10 && sent.len() < 30, "{sent:?}");
    assert_eq!(tcp.end.snapshot().srtt, ms(100));
}

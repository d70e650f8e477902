//! The receiving half: when it acknowledges, what it reports, and which window it advertises.
#![expect(clippy::single_range_in_vec_init, reason = "one SACK block is a list of blocks too")]

use crate::common::pipe::{Faults, Pipe};
use crate::common::{Script, config, eager, ms, stamped};
use elephan_tcp::{Config, DelayedAck, Flags, Segment};
use elephan_units::{Bytes, Time};

#[test]
fn every_second_segment_is_acknowledged_and_a_single_one_later() {
    // Delayed ACK (RFC 5681, section 4.2): one for two full segments, or after the timer of 200 ms.
    let mut tcp = Script::receiver(config());
    tcp.data(0).silent();
    tcp.data(1);
    assert_eq!(tcp.acked(), (2000, vec![]));
    tcp.until(10).data(2);
    tcp.until(209).silent();
    tcp.until(210);
    assert_eq!(tcp.acked(), (3000, vec![]));
    // The timer counts from the first unacknowledged segment.
    tcp.until(300).data(3);
    tcp.until(400);
    tcp.take_bare(0);
    assert_eq!(tcp.end.poll_timeout() - tcp.now, ms(100));
}

#[test]
fn the_number_and_the_timer_can_be_set() {
    // Delayed ACKs of four segments or 40 ms.
    let delayed_ack = DelayedAck { segments: 4, timeout: ms(40), quick: 0 };
    let mut tcp = Script::receiver(Config { delayed_ack, ..config() });
    tcp.data(0).data(1).data(2).silent();
    tcp.data(3);
    assert_eq!(tcp.acked().0, 4000);
    tcp.data(4).until(39).silent();
    tcp.until(40);
    assert_eq!(tcp.acked().0, 5000);
}

#[test]
fn short_segments_count_by_their_bytes() {
    // "Every second full-sized segment" (RFC 5681, section 4.2): three of 700 bytes are two full ones.
    let mut tcp = Script::receiver(config());
    tcp.data_bytes(0..700).data_bytes(700..1400).silent();
    tcp.data_bytes(1400..2100);
    assert_eq!(tcp.acked().0, 2100);
}

#[test]
fn the_first_segments_are_acknowledged_at_once() {
    // Quick ACKs: the first three segments are acknowledged at once, so that the initial window opens faster.
    let delayed_ack = DelayedAck { quick: 3, ..DelayedAck::default() };
    let mut tcp = Script::receiver(Config { delayed_ack, ..config() });
    for number in 0..3 {
        tcp.data(number);
        assert_eq!(tcp.acked().0, (number + 1) * 1000);
    }
    tcp.data(3).silent();
}

#[test]
fn a_hole_is_reported_and_its_filling_too() {
    // An immediate ACK for an out-of-order segment, and for one that fills a hole or part of one (RFC 5681,
    // section 4.2).
    let mut tcp = Script::receiver(config());
    tcp.data(2);
    assert_eq!(tcp.acked(), (0, vec![2000..3000]));
    tcp.data(4);
    assert_eq!(tcp.acked(), (0, vec![4000..5000, 2000..3000]));
    tcp.data(0);
    assert_eq!(tcp.acked(), (1000, vec![4000..5000, 2000..3000]));
    tcp.data(1);
    assert_eq!(tcp.acked(), (3000, vec![4000..5000]));
    tcp.data(3);
    assert_eq!(tcp.acked(), (5000, vec![]));
    tcp.data(5).silent();
}

#[test]
fn the_first_block_holds_the_newest_arrival() {
    // SACK blocks (RFC 2018, section 4): the run that changed comes first, then those that changed before
    // it; four blocks fit, and three beside timestamps.
    let mut tcp = Script::receiver(config());
    for number in [2, 4, 6, 8] {
        tcp.data(number);
    }
    tcp.take_bare(4);
    tcp.data(10);
    assert_eq!(tcp.acked().1, [10_000..11_000, 8000..9000, 6000..7000, 4000..5000]);
    tcp.data(5);
    assert_eq!(tcp.acked().1, [4000..7000, 10_000..11_000, 8000..9000]);
    let mut tcp = Script::receiver(stamped());
    for number in [2, 4, 6, 8] {
        tcp.data(number);
    }
    let blocks = tcp.take_bare(4)[3].sack;
    assert_eq!(blocks.as_slice().len(), 3);
}

#[test]
fn the_window_field_is_scaled() {
    // Window scaling (RFC 7323, section 2): a buffer of 1 MB needs a shift of 4; a SYN's window has none.
    let config = Config { receive_buffer: Some(Bytes::new(1_000_000)), ..eager() };
    let mut tcp = Script::opening(
        elephan_tcp::Endpoint::connect(&config, crate::common::controller("reno", &config), 7),
        Time::ZERO,
    );
    tcp.pump();
    let syn = tcp.take_bare(1)[0];
    assert_eq!((syn.window_scale_plus_one, syn.window), (5, 65_535));
    let mut tcp = Script::receiver(config);
    tcp.data(0);
    assert_eq!(tcp.take_bare(1)[0].window, (1_000_000_u32 >> 4) as u16);
    // Unread data fills the buffer.
    tcp.end.set_reading(false);
    for number in 1..=100 {
        tcp.data(number);
    }
    assert_eq!(tcp.take_bare(100)[99].window, ((1_001_000_u32 - 101_000) >> 4) as u16);
    assert_eq!(tcp.end.counters().bytes_delivered, 1000);
}

#[test]
fn without_scaling_the_window_is_64_kib() {
    // RFC 7323, section 2.2: both SYNs must carry the option.
    let mut tcp = Script::opening(
        elephan_tcp::Endpoint::listen(&eager(), crate::common::controller("reno", &eager()), 7),
        ms(100),
    );
    let syn =
        Segment { seq: crate::common::IRS, flags: Flags::SYN, mss: 1000, window: 500, ..Segment::default() };
    tcp.receive(syn);
    let answer = tcp.take_bare(1)[0];
    assert_eq!((answer.window_scale_plus_one, answer.window, answer.sack_permitted), (0, 65_535, false));
    tcp.receive(Segment { ack: 8, ..tcp.bare_segment() });
    tcp.data(0);
    assert_eq!(tcp.take_bare(1)[0].window, 65_535);
}

#[test]
fn the_receive_buffer_limits_a_sender() {
    // The receive window: the data in flight never exceeds the buffer, so goodput is buffer / RTT.
    let b = Config { receive_buffer: Some(Bytes::new(50_000)), ..config() };
    let mut pipe = Pipe::new("reno", [&config(), &b], Faults::none(ms(50)), 1);
    pipe.ends[0].write(u64::MAX);
    let mut most = 0;
    while pipe.now < Time::from_secs(20) {
        pipe.step(&mut |pipe, _, _| most = most.max(pipe.ends[0].snapshot().pipe));
    }
    assert_eq!(most, 50_000);
    let goodput = pipe.ends[1].counters().bytes_delivered as f64 / 20.0;
    assert!((goodput - 500_000.0).abs() < 0.02 * 500_000.0, "{goodput}");
}

#[test]
fn right_sizing_follows_the_sender() {
    // Dynamic right-sizing (Fisk and Feng 2001): the window begins at 64 KiB and is twice the data read in
    // the last round trip, so slow start is not limited, up to the buffer.
    for timestamps in [true, false] {
        let own = if timestamps { stamped() } else { config() };
        let b = Config { auto_tuning: true, receive_buffer: Some(Bytes::new(2_000_000)), ..own };
        let mut pipe = Pipe::new("reno", [&own, &b], Faults::none(ms(50)), 1);
        pipe.ends[0].write(u64::MAX);
        let mut windows = Vec::new();
        let mut most = 0;
        while pipe.now < Time::from_secs(5) {
            pipe.step(&mut |pipe, end, segment| {
                if end == 1 && !segment.flags.contains(Flags::SYN) {
                    windows.push(u64::from(segment.window) << 5);
                }
                most = most.max(pipe.ends[0].snapshot().pipe);
            });
        }
        assert!(windows[1] < 66_000, "starts at {}", windows[1]);
        assert!(*windows.last().unwrap() > 1_990_000, "grows to {}", windows.last().unwrap());
        assert!(most > 1_950_000 && most <= 2_000_000, "{most}");
    }
}

#[test]
fn a_round_trip_is_the_age_of_the_echo() {
    // Dynamic right-sizing, with timestamps: an echo of a segment sent 100 ms ago measures a round trip of
    // 100 ms. A megabyte a second for this time is 100 kB, and the window is twice that.
    let receive_buffer = Some(Bytes::new(1_000_000));
    let mut tcp = Script::receiver(Config { auto_tuning: true, receive_buffer, ..stamped() });
    for number in 0..400 {
        // The timestamp clock counts milliseconds from the SYN, which came 100 ms before the script begins.
        tcp.echo = number as u32 + 101;
        tcp.until(100 + number).data(number);
    }
    let window = u32::from(tcp.take_bare(200)[199].window) << 4;
    assert!((199_000..=202_000).contains(&window), "{window}");
}

#[test]
fn right_sizing_stays_small_for_a_slow_sender() {
    // Dynamic right-sizing: a sender of one segment per round trip needs no larger window.
    let mut tcp = Script::receiver(Config { auto_tuning: true, ..stamped() });
    for number in 0..50 {
        tcp.until(100 * number).data(number);
        tcp.until(100 * number + 50);
    }
    tcp.until(10_000);
    let window = u32::from(tcp.take_bare(25)[24].window) << 14;
    assert!(window <= 65_536, "{window}");
}

#[test]
fn two_way_data_keeps_its_sack_blocks() {
    // SACK with data: blocks do not fit in a full segment, and are sent in a separate ACK.
    let mut tcp = Script::sender(config());
    tcp.data(1);
    assert_eq!(tcp.acked(), (0, vec![1000..2000]));
    tcp.data(2);
    tcp.take_bare(1);
    let segment = Segment { len: 1000, seq: tcp.bare_segment().seq.wrapping_add(3000), ..tcp.bare_segment() };
    tcp.end.on_segment(&segment, false, tcp.now);
    tcp.write(1);
    assert_eq!(tcp.take_data().len(), 1);
    assert_eq!(tcp.acked(), (0, vec![1000..4000]));
    // Without holes, data segments carry the acknowledgment.
    tcp.until(100).ack(1).data(0).take_bare(1);
    tcp.data(4).write(1);
    tcp.take_bare(0);
    let data = tcp.take_data()[0];
    assert_eq!(data.ack, crate::common::IRS.wrapping_add(1).wrapping_add(5000));
    tcp.until(1000);
    tcp.take_bare(0);
}

#[test]
fn a_fin_needs_no_room() {
    // The buffer is full, and the window closed: data is refused, but a FIN alone is accepted, because it
    // needs no buffer.
    let mut tcp = Script::receiver(Config { receive_buffer: Some(Bytes::new(2000)), ..config() });
    tcp.end.set_reading(false);
    tcp.data(0).data(1);
    assert_eq!(tcp.take_bare(1)[0].window, 0);
    tcp.data_bytes(2000..2001);
    assert_eq!(tcp.acked().0, 2000);
    let seq = tcp.bare_segment().seq.wrapping_add(2000);
    tcp.receive(Segment { seq, flags: Flags::ACK | Flags::FIN, ..tcp.bare_segment() });
    assert_eq!(tcp.acked().0, 2001);
    assert!(tcp.end.peer_is_finished());
}

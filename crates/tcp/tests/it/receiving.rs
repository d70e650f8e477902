//! The receiving half: when it acknowledges, what it reports, and which window it advertises.

use crate::common::pipe::{Faults, Pipe};
use crate::common::{ISS, Script, config, eager, ms, stamped};
use elephan_tcp::{Config, DelayedAck, Flags, Recovery, Segment};
use elephan_units::{Bytes, Time};

#[test]
fn every_second_segment_is_acknowledged_and_a_single_one_later() {
    // Delayed ACK (RFC 5681, section 4.2): one for two full segments, or after the timer of 200 ms.
    let mut tcp = Script::receiver(config());
    tcp.data(0).silent();
    tcp.data(1).acks(2000, &[]);
    tcp.until(10).data(2);
    tcp.until(209).silent();
    tcp.until(210).acks(3000, &[]);
    // The timer counts from the first unacknowledged segment.
    tcp.until(300).data(3).until(400).take_bare(0);
    assert_eq!(tcp.end.poll_timeout() - tcp.now, ms(100));
}

#[test]
fn the_number_and_the_timer_can_be_set() {
    // Delayed ACKs of four segments or 40 ms.
    let delayed_ack = DelayedAck { segments: 4, timeout: ms(40), ..DelayedAck::default() };
    let mut tcp = Script::receiver(Config { delayed_ack, ..config() });
    tcp.data(0).data(1).data(2).silent();
    tcp.data(3).acks(4000, &[]);
    tcp.data(4).until(39).silent();
    tcp.until(40).acks(5000, &[]);
}

#[test]
fn short_segments_count_by_their_bytes() {
    // "Every second full-sized segment" (RFC 5681, section 4.2): three of 700 bytes are two full ones.
    let mut tcp = Script::receiver(config());
    tcp.data_bytes(0..700).data_bytes(700..1400).silent();
    tcp.data_bytes(1400..2100).acks(2100, &[]);
}

#[test]
fn the_first_segments_are_acknowledged_at_once() {
    // Quick ACKs: the first three segments are acknowledged at once, so that the initial window opens faster.
    let delayed_ack = DelayedAck { quick: 3, ..DelayedAck::default() };
    let mut tcp = Script::receiver(Config { delayed_ack, ..config() });
    for number in 0..3 {
        tcp.data(number).acks((number + 1) * 1000, &[]);
    }
    tcp.data(3).silent();
    // And so are three after a duplicate.
    tcp.data(4).acks(5000, &[]);
    tcp.data(2).acks(5000, &[2000..3000]);
    for number in 5..8 {
        tcp.data(number).acks((number + 1) * 1000, &[]);
    }
    tcp.data(8).silent();
}

#[test]
fn what_ends_a_write_is_acknowledged_when_it_is_read() {
    // Linux, `tcp_measure_rcv_mss` and `__tcp_cleanup_rbuf`: PSH, or a short segment, and nothing left to read.
    for read in [false, true] {
        let delayed_ack = DelayedAck { read, ..DelayedAck::default() };
        let mut tcp = Script::receiver(Config { delayed_ack, ..config() });
        let mut acks = |bytes: std::ops::Range<u64>, flags: Flags| {
            let len = (bytes.end - bytes.start) as u16;
            tcp.receive(Segment { len, flags, ..tcp.segment_at(bytes.start as u32) });
            tcp.take_all_bare().len()
        };
        let (plain, push) = (Flags::ACK, Flags::ACK | Flags::PSH);
        assert_eq!(acks(0..1000, push), usize::from(read));
        assert_eq!(acks(1000..2000, plain), usize::from(!read));
        assert_eq!(acks(2000..3000, plain), usize::from(read));
        assert_eq!(acks(3000..3500, plain), usize::from(read));
    }
    // Not before it is read.
    let delayed_ack = DelayedAck { read: true, ..DelayedAck::default() };
    let mut tcp = Script::receiver(Config { delayed_ack, ..config() });
    let pushed =
        |tcp: &Script, at| Segment { len: 1000, flags: Flags::ACK | Flags::PSH, ..tcp.segment_at(at) };
    tcp.end.set_reading(false);
    tcp.receive(pushed(&tcp, 0)).silent();
    tcp.end.set_reading(true);
    tcp.pump();
    tcp.acks(1000, &[]);
}

#[test]
fn a_hole_is_reported_and_its_filling_too() {
    // An immediate ACK for an out-of-order segment, and for one that fills a hole or part of one (RFC 5681,
    // section 4.2).
    let mut tcp = Script::receiver(config());
    tcp.data(2).acks(0, &[2000..3000]);
    tcp.data(4).acks(0, &[4000..5000, 2000..3000]);
    tcp.data(0).acks(1000, &[4000..5000, 2000..3000]);
    tcp.data(1).acks(3000, &[4000..5000]);
    tcp.data(3).acks(5000, &[]);
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
    let syn = Script::connecting(&config).take_bare(1)[0];
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
    let mut tcp = Script::listening(&eager(), ISS, ms(100));
    let answer = tcp.receive(tcp.syn()).take_bare(1)[0];
    assert_eq!((answer.window_scale_plus_one, answer.window, answer.sack_permitted), (0, 65_535, false));
    tcp.receive(tcp.bare_segment()).data(0);
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
    tcp.data(1).acks(0, &[1000..2000]);
    tcp.data(2).take_bare(1);
    let segment = Segment { len: 1000, ..tcp.segment_at(3000) };
    tcp.end.on_segment(&segment, false, tcp.now);
    tcp.write(1);
    assert_eq!(tcp.take_data().len(), 1);
    tcp.acks(0, &[1000..4000]);
    // Without holes, data segments carry the acknowledgment.
    tcp.until(100).ack(1).data(0).take_bare(1);
    tcp.data(4).write(1);
    tcp.take_bare(0);
    assert_eq!(tcp.take_data()[0].ack, tcp.segment_at(5000).seq);
    tcp.until(1000).take_bare(0);
}

#[test]
fn a_fin_needs_no_room() {
    // The buffer is full, and the window closed: data is refused, but a FIN alone is accepted, because it
    // needs no buffer.
    let mut tcp = Script::receiver(Config { receive_buffer: Some(Bytes::new(2000)), ..config() });
    tcp.end.set_reading(false);
    tcp.data(0).data(1);
    assert_eq!(tcp.take_bare(1)[0].window, 0);
    tcp.data_bytes(2000..2001).acks(2000, &[]);
    tcp.receive(Segment { flags: Flags::ACK | Flags::FIN, ..tcp.segment_at(2000) }).acks(2001, &[]);
    assert!(tcp.end.peer_is_finished());
}

/// A receiver whose window begins at 10 kB and may grow to 14 kB.
fn growing(config: Config) -> Script {
    let bytes = |bytes| Some(Bytes::new(bytes));
    Script::receiver(Config { first_receive_window: bytes(10_000), receive_buffer: bytes(14_000), ..config })
}

#[test]
fn the_first_window_grows_with_what_arrives() {
    // Linux (tcp_grow_window): two segments for each, which is acknowledged at once. When the window has
    // grown, but for the memory of the segment itself (999 of a window), ACKs are delayed as always.
    let mut tcp = growing(config());
    for (number, window) in [(0, 12_000), (1, 13_001)] {
        tcp.data(number);
        assert_eq!(tcp.take_bare(1)[0].window, window);
    }
    tcp.data(2).silent();
    tcp.data(3);
    assert_eq!(tcp.take_bare(1)[0].window, 13_001);
    // A segment beyond a hole takes no room yet, but those before it do.
    let mut tcp = growing(config());
    tcp.data(1).data(2).data(3);
    let windows: Vec<u16> = tcp.take_bare(3).iter().map(|ack| ack.window).collect();
    assert_eq!(windows, [12_000, 13_001, 13_001]);
    // Data that is not read takes room.
    let mut tcp = growing(config());
    tcp.end.set_reading(false);
    tcp.data(0);
    assert_eq!(tcp.take_bare(1)[0].window, 12_000);
    tcp.data(1);
    assert_eq!(tcp.take_bare(1)[0].window, 12_000);
    tcp.data(2).silent();
    // Nor do short segments count.
    let mut tcp = growing(config());
    tcp.data_bytes(0..127).silent();
    tcp.data_bytes(127..255);
    assert_eq!(tcp.take_bare(1)[0].window, 12_000);
}

#[test]
fn the_window_grows_with_data_beyond_a_hole_if_it_is_reported() {
    // Linux: without SACK the window stays, because another window is no duplicate ACK (RFC 5681, section 2).
    for (recovery, window) in [(Recovery::Sack, 12_000), (Recovery::Reno, 10_000)] {
        let mut tcp = growing(Config { recovery, ..config() });
        tcp.data(1);
        assert_eq!(tcp.take_bare(1)[0].window, window);
    }
}

#[test]
fn quick_acks_are_kept_while_the_window_grows() {
    // Linux: each growth makes the number of quick ACKs odd, and each ACK takes one.
    let delayed_ack = DelayedAck { quick: 2, ..DelayedAck::default() };
    let mut tcp = growing(Config { delayed_ack, ..config() });
    tcp.data(0).data(1).data(2).data(3).take_bare(4);
    tcp.data(4).silent();
}

#[test]
fn a_first_window_survives_scaling_and_right_sizing() {
    // With a shift of 14 a window of 20 kB is rounded up to 32 KiB.
    let first_receive_window = Some(Bytes::new(20_000));
    let mut tcp = Script::receiver(Config { first_receive_window, ..eager() });
    tcp.data(0);
    assert_eq!(tcp.take_bare(1)[0].window, 2);
    // Right-sizing limits the growth: of 64 KiB at first.
    let receive_buffer = Some(Bytes::new(65_535 << 1));
    let mut tcp =
        Script::receiver(Config { first_receive_window, receive_buffer, auto_tuning: true, ..eager() });
    for number in 0..40 {
        tcp.data(number);
    }
    let windows: Vec<u64> = tcp.take_bare(40).iter().map(|ack| u64::from(ack.window) << 1).collect();
    assert_eq!(windows[..3], [22_000, 24_000, 26_000]);
    assert_eq!(windows[39], 64_536);
}

/// A receiver that compresses reports, 20 of whose round trips of 100 ms are more than the 1 ms of Linux.
fn compressing(config: Config) -> Script {
    let delayed_ack = DelayedAck { compress: true, ..config.delayed_ack };
    Script::receiver(Config { delayed_ack, ..config })
}

#[test]
fn reports_of_data_beyond_a_hole_are_held_back() {
    // Linux (tcp_comp_sack): three at once, the others after 1 ms and the slack of a kernel's timer, or when 44 are held.
    let mut tcp = compressing(config());
    tcp.data(1).data(2).data(3).take_bare(3);
    tcp.data(4).data(5).silent();
    assert_eq!(tcp.end.poll_timeout(), tcp.now + Time::from_micros(1100));
    tcp.until(1).silent().until(2).acks(0, &[1000..6000]);
    tcp.until(10);
    for number in 6..50 {
        tcp.data(number).silent();
    }
    tcp.data(50).acks(0, &[1000..51_000]);
    tcp.data(51).silent();
    // What fills the hole is acknowledged at once.
    tcp.data(0).acks(52_000, &[]);
    assert_eq!(tcp.end.poll_timeout(), Time::MAX);
}

#[test]
fn the_timer_of_a_delayed_ack_lets_go_what_is_held_back() {
    // Linux (`tcp_delack_timer_handler`): the ACK of the next segment does not stop it, and it runs out at the tick after its 40 ms.
    let delayed_ack = DelayedAck { timeout: ms(40), ..DelayedAck::default() };
    let mut tcp = compressing(Config { delayed_ack, ..config() });
    let from = tcp.now;
    tcp.data(0).silent().data(1).acks(2000, &[]);
    tcp.until(40).data(3).data(4).data(5).take_bare(3);
    tcp.now += Time::from_micros(300);
    tcp.data(6).silent();
    assert_eq!(tcp.end.poll_timeout(), from + ms(41));
    tcp.until(41).acks(2000, &[3000..7000]);
    // It has run out.
    tcp.data(7).silent();
    assert_eq!(tcp.end.poll_timeout(), tcp.now + Time::from_micros(1100));
}

#[test]
fn the_timer_of_a_delayed_ack_counts_whole_ticks() {
    // Linux (kernel/time/timer.c): 40 ticks after the one in which it is set, it runs out at the end of that tick.
    let delayed_ack = DelayedAck { timeout: ms(40), ..DelayedAck::default() };
    let mut tcp = compressing(Config { delayed_ack, ..config() });
    tcp.now += Time::from_micros(300);
    tcp.data(0).until(40).silent();
    tcp.until(41).acks(1000, &[]);
    let mut tcp = Script::receiver(Config { delayed_ack, ..config() });
    tcp.data(0).until(40).acks(1000, &[]);
}

#[test]
fn a_delayed_ack_that_ran_out_lengthens_the_delay_also_after_reports_were_held_back() {
    // Linux (`tcp_delack_timer_handler`): 80 ms, of which half and the gap of 41 ms are the next delay.
    let delayed_ack = DelayedAck { timeout: ms(40), ..DelayedAck::default() };
    let mut tcp = compressing(Config { delayed_ack, ..config() });
    tcp.data(1).data(2).data(3).take_bare(3);
    tcp.data(4).silent().data(0).acks(5000, &[]);
    tcp.until(100).data(5).until(140).silent().until(141).acks(6000, &[]);
    tcp.data(6).until(200).silent().until(223).acks(7000, &[]);
}

#[test]
fn an_advance_and_a_duplicate_are_reported_at_once() {
    let mut tcp = compressing(config());
    tcp.data(2).data(3).data(4).take_bare(3);
    tcp.data(5).silent();
    tcp.data(3).acks(0, &[3000..4000, 2000..6000]);
    // The left edge moves, and the hole remains: this and the next two reports are of a new count.
    tcp.data(6).silent();
    tcp.data(0).data(7).data(8).take_bare(3);
    tcp.data(9).silent();
    // What is held back is reported before a third run takes a place, because an ACK is trusted to report two; what began that run
    // waits for the next ACK.
    tcp.data(11).silent();
    tcp.data(13).acks(1000, &[11_000..12_000, 2000..10_000]);
    assert_eq!(tcp.end.poll_timeout(), Time::MAX);
    tcp.data(14).silent();
    tcp.until(3).acks(1000, &[13_000..15_000, 11_000..12_000, 2000..10_000]);
}

#[test]
fn what_waits_beyond_a_hole_takes_room_and_then_an_advance_is_a_report_among_others() {
    // Linux (`__tcp_ack_snd_check`): an ACK of more than a segment goes at once, and does not count, unless the window would shrink.
    let mut tcp = compressing(config());
    tcp.data(1).data(2).data(4).take_bare(3);
    tcp.data(0).acks(3000, &[4000..5000]);
    tcp.data(5).data(6).data(7).take_bare(3);
    tcp.data(8).silent();
    let (receive_buffer, first_receive_window) = (Some(Bytes::new(40_000)), Some(Bytes::new(40_000)));
    let mut tcp = compressing(Config { receive_buffer, first_receive_window, ..config() });
    tcp.data(1).data(2).data(4).take_bare(3);
    // The right edge never moves back; then it leaves out what waits, a segment of 1000 bytes in 2304 of memory.
    tcp.data(0);
    assert_eq!(tcp.take_bare(1)[0].window, 37_000);
    tcp.data(5).data(6);
    let windows: Vec<u16> = tcp.take_bare(2).iter().map(|ack| ack.window).collect();
    assert_eq!(windows, [38_002, 38_002]);
    tcp.data(7).silent();
    // The ACK of a segment that fills the last hole comes before anything is read, 3 to 7; then all of the buffer is offered.
    tcp.data(3);
    assert_eq!(tcp.take_bare(1)[0].window, 35_005);
    tcp.data(8).data(9);
    assert_eq!(tcp.take_bare(1)[0].window, 40_000);
}

#[test]
fn quick_acks_and_plain_duplicate_acks_are_not_held_back() {
    let delayed_ack = DelayedAck { quick: 5, ..DelayedAck::default() };
    let mut tcp = compressing(Config { delayed_ack, ..config() });
    for number in [0, 2, 3, 4, 5, 6, 7, 8] {
        tcp.data(number);
    }
    tcp.take_bare(8);
    tcp.data(9).silent();
    // Linux (`tcp_dec_quickack_mode`): where the first segment is not in order there is no such budget.
    let mut tcp = compressing(Config { delayed_ack, ..config() });
    for number in 1..=3 {
        tcp.data(number);
    }
    tcp.take_bare(3);
    tcp.data(4).silent();
    // Without SACK the sender counts them.
    let mut tcp = compressing(Config { recovery: Recovery::Reno, ..config() });
    for number in 1..=10 {
        tcp.data(number);
    }
    tcp.take_bare(10);
}

#[test]
fn a_segment_with_an_old_timestamp_is_acknowledged_and_no_more() {
    // Linux (`tcp_send_dupack`): quick ACKs follow a segment below what was received, and not one that is late.
    for (late, acks) in [(0, 4), (1, 3)] {
        let delayed_ack = DelayedAck { quick: 1, ..DelayedAck::default() };
        let mut tcp = compressing(Config { delayed_ack, ..stamped() });
        tcp.until(100).data(0).until(200).take_all_bare();
        let old = tcp.segment_at(late * 1000);
        tcp.receive(Segment { ts_val: old.ts_val.wrapping_sub(500), len: 1000, ..old }).take_bare(1);
        for number in [3, 4, 5, 6] {
            tcp.data(number);
        }
        assert_eq!(tcp.take_all_bare().len(), acks);
    }
}

#[test]
fn a_timestamp_may_be_a_tick_old_where_ticks_are_coarse() {
    // Linux, TCP_PAWS_WINDOW; RFC 7323, section 5.3: otherwise not.
    for (timer_margin, age, accepted) in [(ms(2), 1, true), (ms(2), 2, false), (ms(0), 1, false)] {
        let mut tcp = Script::receiver(Config { timer_margin, ..stamped() });
        tcp.until(100).data(0).data(1).until(200).data(2).take_all_bare();
        let late = tcp.segment_at(3000);
        tcp.receive(Segment { ts_val: late.ts_val.wrapping_sub(age), len: 1000, ..late }).until(600);
        assert_eq!(tcp.acked().0, if accepted { 4000 } else { 3000 }, "{timer_margin:?} {age}");
    }
}

#[test]
fn the_first_window_decides_on_the_scale() {
    // Linux (`tcp_select_initial_window`): ilog2 of 12 MB is 23, of which a window field has 15; the 17 MB to which the window grows
    // would need a shift of 9. Where it grows from little to much the whole decides.
    for (first, buffer, shift) in [(12_000_000, 17_000_000, 8), (64_000, 17_000_000, 9)] {
        let bytes = |bytes| Some(Bytes::new(bytes));
        let config = Config { first_receive_window: bytes(first), receive_buffer: bytes(buffer), ..config() };
        let mut tcp = Script::connecting(&config);
        assert_eq!(tcp.take_bare(1)[0].window_scale_plus_one, shift + 1);
    }
}

#[test]
fn a_first_window_below_the_unit_of_the_scale_is_rounded_up() {
    // Linux (`__tcp_select_window`): a buffer of 1 GiB is offered in units of 16 KiB, and a first window below that as one of
    // these, not as none.
    let mut tcp = Script::sender(Config { first_receive_window: Some(Bytes::new(15_900)), ..config() });
    tcp.write(1);
    assert_eq!(tcp.take_data()[0].window, 1);
}

#[test]
fn what_arrives_counts_each_time() {
    let mut tcp = Script::receiver(eager());
    let counted = |tcp: &Script| (tcp.end.bytes_arrived(), tcp.end.bytes_delivered());
    tcp.data(0).data(1);
    assert_eq!(counted(&tcp), (2000, 2000));
    // Beyond a hole, twice; then the hole is filled, and filled again.
    tcp.data(3).data(3);
    assert_eq!(counted(&tcp), (4000, 2000));
    tcp.data(2).data(2);
    assert_eq!(counted(&tcp), (6000, 4000));
    // An application that does not read has arrived data, too.
    tcp.end.set_reading(false);
    tcp.data(4);
    assert_eq!(counted(&tcp), (7000, 4000));
    assert_eq!((tcp.end.unread(), tcp.end.read(400), tcp.end.unread()), (1000, 400, 600));
    assert_eq!(counted(&tcp), (7000, 4400));
    // Data beyond the window is discarded, and an acknowledgment has no payload.
    tcp.data(100_000);
    tcp.receive(tcp.bare_segment());
    assert_eq!(counted(&tcp), (8000, 4400));
}

#[test]
fn a_fin_is_not_payload() {
    let mut tcp = Script::receiver(eager());
    tcp.data(0);
    tcp.receive(Segment { flags: Flags::FIN | Flags::ACK, ..tcp.segment_at(1000) });
    assert!(tcp.end.peer_is_finished());
    assert_eq!((tcp.end.bytes_arrived(), tcp.end.bytes_delivered()), (1000, 1000));
}

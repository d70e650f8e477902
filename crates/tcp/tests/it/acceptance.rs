//! Which segments an open connection accepts, and what answers the others (RFC 9293, section 3.10.7.4; RFC
//! 5961).

use crate::common::{IRS, ISS, MSS, Script, config, eager, ms, stamped};
use elephan_tcp::{Config, Flags, Segment};
use elephan_units::{Bytes, Time};

/// The only answer is an ACK of the current state.
#[track_caller]
fn is_challenged(tcp: &mut Script) -> Segment {
    let answer = tcp.take_bare(1)[0];
    assert_eq!((answer.flags, answer.ack), (Flags::ACK, IRS.wrapping_add(1)), "{answer:?}");
    assert!(!tcp.end.is_reset());
    answer
}

#[test]
fn an_ack_of_data_never_sent_moves_nothing() {
    // RFC 9293, section 3.10.7.4, fifth check: an ACK is the answer, and the segment is dropped, with its
    // data, its FIN, its window, its SACK blocks and its timestamp.
    let mut tcp = Script::sending(stamped(), 2);
    tcp.until(100);
    let beyond = ISS.wrapping_add(1 + 2 * MSS as u32 + 1);
    let flags = Flags::ACK | Flags::FIN;
    tcp.receive(Segment { ack: beyond, len: 1000, flags, window: 0, ..tcp.bare_segment() });
    let echoed = is_challenged(&mut tcp).ts_ecr;
    assert!(!tcp.end.peer_is_finished());
    assert_eq!((tcp.end.counters().bytes_delivered, tcp.end.counters().bytes_acked), (0, 0));
    assert_eq!(echoed, tcp.bare_segment().ts_val - 100, "of the handshake");
    // The window of zero was not taken: there is room for more.
    tcp.write(1).sends([2]);
    // The same numbers with a valid acknowledgment are accepted.
    tcp.receive(Segment { ack: beyond.wrapping_sub(1), len: 1000, flags, ..tcp.bare_segment() });
    assert!(tcp.end.peer_is_finished());
    assert_eq!(tcp.end.counters().bytes_acked, 2000);
}

#[test]
fn an_ack_older_than_the_largest_window_moves_nothing() {
    // RFC 5961, section 5.2: SND.UNA - MAX.SND.WND <= SEG.ACK, and never less than the initial number.
    let mut tcp = Script::sender(config());
    tcp.window = 65_536;
    tcp.write(10).until(100).ack(10).sent();
    tcp.receive(Segment { ack: ISS, len: 1000, ..tcp.bare_segment() });
    is_challenged(&mut tcp);
    // The first number of the connection is within the window of 4 MiB that the peer opened with.
    tcp.receive(Segment { ack: ISS.wrapping_add(1), len: 1000, ..tcp.bare_segment() });
    assert_eq!(tcp.end.counters().bytes_delivered, 1000);

    let mut tcp = Script::listening(&config(), ISS, Time::ZERO);
    tcp.window = 65_536;
    tcp.receive(Segment { window_scale_plus_one: 8, ..tcp.syn() }).take_bare(1);
    tcp.now = ms(100);
    tcp.receive(tcp.bare_segment()).write_bytes(u64::MAX);
    for next in (10..200).step_by(10) {
        tcp.until(10 * next).ack(next);
    }
    let una = ISS.wrapping_add(1 + 190_000);
    tcp.receive(Segment { ack: una.wrapping_sub(65_537), len: 1000, ..tcp.bare_segment() });
    is_challenged(&mut tcp);
    tcp.receive(Segment { ack: una.wrapping_sub(65_536), len: 1000, ..tcp.bare_segment() });
    assert_eq!(tcp.end.counters().bytes_delivered, 1000);
}

#[test]
fn a_segment_without_an_acknowledgment_is_dropped() {
    // RFC 9293, section 3.10.7.4, fifth check: if the ACK bit is off, drop the segment.
    let mut tcp = Script::receiver(eager());
    tcp.receive(Segment { len: 1000, flags: Flags::PSH, ..tcp.bare_segment() }).silent();
    assert_eq!(tcp.end.counters().bytes_delivered, 0);
}

#[test]
fn data_beyond_the_window_is_cut_off() {
    // RFC 9293, section 3.10.7.4, first check: what lies within the window is accepted, in order and beyond a
    // hole; the FIN behind the window is not.
    let mut tcp = Script::receiver(Config { receive_buffer: Some(Bytes::new(2500)), ..eager() });
    let flags = Flags::ACK | Flags::FIN;
    tcp.receive(Segment { len: 1000, flags, ..tcp.segment_at(2000) }).acks(0, &[2000..2500]);
    tcp.end.set_reading(false);
    tcp.receive(Segment { len: 3000, flags, ..tcp.bare_segment() });
    let answer = tcp.take_bare(1)[0];
    assert_eq!((answer.ack, answer.window), (tcp.segment_at(2500).seq, 0));
    assert!(!tcp.end.peer_is_finished());
    // The window is closed.
    tcp.data_bytes(2500..3500).acks(2500, &[]);
    // A retransmission from below the window brings what there is room for.
    tcp.end.set_reading(true);
    tcp.pump();
    tcp.acks(2500, &[]);
    tcp.data_bytes(2000..6000).acks(5000, &[2000..2500]);
    assert_eq!(tcp.end.counters().bytes_delivered, 5000);
}

#[test]
fn a_reset_in_the_window_is_challenged() {
    // RFC 5961, section 3.2: exactly the next number resets, another one in the window is answered by an ACK,
    // and one outside is dropped.
    let mut tcp = Script::receiver(Config { receive_buffer: Some(Bytes::new(60_000)), ..config() });
    let reset = |tcp: &Script, at| Segment { flags: Flags::RST, ..tcp.segment_at(at) };
    for inside in [1, 59_999] {
        tcp.receive(reset(&tcp, inside));
        is_challenged(&mut tcp);
    }
    for outside in [60_000, u32::MAX, 1 << 31] {
        tcp.receive(reset(&tcp, outside)).silent();
        assert!(!tcp.end.is_reset());
    }
    tcp.receive(reset(&tcp, 0)).write(1).silent();
    assert!(tcp.end.is_reset());
}

#[test]
fn a_syn_in_an_open_connection_is_challenged() {
    // RFC 5961, section 4.2: whatever its sequence number; nothing else is taken from it.
    let mut tcp = Script::receiver(stamped());
    let echo = tcp.bare_segment().ts_val;
    tcp.until(100);
    for bytes in [0, 1, 1 << 30, u32::MAX] {
        tcp.receive(Segment { flags: Flags::SYN, ack: 0, len: 10, ..tcp.segment_at(bytes) });
        assert_eq!(is_challenged(&mut tcp).ts_ecr, echo);
    }
    assert_eq!(tcp.end.counters().bytes_delivered, 0);
}

#[test]
fn challenges_are_limited() {
    // RFC 5961, section 7: ten in five seconds, so that two ends cannot answer each other for ever.
    let mut tcp = Script::receiver(config());
    let reset = Segment { flags: Flags::RST, ..tcp.segment_at(1) };
    for _ in 0..12 {
        tcp.receive(reset);
    }
    tcp.take_bare(10);
    tcp.until(4999).receive(reset).silent();
    tcp.until(5001).receive(reset);
    is_challenged(&mut tcp);
}

#[test]
fn a_reset_before_the_handshake_ends_is_challenged_too() {
    let mut tcp = Script::listening(&config(), ISS, Time::ZERO);
    tcp.receive(tcp.syn()).take_bare(1);
    tcp.receive(Segment { flags: Flags::RST, ..tcp.segment_at(1) });
    assert_eq!(is_challenged(&mut tcp).seq, ISS.wrapping_add(1));
    tcp.receive(Segment { flags: Flags::RST, ..tcp.segment_at(0) });
    assert!(tcp.end.is_reset());
}

#[test]
fn a_timestamp_expires_after_24_days() {
    // RFC 7323, section 5.5: after 25 days the peer's clock of 1 ms has moved by more than half of its range,
    // and its new timestamps look old.
    let day = 86_400_000;
    let mut tcp = Script::receiver(Config { delayed_ack: eager().delayed_ack, ..stamped() });
    tcp.data(0).take_bare(1);
    tcp.until(25 * day).data(1);
    assert_eq!(tcp.take_bare(1)[0].ts_ecr, tcp.bare_segment().ts_val);
    assert_eq!(tcp.end.counters().bytes_delivered, 2000);
    // A timestamp that is younger still protects.
    let old = Segment { ts_val: tcp.bare_segment().ts_val - 1000, ..tcp.segment_at(2000) };
    tcp.until(48 * day).receive(Segment { len: 1000, ..old });
    assert_eq!(tcp.acked().0, 2000);
}

#[test]
fn a_window_below_a_segment_is_filled() {
    // Sender's silly window avoidance (RFC 9293, section 3.8.6.2.1): a window of less than a segment is filled
    // at once if it is at least half of the largest one that the peer offered (case 3).
    let mut tcp = Script::connecting(&config());
    tcp.take_bare(1);
    tcp.now = ms(100);
    tcp.receive(Segment { window: 800, ..tcp.syn_ack() }).take_bare(1);
    let lens = |tcp: &mut Script| tcp.take_data().iter().map(|s| s.len).collect::<Vec<_>>();
    tcp.write_bytes(5000);
    assert_eq!(lens(&mut tcp), [800]);
    let ack = |bytes: u32, window: u16, tcp: &Script| Segment {
        ack: ISS.wrapping_add(1 + bytes),
        window,
        ..tcp.bare_segment()
    };
    assert_eq!(lens(tcp.receive(ack(800, 400, &tcp))), [400]);
    assert_eq!(lens(tcp.receive(ack(1200, 399, &tcp))), [0; 0]);
    // A smaller window is filled when the persist timer runs out (case 4): it is the override timer.
    let timeout = tcp.end.poll_timeout();
    assert!(timeout > tcp.now && timeout < Time::MAX);
    assert_eq!(lens(tcp.expire()), [399]);
    tcp.take_bare(0);
    // It is data like any other: acknowledged, and retransmitted if it is lost.
    assert_eq!(lens(tcp.expire()), [399]);
    assert_eq!(lens(tcp.receive(ack(1599, 1000, &tcp))), [1000]);
    // A closed window is probed, with nothing to fill it.
    tcp.receive(ack(2599, 0, &tcp));
    assert_eq!(lens(tcp.expire()), [0; 0]);
    tcp.take_bare(1);
}

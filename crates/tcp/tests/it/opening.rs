//! How a connection opens and closes, and its sequence numbers in between.

use crate::common::pipe::{Faults, Pipe};
use crate::common::{IRS, ISS, Script, config, eager, ms, stamped};
use elephan_tcp::{Config, Flags, Recovery, Segment};
use elephan_units::{Bytes, Time};

#[test]
fn three_segments_open_a_connection() {
    // The three-way handshake (RFC 9293, section 3.5) with its options; it is the first RTT sample.
    let mut a = Script::connecting(&stamped());
    let syn = a.take_bare(1)[0];
    assert_eq!((syn.flags, syn.seq, syn.mss, syn.sack_permitted), (Flags::SYN, ISS, 1012, true));
    assert!(syn.timestamps && syn.window_scale_plus_one > 0 && syn.ts_val > 0);
    let mut b = Script::listening(&stamped(), IRS, ms(30));
    b.receive(syn);
    let answer = b.take_bare(1)[0];
    assert_eq!(answer.flags, Flags::SYN | Flags::ACK);
    assert_eq!((answer.seq, answer.ack, answer.ts_ecr), (IRS, ISS.wrapping_add(1), syn.ts_val));
    a.now = ms(60);
    a.receive(answer);
    let last = a.take_bare(1)[0];
    assert_eq!((last.flags, last.seq, last.ack), (Flags::ACK, ISS.wrapping_add(1), IRS.wrapping_add(1)));
    assert!(a.end.is_established() && !b.end.is_established());
    b.now = ms(90);
    b.receive(last);
    assert!(b.end.is_established());
    assert_eq!((a.snapshot().srtt, b.snapshot().srtt), (ms(60), ms(60)));
    assert_eq!((a.end.poll_timeout(), b.end.poll_timeout()), (Time::MAX, Time::MAX));
}

#[test]
fn the_last_ack_goes_alone_where_the_application_writes_after_it() {
    // Linux, `tcp_rcv_synsent_state_process`: the ACK is sent before the application is told that it is connected.
    for confirm_alone in [false, true] {
        let mut tcp = Script::connecting(&Config { confirm_alone, ..config() });
        tcp.take_bare(1);
        tcp.write(3);
        tcp.receive(tcp.syn_ack());
        tcp.take_bare(usize::from(confirm_alone));
        tcp.sends([0, 1, 2]);
    }
}

#[test]
fn a_fin_is_alone_where_the_application_closes_after_its_last_write() {
    // A socket takes what the first window admits while the application writes. Of what waits the last carries the FIN.
    for (unsent, segments, lengths) in [
        (None, 2, vec![(1000, false), (1000, true)]),
        (Some(100_000), 2, vec![(1000, false), (1000, false), (0, true)]),
        (Some(100_000), 12, vec![(1000, false), (1000, true)]),
    ] {
        let config = Config { unsent: unsent.map(Bytes::new), ..config() };
        let mut tcp = Script::connecting(&config);
        tcp.take_bare(1);
        tcp.write(segments).end.close();
        tcp.receive(tcp.syn_ack());
        if segments > 10 {
            assert_eq!(tcp.take_data().len(), 10);
            tcp.until(100).ack(1);
        }
        let sent: Vec<_> =
            tcp.take_data().iter().map(|data| (data.len, data.flags.contains(Flags::FIN))).collect();
        assert_eq!(sent, lengths, "{unsent:?}");
    }
}

#[test]
fn what_is_acknowledged_at_once_is_so_before_the_application_closes() {
    // __tcp_ack_snd_check: more than a segment. A FIN alone is acknowledged by the FIN of the application that reads it.
    for (segments, acks) in [(1, 0), (2, 1)] {
        let mut tcp = Script::receiver(Config { unsent: Some(Bytes::new(100_000)), ..config() });
        for number in 1..segments {
            tcp.data(number - 1).silent();
        }
        let fin = Segment {
            flags: Flags::ACK | Flags::FIN,
            len: 400,
            ..tcp.segment_at((segments as u32 - 1) * 1000)
        };
        tcp.end.on_segment(&fin, false, tcp.now);
        tcp.end.close();
        tcp.pump();
        assert_eq!((tcp.take_all_bare().len(), tcp.take_data().len()), (acks, 1), "{segments}");
    }
}

#[test]
fn a_lost_syn_is_sent_again() {
    // SYN retransmission: 1, 2, 4 s (RFC 6298, section 2.1). No RTT sample (Karn), a first timeout of 3 s
    // (section 5.7), and after more than one loss a window of one segment (RFC 6928, section 2).
    let mut tcp = Script::connecting(&config());
    for at in [1, 3, 7] {
        assert_eq!(tcp.expire().now, Time::from_secs(at));
    }
    assert_eq!(tcp.take_bare(4)[3].flags, Flags::SYN);
    tcp.receive(tcp.syn_ack());
    assert!(tcp.end.is_established());
    assert_eq!((tcp.snapshot().srtt, tcp.snapshot().rto), (Time::ZERO, Time::from_secs(3)));
    assert_eq!(tcp.cwnd(), 1.0);
    // A kernel's timer has slots of 64 ms then (kernel/time/timer.c), and runs out at the end of one.
    let mut tcp = Script::connecting(&Config { timer_margin: ms(2), ..config() });
    assert_eq!(tcp.expire().now, ms(1024));
}

#[test]
fn a_duplicate_is_reported_before_the_application_closes() {
    // Linux answers a segment before the application that waits for it is awake.
    for (unsent, fins) in [(None, [true, false]), (Some(Bytes::new(100_000)), [false, true])] {
        let mut tcp = Script::receiver(Config { dsack: true, unsent, ..config() });
        tcp.data(0).take_all_bare();
        let mut last = tcp.segment_at(0);
        last.flags |= Flags::FIN;
        tcp.end.on_segment(&Segment { len: 2000, ..last }, false, tcp.now);
        tcp.end.close();
        let now = tcp.now;
        let sent = std::iter::from_fn(|| tcp.end.poll_transmit(now));
        let sent: Vec<_> = sent.map(|segment| segment.flags.contains(Flags::FIN)).collect();
        assert_eq!(sent, fins);
    }
}

#[test]
fn one_lost_syn_leaves_the_window() {
    // RFC 6928, section 2: one retransmission of a SYN is often spurious.
    let mut tcp = Script::connecting(&config());
    tcp.expire().take_bare(2);
    tcp.receive(tcp.syn_ack());
    assert_eq!((tcp.cwnd(), tcp.snapshot().rto), (10.0, Time::from_secs(3)));
}

#[test]
fn only_what_answers_the_syn_opens_a_connection() {
    // RFC 9293, section 3.10.7.3: an acknowledgment of another number is answered with a reset, one without SYN is dropped. A
    // listener retransmits its answer when the SYN is repeated, and waits for an ACK of it.
    let reset = Segment { seq: ISS, flags: Flags::RST, ..Segment::default() };
    let mut tcp = Script::connecting(&config());
    tcp.take_bare(1);
    let answer = tcp.syn_ack();
    assert_eq!(tcp.receive(Segment { ack: ISS, ..answer }).take_bare(1), [reset]);
    tcp.receive(Segment { flags: Flags::ACK, ..answer }).silent();
    assert!(!tcp.end.is_established());
    tcp.receive(answer);
    assert!(tcp.end.is_established());

    let mut tcp = Script::listening(&config(), ISS, Time::ZERO);
    // No listener answers an ACK.
    tcp.receive(tcp.bare_segment()).silent();
    tcp.receive(tcp.syn());
    tcp.receive(tcp.syn());
    assert!(tcp.take_bare(2).iter().all(|answer| answer.flags == Flags::SYN | Flags::ACK));
    assert_eq!(tcp.receive(Segment { ack: ISS, ..tcp.bare_segment() }).take_bare(1), [reset]);
    assert!(!tcp.end.is_established());
    tcp.receive(tcp.bare_segment());
    assert!(tcp.end.is_established());
}

#[test]
fn options_have_their_defaults_and_bounds() {
    // RFC 9293, section 3.7.1: 536 bytes if the peer gives no size. RFC 7323, section 2.3: a shift above 14
    // is treated as 14; without the option windows are not scaled.
    for (mss, scale, len, window) in
        [(0, 8, 536, 12_800), (700, 15, 700, u16::MAX), (5000, 16, 1000, u16::MAX), (1000, 0, 1000, 100)]
    {
        let mut tcp = Script::connecting(&config());
        tcp.take_bare(1);
        tcp.receive(Segment { mss, window: 100, window_scale_plus_one: scale, ..tcp.syn_ack() }).take_bare(1);
        tcp.receive(Segment { window: 100, ..tcp.bare_segment() });
        tcp.end.write(u64::MAX);
        // A window that is never larger than 100 bytes is filled.
        assert_eq!(tcp.end.poll_transmit(tcp.now).expect("there is room").len, len.min(window));
    }
}

#[test]
fn a_peer_that_never_answers_is_given_up() {
    // R2 for a SYN (RFC 9293, section 3.8.3): at least 3 minutes; here 1 + 2 + ... + 32 + 60 + 60 s.
    let mut tcp = Script::connecting(&config());
    while tcp.end.poll_timeout() < Time::MAX {
        tcp.expire();
    }
    assert!(tcp.end.is_reset());
    assert_eq!(tcp.now, Time::from_secs(183));
    // RFC 9293, section 3.10.5: in SYN-SENT there is nothing to reset.
    assert!(tcp.take_bare(8).iter().all(|segment| segment.flags == Flags::SYN));
    // In SYN-RECEIVED the reset carries SND.NXT.
    let mut tcp = Script::listening(&config(), ISS, Time::ZERO);
    tcp.receive(tcp.syn());
    while tcp.end.poll_timeout() < Time::MAX {
        tcp.expire();
    }
    let reset = tcp.take_bare(9)[8];
    assert_eq!(reset.flags, Flags::RST | Flags::ACK);
    assert_eq!((reset.seq, reset.ack), (ISS.wrapping_add(1), IRS.wrapping_add(1)));
}

#[test]
fn a_lost_last_ack_does_not_matter() {
    // The ACK of the handshake is lost: data acknowledges the SYN-ACK too, and a repeated SYN-ACK is
    // answered.
    let mut b = Script::listening(&eager(), ISS, ms(100));
    b.receive(b.syn()).take_bare(1);
    b.data(0).acks(1000, &[]);
    assert!(b.end.is_established());

    let mut a = Script::sender(eager());
    a.receive(a.syn_ack()).acks(0, &[]);
}

#[test]
fn both_ends_may_open_at_once() {
    // Simultaneous open (RFC 9293, section 3.5, figure 7).
    let (mut a, mut b) = (Script::connecting(&config()), Script::connecting(&stamped()));
    let (syn_a, syn_b) = (a.take_bare(1)[0], b.take_bare(1)[0]);
    a.receive(syn_b);
    b.receive(syn_a);
    let (answer_a, answer_b) = (a.take_bare(1)[0], b.take_bare(1)[0]);
    assert_eq!(answer_a.flags, Flags::SYN | Flags::ACK);
    a.receive(answer_b);
    b.receive(answer_a);
    assert!(a.end.is_established() && b.end.is_established());
}

#[test]
fn options_are_used_where_both_ends_have_them() {
    // Negotiation: the smaller end's segment size applies (RFC 9293, section 3.7.1); without timestamps
    // segments carry 12 bytes more.
    for (a_stamps, b_stamps, len) in [(true, true, 948), (true, false, 960), (false, true, 960)] {
        let a = Config { timestamps: a_stamps, packet: Bytes::new(1000), ..config() };
        let b =
            Config { timestamps: b_stamps, packet: Bytes::new(1500), recovery: Recovery::Reno, ..config() };
        for configs in [[&a, &b], [&b, &a]] {
            let mut pipe = Pipe::new("reno", configs, Faults::none(ms(10)), 1);
            pipe.ends[0].write(100_000);
            let mut largest = 0;
            while !pipe.ends[0].is_finished() {
                pipe.step(&mut |_, end, segment| {
                    if end == 0 {
                        largest = largest.max(segment.len);
                        assert!(segment.timestamps == (a_stamps && b_stamps) || segment.flags == Flags::SYN);
                    } else {
                        assert!(segment.sack.is_empty());
                    }
                });
            }
            assert_eq!(largest, len);
        }
    }
}

#[test]
fn a_fin_follows_the_last_byte() {
    // Closing (RFC 9293, section 3.6): the FIN is sent with the last segment, takes a sequence number, and is
    // acknowledged at once; the other direction stays open.
    let mut tcp = Script::sender(config());
    tcp.write_bytes(1500);
    tcp.end.close();
    tcp.pump();
    let data = tcp.take_data();
    // The application closed after its last byte had been sent: the FIN is sent alone.
    assert_eq!(data.iter().map(|s| s.len).collect::<Vec<_>>(), [1000, 500, 0]);
    assert!(data[2].flags.contains(Flags::FIN) && data[1].flags.contains(Flags::PSH));
    tcp.until(100).sack_bytes(1500, &[]);
    assert!(!tcp.end.is_finished());
    tcp.sack_bytes(1501, &[]);
    assert!(tcp.end.is_finished() && tcp.end.is_closed() && !tcp.end.peer_is_finished());
    tcp.data(0).data(1).take_bare(1);
    let fin = Segment { flags: Flags::ACK | Flags::FIN, ..tcp.segment_at(2000) };
    tcp.receive(fin).acks(2001, &[]);
    assert!(tcp.end.peer_is_finished());
    // In place of TIME-WAIT: a repeated FIN is acknowledged again.
    tcp.receive(fin);
    assert_eq!(tcp.acked().0, 2001);
    assert_eq!(tcp.end.counters().bytes_delivered, 2000);
}

#[test]
fn a_lost_fin_is_sent_again() {
    // The FIN is retransmitted like data: here by the timer, together with the segment that carries it.
    let mut tcp = Script::sender(config());
    tcp.end.write(700);
    tcp.end.close();
    tcp.pump();
    let first = tcp.take_data();
    assert_eq!((first.len(), first[0].len, first[0].flags.contains(Flags::FIN)), (1, 700, true));
    tcp.until(1000);
    let again = tcp.take_data();
    assert_eq!((again.len(), again[0].len, again[0].flags), (1, 700, first[0].flags));
    tcp.until(1100).sack_bytes(701, &[]);
    assert!(tcp.end.is_finished());
    assert_eq!(tcp.end.counters().bytes_acked, 700);
    assert_eq!(tcp.end.poll_timeout(), Time::MAX);
}

#[test]
fn an_endless_writer_can_stop() {
    // The application discards unsent data: data in flight is still delivered, and so is the FIN.
    let mut tcp = Script::sender(config());
    tcp.end.write(u64::MAX);
    tcp.pump();
    assert_eq!(tcp.sent().len(), 10);
    tcp.end.stop();
    tcp.pump();
    tcp.until(100).ack(5);
    assert_eq!(tcp.take_data().len(), 1);
    assert!(!tcp.end.is_finished());
    tcp.until(200).sack_bytes(10_001, &[]);
    assert!(tcp.end.is_finished());
}

#[test]
fn a_connection_is_refused_by_a_reset_that_acknowledges_the_syn() {
    // RFC 9293, section 3.10.7.3.
    let mut tcp = Script::connecting(&config());
    tcp.take_bare(1);
    tcp.receive(Segment { flags: Flags::RST | Flags::ACK, ack: ISS, ..Segment::default() });
    assert!(!tcp.end.is_reset());
    tcp.receive(Segment { flags: Flags::RST | Flags::ACK, ack: ISS.wrapping_add(1), ..Segment::default() });
    assert!(tcp.end.is_reset());
}

#[test]
fn numbers_wrap_around_more_than_once() {
    // 32-bit sequence numbers (RFC 9293, section 3.4) for 10 GB, with a loss in every thousand and
    // reordering, so that blocks and duplicates cross the wrap too.
    let config = Config { packet: Bytes::new(60_000), initial_window: 200, ..Config::default() };
    let faults = Faults {
        lost: 1,
        delayed: 5,
        jitter: ms(3),
        service: Time::from_micros(10),
        buffer: 1000,
        ..Faults::none(ms(5))
    };
    let mut pipe = Pipe::new("scalable", [&config, &config], faults, 7);
    let bytes = 10_000_000_000;
    pipe.ends[0].write(bytes);
    pipe.ends[0].close();
    pipe.ends[1].close();
    while !pipe.is_done() {
        assert!(pipe.step(&mut |_, _, _| ()) && pipe.now < Time::from_secs(1000));
    }
    assert_eq!(pipe.ends[1].counters().bytes_delivered, bytes);
    assert!(pipe.ends[0].counters().segments_retransmitted > 100);
    assert_eq!(pipe.ends[0].counters().timeouts, 0);
}

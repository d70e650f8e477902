//! What a host asks of an endpoint besides segments: whether it would send, and how many segments a stack
//! would walk.

use crate::common::{ISS, Script, config, ms};
use elephan_tcp::{Config, SackBlocks, Segment};
use elephan_units::{Bytes, Time};

#[test]
fn an_endpoint_would_send_what_it_then_sends() {
    // Not before the handshake; while the window and the data last; and when an ACK or the timer allows a
    // segment.
    let mut tcp = Script::connecting(&config());
    tcp.write(1);
    assert!(!tcp.end.would_send(Time::ZERO));

    let mut tcp = Script::sender(config());
    assert!(!tcp.end.would_send(tcp.now));
    tcp.end.write(11_000);
    for _ in 0..10 {
        assert!(tcp.end.would_send(tcp.now));
        assert!(tcp.end.poll_transmit(tcp.now).is_some_and(|segment| segment.len > 0));
    }
    assert!(!tcp.end.would_send(tcp.now));
    let ack = Segment { ack: ISS.wrapping_add(1001), ..tcp.bare_segment() };
    tcp.end.on_segment(&ack, false, tcp.now);
    assert!(tcp.end.would_send(tcp.now));
    tcp.pump();
    assert!(!tcp.end.would_send(tcp.now));
    // Lost data is retransmitted, regardless of the window.
    let timeout = tcp.end.poll_timeout();
    tcp.end.on_timer(timeout);
    assert!(tcp.end.would_send(timeout));
}

#[test]
fn the_peers_window_and_pacing_count() {
    let mut tcp = Script::sender(config());
    tcp.write(1).until(100);
    tcp.window = 0;
    tcp.ack(1).end.write(1000);
    assert!(!tcp.end.would_send(tcp.now));

    let mut tcp = Script::sender(Config { pacing: true, ..config() });
    tcp.end.write(2000);
    assert!(tcp.end.poll_transmit(tcp.now).is_some());
    assert!(!tcp.end.would_send(tcp.now));
    // Twice the window in a round trip: 5 ms for each segment.
    assert_eq!(tcp.end.poll_timeout(), tcp.now + ms(5));
    assert!(tcp.end.would_send(tcp.now + ms(5)));
}

#[test]
fn a_list_of_segments_is_walked_to_the_end_of_each_block() {
    // Linux 2.4 (tcp_sacktag_write_queue): from the oldest segment to the end of each block, and for each
    // block the segments that wait to be retransmitted. Blocks that are already acknowledged cost nothing.
    let mut tcp = Script::sending(config(), 100);
    let wire = |number: u64| ISS.wrapping_add(1).wrapping_add(number as u32 * 1000);
    let blocks = |runs: &[(u64, u64)]| {
        let mut sack = SackBlocks::default();
        for &(left, right) in runs {
            assert!(sack.push(wire(left), wire(right)));
        }
        Segment { sack, ..Segment::default() }
    };
    assert_eq!(tcp.end.sack_walk(&blocks(&[])), (0, 0));
    assert_eq!(tcp.end.sack_walk(&blocks(&[(4, 6)])), (6, 0));
    assert_eq!(tcp.end.sack_walk(&blocks(&[(8, 9), (4, 6)])), (15, 0));
    // No more than the outstanding segments, whatever the block.
    assert_eq!(tcp.end.sack_walk(&blocks(&[(8, 90)])), (10, 0));
    tcp.until(100).ack(5);
    assert_eq!(tcp.end.sack_walk(&blocks(&[(1, 5), (6, 8)])), (3, 0));
    tcp.sent();
    // Of the 12 in flight three arrived, and 5 to 11 are lost: four fill the window of 6, and three wait.
    tcp.sack(5, &[12..15]).sends([5, 6, 7, 8]);
    let (_, waiting) = tcp.end.sack_walk(&blocks(&[(12, 15), (16, 17)]));
    assert_eq!(waiting, 2 * 3);
}

#[test]
fn settings_that_cannot_work_are_named() {
    // Each mistake alone, identified by its key; valid settings give no mistake.
    assert_eq!(Config::default().mistakes(), []);
    let default = Config::default();
    let delayed_ack = elephan_tcp::DelayedAck { segments: 0, ..default.delayed_ack };
    let bytes = |bytes| Some(Bytes::new(bytes));
    for (config, key, value) in [
        (Config { packet: Bytes::new(99), ..default }, "packet", "\"99 B\""),
        (Config { packet: Bytes::new(65_536), ..default }, "packet", "\"65.536 kB\""),
        (Config { initial_window: 0, ..default }, "initial_window", "0"),
        (Config { initial_window: (1 << 30) + 1, ..default }, "initial_window", "1073741825"),
        (Config { pacing_avoidance: 0.0, ..default }, "pacing_avoidance", "0"),
        (Config { initial_ssthresh: Some(0), ..default }, "initial_ssthresh", "0"),
        (Config { rto_min: Time::ZERO, ..default }, "rto_min", "\"0 s\""),
        (Config { burst_limit: Some(0), ..default }, "burst_limit", "0"),
        (Config { delayed_ack, ..default }, "delayed_ack.segments", "0"),
        (
            Config { byte_counting: elephan_tcp::ByteCounting::Abc { limit: 0 }, ..default },
            "byte_counting.abc.L",
            "0",
        ),
        (Config { send_buffer: bytes(1499), ..default }, "send_buffer", "\"1.499 kB\""),
        (Config { receive_buffer: bytes(1499), ..default }, "receive_buffer", "\"1.499 kB\""),
        (Config { first_receive_window: bytes(1499), ..default }, "first_receive_window", "\"1.499 kB\""),
    ] {
        let mistakes = config.mistakes();
        assert_eq!(
            mistakes.iter().map(|m| (m.key.as_str(), m.found.as_str())).collect::<Vec<_>>(),
            [(key, value)]
        );
    }
    for config in [
        Config { packet: Bytes::new(100), ..default },
        Config { packet: Bytes::new(65_535), ..default },
        Config { send_buffer: bytes(1500), receive_buffer: bytes(1500), ..default },
        Config { initial_window: 1, initial_ssthresh: Some(1), burst_limit: Some(1), ..default },
        Config { rto_min: Time::from_picos(1), ..default },
    ] {
        assert_eq!(config.mistakes(), [], "{config:?}");
    }
}

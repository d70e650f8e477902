use proptest::prelude::*;

use super::*;

fn ends() -> [End; 2] {
    ["10.0.0.1:1000".parse().unwrap(), "[::1]:5001".parse().unwrap()]
}

fn packet(from: usize, time_ns: i64, seq: u32, ack: u32, payload: u32) -> Packet {
    Packet {
        time_ns,
        source: ends()[from],
        target: ends()[1 - from],
        seq,
        ack,
        payload,
        bytes: payload + 40,
        window: 1000,
        syn: false,
        ack_set: true,
        mss: None,
        scale: None,
        stamps: None,
        sack: [None; 4],
    }
}

fn followed(packets: Vec<Packet>) -> Followed {
    follow(&Connection { ends: ends(), packets })
}

#[test]
fn a_loss_behind_the_capture_is_seen_twice() {
    let mut sack = packet(1, 30, 1, 100, 0);
    sack.sack[0] = Some((200, 300));
    let found = followed(vec![
        packet(0, 1, 0, 1, 100),
        packet(0, 2, 100, 1, 100),
        packet(0, 3, 200, 1, 100),
        packet(1, 20, 1, 100, 0),
        sack,
        packet(0, 40, 100, 1, 100),
        packet(1, 60, 1, 300, 0),
    ]);
    let again: Vec<Again> = found.data.iter().map(|data| data.again).collect();
    assert_eq!(again, [Again::No, Again::No, Again::No, Again::Seen]);
    assert_eq!(found.data[3].before_ns, 2);
    let acks: Vec<(u64, i64, u64)> =
        found.acks.iter().map(|ack| (ack.delivered, ack.sent_ns, ack.flight)).collect();
    // The last delivers only what was sent twice: no round-trip time (Karn and Partridge 1987).
    assert_eq!(acks, [(100, 1, 200), (200, 3, 100), (300, -1, 0)]);
}

#[test]
fn a_loss_before_the_capture_leaves_a_hole() {
    let found =
        followed(vec![packet(0, 1, 0, 1, 100), packet(0, 2, 200, 1, 100), packet(0, 50, 100, 1, 100)]);
    assert_eq!((found.data[2].again, found.data[2].before_ns), (Again::Late, 2));
}

#[test]
fn what_was_acknowledged_is_sent_in_vain() {
    let found = followed(vec![packet(0, 1, 0, 1, 100), packet(1, 2, 1, 100, 0), packet(0, 3, 0, 1, 100)]);
    assert_eq!(found.data[1].again, Again::Needless);
}

#[test]
fn timestamps_time_the_other_side() {
    let mut ack = packet(1, 10, 1, 100, 0);
    ack.stamps = Some((7, 0));
    let mut data = packet(0, 25, 100, 1, 100);
    data.stamps = Some((1, 7));
    let found = followed(vec![packet(0, 1, 0, 1, 100), ack, data]);
    assert_eq!(found.answers, [(25, 15)]);
}

proptest! {
    /// Sequence numbers wrap, segments are cut and repeated, blocks overlap: each byte is delivered once, and the counts of the
    /// scoreboard are those of its pieces.
    #[test]
    fn the_scoreboard_counts_each_byte_once(
        first: u32,
        steps in prop::collection::vec((any::<bool>(), 0u32..60, 1u32..30, 0u32..70), 1..200),
    ) {
        let mut board = Board::default();
        let mut has = std::collections::BTreeSet::new();
        for (number, (is_data, at, length, ack)) in (0..).zip(steps) {
            let near = board.highest;
            let from = offset(first.wrapping_add(at), first, near).unwrap_or(0).min(near);
            let to = from + u64::from(length);
            if is_data {
                board.send(from, to, number);
            } else {
                board.sack(from, to);
                has.extend(from.min(board.highest)..to.min(board.highest));
                board.acknowledge(u64::from(ack));
                has.extend(0..u64::from(ack).min(board.highest));
            }
            prop_assert_eq!(board.delivered, has.len() as u64);
            let pieces: u64 = board.outstanding.iter().map(|(from, piece)| piece.end - from).sum();
            prop_assert_eq!(board.flight, pieces);
            let mut last = 0;
            for (from, piece) in &board.outstanding {
                prop_assert!(*from >= last && piece.end > *from);
                prop_assert!((*from..piece.end).all(|byte| !has.contains(&byte)));
                last = piece.end;
            }
        }
    }
}

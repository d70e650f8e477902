//! The sizes of segments on the wire, and in sequence space.

use elephan_tcp::{Flags, SackBlocks, Segment};

fn with_blocks(count: u32) -> SackBlocks {
    let mut sack = SackBlocks::default();
    for block in 0..count {
        assert!(sack.push(block * 10, block * 10 + 5));
    }
    sack
}

#[test]
fn options_take_whole_words() {
    // RFC 9293, section 3.2 (MSS: 4 bytes); RFC 7323 (window scale: 3 and a byte of padding; timestamps: 10 and 2);
    // RFC 2018 (SACK-permitted: 2, beside the timestamps in place of their padding, alone with 2; SACK: 2 and 8
    // for each block, with 2 of padding).
    let bare = Segment::default();
    let syn = Segment { flags: Flags::SYN, mss: 1460, window_scale_plus_one: 8, ..bare };
    for (segment, options) in [
        (bare, 0),
        (Segment { mss: 536, ..bare }, 4),
        (Segment { window_scale_plus_one: 1, ..bare }, 4),
        (Segment { sack_permitted: true, ..bare }, 4),
        (Segment { timestamps: true, ..bare }, 12),
        (Segment { timestamps: true, sack_permitted: true, ..bare }, 12),
        (syn, 8),
        (Segment { sack_permitted: true, ..syn }, 12),
        (Segment { timestamps: true, ..syn }, 20),
        (Segment { timestamps: true, sack_permitted: true, ..syn }, 20),
        (Segment { sack: with_blocks(1), ..bare }, 12),
        (Segment { sack: with_blocks(4), ..bare }, 36),
        (Segment { timestamps: true, sack: with_blocks(1), ..bare }, 24),
        // A header has room for 40 bytes of options.
        (Segment { timestamps: true, sack: with_blocks(3), ..bare }, 40),
    ] {
        assert_eq!(segment.options_bytes(), options, "{segment:?}");
        assert_eq!(segment.packet_bytes(), 40 + options, "{segment:?}");
        assert_eq!(Segment { len: 1000, ..segment }.packet_bytes(), 1040 + options, "{segment:?}");
    }
    // There is room for four blocks.
    assert!(!with_blocks(4).push(1, 2));
}

#[test]
fn syn_and_fin_take_a_number_each() {
    // RFC 9293, section 3.4.
    for (flags, len, numbers) in [
        (Flags::ACK, 0, 0),
        (Flags::ACK, 1000, 1000),
        (Flags::SYN, 0, 1),
        (Flags::SYN | Flags::ACK, 0, 1),
        (Flags::SYN, 100, 101),
        (Flags::FIN | Flags::ACK, 0, 1),
        (Flags::FIN, 1000, 1001),
        (Flags::SYN | Flags::FIN, 10, 12),
        (Flags::RST | Flags::PSH | Flags::ECE | Flags::CWR, 0, 0),
    ] {
        assert_eq!(Segment { flags, len, ..Segment::default() }.seq_len(), numbers, "{flags:?}, {len} bytes");
    }
}

//! Reports of duplicate data (RFC 2883, section 4), in the order of its examples.

use crate::common::{Script, config, eager, stamped};
use elephan_tcp::{Config, Flags, Segment};

/// A receiver that has acknowledged everything below byte 1000.
fn receiving() -> Script {
    let mut tcp = Script::receiver(eager());
    tcp.data(0).acks(1000, &[]);
    tcp
}

#[test]
fn a_duplicate_below_the_acknowledgment_is_reported_once() {
    // Section 4.1.1: the ACKs were lost, and the sender retransmits.
    let mut tcp = receiving();
    tcp.data(1).data(2).take_bare(2);
    tcp.data(1).acks(3000, &[1000..2000]);
    tcp.data(3).acks(4000, &[]);
}

#[test]
fn a_duplicate_comes_before_the_blocks_of_data_beyond_a_hole() {
    // Section 4.1.2: 2000 to 2500 is missing when the duplicate arrives.
    let mut tcp = receiving();
    tcp.data_bytes(1000..2000).data_bytes(2500..3000).take_bare(2);
    tcp.data_bytes(1000..1500).acks(2000, &[1000..1500, 2500..3000]);
    // A segment of which only the front part is a duplicate.
    tcp.data_bytes(1500..2250).acks(2250, &[1500..2000, 2500..3000]);
}

#[test]
fn a_duplicate_beyond_a_hole_comes_before_the_block_that_contains_it() {
    // Section 4.1.3: the second block says that the first one is a duplicate. Here another run changed since. It is reported
    // once.
    let mut tcp = receiving();
    tcp.data_bytes(1500..2000).data_bytes(2000..2500).data_bytes(4000..4500).take_bare(3);
    tcp.data_bytes(2000..2500).acks(1000, &[2000..2500, 1500..2500, 4000..4500]);
    tcp.data_bytes(2500..3000).acks(1000, &[1500..3000, 4000..4500]);
}

#[test]
fn of_a_partial_duplicate_only_the_duplicate_part_is_reported() {
    // Section 4.2.1: the sender retransmits with larger segments. The part that had arrived lies below the
    // acknowledgment, at the end of a segment that fills a hole, or within a segment beyond a hole.
    let mut tcp = receiving();
    tcp.data_bytes(500..2000).acks(2000, &[500..1000]);
    tcp.data_bytes(2500..3000).take_bare(1);
    tcp.data_bytes(2000..2800).acks(3000, &[2500..2800]);
    tcp.data_bytes(4000..4500).take_bare(1);
    tcp.data_bytes(3500..5000).acks(3000, &[4000..4500, 3500..5000]);
}

#[test]
fn of_two_duplicate_parts_the_first_is_reported() {
    // Section 4.2.2: both parts are covered by the acknowledgment afterwards.
    let mut tcp = receiving();
    tcp.data_bytes(1500..2000).data_bytes(2500..3000).data_bytes(4000..4500).take_bare(3);
    tcp.data_bytes(1000..3000).acks(3000, &[1500..2000, 4000..4500]);
    // The first part lies below the acknowledgment before.
    let mut tcp = receiving();
    tcp.data_bytes(1500..2000).take_bare(1);
    tcp.data_bytes(500..2000).acks(2000, &[500..1000]);
    // Section 4.2.3: neither part is covered by it.
    let mut tcp = receiving();
    tcp.data_bytes(1500..2000).data_bytes(2500..3000).take_bare(2);
    tcp.data_bytes(1500..3000).acks(1000, &[1500..2000, 1500..3000]);
}

#[test]
fn what_paws_discards_is_reported_too() {
    // Section 4.3: the duplicate is reported although PAWS discards its segment, below the acknowledgment and
    // beyond a hole.
    let mut tcp = Script::receiver(Config { delayed_ack: eager().delayed_ack, ..stamped() });
    tcp.data(0).data(2).data(4).take_bare(3);
    let old = |tcp: &Script, from: u32| Segment {
        len: 1000,
        ts_val: tcp.bare_segment().ts_val - 50,
        ..tcp.segment_at(from)
    };
    tcp.receive(old(&tcp, 0)).acks(1000, &[0..1000, 4000..5000, 2000..3000]);
    tcp.receive(old(&tcp, 2000)).acks(1000, &[2000..3000, 2000..3000, 4000..5000]);
    // New data is discarded, and there is nothing to report.
    tcp.receive(old(&tcp, 1000)).acks(1000, &[2000..3000, 4000..5000]);
}

#[test]
fn a_fin_is_part_of_a_duplicate() {
    // A FIN takes a sequence number, and is acknowledged like data (RFC 9293, section 3.4).
    let mut tcp = receiving();
    let fin = Segment { flags: Flags::ACK | Flags::FIN, len: 500, ..tcp.segment_at(1000) };
    tcp.receive(fin).acks(1501, &[]);
    tcp.receive(fin).acks(1501, &[1000..1501]);
}

#[test]
fn nothing_is_reported_without_the_option() {
    let mut tcp = Script::receiver(Config { dsack: false, ..config() });
    tcp.data(0).data(2).data(4).take_bare(2);
    tcp.data_bytes(500..5000).acks(5000, &[]);
    tcp.data_bytes(0..1000).acks(5000, &[]);
}

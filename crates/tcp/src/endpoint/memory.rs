//! What a connection takes: a simulation has up to a million of them.

use elephan_cc::{Quantisation, registry, slow_start};

use super::*;
use crate::config::Config;

/// Lets both ends send all that they can now.
fn exchange(ends: &mut [Endpoint; 2], now: Time) {
    let mut quiet = false;
    while !quiet {
        quiet = true;
        for from in [0, 1] {
            while let Some(segment) = ends[from].poll_transmit(now) {
                ends[1 - from].on_segment(&segment, false, now);
                quiet = false;
            }
        }
    }
}

#[test]
fn a_connection_takes_less_than_1300_bytes() {
    // Two ends, one of them with a sending half, which is on the heap. What few connections need at a time is on the
    // heap only then.
    assert!(size_of::<Endpoint>() <= 208, "{} bytes", size_of::<Endpoint>());
    assert!(size_of::<Sending>() <= 888, "{} bytes", size_of::<Sending>());

    let algorithm = registry::find("reno").expect("registered").build(&[]).expect("no settings");
    let start = slow_start::find("standard").expect("registered").build(&[]).expect("no settings");
    let stack = Stack::new(&Config::default(), Controller::new(algorithm, start, Quantisation::None, 10.0));
    let mut ends = [Endpoint::connect(&stack, 1), Endpoint::listen(&stack, 2)];
    ends[0].write(100_000);
    exchange(&mut ends, Time::from_millis(1));
    assert_eq!(ends[1].bytes_delivered(), 100_000);
    for end in &ends {
        assert!(end.handshake.is_none() && end.rare.is_none() && !end.receiver.has_blocks());
    }
    assert!(ends[0].sending.is_some() && ends[1].sending.is_none());
    assert_eq!(Arc::strong_count(&stack), 3);
    // The other end gets a sending half when it closes.
    ends.iter_mut().for_each(Endpoint::close);
    exchange(&mut ends, Time::from_secs(1));
    assert!(ends.iter().all(|end| end.is_finished() && end.peer_is_finished()));
}

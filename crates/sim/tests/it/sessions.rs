//! Sessions: connections on which both ends write.

use elephan_metrics::Outcome;

use crate::common::outcome;

/// Rows of the transfers, by start: session, start and end in ms to microseconds, and bytes. An end that is not there is infinite.
fn rows(outcome: &Outcome) -> Vec<(u64, f64, f64, u64)> {
    let transfers = &outcome.transfers;
    let ms = |seconds: f64| (seconds * 1e6).round() / 1e3;
    let end =
        |row: usize| if transfers.end_s[row].is_finite() { ms(transfers.end_s[row]) } else { f64::INFINITY };
    let mut rows: Vec<_> = (0..transfers.index.len())
        .map(|row| (transfers.index[row], ms(transfers.start_s[row]), end(row), transfers.bytes[row]))
        .collect();
    rows.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.3.cmp(&b.3)));
    rows
}

/// Two vectors over a link of 50 ms and no rate, which takes no time to send.
fn two_vectors(more: &str) -> Outcome {
    outcome(&format!(
        r#"duration = "6 s"
        measure = {{ from = "0 s" }}
        link = [{{ name = "way", from = "a", to = "b", delay = "50 ms" }}]
        {more}
        [[sessions]]
        cc = "reno"
        from = "a"
        to = "b"
        vectors = {{ lines = [
            "SEQ 1000000 2 1 1", "w 65535 65535", "> 300", "t 20000", "< 1000", "t 30000", "> 200", "t 0", "< 500", "t 10000",
            "CONC 3000000 2 1 1 2", "c> 100", "t> 500000", "c> 50", "c< 700", "t< 20000",
        ] }}"#
    ))
}

#[test]
fn both_ends_write_when_they_may() {
    let outcome = two_vectors("");
    // The SYN leaves at 1000 ms, and data after the answer, at 1100 ms. Each unit is one segment, which takes 50 ms; a unit that the other
    // end writes acknowledges it, and so does the ACK of a FIN, which is not delayed.
    let sequential = [
        (0, 1000.0, 1220.0, 300), // arrives at 1150; 20 ms later the response is written, and arrives at 1220
        (0, 1170.0, 1300.0, 1000), // 30 ms after its arrival the next request is written, and arrives at 1300
        (0, 1250.0, 1350.0, 200), // the response is written at once
        (0, 1300.0, 1410.0, 500), // 10 ms later the acceptor closes: its FIN arrives at 1360
    ];
    // The acceptor begins with the SYN, at 3050 ms, and may send when the ACK of the handshake is there, at 3150 ms, with its FIN.
    let concurrent = [
        (1, 3000.0, 3200.0, 100),
        (1, 3050.0, 3250.0, 700),
        (1, 3500.0, 3600.0, 50), // the initiator closes at once
    ];
    assert_eq!(rows(&outcome), [&sequential[..], &concurrent[..]].concat());
    let crowd = &outcome.summary.crowds[0];
    assert_eq!(
        (crowd.opened, crowd.failed, crowd.delivered_bytes, crowd.sent_bytes),
        (2, 0, 2850, 2850),
        "{crowd:?}"
    );
    assert_eq!(crowd.transfers.as_ref().unwrap().count, 7);
    let trace = &outcome.crowds;
    assert_eq!((trace.finished.last(), trace.open.last()), (Some(&2), Some(&0)));
    // At 1.1 and 1.2 s and so on: the first connection is closed when the FIN of each end is acknowledged, at 1460 ms.
    let open = trace.time_s.iter().zip(&trace.open).filter(|(_, open)| **open > 0).map(|(time_s, _)| *time_s);
    assert!(
        open.clone().any(|time_s| time_s > 1.35)
            && open.clone().all(|time_s| !(1.47..2.95).contains(&time_s))
    );
}

/// Drawn sessions on a bottleneck, in the way back of which the responses are.
fn drawn(rate: &str, more: &str) -> Outcome {
    outcome(&format!(
        r#"duration = "200 s"
        measure = {{ from = "20 s" }}
        path = {{ rate = "{rate}", rtt = "40 ms" }}
        [[sessions]]
        cc = "reno"
        epochs = {{ uniform = [1, 4] }}
        request = "400 B"
        response = {{ exponential = "20 kB" }}
        think = {{ exponential = "500 ms" }}
        {more}"#
    ))
}

#[test]
fn the_load_is_that_of_the_busier_direction() {
    let outcome = drawn("50 Mbit/s", "load = \"10 Mbit/s\"");
    let crowd = &outcome.summary.crowds[0];
    // Epochs are 1 to 4 with a mean of 2.5: 25 sessions a second, 4500 in the window, with a standard deviation of 2 % of their bytes.
    assert!((crowd.opened as f64 / 4500.0 - 1.0).abs() < 0.05, "{crowd:?}");
    assert!((crowd.goodput_bit_s / (10e6 * 1.02) - 1.0).abs() < 0.06, "{crowd:?}");
    let reverse = outcome.summary.links.iter().find(|link| link.name == "bottleneck.reverse").unwrap();
    let forward = &outcome.summary.links[0];
    // 1448 bytes of payload in 1500 bytes; ACKs and requests the other way.
    assert!((reverse.utilisation.unwrap() / 0.21 - 1.0).abs() < 0.1, "{reverse:?}");
    assert!(forward.utilisation.unwrap() < 0.2 * reverse.utilisation.unwrap());
    // Little's law: 25 a second for 1.5 thinks of 0.5 s and a few round-trip times.
    assert!(outcome.crowds.open.iter().all(|&open| open < 80), "{:?}", outcome.crowds.open.iter().max());
}

#[test]
fn vectors_are_scaled_to_a_load_and_shuffled() {
    // A session each 100 ms, of 8 kB: 640 kbit/s. At 2.56 Mbit/s it is one each 25 ms.
    let lines: Vec<String> = (0..400)
        .map(|n| format!("\"SEQ {} 1 1 {n}\", \"> 100\", \"t 1000\", \"< 8000\"", 100_000 * n))
        .collect();
    let run = |more: &str| {
        outcome(&format!(
            "duration = \"60 s\"\nmeasure = {{ from = \"0 s\" }}\npath = {{ rate = \"50 Mbit/s\", rtt = \"10 ms\" }}\n\
             [[sessions]]\ncc = \"reno\"\n{more}\nvectors = {{ lines = [{}] }}",
            lines.join(", ")
        ))
    };
    let starts = |outcome: &Outcome| {
        let rows = rows(outcome);
        assert_eq!((rows.len(), outcome.summary.crowds[0].opened), (800, 400));
        rows.into_iter().filter(|row| row.3 == 100).map(|row| row.1).collect::<Vec<f64>>()
    };
    let plain = starts(&run(""));
    assert_eq!((plain[1], plain[399]), (100.0, 39_900.0));
    // 3.2 MB at 2.56 Mbit/s take 10 s, to the last start.
    let scaled = starts(&run("load = \"2.56 Mbit/s\""));
    assert_eq!((scaled[0], scaled[399]), (0.0, 10_000.0));
    assert!((scaled[1] - 10_000.0 / 399.0).abs() < 0.002, "{}", scaled[1]);
    let shuffled = starts(&run("load = \"2.56 Mbit/s\"\nshuffle = \"1 s\""));
    assert_ne!(shuffled, scaled);
    let within = |starts: &[f64]| {
        let mut within: Vec<i64> = starts.iter().map(|start| (start * 1e3) as i64 % 1_000_000).collect();
        within.sort_unstable();
        within
    };
    let (shuffled, scaled) = (within(&shuffled), within(&scaled));
    assert!(shuffled.iter().zip(&scaled).all(|(a, b)| (a - b).abs() <= 2), "{shuffled:?}\n{scaled:?}");
}

#[test]
fn sessions_are_the_same_whatever_the_network_does() {
    let sizes = |outcome: &Outcome| {
        let mut sizes: Vec<(u64, u64)> = rows(outcome).into_iter().map(|row| (row.0, row.3)).collect();
        sizes.retain(|(session, _)| *session < 400);
        sizes.sort_unstable();
        sizes
    };
    let wide = drawn("100 Mbit/s", "per_second = 4");
    let lossy = drawn("5 Mbit/s", "per_second = 4\n[[flow]]\ncc = \"cubic\"\nreverse = true");
    // All of the first 400, in the first 100 s, are finished within the run.
    assert_eq!(sizes(&wide), sizes(&lossy));
    let starts =
        |outcome: &Outcome| rows(outcome).into_iter().filter(|row| row.0 < 400).map(|row| row.1).next();
    assert_eq!(starts(&wide), starts(&lossy));
    assert!(lossy.summary.crowds[0].retransmitted_bytes > 0);
}

#[test]
fn sessions_that_get_no_answer_fail_and_their_units_do_not_end() {
    // From 50 s on no answer arrives: initiators give up after several tries.
    let outcome = drawn(
        "20 Mbit/s",
        "per_second = 10\n[[event]]\nat = \"50 s\"\nlink = \"bottleneck.reverse\"\nup = false",
    );
    let crowd = &outcome.summary.crowds[0];
    assert!(crowd.delivered_bytes > 0 && crowd.opened > 1500, "{crowd:?}");
    let unfinished = rows(&outcome).into_iter().filter(|row| row.2.is_infinite()).count();
    assert!(unfinished > 100, "{unfinished}");
}

//! Compares the derived forms with the algorithms' rules, which are iterated here ACK by ACK.

use proptest::prelude::*;

use super::*;

/// Mean window, peak and epoch length (round trips) of the sawtooth under one loss in `1/p` packets. Each
/// packet is acknowledged and gives an increase; there are `w` packets in a round trip. `increase(w, t,
/// target)` is for each ACK, with `t` the seconds since the last loss; `decrease(w, target)` returns the new
/// window and target.
fn sawtooth(
    p: f64,
    rtt: f64,
    increase: impl Fn(f64, f64, f64) -> f64,
    decrease: impl Fn(f64, f64) -> (f64, f64),
) -> (f64, f64, f64) {
    sawtooth_from((1.0 / p).sqrt().max(20.0), p, rtt, increase, decrease)
}

/// The same from a loss at window `w` on.
fn sawtooth_from(
    mut w: f64,
    p: f64,
    rtt: f64,
    increase: impl Fn(f64, f64, f64) -> f64,
    decrease: impl Fn(f64, f64) -> (f64, f64),
) -> (f64, f64, f64) {
    let every = (1.0 / p) as u64;
    let mut target;
    (w, target) = decrease(w, 0.0);
    let (mut rounds, mut losses, mut packets, mut peaks) = (0.0, 0.0, 0.0, 0.0);
    for epoch in 0..120 {
        let mut t = 0.0;
        for _ in 0..every {
            w += increase(w, t, target);
            t += rtt / w;
        }
        if epoch >= 60 {
            rounds += t / rtt;
            packets += every as f64;
            peaks += w;
            losses += 1.0;
        }
        (w, target) = decrease(w, target);
    }
    (packets / rounds, peaks / losses, rounds / losses)
}

fn model(name: &str) -> Algorithm {
    Algorithm::new(name, &[]).unwrap()
}

fn holds(name: &str, p: f64, rtt: f64, tolerance: f64, iterated: (f64, f64, f64)) {
    let (it, (mean, peak, rounds)) = (model(name), iterated);
    for (what, found, expected) in [
        ("mean window", it.window(p, rtt), mean),
        ("peak", it.peak(p, rtt), peak),
        ("recovery", it.recovery(peak, rtt), rounds),
        ("loss rate", it.loss(mean, rtt), p),
    ] {
        assert!(
            (found / expected - 1.0).abs() < tolerance,
            "{name}, {p}, {rtt}: {what} {found} for {expected}"
        );
    }
}

#[test]
fn standard_tcp() {
    for p in [1e-3, 1e-5] {
        holds("reno", p, 0.1, 0.01, sawtooth(p, 0.1, |w, _, _| 1.0 / w, |w, _| (w / 2.0, 0.0)));
    }
}

#[test]
fn scalable() {
    let b = |w: f64| if w <= 16.0 { 0.5 } else { 0.125 };
    for p in [1e-3, 1e-4, 1e-5] {
        let iterated = sawtooth(
            p,
            0.1,
            |w, _, _| if w <= 16.0 { 1.0 / w } else { 0.01 },
            |w, _| ((1.0 - b(w)) * w, 0.0),
        );
        holds("scalable", p, 0.1, 0.012, iterated);
    }
}

#[test]
fn highspeed() {
    // RFC 3649, section 5, implemented a second time.
    let x = |w: f64| (w / 38.0).ln() / (83_000.0f64 / 38.0).ln();
    let b = |w: f64| if w <= 38.0 { 0.5 } else { 0.5 - 0.4 * x(w) };
    let a = |w: f64| {
        let p = (1e-3f64.ln() + x(w) * 1e-4f64.ln()).exp();
        if w <= 38.0 { 1.0 } else { 2.0 * w * w * b(w) * p / (2.0 - b(w)) }
    };
    for p in [3e-4, 1e-5] {
        holds("hstcp", p, 0.1, 0.01, sawtooth(p, 0.1, |w, _, _| a(w) / w, |w, _| ((1.0 - b(w)) * w, 0.0)));
    }
    // The published function is the design, which assumes that a(w) and b(w) are constant over the sawtooth.
    let it = model("hstcp");
    for p in [1e-4, 1e-5, 1e-6, 1e-7] {
        assert!((it.window(p, 0.1) / it.published(p, 0.1).unwrap() - 1.0).abs() < 0.08, "{p}");
    }
}

#[test]
fn htcp() {
    for rtt in [0.02f64, 0.1, 0.3] {
        let scale = (rtt / 0.1).clamp(0.1, 2.0);
        let alpha = |t: f64| {
            let x = t - 1.0;
            if x <= 0.0 { 1.0 } else { (scale * (1.0 + 10.0 * x + 0.25 * x * x)).max(1.0) }
        };
        for p in [1e-4, 1e-6] {
            let iterated = sawtooth(p, rtt, |w, t, _| 2.0 * 0.2 * alpha(t) / w, |w, _| (0.8 * w, 0.0));
            holds("htcp", p, rtt, 0.012, iterated);
        }
    }
}

#[test]
fn bic() {
    let a = |w: f64, target: f64| {
        if w <= 14.0 {
            1.0
        } else if w < target {
            let step = (target - w) / 4.0;
            if step <= 1.0 { 0.2 } else { step.min(32.0) }
        } else if w - target < 4.0 {
            0.2
        } else {
            ((w - target) / 3.0).min(32.0)
        }
    };
    for p in [1e-3, 1e-4, 1e-5, 1e-6] {
        // The iterated flow moves around the fixed point: an early loss lowers its target, a late one raises
        // it.
        let iterated = sawtooth(
            p,
            0.1,
            |w, _, target| a(w, target) / w,
            |w, target| (0.8 * w, if w < target { 0.9 * w } else { w }),
        );
        let (mean, found) = (iterated.0, model("bic").window(p, 0.1));
        assert!((found / mean - 1.0).abs() < 0.12, "{p}: {found} for {mean}");
    }
}

#[test]
fn cubic() {
    for (p, rtt) in [(1e-3, 0.02), (1e-4, 0.1), (1e-6, 0.1)] {
        // A flow that loses near its plateau hardly changes it, so a flow that begins elsewhere takes
        // thousands of losses to reach it: the test begins at the peak of RFC 9438's mean window.
        let factor: f64 = 0.4 * 3.7 / (4.0 * 0.3);
        let start = factor.powf(0.25) * libm::pow(rtt / p, 0.75) * 4.0 / 3.7;
        let iterated = sawtooth_from(
            start,
            p,
            rtt,
            |w, t, peak| {
                let (k, start) = (libm::cbrt(peak * 0.3 / 0.4), 0.7 * peak);
                // The window at the current time; the Reno-friendly window grows with ACKs, hence with
                // rounds.
                let cubic = 0.4 * (t - k).powi(3) + peak;
                (cubic.max(start + 0.9 / 1.7 * t / rtt) - w).max(0.0)
            },
            |w, _| (0.7 * w, w),
        );
        holds("cubic", p, rtt, 0.02, iterated);
    }
}

#[test]
fn ltcp() {
    let layer = |w: f64| {
        let (mut k, mut from, mut below, mut step) = (1.0, 0.0, 0.0, 50.0);
        while w > from + step {
            (from, below, step, k) = (from + step, step, step / 0.6, k + 1.0);
        }
        (k, from, below)
    };
    let decrease = |w: f64| {
        let (k, from, below) = layer(w);
        if k == 1.0 { w / 2.0 } else { w - below / 2.0 - 0.4 * (w - from) / 2.0 }
    };
    for p in [3e-4, 1e-4, 1e-5, 1e-6] {
        holds("ltcp", p, 0.1, 0.012, sawtooth(p, 0.1, |w, _, _| layer(w).0 / w, |w, _| (decrease(w), 0.0)));
    }
}

#[test]
fn variation_is_that_of_random_losses() {
    // Each packet is lost with probability p; the test has its own generator, so that it needs no library.
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    for (name, beta, tolerance) in [("scalable", 0.875, 0.05), ("reno", 0.5, 0.16)] {
        let p = 1e-3;
        let (mut w, mut time, mut mean, mut square) = (60.0f64, 0.0, 0.0, 0.0);
        for _ in 0..4_000_000 {
            // One packet takes 1/w of a round trip.
            w += if name == "reno" { 1.0 / w } else { 0.01 };
            if uniform() < p {
                w *= beta;
            }
            time += 1.0 / w;
            mean += 1.0;
            square += w;
        }
        let (mean, square) = (mean / time, square / time);
        let (found, it) = ((square / mean / mean - 1.0).sqrt(), model(name));
        let expected = it.variation(mean, 0.1);
        assert!((found / expected - 1.0).abs() < tolerance, "{name}: {found} for {expected}");
    }
}

#[test]
fn unfairness_by_round_trip_time() {
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 0.05, "{found} for {expected}");
    // Standard TCP: rates proportional to 1/T with independent losses, to 1/T^2 with synchronised ones
    // (thesis, section 7.1.4).
    let reno = model("reno").rtt_unfairness(1e-4, 0.1);
    near(reno.loss_exponent, 0.5);
    near(reno.independent, 1.0);
    near(reno.synchronised, 2.0);
    // Xu, Harfoush and Rhee 2004: 1/(1 - 0.82) = 5.56 for HighSpeed TCP, with 0.835 6.06; none for Scalable TCP.
    let hstcp = model("hstcp").rtt_unfairness(1e-5, 0.1);
    assert!((5.0..7.0).contains(&hstcp.synchronised), "{hstcp:?}");
    assert_eq!(model("scalable").rtt_unfairness(1e-4, 0.1).synchronised, f64::INFINITY);
    // CUBIC: rates proportional to T^(-1/4), and to 1/T, in its cubic region.
    let cubic = model("cubic").rtt_unfairness(1e-6, 0.1);
    near(cubic.independent, 0.25);
    near(cubic.synchronised, 1.0);
    // H-TCP's scaling by the round-trip time makes rates nearly independent of it between 10 and 200 ms.
    let htcp = model("htcp").rtt_unfairness(1e-5, 0.05);
    assert!(htcp.independent < 0.5, "{htcp:?}");
}

#[test]
fn doubling_and_halving_by_hand() {
    assert!((model("reno").doubling(100.0, 0.1) - 100.0).abs() < 1e-6);
    assert_eq!(model("reno").halving(100.0), 1.0);
    // CUBIC from its plateau at 1000: cbrt(1000/0.4) = 13.57 s.
    assert!((model("cubic").doubling(1000.0, 0.1) - 135.7).abs() < 0.1);
    // BIC from its target at 1000: 20 round trips for 4 segments, 3 ln(96/4) = 9.5, then 904/32 = 28.25.
    assert!((model("bic").doubling(1000.0, 0.1) - (20.0 + 3.0 * 24.0f64.ln() + 28.25)).abs() < 1e-9);
}

#[test]
fn errors_say_what_there_is() {
    let unknown = Algorithm::new("vegas", &[]).unwrap_err().to_string();
    assert!(unknown.starts_with("cc: expected one of tahoe, ") && unknown.ends_with("found \"vegas\""));
    let setting = Algorithm::new("scalable", &[("a", Value::Number(7.0))]).unwrap_err().to_string();
    assert_eq!(setting, "cc.a: expected a number from 0 to 1, found 7");
    let form = Algorithm::new("htcp", &[("form", Value::Word("linux"))]).unwrap_err().to_string();
    assert_eq!(form, "cc.form: expected \"published\", the rule that is modelled, found \"linux\"");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn loss_is_the_inverse_of_window(
        name in prop::sample::select(vec!["reno", "hstcp", "scalable", "htcp", "bic", "fast", "ltcp", "cubic"]),
        exponent in -7.5f64..-2.5,
        rtt in 0.005f64..0.4,
    ) {
        let (it, p) = (model(name), libm::pow(10.0, exponent));
        let w = it.window(p, rtt);
        prop_assume!(w > 5.0);
        let back = it.window(it.loss(w, rtt), rtt);
        prop_assert!((back / w - 1.0).abs() < 1e-3, "{name}: {w} came back as {back}");
    }
}

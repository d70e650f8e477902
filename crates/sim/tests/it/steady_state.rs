//! The simulator against closed forms: mean windows under loss, recovery times, utilisation by buffer.
//!
//! A rule of the papers is iterated here round trip by round trip, independently of the simulator and of
//! `elephan-cc`, with one loss for each `1/p` packets. The simulated mean window of one flow must agree with
//! that, and with the published response function if it is the same formula. Algorithms whose increase
//! depends on the past are compared with `elephan-model`.

use crate::common::outcome;

/// Mean window under one loss in `1/p` packets, for a rule `(increase per round trip, window after a loss)`.
/// After a loss the window is constant for the round trip of its recovery.
fn periodic(p: f64, increase: impl Fn(f64) -> f64, decrease: impl Fn(f64) -> f64) -> f64 {
    let (mut w, mut until_loss) = ((1.0 / p).sqrt().max(2.0), 1.0 / p);
    let (mut packets, mut rounds, mut losses, mut repair) = (0.0, 0.0, 0, 0.0);
    // Steps of a hundredth of a round trip; the first half of them reaches the steady state.
    while losses < 400 {
        let step = 0.01;
        if repair > 0.0 {
            repair -= step;
        } else {
            w += increase(w) * step;
        }
        until_loss -= w * step;
        if losses >= 200 {
            packets += w * step;
            rounds += step;
        }
        if until_loss <= 0.0 {
            until_loss += 1.0 / p;
            w = decrease(w);
            repair = 1.0;
            losses += 1;
        }
    }
    packets / rounds
}

/// RFC 3649, section 5, with P_low such that a(38) = 1.
fn hstcp(w: f64) -> (f64, f64) {
    if w <= 38.0 {
        return (1.0, 0.5);
    }
    let x = (w / 38.0).ln() / (83_000.0f64 / 38.0).ln();
    let b = 0.5 - 0.4 * x;
    let p_low: f64 = 1.5 / 38.0 / 38.0;
    let p = (p_low.ln() + x * (1e-7 / p_low).ln()).exp();
    (2.0 * w * w * b * p / (2.0 - b), b)
}

/// Layered TCP's layer K, the window at which it begins, and the sizes of the layers below and of itself.
fn layer(w: f64) -> (f64, f64, f64, f64) {
    let (mut k, mut start, mut below, mut size) = (1.0, 0.0, 0.0, 50.0);
    while w > start + size {
        start += size;
        below = size;
        size *= 5.0 / 3.0;
        k += 1.0;
    }
    (k, start, below, size)
}

fn ltcp_decrease(w: f64) -> f64 {
    let (k, start, below, _) = layer(w);
    if k == 1.0 { w / 2.0 } else { w - below / 2.0 - (1.0 - 0.6) * (w - start) / 2.0 }
}

/// Mean window of the simulator under this loss, over the time in which about `losses` happen.
fn simulated(cc: &str, loss: &str, window: f64, p: f64, losses: f64) -> f64 {
    // A path that never becomes full: 100 ms, and ten times the window.
    let seconds = (losses / p / window * 0.1).clamp(20.0, 20_000.0).ceil();
    let rate = (window * 12_000.0 / 0.1 * 20.0 / 1e6).max(10.0).ceil();
    let toml = format!(
        r#"duration = "{} s"
        path = {{ rate = "{rate} Mbit/s", rtt = "100 ms", loss = {loss} }}
        tcp = {{ initial_ssthresh = {} }}
        flow = [{{ cc = {cc} }}]
        measure = {{ from = "{seconds} s", interval = "50 ms" }}
        trace = {{ interval = "1000 s" }}"#,
        2.0 * seconds,
        window.max(2.0) as u64,
    );
    outcome(&toml).summary.flows[0].cwnd_mean_segments.expect("it ran")
}

fn within(found: f64, expected: f64, share: f64, what: &str) {
    assert!((found / expected - 1.0).abs() <= share, "{what}: simulated {found:.1}, expected {expected:.1}");
}

fn under_periodic_loss(cc: &str, ps: &[f64], tolerance: f64, theory: impl Fn(f64) -> f64) {
    for &p in ps {
        let expected = theory(p);
        let loss = format!(r#"{{ name = "periodic", every = {} }}"#, (1.0 / p) as u64);
        within(simulated(cc, &loss, expected, p, 60.0), expected, tolerance, &format!("{cc} at {p}"));
    }
}

#[test]
fn standard_tcp_has_its_square_root() {
    // The deterministic sawtooth: mean window sqrt(3/2p) exactly (thesis, equation 5.8).
    let theory = |p: f64| periodic(p, |_| 1.0, |w| w / 2.0);
    within(theory(1e-4), (1.5e4f64).sqrt(), 0.01, "the iteration itself");
    under_periodic_loss("\"reno\"", &[1e-3, 1e-4, 1e-5, 1e-6], 0.05, theory);
}

#[test]
fn scalable_tcp_is_inverse_in_the_loss_rate() {
    // W = a/(bp) at the loss, and the mean of an exponential sawtooth b/(-ln(1-b)) of it: 0.0749/p (Kelly: about 0.08/p).
    // The round trip of recovery is one in fourteen here, and reduces the mean by another 6 %.
    let theory = |p: f64| periodic(p, |w| 0.01 * w, |w| w - 0.125 * w);
    within(theory(1e-4), 0.08 / 1e-4, 0.13, "Kelly's response function");
    // At 1e-3 the window is 75 and its eighth is truncated to whole segments, which the iteration omits.
    let exact = "{ name = \"scalable\", rounding = \"none\" }";
    under_periodic_loss(exact, &[1e-3, 1e-4, 1e-5], 0.05, theory);
}

#[test]
fn highspeed_tcp_has_its_response_function() {
    let theory = |p: f64| periodic(p, |w| hstcp(w).0, |w| (1.0 - hstcp(w).1) * w);
    // RFC 3649, section 3: w = 0.12 / p^0.835.
    within(theory(1e-5), 0.12 / 1e-5f64.powf(0.835), 0.1, "RFC 3649's response function");
    // At 1e-3 the mean is the threshold of 38: the flow alternates between both modes, in a pattern that
    // depends on its start.
    under_periodic_loss("{ name = \"hstcp\", response = \"continuous\" }", &[3e-4, 1e-4, 1e-5], 0.05, theory);
}

#[test]
fn layered_tcp_has_its_own() {
    let theory = |p: f64| periodic(p, |w| layer(w).0, ltcp_decrease);
    // At 1e-3 there are two sawtooths, one on each side of the second layer at 50.
    under_periodic_loss("\"ltcp\"", &[3e-4, 1e-4, 1e-5, 1e-6], 0.05, theory);
}

/// Mean window by the sawtooth of `elephan-model`; after each loss the window is constant for the round trip
/// of its recovery.
fn derived(cc: &str, p: f64) -> f64 {
    let model = elephan_model::Algorithm::new(cc, &[]).expect("it is modelled");
    let with_repair = |w: f64| {
        let epoch = model.epoch(w, 0.1);
        (epoch.packets + model.beta(w) * w, epoch.rounds + 1.0)
    };
    let (mut low, mut high) = (1.0, 1e9);
    for _ in 0..200 {
        let w = f64::sqrt(low * high);
        if with_repair(w).0 < 1.0 / p { low = w } else { high = w }
    }
    let (packets, rounds) = with_repair(low);
    packets / rounds
}

#[test]
fn those_with_a_memory_have_the_sawtooth_of_the_model() {
    for cc in ["htcp", "bic", "cubic"] {
        under_periodic_loss(&format!("\"{cc}\""), &[1e-3, 1e-4, 1e-5], 0.1, |p| derived(cc, p));
    }
}

#[test]
fn fast_rests_where_alpha_of_each_flow_waits() {
    // Thesis, equation 6.18 and section 6.1.5: alpha is 8, 20 and 200 by goodput. The queue and the
    // transmitter hold all alpha packets, and the window is these plus the flow's share of the pipe. Two
    // flows with the same alpha share evenly. If alpha depends on goodput they need not, because the faster
    // flow has the larger alpha.
    let always_50 = "{ name = \"fast\", alpha_low = 50, alpha_mid = 50, alpha_high = 50 }";
    for (cc, rate, flows, alpha) in [
        ("\"fast\"", 5e6, 1.0, 8.0),
        ("\"fast\"", 50e6, 1.0, 20.0),
        ("\"fast\"", 250e6, 1.0, 200.0),
        (always_50, 250e6, 2.0, 50.0),
    ] {
        let toml = format!(
            r#"duration = "200 s"
            path = {{ rate = "{rate} bit/s", rtt = "100 ms", buffer = "500 packets" }}
            flow = [{{ cc = {cc}, count = {flows} }}]
            measure = {{ from = "100 s" }}"#,
        );
        let summary = outcome(&toml).summary;
        let what = format!("{flows} flows at {rate} bit/s");
        let bottleneck = summary.links.iter().find(|link| link.name == "bottleneck").expect("it has a rate");
        within(bottleneck.queue_mean_packets + 1.0, flows * alpha, 0.05, &format!("queue of {what}"));
        for flow in &summary.flows {
            let window = flow.cwnd_mean_segments.expect("it ran");
            within(window, rate * 0.1 / 12e3 / flows + alpha, 0.05, &format!("window of {what}"));
        }
    }
}

#[test]
fn random_loss_has_the_mean_of_its_distribution() {
    // Losses come at a rate p w per packet. Scalable's balance a E[w] = p b E[w^2] gives the mean a/(bp) / (1 + CoV^2),
    // with CoV^2 = b/2 (Kelly, section 3.2). Standard TCP's constant under independent losses is 1.31 / sqrt(p)
    // (Mathis et al. 1997; Ott, Kemperman, Mathis 1996).
    let loss = |p: f64| format!(r#"{{ name = "random", probability = {p} }}"#);
    for p in [1e-3f64, 1e-4] {
        let scalable = 0.08 / p / (1.0 + 0.125 / 2.0);
        within(simulated("\"scalable\"", &loss(p), scalable, p, 3000.0), scalable, 0.1, "scalable");
        let reno = 1.31 / p.sqrt();
        within(simulated("\"reno\"", &loss(p), reno, p, 3000.0), reno, 0.1, "reno");
    }
}

#[test]
fn utilisation_is_a_matter_of_beta_and_buffer() {
    // Thesis, equation 5.6: capacity and round-trip time do not enter. The bandwidth-delay product is 500
    // packets.
    for beta in [0.5, 0.8, 0.875] {
        for buffer in [0.02, 0.1, 0.2, 0.5, 1.0] {
            let full: f64 = beta * (1.0 + buffer);
            let expected = if full >= 1.0 {
                1.0
            } else {
                (1.0 + 2.0 * buffer - full * full) / (2.0 * (1.0 - beta) * (1.0 + buffer))
            };
            let toml = format!(
                r#"duration = "600 s"
                path = {{ rate = "60 Mbit/s", rtt = "100 ms", buffer = "{}% bdp" }}
                tcp = {{ initial_ssthresh = 250 }}
                flow = [{{ cc = {{ name = "reno", beta = {beta} }} }}]
                measure = {{ from = "120 s" }}"#,
                buffer * 100.0
            );
            let found = outcome(&toml).summary.utilisation.expect("it ran");
            within(found, expected, 0.05, &format!("beta {beta}, buffer {buffer} of the BDP"));
        }
    }
}

#[test]
fn recovery_times_are_kellys() {
    // Kelly, Table 2: after one loss Scalable TCP regains its window in -ln(1-b)/ln(1+a) round trips, 13.4 for
    // a = 1/100 and b = 1/8, at any window; Standard TCP takes W/2 round trips (Table 1).
    for window in [200u64, 1000] {
        // One loss in this number of packets. Standard TCP regains the window W, up to which it had grown by
        // then, in 3/8 W^2 of them.
        for (cc, every, seconds) in
            [("scalable", 150 * window, 30), ("reno", 3 * window * window, 20 + window * 31 / 100)]
        {
            let toml = format!(
                r#"duration = "{seconds} s"
                path = {{ rate = "2 Gbit/s", rtt = "100 ms", loss = {{ name = "periodic", every = {every} }} }}
                tcp = {{ initial_window = {window}, initial_ssthresh = 2 }}
                flow = [{{ cc = "{cc}" }}]
                trace = {{ interval = "100 ms" }}"#,
            );
            let flows = outcome(&toml).flows;
            let lost = (1..flows.cwnd_segments.len())
                .find(|&i| flows.cwnd_segments[i] < flows.cwnd_segments[i - 1])
                .expect("a loss");
            let before = flows.cwnd_segments[lost - 1];
            let regained = (lost..flows.cwnd_segments.len()).find(|&i| flows.cwnd_segments[i] >= before);
            let regained = regained.expect("it regains its window before the run ends");
            // One round trip passes in recovery, during which the window is constant.
            let rounds = (regained - lost) as f64 - 1.0;
            let expected = if cc == "reno" { before / 2.0 } else { 13.42 };
            assert!(
                (rounds - expected).abs() <= 2.0 + 0.02 * expected,
                "{cc} at {window}: {rounds} of {expected}"
            );
        }
    }
}

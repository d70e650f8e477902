//! Properties that hold for every algorithm, whatever happens to the connection.

use elephan_units::Time;
use proptest::prelude::*;

use crate::history::History;
use crate::{Cause, Controller, Quantisation, registry, slow_start};

/// An event of a connection.
#[derive(Clone, Debug)]
enum Happening {
    /// ACKs, each of this number of segments.
    Acks(u8, f64),
    /// An ACK that allows no growth.
    IdleAck,
    Event(Cause),
    Collapse,
    /// Moderation to this fraction of the window.
    Moderate(f64),
    Undo,
    Recovery(bool),
    /// This number of milliseconds without an ACK.
    Wait(f64),
    /// This number of milliseconds in which nothing is in flight.
    Idle(f64),
    /// The round-trip time becomes 20 ms plus this number of milliseconds.
    Queueing(f64),
    Round,
}

fn happening() -> impl Strategy<Value = Happening> {
    use Happening::*;
    prop_oneof![
        8 => (1..200_u8, prop_oneof![Just(1.0), Just(2.0), 0.1..3.0]).prop_map(|(n, segments)| Acks(n, segments)),
        1 => Just(IdleAck),
        3 => prop_oneof![Just(Cause::Loss), Just(Cause::Ecn), Just(Cause::Timeout)].prop_map(Event),
        1 => Just(Collapse),
        1 => (0.0..2.0).prop_map(Moderate),
        1 => Just(Undo),
        1 => any::<bool>().prop_map(Recovery),
        3 => (0.0..5000.0).prop_map(Wait),
        1 => (0.0..60_000.0).prop_map(Idle),
        2 => (0.0..200.0).prop_map(Queueing),
        4 => Just(Round),
    ]
}

fn quantisation() -> impl Strategy<Value = Quantisation> {
    prop_oneof![Just(Quantisation::None), Just(Quantisation::RoundUp), Just(Quantisation::RoundDown)]
}

/// One connection for each algorithm, its form and slow start, named, with windows from 1 to a million.
fn connections(cwnd: f64, avoiding: bool, quantisation: Quantisation) -> Vec<(String, History)> {
    let mut all = Vec::new();
    // A governor is told by other calls, and has bounds of its own.
    for algorithm in registry::ALL.iter().filter(|one| History::of(one.name).controller.governor().is_none())
    {
        let has_forms = (algorithm.parameters)().iter().any(|parameter| parameter.name == "form");
        let forms: &[_] = if has_forms { &["published", "linux"] } else { &[""] };
        for (form, start) in
            forms.iter().flat_map(|form| slow_start::ALL.iter().map(move |start| (form, start)))
        {
            let cwnd = if quantisation == Quantisation::None { cwnd } else { libm::floor(cwnd) };
            let history =
                History::of(algorithm.name).slow_start(start.name).quantised(quantisation).rtt_ms(20.0);
            let history = if has_forms { history.set("form", *form) } else { history };
            let history = if avoiding { history.at(cwnd) } else { history.starting(cwnd) };
            all.push((format!("{} {form} with {}", algorithm.name, start.name), history));
        }
    }
    all
}

fn apply(history: &mut History, happening: &Happening) {
    match *happening {
        Happening::Acks(n, segments) => {
            for _ in 0..n {
                history.wait(0.02 / history.cwnd()).ack(segments);
            }
        }
        Happening::IdleAck => _ = history.idle_acks(1),
        Happening::Event(cause) => _ = history.event(cause),
        Happening::Collapse => history.controller.collapse(),
        Happening::Moderate(fraction) => {
            let segments = fraction * history.cwnd();
            history.controller.moderate(segments);
        }
        Happening::Undo => history.controller.undo(crate::Undo::State, Time::ZERO),
        Happening::Recovery(on) => history.in_recovery = on,
        Happening::Wait(ms) => _ = history.wait(ms / 1e3),
        Happening::Idle(ms) => _ = history.idle(ms / 1e3),
        Happening::Queueing(ms) => history.rtt = Time::from_secs_f64((20.0 + ms) / 1e3),
        Happening::Round => _ = history.next_round(),
    }
}

/// The further behaviour of a connection shows all of its state.
fn fingerprint(controller: &Controller, from: &History) -> Vec<u64> {
    let mut history = from.clone();
    history.controller = controller.clone();
    history.in_recovery = false;
    let mut windows = Vec::new();
    for step in 0..60 {
        history.wait(0.05);
        history.round += u64::from(step % 4 == 0);
        history.ack(1.0 + f64::from(step % 2));
        if step % 25 == 24 {
            history.loss();
        }
        windows.extend([history.cwnd().to_bits(), history.ssthresh().to_bits()]);
    }
    windows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn windows_stay_sound(
        exponent in 0.0..6.0_f64,
        avoiding: bool,
        quantisation in quantisation(),
        happenings in prop::collection::vec(happening(), 1..60),
    ) {
        for (name, mut history) in connections(libm::pow(10.0, exponent), avoiding, quantisation) {
            for happening in &happenings {
                let (cwnd, ssthresh) = (history.cwnd(), history.ssthresh());
                let was = history.controller.clone();
                apply(&mut history, happening);
                let (after, threshold) = (history.cwnd(), history.ssthresh());

                prop_assert!(after.is_finite() && after >= 1.0, "{name}: cwnd {after} after {happening:?}");
                prop_assert!(threshold >= 2.0, "{name}: ssthresh {threshold} after {happening:?}");
                if quantisation != Quantisation::None {
                    prop_assert_eq!(after, libm::trunc(after), "{} after {:?}", name, happening);
                }
                // Careful Resume jumps up to half of the saved 300, and back to what is in flight.
                let jump = if name.ends_with("careful-resume") { (150.0 - cwnd).max(0.0) } else { 0.0 };
                match *happening {
                    Happening::Acks(n, segments) => {
                        let most = if history.in_recovery { 0.0 } else { f64::from(n) * segments };
                        // With whole windows, up to a segment of growth may have been accumulated.
                        let waiting = if quantisation == Quantisation::None { 1e-6 } else { 1.0 };
                        prop_assert!(after - cwnd <= most + jump + waiting, "{name}: {cwnd} to {after} by {happening:?}");
                    }
                    Happening::IdleAck if name.ends_with("careful-resume") => prop_assert!(after <= cwnd),
                    Happening::IdleAck => prop_assert_eq!(after, cwnd),
                    Happening::Event(cause) => {
                        prop_assert!(after <= cwnd, "{name}: {cwnd} to {after} by {cause:?}");
                        prop_assert!(cause != Cause::Timeout || after == 1.0);
                        // With a window in flight, the remaining window is smaller than before; but Westwood's threshold
                        // is what the path carries, also if the window was smaller.
                        let path = name.starts_with("westwood");
                        prop_assert!(path || threshold <= f64::max(cwnd, 2.0), "{name}: {cwnd} left {threshold}");
                        let mut undone = history.controller.clone();
                        undone.undo(crate::Undo::State, Time::ZERO);
                        prop_assert_eq!((undone.cwnd(), undone.ssthresh()), (cwnd, ssthresh), "{}", name);
                        prop_assert_eq!(fingerprint(&undone, &history), fingerprint(&was, &history), "{}", name);
                    }
                    Happening::Moderate(_) | Happening::Collapse => prop_assert!(after <= cwnd),
                    _ => {}
                }
            }
        }
    }

    /// Up to its threshold each algorithm is Standard TCP, to the bit.
    #[test]
    fn below_its_threshold_each_is_standard_tcp(
        share in 0.0..1.0_f64,
        avoiding: bool,
        happenings in prop::collection::vec(happening(), 1..80),
    ) {
        for (name, threshold) in [
            ("hstcp", 38.0), ("hstcp-fc", 38.0), ("scalable", 16.0), ("ltcp", 50.0), ("bic", 14.0),
            // H-TCP's threshold is a time.
            ("htcp", f64::INFINITY),
        ] {
            let cwnd = 1.0 + share * (f64::min(threshold, 100.0) - 1.0);
            let [mut reno, mut other] = ["reno", name].map(|name| {
                let history = History::of(name).rtt_ms(20.0);
                // Its decrease, too, is Standard TCP's if adaptive back-off leaves half.
                let history = if name == "htcp" { history.set("beta_max", 0.5) } else { history };
                if avoiding { history.at(cwnd) } else { history.starting(cwnd) }
            });
            let mut last_event = Time::ZERO;
            let mut steps = happenings.iter().flat_map(|happening| match happening {
                // One by one, so that none passes the threshold unnoticed.
                Happening::Acks(n, segments) => vec![Happening::Acks(1, *segments); usize::from(*n)],
                Happening::Wait(ms) => vec![Happening::Wait(ms.min(90.0))],
                // The time of the previous event is restored too, which may be long ago.
                Happening::Undo => vec![],
                other => vec![other.clone()],
            });
            while reno.cwnd() <= threshold {
                let late = name == "htcp" && other.now.since(last_event) > Time::from_millis(900);
                let next = if late { Some(Happening::Event(Cause::Loss)) } else { steps.next() };
                let Some(step) = next else { break };
                if matches!(step, Happening::Event(_)) {
                    last_event = other.now;
                }
                apply(&mut reno, &step);
                apply(&mut other, &step);
                prop_assert_eq!(
                    (reno.cwnd(), reno.ssthresh()), (other.cwnd(), other.ssthresh()), "{} after {:?}", name, step
                );
            }
        }
    }
}

/// Memory that an algorithm needs in a simulation of 100,000 flows.
#[test]
fn a_controller_is_small() {
    assert!(size_of::<Controller>() <= 400, "{} bytes", size_of::<Controller>());
}

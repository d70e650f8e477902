//! CUBIC (RFC 9438): the window is a cubic function of the time since the last congestion event, flat at the
//! window of the last loss; it is never smaller than the window of an AIMD as friendly as Reno.

use elephan_units::Time;

use crate::algorithm::{Ack, Algorithm, Cause, Congestion, State, Window};
use crate::linux::Form;
use crate::parameter::parameters;
use crate::variable::{Tell, variables};

parameters! {
    /// CUBIC's parameters.
    pub struct Parameters {
        /// Aggressiveness of the cubic function (RFC 9438, section 5.1).
        c: f64 = 0.4, 1e-6..=1e6, "segments/s^3";
        /// Fraction of the window that remains after a congestion event (section 4.6).
        beta: f64 = 0.7, 0.0..=0.999, "";
        /// Whether the maximum is lowered further if the window did not reach the previous one (section 4.7).
        fast_convergence: bool = true;
        /// Whose computation of the rule: "published", or "linux" for that of Linux's tcp_cubic.c, with its constants and with
        /// HyStart as slow start; the other parameters are then ignored.
        form: Form = Form::Published;
    }
}

/// A stage of congestion avoidance, from one congestion event to the next.
#[derive(Clone, Copy, Debug)]
struct Stage {
    /// Its start, `t_epoch`; moved later by any time in which nothing was sent or the window was not the limit
    /// (sections 4.2 and 5.8).
    begin: Time,
    /// Seconds until the cubic function reaches `w_max`.
    k: f64,
    /// The window at which the cubic function is flat.
    w_max: f64,
    /// The window of the Reno-friendly AIMD.
    w_est: f64,
}

/// CUBIC.
#[derive(Clone, Debug)]
pub struct Cubic {
    parameters: Parameters,
    /// The window to return to; zero if undefined, as before the first loss.
    w_max: f64,
    /// The window before the last congestion event, or at the end of slow start if there was none.
    cwnd_prior: f64,
    stage: Option<Stage>,
    last_ack: Time,
}

impl Cubic {
    /// CUBIC with these parameters.
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters, w_max: 0.0, cwnd_prior: 0.0, stage: None, last_ack: Time::ZERO }
    }

    /// Section 4.2: the stage that begins with window `cwnd`. `K` is computed from `w_max` after fast
    /// convergence, and from the current window.
    fn begin(&mut self, cwnd: f64, now: Time) -> Stage {
        // Sections 4.8 and 4.10: without a loss to return to, the function is flat at the current window.
        let w_max = self.w_max.max(cwnd);
        if self.cwnd_prior == 0.0 {
            self.cwnd_prior = cwnd;
        }
        let k = libm::cbrt((w_max - cwnd) / self.parameters.c);
        Stage { begin: now, k, w_max, w_est: cwnd }
    }
}

impl Algorithm for Cubic {
    fn observe(&mut self, _: &Window, ack: &Ack) {
        // Section 4.2: t excludes the time in which the window was not the limit. In the other states an ACK
        // allows no growth for other reasons.
        if let Some(stage) = &mut self.stage
            && ack.segments == 0.0
            && ack.state == State::Open
        {
            stage.begin += ack.now.since(self.last_ack);
        }
        self.last_ack = ack.now;
    }

    fn resume(&mut self, idle: Time) {
        // Section 5.8: t excludes the time in which nothing was sent. `last_ack` moves too, so that the next
        // ACK does not exclude this time again.
        if let Some(stage) = &mut self.stage {
            stage.begin += idle;
        }
        self.last_ack += idle;
    }

    fn increase(&mut self, window: &Window, ack: &Ack) -> f64 {
        let mut stage = self.stage.unwrap_or_else(|| self.begin(window.cwnd, ack.now));
        let Parameters { c, beta, .. } = self.parameters;
        let w_cubic = |t: f64| c * (t - stage.k) * (t - stage.k) * (t - stage.k) + stage.w_max;
        let t = ack.now.since(stage.begin).secs_f64();

        // Section 4.3: as friendly as Reno until the window has regained its previous value, then Reno.
        let alpha = if stage.w_est < self.cwnd_prior { 3.0 * (1.0 - beta) / (1.0 + beta) } else { 1.0 };
        stage.w_est += alpha * ack.segments / window.cwnd;
        self.stage = Some(stage);

        if w_cubic(t) < stage.w_est {
            return (stage.w_est - window.cwnd).max(0.0);
        }
        // Sections 4.4 and 4.5: towards the function's value one round trip ahead.
        let target = w_cubic(t + ack.srtt.secs_f64()).clamp(window.cwnd, 1.5 * window.cwnd);
        (target - window.cwnd) / window.cwnd * ack.segments
    }

    fn decrease(&mut self, window: &Window, event: &Congestion) -> f64 {
        let Parameters { beta, fast_convergence, .. } = self.parameters;
        self.w_max = match event.cause {
            // Section 4.8: after a timeout the function starts flat.
            Cause::Timeout => 0.0,
            Cause::Loss | Cause::Ecn if window.cwnd < self.w_max && fast_convergence => {
                f64::midpoint(1.0, beta) * window.cwnd
            }
            Cause::Loss | Cause::Ecn => window.cwnd,
        };
        self.cwnd_prior = window.cwnd;
        self.stage = None;
        beta * event.flight_size
    }

    // RFC 8511, section 3.1: beta_ecn of CUBIC.
    fn abe(&self) -> Option<f64> {
        Some(0.85)
    }

    fn variables(&self, tell: &mut Tell<'_>) {
        let of = |read: fn(&Stage) -> f64| self.stage.as_ref().map_or(f64::NAN, read);
        variables! { tell;
            /// The window to return to, W_max (section 4.1.2); unknown before the first loss and after a timeout.
            w_max: "segments" = if self.w_max > 0.0 { self.w_max } else { f64::NAN };
            /// The window before the last congestion event (section 4.1.2); unknown before the first stage.
            cwnd_prior: "segments" = if self.cwnd_prior > 0.0 { self.cwnd_prior } else { f64::NAN };
            /// Time at which this stage of congestion avoidance began, without what was idle (section 4.1.2); unknown between stages.
            t_epoch: "s" = of(|stage| stage.begin.secs_f64());
            /// Time from there until the cubic function is flat, K (section 4.2).
            k: "s" = of(|stage| stage.k);
            /// The window of the Reno-friendly AIMD, W_est (section 4.3).
            w_est: "segments" = of(|stage| stage.w_est);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::history::{History, close};

    #[test]
    fn windows_after_acks_and_losses() {
        // Loss at 100: W_max = 100, window 70, K = cbrt(30/0.4) = cbrt(75) = 4.2171633.
        // ACK at t = 0: alpha = 3 * 0.3/1.7 = 0.5294118, W_est = 70 + 0.5294118/70 = 70.0075630;
        //   W_cubic(0) = 70 < W_est: window W_est.
        // ACK at t = 2: W_est = 70.0151; W_cubic(2.1) = 100 + 0.4 (2.1 - 4.2171633)^3 = 100 - 0.4 * 9.4899706
        //   = 96.2040118; (96.2040118 - 70.0075630)/70.0075630 = 0.3741946: window 70.3817576.
        let mut history = History::of("cubic").at(100.0);
        history.loss().window_near(70.0, 1e-12);
        history.ack(1.0).window_near(70.007_563_0, 1e-7);
        history.wait(2.0).ack(1.0).window_near(70.381_757_6, 1e-6);

        // Fast convergence: W_max = 70.3817576 * 0.85 = 59.8244940, window 49.2672303, and K follows from the
        // two: cbrt((59.8244940 - 49.2672303)/0.4) = cbrt(26.3931592) = 2.9773886. (RFC 8312's cbrt(W_max *
        // 0.3/0.4) = 3.5536 would not begin at the current window.)
        // ACK at 0, then at K less the 0.1 s round trip: W_cubic = W_max; from 49.2779763 (with
        // W_est = 49.2672303 + 0.5294118/49.2672303), (59.8244940 - 49.2779763)/49.2779763 = 0.2140209.
        history.loss().window_near(49.267_230_3, 1e-6);
        history.ack(1.0).window_near(49.277_976_3, 1e-6);
        history.wait(2.977_388_6 - 0.1).ack(1.0).window_near(49.491_997_2, 1e-6);
    }

    #[test]
    fn an_ack_counts_for_each_segment_that_it_acknowledges() {
        // As above, with ACKs of two segments: W_est = 70 + 2 * 0.5294118/70 = 70.0151261 at t = 0; at t = 2 the cubic
        // function is 96.2040118, and 2 * (96.2040118 - 70.0151261)/70.0151261 = 0.7480920.
        let mut history = History::of("cubic").at(100.0);
        history.loss().ack(2.0).window_near(70.015_126_1, 1e-7);
        history.wait(2.0).ack(2.0).window_near(70.763_218_1, 1e-6);
    }

    #[test]
    fn after_a_timeout_the_function_starts_flat() {
        // Timeout at 100: ssthresh 70, slow start to 70. Then W_max = 70, K = 0: after 5 s
        // W_cubic(5.1) = 70 + 0.4 * 132.651 = 123.0604, at most 1.5 * 70.0076: 0.5 segments for one.
        // After 2 s: 70 + 0.4 * 2.1^3 = 73.7044; (73.7044 - 70.0075630)/70.0075630 = 0.0528063.
        for (seconds, window) in [(5.0, 70.507_563), (2.0, 70.060_369)] {
            let mut history = History::of("cubic").at(100.0);
            history.event(Cause::Timeout).acks(69, 1.0).window_near(70.0, 1e-9);
            history.ack(1.0).wait(seconds).ack(1.0).window_near(window, 1e-5);
        }
    }

    #[test]
    fn a_mark_leaves_17_of_20_where_it_is_no_loss() {
        // RFC 8511, section 3.1. W_max = 100 and window 85: K = cbrt(15/0.4) = 3.3471647; the ACK at 0 brings W_est = 85 +
        // 0.5294118/85 = 85.0062284. At 2 s W_cubic(2.1) = 100 - 0.4 * 1.2471647^3 = 99.2240618:
        // (99.2240618 - 85.0062284)/85.0062284 = 0.1672564.
        for (cause, cwnd) in [(Cause::Ecn, 85.0), (Cause::Loss, 70.0)] {
            let mut history = History::of("cubic").at(100.0);
            history.controller = history.controller.with_abe();
            history.event(cause).window_near(cwnd, 1e-12);
        }
        let mut history = History::of("cubic").at(100.0);
        history.controller = history.controller.with_abe();
        history.event(Cause::Ecn).ack(1.0).window_near(85.006_228_4, 1e-7);
        history.wait(2.0).ack(1.0).window_near(85.006_228_4 + 0.167_256_4, 1e-6);
    }

    #[test]
    fn time_in_which_the_window_is_not_the_limit_does_not_count() {
        let after = |idle: f64| {
            let mut history = History::of("cubic").at(100.0);
            history.loss().ack(1.0).wait(idle).idle_acks(1).wait(1.0).ack(1.0);
            history.cwnd()
        };
        close(after(100.0), after(0.0), 1e-9);
    }

    #[test]
    fn time_in_which_nothing_is_sent_does_not_count() {
        // A window of 100 after a loss at 150, then a silence, and an ACK of the data that follows it; the
        // ACK may find that the application was the limit.
        let after = |seconds: f64, growth: f64| {
            let mut history = History::of("cubic").at(150.0);
            history.loss();
            while history.cwnd() < 110.0 {
                history.wait(0.001).ack(1.0);
            }
            history.idle(seconds).wait(0.1).ack_worth(1.0, growth).wait(0.1).ack(1.0);
            history.cwnd()
        };
        for growth in [0.0, 1.0] {
            close(after(10.0, growth), after(0.0, growth), 1e-9);
        }
    }

    #[test]
    fn a_window_of_100_that_rests_for_10_s_grows_by_a_segment_at_most() {
        let mut history = History::of("cubic").at(100.0);
        history.ack(1.0).idle(10.0).wait(0.1).ack(100.0);
        assert!(history.cwnd() < 102.0, "{}", history.cwnd());
    }

    /// RFC 9438, tables 1 and 2: average windows over a loss in every 1/p segments. In the cubic region each
    /// loss of the model comes exactly at W_max = C K^3/(1 - beta), so the segments of an epoch, times the
    /// round-trip time, are W_max K - C K^4/4. The rule reaches this point only slowly, so the test begins
    /// there. In the Reno-friendly region (10 ms) the average is sqrt(1.5/p), between 0.7 and 1 times W_max.
    #[test]
    fn average_windows_of_tables_1_and_2() {
        for (rtt, p, window) in [
            (0.1, 1e-4, 187.0),
            (0.1, 1e-5, 1054.0),
            (0.1, 1e-6, 5926.0),
            (0.01, 1e-4, 120.0),
            (0.01, 1e-5, 379.0),
        ] {
            let k = libm::pow(rtt / p / (0.4 * (1.0 / 0.3 - 0.25)), 0.25);
            let w_max = f64::max(0.4 * k * k * k / 0.3, libm::sqrt(1.5 / p) / 0.85);
            let mut history = History::of("cubic").set("fast_convergence", false).rtt_ms(1e3 * rtt).at(w_max);
            history.loss();
            let epochs = 10.0;
            for _ in 0..10 {
                let mut left = 1.0 / p;
                while left > 0.0 {
                    history.wait(rtt / history.cwnd()).ack(1.0);
                    left -= 1.0;
                }
                history.loss();
            }
            // The tables round sqrt(1.5/p) = 122.5 and 387.3 down, as 1.2/sqrt(p).
            close(epochs / p * rtt / history.now.secs_f64(), window, 0.03 * window);
        }
    }
}

//! Scalable TCP's window over time, and random loss (Tekala and Szabo 2006).
//!
//! Symbols of the paper: `mu` the link's rate in packets/s, `T` the round-trip time without queueing in s, `C
//! = mu T` the pipe, `B` the buffer, both in packets, `alpha` and `beta` Scalable TCP's constants, `q` the
//! probability of a random loss. Misprints of the paper are noted at each formula.

/// One flow of Scalable TCP on a link with a DropTail queue.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Increase for each acknowledged packet.
    pub alpha: f64,
    /// Fraction of the window that remains after a loss.
    pub beta: f64,
    /// Rate of the link, packets/s.
    pub mu: f64,
    /// Round-trip time without queueing, s.
    pub rtt: f64,
    /// Buffer, packets.
    pub buffer: f64,
    /// Window at which slow start ends, packets.
    pub ssthresh: f64,
}

impl Path {
    /// `C = mu T`.
    pub fn pipe(&self) -> f64 {
        self.mu * self.rtt
    }

    /// The window at which the queue overflows: `C + B`.
    pub fn peak(&self) -> f64 {
        self.pipe() + self.buffer
    }

    /// Time of slow start in s: `T ln W_ss` (equation 7). The fluid form: a window that doubles in each round trip takes
    /// `T log2 W_ss`.
    pub fn slow_start_s(&self) -> f64 {
        self.rtt * libm::log(self.ssthresh)
    }

    /// Time in s from window `from` until the pipe is full: `(T/alpha) ln(C/from)` (equation 10).
    pub fn filling_pipe_s(&self, from: f64) -> f64 {
        (self.rtt / self.alpha * libm::log(self.pipe() / from)).max(0.0)
    }

    /// Time in s in which the window grows from the pipe, or from `from` if that is more, to the peak: `(W_max - C)/(alpha mu)`
    /// (equation 12).
    pub fn filling_buffer_s(&self, from: f64) -> f64 {
        (self.peak() - from.max(self.pipe())) / (self.alpha * self.mu)
    }

    /// Time in s from a loss to the next.
    pub fn epoch_s(&self) -> f64 {
        let from = self.beta * self.peak();
        self.filling_pipe_s(from) + self.filling_buffer_s(from)
    }

    /// The window `t` seconds after it was `from`, without a loss: `from exp(alpha t/T)` up to the pipe (equation 9), then
    /// `C + alpha mu (t - t_c)` (equation 11, which is printed without `t_c`).
    fn growth(&self, from: f64, t: f64) -> f64 {
        let exponential = self.filling_pipe_s(from);
        if t < exponential {
            from * libm::exp(self.alpha * t / self.rtt)
        } else {
            from.max(self.pipe()) + self.alpha * self.mu * (t - exponential)
        }
    }

    /// The window in packets at time `t` s: slow start (equation 6), the exponential and the linear regime,
    /// and a return to `beta W_max` at each overflow. The paper also sets `ssthresh = W_max/2` then, which
    /// has no effect.
    pub fn window(&self, t: f64) -> f64 {
        let after = t - self.slow_start_s();
        if after < 0.0 {
            return libm::exp(t / self.rtt);
        }
        let first = self.filling_pipe_s(self.ssthresh) + self.filling_buffer_s(self.ssthresh);
        if after < first {
            return self.growth(self.ssthresh, after);
        }
        self.growth(self.beta * self.peak(), libm::fmod(after - first, self.epoch_s()))
    }
}

/// Window at a loss under random losses of probability `q`: `alpha/(q (1 - beta))` packets (equation 23).
/// This is the peak of the sawtooth; Kelly gives the same number as the mean, to first order.
pub fn random_peak(alpha: f64, beta: f64, q: f64) -> f64 {
    alpha / (q * (1.0 - beta))
}

/// Throughput in packets/s under random losses: `alpha (1 + beta)/(2 q (T + D)(1 - beta))` (equation 24).
/// Equations 20 and 21, from which the paper derives it, assume a window larger than the pipe; the result
/// needs this only to make the growth linear between losses. Growth is exponential below, and the mean of
/// that sawtooth is `(1 - beta)/ln(1/beta)` of the peak: 0.936, compared with `(1 + beta)/2` = 0.9375. For
/// independent losses in place of one in `1/q` packets see [`random_rate_independent`].
pub fn random_rate(alpha: f64, beta: f64, q: f64, rtt: f64, delay: f64) -> f64 {
    random_peak(alpha, beta, q) * (1.0 + beta) / 2.0 / (rtt + delay)
}

/// Throughput in packets/s under independent losses: each acknowledged packet adds `alpha` and each lost one takes
/// `(1 - beta) w`, so `alpha E[w] = q (1 - beta) E[w^2]` and `E[w] = alpha/(q (1 - beta)(1 + CoV^2))` with Kelly's
/// `CoV^2 = (1 - beta)/2`: 0.941 of the peak, again nearly equation 24.
pub fn random_rate_independent(alpha: f64, beta: f64, q: f64, rtt: f64) -> f64 {
    random_peak(alpha, beta, q) / (1.0 + (1.0 - beta) / 2.0) / rtt
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figure 4: 1 Gbit/s, 100 ms, packets of 1500 bytes, buffer of the bandwidth-delay product.
    const FIGURE_4: Path = Path {
        alpha: 0.01,
        beta: 0.875,
        mu: 1e9 / 12e3,
        rtt: 0.1,
        buffer: 1e9 / 12e3 * 0.1,
        ssthresh: 1000.0,
    };

    #[test]
    fn the_window_ack_by_ack() {
        // ACKs come at the rate w/T while the pipe is not full, at mu after that; each adds alpha.
        let it = FIGURE_4;
        let (mut w, mut t, step) = (it.ssthresh, it.slow_start_s(), 1e-4);
        for _ in 0..600_000 {
            w += it.alpha * step * (w / it.rtt).min(it.mu);
            if w >= it.peak() {
                w *= it.beta;
            }
            t += step;
            // Within a step of the jump the window may be on either side.
            let near = [it.window(t), it.window(t - 0.05), it.window(t + 0.05)];
            let off = near.iter().map(|x| (x / w - 1.0).abs()).fold(f64::INFINITY, f64::min);
            assert!(off < 5e-3, "{t}: {w} and {near:?}");
        }
        // (16 667 - 8 333)/(0.01 * 83 333) = 10 s.
        assert!((it.filling_buffer_s(0.0) - 10.0).abs() < 1e-9);
        assert!((it.epoch_s() - 2.5).abs() < 1e-9);
    }

    #[test]
    fn random_loss_at_the_published_point() {
        // q = 1.5e-4: the peak is 533 packets; 200 and 107 Mbit/s at 30 and 56 ms.
        assert!((random_peak(0.01, 0.875, 1.5e-4) - 533.3).abs() < 0.1);
        for (rtt, mbit) in [(0.030, 200.0), (0.056, 107.0)] {
            let rate = random_rate(0.01, 0.875, 1.5e-4, rtt, 0.0) * 12e3 / 1e6;
            assert!((rate / mbit - 1.0).abs() < 0.01, "{rate}");
            let independent = random_rate_independent(0.01, 0.875, 1.5e-4, rtt) * 12e3 / 1e6;
            assert!((independent / rate - 1.0).abs() < 0.01);
        }
    }
}

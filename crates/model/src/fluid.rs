//! The fluid model: mean windows of classes of flows and the queue they share, as delay differential equations
//! (Misra, Gong and Towsley 2000; thesis, equations 5.9 to 5.11, in the general form that its 5.10 has).
//!
//! For a class of `n` flows with mean window `w`, round-trip time without queueing `T`, on a link of `C` packets/s with `q` queued:
//!
//! ```text
//! R(t)  = T + q(t)/C                                     round-trip time
//! x(t)  = w(t)/R(t)                                      a flow's rate
//! dw/dt = x' (1 - p') a(w)/w  -  (1 - exp(-p' w'))/R' b(w) w (1 + c^2)
//! dq/dt = sum of n x (1 - p)  -  C                       at 0 and at the buffer's end as the bounds allow
//! dg/dt = 1  -  (1 - exp(-p' w'))/R' g                   mean time since a flow of the class lost
//! ```
//!
//! Primes are values one round-trip time earlier, when the packets were sent that are acknowledged or missed now. `p` is what the
//! queue drops. A window answers at most one loss in a round trip, hence the exponential. `c^2` is the squared coefficient of
//! variation of windows within the class: losses hit large windows more often, so the mean square counts. `g` is what H-TCP's
//! increase depends on: ages are taken to be exponential about it. `n` only multiplies rates: a million flows cost what one costs.
//!
//! Where it does not hold: few flows (the mean of a sawtooth is no sawtooth: below about ten flows a single loss moves the queue by
//! more than its slope allows); flows that lose together, as a DropTail queue makes flows of like round-trip times do; windows of a
//! few packets, since timeouts are left out; slow start, which is left out; bursts within a round trip, which fill small buffers that
//! the fluid leaves empty.

use crate::algorithm::Algorithm;

/// A class of flows that are alike.
#[derive(Clone, Debug)]
pub struct Class {
    /// Their algorithm.
    pub algorithm: Algorithm,
    /// How many they are.
    pub flows: f64,
    /// Round-trip time without queueing, s.
    pub rtt: f64,
}

/// What the link does with packets that find others waiting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Queue {
    /// Drops what does not fit. In the fluid that is the excess over the link's rate while the queue is full.
    DropTail,
    /// Random early detection (Floyd and Jacobson 1993): the drop probability rises from 0 at `min` to `max_p` at `max`, in
    /// packets of the averaged queue; then to 1 at twice `max` (gentle), or at once.
    Red {
        /// Averaged queue from which it drops, packets.
        min: f64,
        /// Averaged queue at which it drops with probability `max_p`, packets.
        max: f64,
        /// That probability.
        max_p: f64,
        /// Weight of a packet's queue in the average.
        weight: f64,
        /// Whether the probability rises on above `max`.
        gentle: bool,
        /// Whether drops keep a distance of 1/p to 2/p packets (ns-2's `wait_`), so that 2 p/3 of the packets are dropped; else it is
        /// 1 to 1/p, and 2 p/(1 + p) (Floyd and Jacobson 1993, section 7).
        wait: bool,
    },
    /// Drops with probability `load^buffer`, without a queue: Kelly's model of a small FIFO queue.
    Power,
}

/// A link and the flows on it.
#[derive(Clone, Debug)]
pub struct Network {
    /// Rate, packets/s.
    pub rate: f64,
    /// What the queue holds, packets.
    pub buffer: f64,
    /// How it drops.
    pub queue: Queue,
    /// Probability of a loss on the wire.
    pub random_loss: f64,
    /// The flows.
    pub classes: Vec<Class>,
}

/// What was one round-trip time ago, as a class sees it.
#[derive(Clone, Copy, Debug)]
struct Earlier {
    window: f64,
    rtt: f64,
    loss: f64,
}

impl Earlier {
    /// Losses that a flow answers, for each second: at most one in a round trip.
    fn losses(self) -> f64 {
        -libm::expm1(-self.loss * self.window) / self.rtt
    }
}

/// A state is the windows of all classes, the queue, and the averaged queue, in packets; then for each class the mean time since a
/// flow lost, in s.
impl Network {
    /// Numbers in a state.
    pub fn len(&self) -> usize {
        2 * self.classes.len() + 2
    }

    /// Whether no class is there.
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    fn queue(&self, state: &[f64]) -> f64 {
        state[self.classes.len()].clamp(0.0, self.buffer)
    }

    /// Round-trip time of class `i`, s.
    pub fn rtt(&self, i: usize, state: &[f64]) -> f64 {
        self.classes[i].rtt + self.queue(state) / self.rate
    }

    /// What all flows send, packets/s.
    pub fn offered(&self, state: &[f64]) -> f64 {
        let each = self.classes.iter().enumerate().map(|(i, c)| c.flows * state[i] / self.rtt(i, state));
        each.sum()
    }

    /// Probability that the queue drops a packet.
    pub fn drop_probability(&self, state: &[f64]) -> f64 {
        let excess = || {
            let full = state[self.classes.len()] >= self.buffer;
            if full { (1.0 - self.rate / self.offered(state)).max(0.0) } else { 0.0 }
        };
        match self.queue {
            Queue::DropTail => excess(),
            Queue::Power => libm::pow(self.offered(state) / self.rate, self.buffer).min(1.0),
            Queue::Red { min, max, max_p, gentle, wait, .. } => {
                let average = state[self.classes.len() + 1];
                let spread = |p: f64| if wait { 2.0 * p / 3.0 } else { 2.0 * p / (1.0 + p) };
                let p = if average < min {
                    0.0
                } else if average < max {
                    spread(max_p * (average - min) / (max - min))
                } else if gentle {
                    spread((max_p + (1.0 - max_p) * (average - max) / max).min(1.0))
                } else {
                    1.0
                };
                p.max(excess())
            }
        }
    }

    /// What is lost of what a flow sends: in the queue or on the wire.
    pub fn loss(&self, state: &[f64]) -> f64 {
        let dropped = self.drop_probability(state);
        dropped + (1.0 - dropped) * self.random_loss
    }

    fn earlier(&self, i: usize, state: &[f64]) -> Earlier {
        Earlier { window: state[i].max(1.0), rtt: self.rtt(i, state), loss: self.loss(state) }
    }

    /// The derivative of `now`, for each second. `before[i]` is the state one round-trip time of class `i` ago.
    pub fn derivative(&self, now: &[f64], before: &[&[f64]]) -> Vec<f64> {
        let classes = 0..self.classes.len();
        let earlier: Vec<Earlier> = classes.clone().map(|i| self.earlier(i, before[i])).collect();
        let mut change: Vec<f64> = classes
            .clone()
            .map(|i| {
                let slope = self.window_slope(i, now, earlier[i]);
                if now[i] <= 1.0 { slope.max(0.0) } else { slope }
            })
            .collect();
        let arriving = self.offered(now) * (1.0 - self.drop_probability(now));
        let mut queue = arriving - self.rate;
        let waiting = now[self.classes.len()];
        if matches!(self.queue, Queue::Power)
            || waiting <= 0.0 && queue < 0.0
            || waiting >= self.buffer && queue > 0.0
        {
            queue = 0.0;
        }
        change.push(queue);
        // The average is taken at each arrival: ln(1 - weight) for each packet (Misra, Gong and Towsley 2000, section 3).
        let average = match self.queue {
            Queue::Red { weight, .. } => {
                -libm::log1p(-weight) * self.offered(now) * (waiting - now[self.classes.len() + 1])
            }
            Queue::DropTail | Queue::Power => 0.0,
        };
        change.push(average);
        change.extend(classes.map(|i| 1.0 - earlier[i].losses() * now[self.classes.len() + 2 + i]));
        change
    }

    fn window_slope(&self, i: usize, now: &[f64], earlier: Earlier) -> f64 {
        let Class { algorithm, rtt, .. } = &self.classes[i];
        let (w, Earlier { window, rtt: round, loss }) = (now[i].max(1.0), earlier);
        let acknowledged = window / round * (1.0 - loss);
        let losses = earlier.losses();
        if let Algorithm::Fast(fast) = algorithm {
            // Equation 6.18 every other round trip: (gamma/2)(alpha - w (1 - T/R)) in one.
            let queued = w * (1.0 - rtt / round);
            let gain = fast.gamma / 2.0 * (fast.alpha - queued) / w;
            return acknowledged * gain - losses * 0.5 * w;
        }
        let (a, b) = match algorithm {
            // The time since the last loss is what its increase depends on, and its decrease on the queue that the loss met.
            Algorithm::Htcp(htcp) => {
                let it = htcp.clone().with_max_rtt(*rtt, round);
                let age = now[self.classes.len() + 2 + i].max(1e-3);
                (2.0 * (1.0 - it.beta) * it.mean_alpha(1.0 / age, *rtt), 1.0 - it.beta)
            }
            Algorithm::Cubic(cubic) => {
                ((1.0 - cubic.beta) * w * w * cubic.supporting_loss(w, round), 1.0 - cubic.beta)
            }
            _ => (algorithm.increase(w, round), 1.0 - algorithm.beta(w)),
        };
        acknowledged * a / w - losses * b * w * (1.0 + self.spread(i, w))
    }

    /// The squared coefficient of variation of windows in class `i`: that of independent losses. None for algorithms whose increase
    /// is taken from their response function.
    fn spread(&self, i: usize, w: f64) -> f64 {
        match &self.classes[i].algorithm {
            Algorithm::Htcp(_) | Algorithm::Bic(_) | Algorithm::Cubic(_) | Algorithm::Fast(_) => 0.0,
            it => it.variation(w, self.classes[i].rtt).powi(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reno(flows: f64, rtt: f64) -> Class {
        Class { algorithm: Algorithm::new("reno", &[]).unwrap(), flows, rtt }
    }

    fn red() -> Queue {
        Queue::Red { min: 50.0, max: 150.0, max_p: 0.1, weight: 0.002, gentle: true, wait: true }
    }

    #[test]
    fn the_equilibrium_is_the_response_function() {
        // By hand: 100 flows on 10 000 packets/s, 100 packets queued, so R = 110 ms and w = 11; the window stands still where
        // (1 - p) / R = (1 - exp(-p w))/R w/2 (1 + 1/8).
        let network = Network {
            rate: 1e4,
            buffer: 1000.0,
            queue: red(),
            random_loss: 0.0,
            classes: vec![reno(100.0, 0.1)],
        };
        let slope = |average: f64| {
            let state = [11.0, 100.0, average, 1.0];
            network.derivative(&state, &[&state])
        };
        // A mean age of 1 s stands still where a flow loses once in a second.
        let once = -(1.0 - 0.11f64).ln() / 11.0;
        assert!(slope(50.0 + 1500.0 * once)[3].abs() < 1e-12);
        let balance = |p: f64| (1.0 - p) - (1.0 - (-p * 11.0f64).exp()) * 5.5 * 1.125;
        for average in [55.0, 70.0, 100.0, 140.0] {
            let p = 2.0 / 3.0 * 0.1 * (average - 50.0) / 100.0;
            let expected = balance(p) / 0.11;
            assert!((slope(average)[0] - expected).abs() < 0.02 * expected.abs() + 1e-6, "{average}");
            // What is sent is the rate; what is dropped is missing from the queue.
            assert!((slope(average)[1] + 1e4 * p).abs() < 1e-6);
        }
    }

    #[test]
    fn the_queue_keeps_within_its_buffer() {
        let network = Network {
            rate: 1e4,
            buffer: 100.0,
            queue: Queue::DropTail,
            random_loss: 0.0,
            classes: vec![reno(10.0, 0.1)],
        };
        let full = [200.0, 100.0, 0.0, 1.0];
        assert_eq!(network.derivative(&full, &[&full])[1], 0.0);
        // 2000/0.11 offered, 1e4 served.
        assert!((network.loss(&full) - (1.0 - 1e4 / (2000.0 / 0.11))).abs() < 1e-12);
        let idle = [10.0, 0.0, 0.0, 1.0];
        assert_eq!((network.derivative(&idle, &[&idle])[1], network.loss(&idle)), (0.0, 0.0));
    }

    #[test]
    fn red_above_its_thresholds() {
        let network = Network {
            rate: 1e4,
            buffer: 1000.0,
            queue: red(),
            random_loss: 0.0,
            classes: vec![reno(1.0, 0.1)],
        };
        let p = |average: f64| network.drop_probability(&[10.0, 100.0, average]);
        assert_eq!((p(49.0), p(300.0)), (0.0, 2.0 / 3.0));
        assert!((p(100.0) - 0.1 / 3.0).abs() < 1e-12 && (p(225.0) - 1.1 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn htcp_grows_by_the_age_of_its_losses() {
        let classes = vec![Class { algorithm: Algorithm::new("htcp", &[]).unwrap(), flows: 1.0, rtt: 0.1 }];
        let network =
            Network { rate: 1e4, buffer: 1000.0, queue: Queue::DropTail, random_loss: 0.0, classes };
        let slope = |age: f64| {
            let state = [50.0, 0.0, 0.0, age];
            network.derivative(&state, &[&state])
        };
        // By hand, ages exponential about 2 s: alpha = 1 + exp(-1/2)(10 * 2 + 2^2/2) = 14.34; 0.4 of it in each 0.1 s.
        assert!((slope(2.0)[0] - 0.4 * 14.344 / 0.1).abs() < 0.01, "{:?}", slope(2.0));
        // Nothing is lost: age is time.
        assert_eq!(slope(2.0)[3], 1.0);
        assert!((slope(0.0)[0] - 4.0).abs() < 1e-6);
    }

    #[test]
    fn fast_rests_where_its_equilibrium_is() {
        let Ok(Algorithm::Fast(fast)) = Algorithm::new("fast", &[]) else { panic!("fast") };
        let rest = fast.equilibrium(2.0, 1e4, 0.1);
        let classes = vec![Class { algorithm: Algorithm::Fast(fast), flows: 2.0, rtt: 0.1 }];
        let network =
            Network { rate: 1e4, buffer: 1000.0, queue: Queue::DropTail, random_loss: 0.0, classes };
        let state = [rest.window, rest.queue, 0.0, 1.0];
        assert!(network.derivative(&state, &[&state])[..2].iter().all(|d| d.abs() < 1e-6));
    }
}

//! The fluid model: mean windows of classes of flows and the queue they share, as delay differential equations
//! (Misra, Gong and Towsley 2000; thesis, equations 5.9 to 5.11, in the general form that its 5.10 has).
//!
//! For a class of `n` flows with mean window `w`, round-trip time without queueing `T`, on a link of `C`
//! packets/s with `q` packets queued:
//!
//! ```text
//! R(t)  = T + q(t)/C                                     round-trip time
//! x(t)  = w(t)/R(t)                                      a flow's rate
//! dw/dt = x' (1 - p') a(w)/w  -  (1 - exp(-p' w'))/R' b(w) w (1 + c^2)
//! C     = sum of n x (1 - p)                             while something is queued
//! ```
//!
//! Primes denote values one round-trip time earlier, when the packets were sent that are acknowledged or
//! missed now. `p` is the drop probability of the queue. A window responds to at most one loss in a round
//! trip, hence the exponential. `c^2` is the squared coefficient of variation of windows within the class:
//! losses hit large windows more often, so the mean square counts. `n` only multiplies rates: a million flows
//! cost as much as one.
//!
//! Acknowledgments clock out new packets as fast as the link forwards old ones, so packets that are in flight
//! and not on the path are in the queue, at once (the static link model of Wang, Wei and Low 2005). If rates
//! were integrated, `dq/dt = sum of n x (1 - p) - C`, the queue would follow the windows a round-trip time
//! late: RED would then oscillate where the simulator does not.
//!
//! If the increase depends on the last loss (H-TCP, BIC-TCP, CUBIC), `a` and `b` are those of flows that lose
//! independently of each other ([`crate::independent`]): `b w (1 + c^2)` is then the mean reduction at a loss
//! in the state in which losses and growth keep `w` constant.
//!
//! Limits of validity: few flows (the mean of a sawtooth is no sawtooth: below about ten flows a single loss
//! moves the queue by more than its slope allows); flows that lose together, as flows of similar round-trip
//! times do at a DropTail queue, and BIC-TCP flows if RED's average is slower than their growth; windows of a
//! few packets, because timeouts are not modelled; slow start, which is not modelled; bursts within a round
//! trip, which fill small buffers that are empty in the fluid.

use elephan_units::entry::Value;

use crate::algorithm::{Algorithm, Error};
use crate::independent::{Curves, Steady, rule};

/// A class of identical flows.
#[derive(Clone, Debug)]
struct Class {
    algorithm: Algorithm,
    flows: f64,
    rtt: f64,
    /// Steady states under independent losses, if the increase depends on the last loss.
    curves: Option<Curves>,
}

/// The drop behaviour of the link's queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Queue {
    /// Drops packets that do not fit. In the fluid this is the excess over the link's rate while the queue is
    /// full.
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
        /// Whether the probability continues to rise above `max`.
        gentle: bool,
        /// Whether drops keep a distance of 1/p to 2/p packets (ns-2's `wait_`), so that 2 p/3 of the packets
        /// are dropped; otherwise it is 1 to 1/p, and 2 p/(1 + p) (Floyd and Jacobson 1993, section 7).
        wait: bool,
    },
    /// Drops with probability `load^buffer`, without a queue: Kelly's model of a small FIFO queue.
    Power,
}

/// A link.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Rate, packets/s.
    pub rate: f64,
    /// Capacity of the queue, packets.
    pub buffer: f64,
    /// Its drop behaviour.
    pub queue: Queue,
    /// Probability of a loss on the wire.
    pub random_loss: f64,
}

/// A link and the flows on it.
#[derive(Clone, Debug)]
pub struct Network {
    link: Link,
    classes: Vec<Class>,
}

/// The state one round-trip time ago, as seen by a class.
#[derive(Clone, Copy, Debug)]
struct Earlier {
    window: f64,
    rtt: f64,
    loss: f64,
}

impl Earlier {
    /// Losses to which a flow responds, for each second: at most one in a round trip.
    fn losses(self) -> f64 {
        -libm::expm1(-self.loss * self.window) / self.rtt
    }
}

/// A state is the mean windows of all classes in segments, and the averaged queue in packets.
impl Network {
    /// A link without flows.
    pub fn new(link: Link) -> Self {
        Self { link, classes: Vec::new() }
    }

    /// Adds `flows` flows of the algorithm `name`, with the published parameters except for `settings`, and a round-trip time
    /// without queueing of `rtt` s.
    pub fn add(
        &mut self,
        name: &str,
        settings: &[(&str, Value)],
        flows: f64,
        rtt: f64,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        let algorithm = Algorithm::new(name, settings)?;
        let depends_on_the_last_loss =
            matches!(algorithm, Algorithm::Htcp(_) | Algorithm::Bic(_) | Algorithm::Cubic(_));
        let curves = depends_on_the_last_loss.then(|| {
            let Link { rate, buffer, .. } = self.link;
            let most = (rate * rtt + buffer) / flows;
            Curves::new(&rule(name, settings), rtt, rtt + buffer / rate, most, is_cancelled)
        });
        let curves = curves.transpose()?;
        self.classes.push(Class { algorithm, flows, rtt, curves });
        Ok(())
    }

    /// Packets queued: those in flight that are not on the path.
    pub fn queue(&self, state: &[f64]) -> f64 {
        let Link { rate, buffer, queue, .. } = self.link;
        if queue == Queue::Power {
            return 0.0;
        }
        let kept = 1.0 - self.early_drop_probability(state);
        let mut queued = 0.0;
        // The arrival rate decreases with the queue and is convex in it: Newton's steps from below do not
        // pass the root, and few are needed.
        for _ in 0..64 {
            let (mut excess, mut slope) = (-rate, 0.0);
            for (class, w) in self.classes.iter().zip(state) {
                let rtt = class.rtt + queued / rate;
                let arriving = class.flows * w * kept / rtt;
                excess += arriving;
                slope += arriving / (rtt * rate);
            }
            if excess <= rate * 1e-12 {
                return queued;
            }
            queued += excess / slope;
            if queued >= buffer {
                return buffer;
            }
        }
        queued
    }

    /// Round-trip time of class `i`, s.
    pub fn rtt(&self, i: usize, state: &[f64]) -> f64 {
        self.classes[i].rtt + self.queue(state) / self.link.rate
    }

    /// Round-trip times of all classes, s.
    pub fn rtts(&self, state: &[f64]) -> Vec<f64> {
        let waiting = self.queue(state) / self.link.rate;
        self.classes.iter().map(|c| c.rtt + waiting).collect()
    }

    /// The longest round-trip time that any state has, s: the queue has at most its buffer.
    pub(crate) fn longest_rtt(&self) -> f64 {
        self.classes.iter().map(|c| c.rtt).fold(0.0, f64::max) + self.link.buffer / self.link.rate
    }

    /// Fraction of a window that a loss leaves to a flow of class `i`.
    pub(crate) fn beta(&self, i: usize, window: f64) -> f64 {
        self.classes[i].algorithm.beta(window)
    }

    /// Sending rate of all flows together, packets/s.
    pub fn offered(&self, state: &[f64]) -> f64 {
        let waiting = self.queue(state) / self.link.rate;
        self.classes.iter().zip(state).map(|(c, w)| c.flows * w / (c.rtt + waiting)).sum()
    }

    /// Probability that RED drops a packet.
    fn early_drop_probability(&self, state: &[f64]) -> f64 {
        let Queue::Red { min, max, max_p, gentle, wait, .. } = self.link.queue else { return 0.0 };
        let average = state[self.classes.len()];
        let spread = |p: f64| if wait { 2.0 * p / 3.0 } else { 2.0 * p / (1.0 + p) };
        if average < min {
            0.0
        } else if average < max {
            spread(max_p * (average - min) / (max - min))
        } else if gentle {
            spread((max_p + (1.0 - max_p) * (average - max) / max).min(1.0))
        } else {
            1.0
        }
    }

    /// Probability that the queue drops a packet.
    pub fn drop_probability(&self, state: &[f64]) -> f64 {
        let Link { rate, buffer, queue, .. } = self.link;
        if queue == Queue::Power {
            return libm::pow(self.offered(state) / rate, buffer).min(1.0);
        }
        let full = self.queue(state) >= buffer;
        let excess = if full { (1.0 - rate / self.offered(state)).max(0.0) } else { 0.0 };
        self.early_drop_probability(state).max(excess)
    }

    /// Probability that a packet of a flow is lost: in the queue or on the wire.
    pub fn loss(&self, state: &[f64]) -> f64 {
        let dropped = self.drop_probability(state);
        dropped + (1.0 - dropped) * self.link.random_loss
    }

    fn earlier(&self, i: usize, state: &[f64]) -> Earlier {
        Earlier { window: state[i].max(1.0), rtt: self.rtt(i, state), loss: self.loss(state) }
    }

    /// The derivative of `now`, for each second. `before[i]` is the state one round-trip time of class `i` ago.
    pub fn derivative(&self, now: &[f64], before: &[impl AsRef<[f64]>]) -> Vec<f64> {
        let waiting = self.queue(now);
        let mut change: Vec<f64> = (0..self.classes.len())
            .map(|i| {
                let rtt = self.classes[i].rtt + waiting / self.link.rate;
                let slope = self.window_slope(i, now[i].max(1.0), rtt, self.earlier(i, before[i].as_ref()));
                if now[i] <= 1.0 { slope.max(0.0) } else { slope }
            })
            .collect();
        // The average is updated at each arrival: ln(1 - weight) for each packet (Misra, Gong and Towsley
        // 2000, section 3).
        let average = match self.link.queue {
            Queue::Red { weight, .. } => {
                -libm::log1p(-weight) * self.offered(now) * (waiting - now[self.classes.len()])
            }
            Queue::DropTail | Queue::Power => 0.0,
        };
        change.push(average);
        change
    }

    /// The rate of change of window `w` of class `i` in a second, at a round-trip time of `rtt` s.
    fn window_slope(&self, i: usize, w: f64, rtt: f64, earlier: Earlier) -> f64 {
        let Class { algorithm, rtt: shortest, curves, .. } = &self.classes[i];
        let Earlier { window, rtt: round, loss } = earlier;
        let acknowledged = window / round * (1.0 - loss);
        let losses = earlier.losses();
        if let Algorithm::Fast(fast) = algorithm {
            // Equation 6.18 every other round trip: (gamma/2)(alpha - w (1 - T/R)) in each.
            let queued = w * (1.0 - shortest / round);
            let gain = fast.gamma / 2.0 * (fast.alpha - queued) / w;
            return acknowledged * gain - losses * 0.5 * w;
        }
        if let Some(curves) = curves {
            let Steady { loss, gain, .. } = curves.at(w, rtt);
            let steady = Earlier { window: w, rtt, loss };
            let taken = w / rtt * (1.0 - loss) * gain / steady.losses();
            return acknowledged * gain - losses * taken;
        }
        let taken = (1.0 - algorithm.beta(w)) * w * (1.0 + self.spread(i, w));
        acknowledged * algorithm.increase(w, round) / w - losses * taken
    }

    /// The squared coefficient of variation of windows in class `i`, under independent losses.
    fn spread(&self, i: usize, w: f64) -> f64 {
        self.classes[i].algorithm.variation(w, self.classes[i].rtt).powi(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn red() -> Queue {
        Queue::Red { min: 50.0, max: 150.0, max_p: 0.1, weight: 0.002, gentle: true, wait: true }
    }

    /// A link of 10 000 packets/s with flows of a round-trip time of 100 ms each.
    fn network(name: &str, flows: f64, buffer: f64, queue: Queue) -> Network {
        let mut network = Network::new(Link { rate: 1e4, buffer, queue, random_loss: 0.0 });
        network.add(name, &[], flows, 0.1, &|| false).unwrap();
        network
    }

    #[test]
    fn the_equilibrium_is_the_response_function() {
        // By hand: 100 flows on 10 000 packets/s with a window of 11 (1 + p): the packets that are not
        // dropped are 100 more than the path holds, so R = 110 ms; the window is constant if (1 - p)/R = (1 -
        // exp(-p w))/R w/2 (1 + 1/8).
        let network = network("reno", 100.0, 1000.0, red());
        for average in [50.0, 55.0, 70.0, 100.0, 140.0] {
            let p = 2.0 / 3.0 * 0.1 * (average - 50.0) / 100.0;
            let w = 11.0 / (1.0 - p);
            let state = [w, average];
            assert!((network.queue(&state) - 100.0).abs() < 1e-6, "{average}");
            let found = network.derivative(&state, &[&state]);
            let expected = ((1.0 - p) - (1.0 - (-p * w).exp()) * w / 2.0 * 1.125) / 0.11;
            assert!((found[0] - expected).abs() < 0.02 * expected.abs() + 1e-6, "{average}");
            // The average moves towards the queue by 0.002 of the distance for each packet that arrives,
            // dropped or not.
            let towards = -(1.0 - 0.002f64).ln() * 1e4 / (1.0 - p) * (100.0 - average);
            assert!((found[1] - towards).abs() < 1e-6 * towards.abs() + 1e-9, "{average}");
        }
    }

    #[test]
    fn the_queue_keeps_within_its_buffer() {
        let network = network("reno", 10.0, 100.0, Queue::DropTail);
        let full = [200.0, 0.0];
        assert_eq!(network.queue(&full), 100.0);
        // 2000/0.11 offered, 1e4 served.
        assert!((network.loss(&full) - (1.0 - 1e4 / (2000.0 / 0.11))).abs() < 1e-12);
        let idle = [10.0, 0.0];
        assert_eq!((network.queue(&idle), network.loss(&idle)), (0.0, 0.0));
    }

    #[test]
    fn flows_of_different_round_trip_times_share_one_queue() {
        let mut network = network("reno", 50.0, 1000.0, Queue::DropTail);
        network.add("reno", &[], 50.0, 0.05, &|| false).unwrap();
        // 400 packets queued are 40 ms: 50 * 14/0.14 + 50 * 9/0.09 = 10 000 packets/s.
        let state = [14.0, 9.0, 0.0];
        assert!((network.queue(&state) - 400.0).abs() < 1e-6);
        let [far, near] = network.rtts(&state)[..] else { panic!("two classes") };
        assert!((far - 0.14).abs() < 1e-9 && (near - 0.09).abs() < 1e-9);
        assert!((network.offered(&state) - 1e4).abs() < 1e-6);
    }

    #[test]
    fn red_above_its_thresholds() {
        let network = network("reno", 1.0, 1000.0, red());
        let p = |average: f64| network.drop_probability(&[10.0, average]);
        assert_eq!((p(49.0), p(300.0)), (0.0, 2.0 / 3.0));
        assert!((p(100.0) - 0.1 / 3.0).abs() < 1e-12 && (p(225.0) - 1.1 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn what_depends_on_the_last_loss_rests_where_independent_losses_leave_it() {
        for name in ["htcp", "bic", "cubic"] {
            let network = network(name, 100.0, 1000.0, red());
            // 11 segments each, except for those dropped: 100 packets queued.
            let steady = network.classes[0].curves.as_ref().unwrap().at(11.0, 0.11);
            let average = |loss: f64| 50.0 + 100.0 * loss / (2.0 / 3.0 * 0.1);
            let slope = |loss: f64| {
                let state = [11.0 / (1.0 - loss), average(loss)];
                network.derivative(&state, &[&state])[0]
            };
            assert!(slope(0.8 * steady.loss) > 0.0 && slope(1.25 * steady.loss) < 0.0, "{name}");
        }
    }

    #[test]
    fn fast_rests_where_its_equilibrium_is() {
        let Ok(Algorithm::Fast(fast)) = Algorithm::new("fast", &[]) else { panic!("fast") };
        let rest = fast.equilibrium(2.0, 1e4, 0.1);
        let network = network("fast", 2.0, 1000.0, Queue::DropTail);
        let state = [rest.window, 0.0];
        assert!((network.queue(&state) - rest.queue).abs() < 1e-6);
        assert!(network.derivative(&state, &[&state])[0].abs() < 1e-6);
    }
}

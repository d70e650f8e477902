//! The fluid equations over time.
//!
//! Delays depend on the state, because a round-trip time includes the queueing delay. So a step of the Runge-Kutta pair of
//! Dormand and Prince (1980) is no longer than the shortest round-trip time, and earlier states are read from the
//! interpolants of earlier steps (Shampine 1986): the method of steps. The ODE crates have no delays, or
//! (`differential-equations`) a number of them that is fixed when they are compiled, and here each class has one. What calls
//! BLAS, as SciPy's solvers do, has other last digits on another processor; windows that lose together amplify them to the first.
//!
//! A flow begins in slow start, which doubles its window in each round trip. Slow start ends when the class has had one
//! expected loss.

use std::collections::VecDeque;
use std::f64::consts::LN_2;

use crate::algorithm::Error;
use crate::fluid::Network;

/// Times of the stages of a step, in steps.
const NODES: [f64; 6] = [0.0, 1.0 / 5.0, 3.0 / 10.0, 4.0 / 5.0, 8.0 / 9.0, 1.0];
/// Weights of the earlier slopes in each stage.
const STAGES: [[f64; 5]; 6] = [
    [0.0; 5],
    [1.0 / 5.0, 0.0, 0.0, 0.0, 0.0],
    [3.0 / 40.0, 9.0 / 40.0, 0.0, 0.0, 0.0],
    [44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0, 0.0, 0.0],
    [19372.0 / 6561.0, -25360.0 / 2187.0, 64448.0 / 6561.0, -212.0 / 729.0, 0.0],
    [9017.0 / 3168.0, -355.0 / 33.0, 46732.0 / 5247.0, 49.0 / 176.0, -5103.0 / 18656.0],
];
/// Weights of the slopes in the solution of fifth order.
const SOLUTION: [f64; 6] = [35.0 / 384.0, 0.0, 500.0 / 1113.0, 125.0 / 192.0, -2187.0 / 6784.0, 11.0 / 84.0];
/// Weights of the slopes in the difference between both orders; the last slope is that at the end of the step.
const ERROR: [f64; 7] =
    [-71.0 / 57600.0, 0.0, 71.0 / 16695.0, -71.0 / 1920.0, 17253.0 / 339_200.0, -22.0 / 525.0, 1.0 / 40.0];
/// Coefficients of the interpolant, of each slope: of the first to the fourth power of the share of the step (Shampine 1986,
/// with his best `c_6`).
const INTERPOLANT: [[f64; 4]; 7] = [
    [
        1.0,
        -8_048_581_381.0 / 2_820_520_608.0,
        8_663_915_743.0 / 2_820_520_608.0,
        -12_715_105_075.0 / 11_282_082_432.0,
    ],
    [0.0; 4],
    [
        0.0,
        131_558_114_200.0 / 32_700_410_799.0,
        -68_118_460_800.0 / 10_900_136_933.0,
        87_487_479_700.0 / 32_700_410_799.0,
    ],
    [
        0.0,
        -1_754_552_775.0 / 470_086_768.0,
        14_199_869_525.0 / 1_410_260_304.0,
        -10_690_763_975.0 / 1_880_347_072.0,
    ],
    [
        0.0,
        127_303_824_393.0 / 49_829_197_408.0,
        -318_862_633_887.0 / 49_829_197_408.0,
        701_980_252_875.0 / 199_316_789_632.0,
    ],
    [0.0, -282_668_133.0 / 205_662_961.0, 2_019_193_451.0 / 616_988_883.0, -1_453_857_185.0 / 822_651_844.0],
    [0.0, 40_617_522.0 / 29_380_423.0, -110_615_467.0 / 29_380_423.0, 69_997_945.0 / 29_380_423.0],
];

/// Relative error of a step. The equations themselves are accurate to about one per cent.
const RELATIVE: f64 = 1e-4;
/// Absolute error of a step, in segments and packets.
const ABSOLUTE: f64 = 1e-3;
/// The first step, and that after a discontinuity, s.
const FIRST_STEP: f64 = 1e-4;
/// Steps that the error would allow are shortened by this, and change by no more than these factors.
const SAFETY: f64 = 0.9;
const FACTORS: (f64, f64) = (0.2, 10.0);

/// When the flows of a class send, and how they start.
#[derive(Clone, Copy, Debug)]
pub struct Lifetime {
    /// When they start, s.
    pub start: f64,
    /// When they stop, s.
    pub stop: Option<f64>,
    /// Window with which they start, segments.
    pub window: f64,
    /// Window at which slow start ends at the latest, segments.
    pub ssthresh: f64,
}

/// The flows and the link at one time.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Window of each class, segments.
    pub windows: Vec<f64>,
    /// Round-trip time of each class, s.
    pub rtts: Vec<f64>,
    /// Packets queued.
    pub queue: f64,
    /// What all flows send, packets/s.
    pub offered: f64,
    /// Probability that a packet is lost.
    pub loss: f64,
    /// Expected loss events of a flow of each class so far.
    pub losses: Vec<f64>,
}

/// The solution over one step: values at its begin, and for each the coefficients of its interpolant.
struct Piece {
    from: f64,
    step: f64,
    state: Vec<f64>,
    coefficients: Vec<[f64; 4]>,
}

/// A solution: from a class' start, or from a discontinuity, on.
struct Solver {
    step: f64,
    slope: Vec<f64>,
}

struct Integration<'a> {
    network: &'a Network,
    lifetimes: &'a [Lifetime],
    /// The shortest and the longest round-trip time that any state has, s.
    shortest: f64,
    longest: f64,
    active: Vec<bool>,
    slow: Vec<bool>,
    /// Expected losses of a flow of each class: in its slow start, and in total.
    met: Vec<f64>,
    lost: Vec<f64>,
    now: f64,
    state: Vec<f64>,
    /// Steps so far, oldest first, those that no delay reaches excepted.
    history: VecDeque<Piece>,
    evaluations: u64,
    interval: f64,
    wanted: usize,
    samples: Vec<Sample>,
}

/// Integrates the equations of `network` over `duration` s, and samples them every `interval` s. Each class has its `lifetimes`.
///
/// `goes_on` is told the share that is done after each step, and may end the integration, which then is `Error::Cancelled`.
pub fn integrate(
    network: &Network,
    lifetimes: &[Lifetime],
    duration: f64,
    interval: f64,
    goes_on: &dyn Fn(f64) -> bool,
) -> Result<Vec<Sample>, Error> {
    let mut run = Integration::new(network, lifetimes, duration, interval);
    let times = lifetimes.iter().flat_map(|it| [Some(it.start), it.stop]).flatten();
    let mut edges: Vec<f64> = times.filter(|&t| t < duration).chain([0.0, duration]).collect();
    edges.sort_by(f64::total_cmp);
    edges.dedup();
    for pair in edges.windows(2) {
        run.change_flows(pair[0]);
        run.advance(pair[1], &|now| goes_on(now / duration))?;
    }
    while run.samples.len() < run.wanted {
        run.samples.push(run.sample_of(&run.state));
    }
    Ok(run.samples)
}

impl Piece {
    fn at(&self, time: f64, into: &mut Vec<f64>) {
        let x = ((time - self.from) / self.step).min(1.0);
        into.clear();
        into.extend(
            self.state
                .iter()
                .zip(&self.coefficients)
                .map(|(y, [a, b, c, d])| y + self.step * ((((d * x + c) * x + b) * x + a) * x)),
        );
    }
}

impl<'a> Integration<'a> {
    fn new(network: &'a Network, lifetimes: &'a [Lifetime], duration: f64, interval: f64) -> Self {
        let n = lifetimes.len();
        let state = vec![0.0; n + 1];
        // Without flows nothing is queued, so these are the round-trip times of the path alone.
        let shortest = network.rtts(&state).into_iter().fold(f64::INFINITY, f64::min);
        Self {
            network,
            lifetimes,
            shortest,
            longest: network.longest_rtt(),
            active: vec![false; n],
            slow: vec![false; n],
            met: vec![0.0; n],
            lost: vec![0.0; n],
            now: 0.0,
            state,
            history: VecDeque::new(),
            evaluations: 0,
            interval,
            wanted: ((duration + interval / 2.0) / interval).ceil() as usize,
            samples: Vec::new(),
        }
    }

    /// Starts the classes that start at this time, and stops those that stop.
    fn change_flows(&mut self, now: f64) {
        for (i, it) in self.lifetimes.iter().enumerate() {
            if it.start == now && !self.active[i] {
                (self.active[i], self.slow[i], self.state[i]) = (true, it.window < it.ssthresh, it.window);
            }
            if it.stop == Some(now) {
                (self.active[i], self.slow[i], self.state[i]) = (false, false, 0.0);
            }
        }
    }

    /// The state at an earlier time; before the first step there are no flows.
    fn at(&self, time: f64, into: &mut Vec<f64>) {
        if let Some(index) = self.history.partition_point(|piece| piece.from <= time).checked_sub(1) {
            self.history[index].at(time, into);
        } else {
            into.clear();
            into.resize(self.state.len(), 0.0);
        }
    }

    /// The derivative of the state `y` at a time, for each second.
    fn slope(&mut self, time: f64, y: &[f64]) -> Vec<f64> {
        self.evaluations += 1;
        let rounds = self.network.rtts(y);
        let before: Vec<Vec<f64>> = (rounds.iter().zip(&self.active))
            .map(|(round, &active)| {
                let mut state = y.to_vec();
                if active {
                    self.at(time - round, &mut state);
                }
                state
            })
            .collect();
        let mut change = self.network.derivative(y, &before);
        for i in 0..rounds.len() {
            if !self.active[i] {
                change[i] = 0.0;
            } else if self.slow[i] {
                // The window doubles in a round trip: what is acknowledged now was sent one round trip before.
                change[i] = LN_2 * before[i][i].max(1.0) / rounds[i];
            }
        }
        change
    }

    /// Integrates until `end`. A bound of the state and the end of a slow start make the solution discontinuous, so the steps restart.
    fn advance(&mut self, end: f64, goes_on: &dyn Fn(f64) -> bool) -> Result<(), Error> {
        let mut solver = None;
        while self.now < end - 1e-12 {
            let mut running = solver.take().unwrap_or_else(|| Solver {
                step: FIRST_STEP.min(end - self.now),
                slope: self.slope(self.now, &self.state.clone()),
            });
            let (from, next) = (self.now, self.step(&mut running, end)?);
            self.sample();
            let mut state = next.clone();
            for (window, &active) in state.iter_mut().zip(&self.active) {
                *window = if active { window.max(1.0) } else { 0.0 };
            }
            let average = self.active.len();
            state[average] = state[average].max(0.0);
            let ended = self.count_losses(&mut state, self.now - from);
            if !ended && state == next {
                solver = Some(running);
            }
            self.state = state;
            if !goes_on(self.now) {
                return Err(Error::Cancelled);
            }
            while self.history.get(1).is_some_and(|piece| piece.from <= self.now - self.longest) {
                self.history.pop_front();
            }
        }
        Ok(())
    }

    /// One step, as long as its error allows: the state at its end, which is the new time.
    fn step(&mut self, solver: &mut Solver, end: f64) -> Result<Vec<f64>, Error> {
        let (from, state) = (self.now, self.state.clone());
        let least = 10.0 * (from.next_up() - from);
        let mut wanted = solver.step.min(self.shortest).max(least);
        let mut rejected = false;
        loop {
            if wanted < least {
                return Err(Error::NoSolution { time: from });
            }
            let to = (from + wanted).min(end);
            let step = to - from;
            let mut slopes: Vec<Vec<f64>> = vec![solver.slope.clone()];
            for (stage, node) in STAGES.iter().zip(NODES).skip(1) {
                let y = moved(&state, &slopes, stage, step);
                slopes.push(self.slope(from + node * step, &y));
            }
            let next = moved(&state, &slopes, &SOLUTION, step);
            slopes.push(self.slope(to, &next));
            let squares: f64 = (state.iter().zip(&next).enumerate())
                .map(|(i, (old, new))| {
                    let scale = ABSOLUTE + old.abs().max(new.abs()) * RELATIVE;
                    (step * weighted(&slopes, &ERROR, i) / scale).powi(2)
                })
                .sum();
            let error = (squares / state.len() as f64).sqrt();
            let factor = if error == 0.0 { FACTORS.1 } else { SAFETY * libm::pow(error, -0.2) };
            if error < 1.0 {
                let most = if rejected { 1.0 } else { FACTORS.1 };
                solver.step = step * factor.min(most);
                let coefficients = (0..state.len())
                    .map(|i| {
                        [0, 1, 2, 3].map(|power| weighted(&slopes, &INTERPOLANT.map(|row| row[power]), i))
                    })
                    .collect();
                solver.slope = slopes.pop().expect("a slope of each stage");
                self.history.push_back(Piece { from, step, state, coefficients });
                self.now = to;
                return Ok(next);
            }
            wanted = step * factor.max(FACTORS.0);
            rejected = true;
        }
    }

    /// Takes the samples that are due.
    fn sample(&mut self) {
        let mut state = Vec::new();
        while self.samples.len() < self.wanted && self.samples.len() as f64 * self.interval <= self.now {
            self.at(self.samples.len() as f64 * self.interval, &mut state);
            self.samples.push(self.sample_of(&state));
        }
    }

    fn sample_of(&self, state: &[f64]) -> Sample {
        let network = self.network;
        Sample {
            windows: state[..self.active.len()].to_vec(),
            rtts: network.rtts(state),
            queue: network.queue(state),
            offered: network.offered(state),
            loss: network.loss(state),
            losses: self.lost.clone(),
        }
    }

    /// Counts expected losses of a step, and ends the slow starts in `state` that have met one; whether any ended.
    fn count_losses(&mut self, state: &mut [f64], step: f64) -> bool {
        let (rounds, mut ended, mut then) = (self.network.rtts(state), false, Vec::new());
        for (i, round) in rounds.into_iter().enumerate() {
            if !self.active[i] {
                continue;
            }
            self.at(self.now - round, &mut then);
            let losses = -libm::expm1(-self.network.loss(&then) * then[i]) / round * step;
            self.lost[i] += losses;
            if !self.slow[i] {
                continue;
            }
            self.met[i] += losses;
            if self.met[i] >= 1.0 {
                state[i] *= self.network.beta(i, state[i]);
            }
            if self.met[i] >= 1.0 || state[i] >= self.lifetimes[i].ssthresh {
                (self.slow[i], self.met[i], ended) = (false, 0.0, true);
            }
        }
        ended
    }
}

/// The sum of component `i` of slopes, each with its weight.
fn weighted(slopes: &[Vec<f64>], weights: &[f64], i: usize) -> f64 {
    slopes.iter().zip(weights).map(|(slope, weight)| weight * slope[i]).sum()
}

/// A state, moved along slopes by their weights for a time of `step` s.
fn moved(state: &[f64], slopes: &[Vec<f64>], weights: &[f64], step: f64) -> Vec<f64> {
    state.iter().enumerate().map(|(i, y)| y + step * weighted(slopes, weights, i)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fluid::{Link, Queue};

    fn lifetime(start: f64) -> Lifetime {
        Lifetime { start, stop: None, window: 10.0, ssthresh: f64::INFINITY }
    }

    /// 250 Mbit/s of 1500 bytes, 82 ms, a buffer of 20 % of that.
    fn two_htcp() -> Network {
        let link = Link { rate: 20_833.3, buffer: 341.0, queue: Queue::DropTail, random_loss: 0.0 };
        let mut network = Network::new(link);
        for _ in 0..2 {
            network.add("htcp", &[], 1.0, 0.082, &|| false).unwrap();
        }
        network
    }

    #[test]
    fn a_slow_start_doubles_in_each_round_trip() {
        let link = Link { rate: 1e6, buffer: 100.0, queue: Queue::DropTail, random_loss: 0.0 };
        let mut network = Network::new(link);
        network.add("reno", &[], 1.0, 0.1, &|| false).unwrap();
        let samples = integrate(&network, &[lifetime(0.0)], 1.05, 0.1, &|_| true).unwrap();
        assert_eq!(samples.len(), 11);
        // w' = ln 2 w(t - T)/T, with 1 before the start: each round trip has the same factor in the end, x = 2^(1/x) = 1.56.
        let grown = samples[10].windows[0] / samples[9].windows[0];
        assert!((grown - 1.5596).abs() < 0.01, "{grown}");
    }

    #[test]
    fn a_delay_has_the_exact_solution() {
        // With s = t/T and L = ln 2, w'(s) = L w(s - 1), which is 1 before the start: by the method of steps w(s) is the sum
        // of L^k (s - k + 1)^k/k! for all k up to s + 1. The window of 1 has kinks after one and after two round trips; in each
        // the error of a step is allowed, the root mean square of two components of which one has none. The growth keeps
        // both. With a delay that is wrong by 1 % it is off by 4 % after ten round trips.
        let link = Link { rate: 1e6, buffer: 100.0, queue: Queue::DropTail, random_loss: 0.0 };
        let mut network = Network::new(link);
        network.add("reno", &[], 1.0, 0.1, &|| false).unwrap();
        let start = Lifetime { window: 1.0, ..lifetime(0.0) };
        let samples = integrate(&network, &[start], 1.0, 0.0125, &|_| true).unwrap();
        for (number, sample) in samples.iter().enumerate() {
            let s = number as f64 * 0.125;
            let terms = (0..=s as i32 + 1).scan(1.0, |factorial, k| {
                *factorial *= f64::from(k.max(1));
                Some(LN_2.powi(k) * (s - f64::from(k) + 1.0).powi(k) / *factorial)
            });
            let exact: f64 = terms.sum();
            let error = (sample.windows[0] / exact - 1.0).abs();
            assert!(error < 2.0 * 2f64.sqrt() * ABSOLUTE, "{s}: {} {exact}", sample.windows[0]);
        }
        assert_eq!(samples.len(), 81);
    }

    #[test]
    fn flows_that_join_find_what_was_sent_before_them() {
        // One flow queues nothing in 20 s. Then 2000 flows fill four bandwidth-delay products at once: round trips of 50 ms
        // become 250 ms.
        let link = Link { rate: 1e4, buffer: 2000.0, queue: Queue::DropTail, random_loss: 0.0 };
        let mut network = Network::new(link);
        for flows in [1.0, 2000.0] {
            network.add("reno", &[], flows, 0.05, &|| false).unwrap();
        }
        let lifetimes = [Lifetime { ssthresh: 10.0, ..lifetime(0.0) }, lifetime(20.0)];
        let kept = integrate(&network, &lifetimes, 22.0, 0.01, &|_| true).unwrap();
        let mut whole = Integration::new(&network, &lifetimes, 22.0, 0.01);
        whole.longest = f64::INFINITY;
        whole.change_flows(0.0);
        whole.advance(20.0, &|_| true).unwrap();
        whole.change_flows(20.0);
        whole.advance(22.0, &|_| true).unwrap();
        assert!(kept.iter().zip(&whole.samples).all(|(a, b)| a.windows == b.windows && a.losses == b.losses));
        assert!(kept.last().unwrap().rtts[0] > 0.2);
    }

    #[test]
    fn a_state_that_is_no_number_ends_the_integration() {
        let start = Lifetime { window: f64::NAN, ..lifetime(0.0) };
        let ended = integrate(&two_htcp(), &[start, lifetime(17.0)], 60.0, 0.2, &|_| true);
        assert!(matches!(ended, Err(Error::NoSolution { time: 0.0 })), "{ended:?}");
    }

    #[test]
    fn the_mean_window_is_that_of_the_response_function() {
        // Standard TCP of 10 segments, alone on a wide link with random loss: the mean window settles where the response
        // function has it, sqrt(2 (1 - p)/(p (1 + c^2))) for small p.
        let link = Link { rate: 1e6, buffer: 100.0, queue: Queue::DropTail, random_loss: 1e-3 };
        let mut network = Network::new(link);
        network.add("reno", &[], 1.0, 0.1, &|| false).unwrap();
        let start = Lifetime { ssthresh: 10.0, ..lifetime(0.0) };
        let last = integrate(&network, &[start], 300.0, 1.0, &|_| true).unwrap().pop().unwrap();
        let state = [last.windows[0], 0.0];
        assert!(network.derivative(&state, &[&state])[0].abs() < 1e-3, "{last:?}");
    }

    #[test]
    fn two_htcp_flows_on_a_droptail_queue_are_not_stiff() {
        let network = two_htcp();
        let lifetimes = [lifetime(0.0), lifetime(17.0)];
        let mut run = Integration::new(&network, &lifetimes, 60.0, 0.2);
        run.change_flows(0.0);
        run.advance(17.0, &|_| true).unwrap();
        run.change_flows(17.0);
        run.advance(60.0, &|_| true).unwrap();
        // A few steps for each of 730 round-trip times, with seven evaluations each. An unbounded increase took millions.
        assert!(run.evaluations < 30_000, "{}", run.evaluations);
        // Nothing that no delay reaches is kept.
        assert!(run.history.len() < 100, "{}", run.history.len());
        let carried = run
            .samples
            .iter()
            .filter(|it| it.offered > 0.0)
            .map(|it| (it.offered * (1.0 - it.loss)).min(20_833.3));
        let utilisation = carried.sum::<f64>() / 20_833.3 / run.samples.len() as f64;
        assert!((0.9..=1.0).contains(&utilisation), "{utilisation}");
    }

    #[test]
    fn flows_come_and_go() {
        let link = Link { rate: 1e4, buffer: 500.0, queue: Queue::DropTail, random_loss: 0.0 };
        let mut network = Network::new(link);
        for flows in [1.0, 5.0] {
            network.add("reno", &[], flows, 0.05, &|| false).unwrap();
        }
        let lifetimes = [lifetime(0.0), Lifetime { stop: Some(4.0), ..lifetime(2.0) }];
        let samples = integrate(&network, &lifetimes, 6.0, 1.0, &|_| true).unwrap();
        let second: Vec<bool> = samples.iter().map(|sample| sample.windows[1] > 0.0).collect();
        assert_eq!(second, [false, false, false, true, true, false, false]);
        assert!(samples.iter().skip(1).all(|sample| sample.windows[0] >= 1.0));
    }

    #[test]
    fn it_ends_when_told() {
        let network = two_htcp();
        let lifetimes = [lifetime(0.0), lifetime(17.0)];
        let ended = integrate(&network, &lifetimes, 60.0, 0.2, &|share| share < 0.5);
        assert!(matches!(ended, Err(Error::Cancelled)));
    }
}

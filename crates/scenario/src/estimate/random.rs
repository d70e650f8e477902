//! Bounds of what is drawn: how often, how little, how much together.

use elephan_net::Loss;
use elephan_traffic::{Distribution, Web};

/// How often something happens in `seconds` that takes `each` on average: with six standard deviations of a Poisson process.
pub(super) fn occurrences(seconds: f64, each: f64) -> f64 {
    let mean = seconds / each;
    mean + 6.0 * mean.sqrt() + 20.0
}

/// What a quantity is at least in the long run: its mean, or where that is made of rare large values, its smallest.
pub(super) fn least(distribution: &Distribution) -> f64 {
    match *distribution {
        Distribution::Pareto { minimum, .. } => minimum,
        ref other => other.mean(),
    }
}

/// What web users wait at least between two transfers, s.
pub(super) fn waits(web: &Web) -> f64 {
    match web.objects {
        Distribution::Constant(one) if one <= 1.0 => least(&web.think),
        _ => least(&web.think).min(least(&web.between)),
    }
}

/// What `count` draws add up to; a heavy tail with one value that is the largest of a thousand million times as many.
pub(super) fn total(distribution: &Distribution, count: f64) -> f64 {
    match *distribution {
        Distribution::Constant(value) | Distribution::Uniform(_, value) => value * count,
        Distribution::Exponential(mean) => mean * (count + 8.0 * count.sqrt() + 40.0),
        Distribution::Pareto { minimum, shape } => {
            let largest = minimum * (1e9 * count).powf(1.0 / shape);
            let mean = distribution.mean();
            if mean.is_finite() { 2.0 * count * mean + largest } else { count * largest }
        }
    }
}

/// What `count` draws that are cut at `most` add up to, with one in a thousand that it is more (Bernstein's inequality).
pub(super) fn capped(distribution: &Distribution, count: f64, most: f64) -> f64 {
    let mean = match *distribution {
        Distribution::Pareto { minimum, shape } if minimum < most => {
            // The integral of the probability that a draw is larger.
            let tail = if shape == 1.0 {
                (most / minimum).ln()
            } else {
                (1.0 - (minimum / most).powf(shape - 1.0)) / (shape - 1.0)
            };
            minimum * (1.0 + tail)
        }
        ref other => other.mean().min(most),
    };
    (mean * count + (14.0 * mean * count * most).sqrt() + 5.0 * most).min(count * most)
}

/// The share of packets that a wire loses in the long run.
pub(super) fn share_lost(loss: Loss) -> f64 {
    match loss {
        Loss::Random { probability } => probability,
        Loss::Periodic { every } => 1.0 / every as f64,
        Loss::GilbertElliott { p, r, loss_bad, loss_good } if p + r > 0.0 => {
            (p * loss_bad + r * loss_good) / (p + r)
        }
        Loss::GilbertElliott { loss_good, .. } => loss_good,
    }
}

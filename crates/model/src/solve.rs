//! Roots and integrals, more exact than any of the models.

/// The `x` in `[low, high]` at which the increasing function `f` reaches `target`, by bisection of its
/// logarithm. Returns the nearer end if there is none.
pub fn increasing(f: impl Fn(f64) -> f64, target: f64, low: f64, high: f64) -> f64 {
    let (mut low, mut high) = (libm::log(low), libm::log(high));
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if f(libm::exp(middle)) < target {
            low = middle;
        } else {
            high = middle;
        }
    }
    libm::exp(f64::midpoint(low, high))
}

/// The integral of `f` from `from` to `to` by Simpson's rule with 256 intervals.
pub fn integral(f: impl Fn(f64) -> f64, from: f64, to: f64) -> f64 {
    const INTERVALS: u32 = 256;
    let step = (to - from) / f64::from(INTERVALS);
    let inner: f64 =
        (1..INTERVALS).map(|i| f(from + f64::from(i) * step) * if i % 2 == 1 { 4.0 } else { 2.0 }).sum();
    (f(from) + inner + f(to)) * step / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_square_root_and_a_logarithm() {
        assert!((increasing(|x| x * x, 2.0, 1e-6, 1e6) - 2.0f64.sqrt()).abs() < 1e-12);
        assert!((integral(|x| 1.0 / x, 1.0, 2.0) - 2.0f64.ln()).abs() < 1e-10);
    }

    #[test]
    fn the_nearer_end_where_there_is_no_root() {
        assert!((increasing(|x| x, 10.0, 1.0, 5.0) - 5.0).abs() < 1e-9);
        assert!((increasing(|x| x, 0.1, 1.0, 5.0) - 1.0).abs() < 1e-9);
    }
}

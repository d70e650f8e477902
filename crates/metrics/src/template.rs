//! A metric as `elephan new metric` lays it out: its formula and its test.

/// The share of the largest goodput in the sum, as laid out (Author Year, equation 1). NaN for no flows or no goodput at all.
pub fn template(goodputs: &[f64]) -> f64 {
    let most = goodputs.iter().copied().fold(0.0, f64::max);
    most / goodputs.iter().sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn template_by_hand() {
        // 3 of 4.
        assert_eq!(template(&[3.0, 1.0]), 0.75);
    }
}

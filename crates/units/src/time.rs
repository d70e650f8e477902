//! Simulated time, in whole picoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

use crate::parse::{self, Unit, as_text};

/// A point on the simulated clock, or a span of it, in whole picoseconds.
///
/// At 1 ps a packet's serialisation time is exact to better than 1e-7 at any rate up to 1 Tbit/s, and the
/// clock runs for 213 days. Links carry the remainder, so not even this error accumulates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

const SCALES: [(&str, u64); 5] =
    [("ps", 1), ("ns", 1_000), ("us", 1_000_000), ("ms", 1_000_000_000), ("s", 1_000_000_000_000)];

const UNITS: [Unit; 7] = [
    (&["ps"], 1),
    (&["ns"], 1_000),
    (&["us", "µs"], 1_000_000),
    (&["ms"], 1_000_000_000),
    (&["s"], 1_000_000_000_000),
    (&["min"], 60_000_000_000_000),
    (&["h"], 3_600_000_000_000_000),
];

impl Time {
    pub(crate) const EXPECTED: &'static str = "a time such as \"82 ms\"";
    /// The start of every run, and a span of zero.
    pub const ZERO: Self = Self(0);
    /// Later than every event.
    pub const MAX: Self = Self(u64::MAX);

    /// A time of `ps` picoseconds.
    pub const fn from_picos(ps: u64) -> Self {
        Self(ps)
    }
    /// A time of `us` microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000_000)
    }
    /// A time of `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000_000)
    }
    /// A time of `s` seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000_000)
    }
    /// A time of `s` seconds, to the nearest picosecond; negative and NaN become zero.
    pub fn from_secs_f64(s: f64) -> Self {
        Self((s * 1e12).round() as u64)
    }
    /// This time in picoseconds.
    pub const fn picos(self) -> u64 {
        self.0
    }
    /// This time in seconds.
    pub fn secs_f64(self) -> f64 {
        self.0 as f64 * 1e-12
    }
    /// `self - earlier`, or zero if `earlier` is the later one.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
    /// `self + span`, or [`Time::MAX`] beyond the end of the clock.
    #[must_use]
    pub const fn saturating_add(self, span: Self) -> Self {
        Self(self.0.saturating_add(span.0))
    }
    /// This span times `factor`, to the nearest picosecond.
    #[must_use]
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor).round() as u64)
    }
}

impl Add for Time {
    type Output = Self;
    fn add(self, span: Self) -> Self {
        Self(self.0 + span.0)
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, span: Self) {
        self.0 += span.0;
    }
}

impl Sub for Time {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        Self(self.0 - earlier.0)
    }
}

impl Mul<u64> for Time {
    type Output = Self;
    /// This span times an integer `factor`, or [`Time::MAX`] beyond the end of the clock.
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Time {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0 s");
        }
        parse::write(f, self.0, &SCALES)
    }
}

as_text!(Time, r"^[0-9_]+(\.[0-9]+)? ?(ps|ns|us|µs|ms|s|min|h)$", "A time, such as \"82 ms\"");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_people_write() {
        for (text, ps) in [
            ("82 ms", 82_000_000_000),
            ("82ms", 82_000_000_000),
            ("0.5 s", 500_000_000_000),
            ("1.5 us", 1_500_000),
            ("10 min", 600_000_000_000_000),
            ("0 s", 0),
        ] {
            assert_eq!(text.parse(), Ok(Time(ps)), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_time() {
        for text in
            ["82", "ms", "", "82 Mbit/s", "-1 s", "1.2.3 s", "1e3 s", "99999999999999999999 s", "300 h 5"]
        {
            let error = text.parse::<Time>().unwrap_err();
            assert_eq!(error.to_string(), format!("expected a time such as \"82 ms\", found \"{text}\""));
        }
    }

    #[test]
    fn many_long_spans_end_with_the_clock() {
        assert_eq!(Time::from_secs(3600) * 65_536, Time::MAX);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(ps: u64) {
            prop_assert_eq!(Time(ps).to_string().parse(), Ok(Time(ps)));
        }
    }
}

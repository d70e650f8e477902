//! Bit rates.

use std::fmt;

use crate::parse::{self, Unit, as_text};
use crate::{Bytes, Time};

/// A rate in whole bits per second. On a link it counts IP packets, headers included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

const SCALES: [(&str, u64); 4] =
    [("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)];

const UNITS: [Unit; 5] = [
    (&["bit/s", "bps"], 1),
    (&["kbit/s", "kbps"], 1_000),
    (&["Mbit/s", "Mbps"], 1_000_000),
    (&["Gbit/s", "Gbps"], 1_000_000_000),
    (&["Tbit/s", "Tbps"], 1_000_000_000_000),
];

impl Rate {
    pub(crate) const EXPECTED: &'static str = "a rate such as \"250 Mbit/s\"";

    /// A rate of `bits` bits per second.
    pub const fn from_bits_per_sec(bits: u64) -> Self {
        Self(bits)
    }
    /// This rate in bits per second.
    pub const fn bits_per_sec(self) -> u64 {
        self.0
    }
    /// The amount that passes at this rate in `time`, rounded down: with a round-trip time, the
    /// bandwidth-delay product.
    pub fn bytes_in(self, time: Time) -> Bytes {
        Bytes::new((u128::from(self.0) * u128::from(time.picos()) / 8_000_000_000_000) as u64)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        parse::write(f, self.0, &SCALES)
    }
}

as_text!(
    Rate,
    r"^[0-9_]+(\.[0-9]+)? ?([kMGT]?(bit/s|bps))$",
    "A rate of IP packets, such as \"250 Mbit/s\" (1 Mbit is 10^6 bits)"
);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keeps_sonet_rates_exact() {
        assert_eq!("622.08 Mbit/s".parse(), Ok(Rate(622_080_000)));
        assert_eq!(Rate(622_080_000).to_string(), "622.08 Mbit/s");
    }

    #[test]
    fn bandwidth_delay_product_of_the_thesis() {
        // 250 Mbit/s x 82 ms = 20.5 Mbit = 2 562 500 bytes: 1708.3 packets of 1500 bytes.
        let bdp = Rate(250_000_000).bytes_in(Time::from_millis(82));
        assert_eq!(bdp, Bytes::new(2_562_500));
    }

    #[test]
    fn refuses_what_is_no_rate() {
        for text in ["250", "250 MB/s", "250 mbit/s", "fast"] {
            let error = text.parse::<Rate>().unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("expected a rate such as \"250 Mbit/s\", found \"{text}\"")
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(bits: u64) {
            prop_assert_eq!(Rate(bits).to_string().parse(), Ok(Rate(bits)));
        }
    }
}

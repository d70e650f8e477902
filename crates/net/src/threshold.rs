//! DropTail, and DropTail with marking above a fixed queue length (Alizadeh et al. 2010, section 3.1).

use elephan_units::{Rate, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::packet::{Ecn, Head};
use crate::parameters::Parameters;
use crate::verdict::{Moment, Verdict};

/// DropTail has no parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropTail {}

impl Parameters for DropTail {}

elephan_units::with_defaults! {
    /// The parameter of a marking threshold.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct Threshold {
        /// Queue length above which ECN-capable packets are marked: K of DCTCP, 65 at 10 Gbit/s (Alizadeh et al. 2010, section
        /// 3.4).
        #[schemars(extend("unit" = "packets"))]
        pub packets: u64 = 65,
    }
}

impl Parameters for Threshold {}

/// The state of a marking threshold.
#[derive(Clone, Debug)]
pub(crate) struct ThresholdState {
    packets: u64,
}

impl ThresholdState {
    /// The state at a transmitter of any rate; nothing is random.
    pub fn new(threshold: &Threshold, _: Rate, _: Stream) -> Self {
        Self { packets: threshold.packets }
    }

    /// Decides on `packet`.
    #[inline]
    pub fn judge<H: Head>(&self, packet: &H, moment: &Moment) -> Verdict {
        let marks = moment.waiting.packets >= self.packets && packet.ecn() != Ecn::NotCapable;
        if marks { Verdict::Mark } else { Verdict::Accept }
    }

    /// The transmitter's rate changed: nothing depends on it.
    pub fn tune(_: &mut Self, _: Rate) {}
}

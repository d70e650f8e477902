//! DropTail, and DropTail that marks from a fixed queue length on (Alizadeh et al. 2010, section 3.1).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::parameters::Parameters;

/// DropTail has no parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropTail {}

impl Parameters for DropTail {}

/// The parameter of a marking threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Threshold {
    /// Queue length from which ECN-capable packets are marked: K of DCTCP, 65 at 10 Gbit/s (Alizadeh et al. 2010,
    /// section 3.4).
    #[schemars(extend("unit" = "packets"))]
    pub packets: u64,
}

impl Default for Threshold {
    fn default() -> Self {
        Self { packets: 65 }
    }
}

impl Parameters for Threshold {}

//! The application of a flow in a file: `app`.

use elephan_units::{Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SizesFile;
use crate::distribution::DistributionFile;

/// An application that writes in chunks, and so limits its flow. One of `rate`, `per_second` and `pause` says when it writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppFile {
    /// Payload of a chunk, as it is written at once; with `rate` by default that of a full segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk: Option<SizesFile>,
    /// Mean rate of payload: the next chunk is written when the last has taken its time at this rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Number of chunks in a second, at equal intervals: the frame rate of a video.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_second: Option<f64>,
    /// Time from the acknowledgment of a chunk to the next: the think time between a response and the next request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<DistributionFile<Time>>,
    /// Length of an on period, with `rate` or `per_second`, which then count on-time only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<DistributionFile<Time>>,
    /// Length of a silent off period, with `on`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<DistributionFile<Time>>,
    /// Chunks of another size in between, such as the key frames of a video.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_frames: Option<KeyFramesFile>,
}

/// Which chunks are key frames, and their size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyFramesFile {
    /// The first chunk and each that follows so many chunks later is a key frame.
    pub every: u64,
    /// Payload of a key frame.
    pub size: SizesFile,
}

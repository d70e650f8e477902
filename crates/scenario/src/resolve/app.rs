//! The application of a flow.

use elephan_traffic::{App, Distribution, KeyFrames, Pace, Pattern, Sizes};

use super::crowds::sizes_of;
use super::network::Network;
use crate::error::Mistake;
use crate::file::{AppFile, KeyFramesFile};

/// The largest number of chunks in a second, as of arrivals.
const MOST_PER_SECOND: f64 = 1e9;

/// The application of the flow at `key`, whose full segments have `mss` bytes.
pub(super) fn app(file: &AppFile, key: &str, mss: u32, network: &mut Network) -> Option<App> {
    let below = |name: &str| format!("{key}.{name}");
    let chunks = match &file.chunk {
        Some(chunk) => network.note(sizes_of(chunk, &below("chunk"))),
        None if file.rate.is_some() => Some(Sizes::Drawn(Distribution::Constant(mss.into()))),
        None => {
            network.wrong(
                below("chunk"),
                "the size of a chunk, which only rate has a default for",
                "nothing",
            );
            None
        }
    };
    let key_frames = match &file.key_frames {
        None => Some(None),
        Some(KeyFramesFile { every, size }) => {
            if *every == 0 {
                network.wrong(below("key_frames.every"), "1 or more", 0);
            }
            let size = network.note(sizes_of(size, &below("key_frames.size")));
            size.map(|size| Some(KeyFrames { every: (*every).max(1), size }))
        }
    };
    let pattern = pattern(file, key, network);
    let pace = network.note(pace(file, key, pattern?));
    Some(App { chunks: chunks?, key_frames: key_frames?, pace: pace? })
}

/// When the application is on.
fn pattern(file: &AppFile, key: &str, network: &mut Network) -> Option<Pattern> {
    let below = |name: &str| format!("{key}.{name}");
    match (&file.on, &file.off) {
        (None, None) => Some(Pattern::Constant),
        (Some(on), Some(off)) => {
            let on = network.note(on.distribution(&below("on"), false));
            let off = network.note(off.distribution(&below("off"), true));
            Some(Pattern::OnOff { on: on?, off: off? })
        }
        (Some(_), None) => {
            network.wrong(below("off"), "the length of an off period, because on is given", "nothing");
            None
        }
        (None, Some(_)) => {
            network.wrong(below("on"), "the length of an on period, because off is given", "nothing");
            None
        }
    }
}

/// When the application writes.
fn pace(file: &AppFile, key: &str, pattern: Pattern) -> Result<Pace, Mistake> {
    let below = |name: &str| format!("{key}.{name}");
    match (file.rate, file.per_second, &file.pause) {
        (Some(rate), None, None) if rate.bits_per_sec() > 0 => Ok(Pace::Rate(rate, pattern)),
        (Some(rate), None, None) => {
            Err(Mistake::new(below("rate"), "a rate above zero", format_args!("\"{rate}\"")))
        }
        (None, Some(chunks), None) if chunks > 0.0 && chunks <= MOST_PER_SECOND => {
            Ok(Pace::PerSecond(chunks, pattern))
        }
        (None, Some(chunks), None) => {
            Err(Mistake::new(below("per_second"), "a number above 0, up to 1e9", chunks))
        }
        (None, None, Some(_)) if pattern != Pattern::Constant => {
            Err(Mistake::new(below("on"), "none with pause, which is the silence after each chunk", "one"))
        }
        (None, None, Some(pause)) => pause.distribution(&below("pause"), true).map(Pace::Pause),
        (rate, per_second, pause) => {
            let keys =
                [("rate", rate.is_some()), ("per_second", per_second.is_some()), ("pause", pause.is_some())];
            let given: Vec<&str> = keys.iter().filter(|(_, given)| *given).map(|&(name, _)| name).collect();
            let found = if given.is_empty() { "none".to_owned() } else { given.join(" and ") };
            Err(Mistake::new(key, "one of rate, per_second and pause", found))
        }
    }
}

//! What the connections of many flows share: the settings, and the congestion control as a connection begins with it.

use std::sync::Arc;

use elephan_cc::Controller;

use crate::config::Config;

/// A stack's settings, and a controller that has seen nothing yet. Each connection copies the controller when it
/// first sends, so a million flows need one stack.
pub struct Stack {
    pub(crate) config: Config,
    pub(crate) controller: Controller,
}

impl Stack {
    /// A stack of these settings. The controller gets the settings' initial slow-start threshold.
    pub fn new(config: &Config, controller: Controller) -> Arc<Self> {
        let controller = match config.initial_ssthresh {
            Some(segments) => controller.with_ssthresh(f64::from(segments)),
            None => controller,
        };
        Arc::new(Self { config: *config, controller })
    }
}

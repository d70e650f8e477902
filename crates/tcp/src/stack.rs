//! What the connections of many flows share: the settings, and the congestion control as a connection begins with it.

use std::sync::Arc;

use elephan_cc::Controller;
use elephan_cc::governor::Governor;

use crate::config::Config;

/// A stack's settings, and a controller that has seen nothing yet. Each connection copies the controller when it
/// first sends, so a million flows need one stack.
pub struct Stack {
    pub(crate) config: Config,
    pub(crate) controller: Controller,
    /// Whether the governor needs every mark: ECN is in use, and the receiver echoes as in DCTCP.
    pub(crate) needs_ecn: bool,
}

impl Stack {
    /// A stack of these settings. The controller gets the settings' initial slow-start threshold.
    pub fn new(config: &Config, controller: Controller) -> Arc<Self> {
        let mut controller = match config.initial_ssthresh {
            Some(segments) => controller.with_ssthresh(f64::from(segments)),
            None => controller,
        };
        if config.pacing {
            controller.pace();
        }
        if config.abe {
            controller = controller.with_abe();
        }
        let needs_ecn = controller.governor().is_some_and(Governor::needs_ecn);
        Arc::new(Self { config: *config, controller, needs_ecn })
    }

    /// Whether a governor sets the windows.
    pub fn is_governed(&self) -> bool {
        self.controller.governor().is_some()
    }
}

//! When a run stops before its end: it is cancelled, or virtual time does not advance.
//!
//! A step is an event handled, or a packet given to a link: any endless activity takes steps.

use elephan_metrics::Control;
use elephan_units::Time;

use crate::error::Error;
use crate::state::standstill::Standstill;

/// The engine checks whether it must stop after this number of steps, which take well below a millisecond.
const STEPS_BETWEEN_LOOKS: u32 = 1024;

/// Steps until the engine checks whether it must stop.
pub struct Steps {
    /// Counted down, which is cheapest; an event may take more steps than are left.
    left: i64,
    /// Its value at the engine's last check.
    granted: i64,
    standstill: Standstill,
    /// Why the run stops, for the next check to return; `None` while it continues.
    pub stopped: Option<Error>,
}

impl Default for Steps {
    fn default() -> Self {
        let (left, granted) = (STEPS_BETWEEN_LOOKS.into(), STEPS_BETWEEN_LOOKS.into());
        Self { left, granted, standstill: Standstill::default(), stopped: None }
    }
}

impl Steps {
    /// Takes one step.
    #[inline]
    pub fn take(&mut self) {
        self.left -= 1;
    }

    /// Takes this number of steps.
    #[inline]
    pub fn take_many(&mut self, count: u32) {
        self.left -= i64::from(count);
    }

    /// Whether nothing is to be checked yet.
    #[inline]
    pub fn are_left(&self) -> bool {
        self.left > 0
    }
    /// Fails if the run is cancelled, or time does not advance; otherwise grants further steps. `name` returns the source of
    /// the current step.
    #[cold]
    pub fn look(
        &mut self,
        control: &dyn Control,
        now: Time,
        name: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        if let Some(error) = self.stopped.take() {
            return Err(error);
        }
        if control.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let taken = (self.granted - self.left) as u64;
        let look_soon = self.standstill.look(taken, now, name)?;
        self.granted = if look_soon { 1 } else { STEPS_BETWEEN_LOOKS.into() };
        self.left = self.granted;
        Ok(())
    }
}

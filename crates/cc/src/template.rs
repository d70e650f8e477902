//! Template (Author Year): the purpose of its rule, in a sentence.
//!
//! As given here it is Standard TCP.

use crate::algorithm::{Ack, Algorithm, Congestion, Window};
use crate::parameter::parameters;
use crate::reno;

/// Window up to which the algorithm is Standard TCP, in segments (Author Year, section 1).
const LOW_WINDOW: f64 = 16.0;

parameters! {
    /// Template's parameters.
    pub struct Parameters {
        /// Increase in each round trip (Author Year, section 2; 1 in RFC 5681, section 3.1).
        alpha: f64 = 1.0, 0.0..=1e6, "segments";
        /// Fraction of the window that remains after a congestion event (Author Year, section 3; 0.5 in RFC 5681, equation 4).
        beta: f64 = 0.5, 0.0..=1.0, "";
    }
}

/// Template.
#[derive(Clone, Debug)]
pub struct Template {
    parameters: Parameters,
}

impl Template {
    /// Template with these parameters.
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters }
    }
}

impl Algorithm for Template {
    fn increase(&mut self, window: &Window, ack: &Ack) -> f64 {
        if window.cwnd <= LOW_WINDOW {
            return reno::increase(window, ack);
        }
        self.parameters.alpha * ack.segments / window.cwnd
    }

    fn decrease(&mut self, window: &Window, event: &Congestion) -> f64 {
        if window.cwnd <= LOW_WINDOW {
            return reno::decrease(event);
        }
        self.parameters.beta * event.flight_size
    }
}

#[cfg(test)]
mod tests {
    use elephan_units::Time;

    use super::*;
    use crate::history::{ack, close, loss};

    #[test]
    fn windows_after_acks_and_losses() {
        // At 100 an ACK of 1 adds 1/100, and a loss with 100 in flight leaves 50; at 10 1/10 and 5.
        let mut template = Template::new(Parameters::default());
        for (cwnd, added, left) in [(100.0, 0.01, 50.0), (10.0, 0.1, 5.0)] {
            let window = Window { cwnd, ssthresh: 2.0 };
            close(template.increase(&window, &ack(Time::from_millis(100))), added, 1e-12);
            close(template.decrease(&window, &loss(cwnd)), left, 1e-12);
        }
    }

    #[test]
    fn other_constants() {
        // alpha 2: 2/100. beta 0.8: 80 of 100.
        let mut template = Template::new(Parameters { alpha: 2.0, beta: 0.8 });
        let window = Window { cwnd: 100.0, ssthresh: 2.0 };
        close(template.increase(&window, &ack(Time::from_millis(100))), 0.02, 1e-12);
        close(template.decrease(&window, &loss(100.0)), 80.0, 1e-12);
    }
}

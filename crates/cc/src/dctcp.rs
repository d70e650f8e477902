//! Data Center TCP (RFC 8257): a mark reduces the window by the share of segments that are marked, so that a queue with a low
//! marking threshold stays short and the link busy.
//!
//! It negotiates ECN, and its receiver echoes each mark (section 3.2), whatever the settings of the stack.

use crate::algorithm::Cause;
use crate::governor::{Fault, Governor, Limits, Report};
use crate::parameter::parameters;
use crate::variable::{Tell, variables};

/// Smallest threshold, in segments (RFC 5681, equation 4).
const LEAST: f64 = 2.0;

parameters! {
    /// DCTCP's parameters.
    pub struct Parameters {
        /// Weight of a round trip in the average share of marked segments (RFC 8257, section 4.2).
        g: f64 = 0.0625, 0.0..=1.0, "";
        /// The average before the first round trip (section 3.3).
        alpha: f64 = 1.0, 0.0..=1.0, "";
    }
}

/// DCTCP.
#[derive(Clone, Debug)]
pub struct Dctcp {
    parameters: Parameters,
    /// Average share of marked segments.
    alpha: f64,
    /// Round trip that is being measured, and the segments that were delivered, and of these marked, before it.
    round: u64,
    delivered: u64,
    marked: u64,
}

impl Dctcp {
    /// DCTCP with these parameters.
    pub fn new(parameters: Parameters) -> Self {
        Self { parameters, alpha: parameters.alpha, round: 0, delivered: 0, marked: 0 }
    }
}

impl Governor for Dctcp {
    fn needs_ecn(&self) -> bool {
        true
    }

    fn ack(&mut self, limits: &mut Limits, report: &Report) -> Result<(), Fault> {
        if report.round > self.round {
            let delivered = report.delivered - self.delivered;
            let marked = report.delivered_ce - self.marked;
            if delivered > 0 {
                let share = marked as f64 / delivered as f64;
                self.alpha += self.parameters.g * (share - self.alpha);
            }
            (self.round, self.delivered, self.marked) = (report.round, report.delivered, report.delivered_ce);
        }
        // Growth is Standard TCP's (section 3.3): slow start up to the threshold, and a segment in a round trip beyond.
        let start = report.growth.min((limits.ssthresh - limits.cwnd).max(0.0));
        limits.cwnd += start;
        limits.cwnd += (report.growth - start) / limits.cwnd;
        Ok(())
    }

    fn congestion(&mut self, limits: &mut Limits, _: &Report, cause: Cause) -> Result<(), Fault> {
        // A loss is Standard TCP's (section 3.5).
        let removed = match cause {
            Cause::Ecn => self.alpha / 2.0,
            Cause::Loss | Cause::Timeout => 0.5,
        };
        limits.ssthresh = ((1.0 - removed) * limits.cwnd).max(LEAST);
        Ok(())
    }

    fn fresh(&self, _: u64) -> Box<dyn Governor> {
        Box::new(Self::new(self.parameters))
    }

    fn boxed(&self) -> Box<dyn Governor> {
        Box::new(self.clone())
    }

    fn variables(&self, tell: &mut Tell<'_>) {
        variables! { tell;
            /// Average share of marked segments (RFC 8257, section 3.3).
            alpha: "" = self.alpha;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::close;

    /// The limits after these calls, from a window of 100 in congestion avoidance.
    fn limits() -> Limits {
        Limits { cwnd: 100.0, ssthresh: 2.0, pacing_rate: 0.0, requests: 0 }
    }

    /// The first ACK of a round trip, after 100 segments in each before, of which `marked` in all.
    fn first_of(round: u64, marked: u64) -> Report {
        Report { round, delivered: 100 * round, delivered_ce: marked, ..Report::default() }
    }

    #[test]
    fn a_mark_removes_half_of_the_average_share_of_marked_segments() {
        // 1, then 15/16 * 1 + 1/16 * 0.2 = 0.95, then 15/16 * 0.95 = 0.890625.
        let mut dctcp = Dctcp::new(Parameters::default());
        for (round, marked, alpha) in [(1, 20, 0.95), (2, 20, 0.890_625)] {
            let mut limits = limits();
            dctcp.ack(&mut limits, &first_of(round, marked)).unwrap();
            dctcp.congestion(&mut limits, &first_of(round, marked), Cause::Ecn).unwrap();
            close(limits.ssthresh, 100.0 * (1.0 - alpha / 2.0), 1e-9);
        }
    }

    #[test]
    fn a_loss_halves_the_window() {
        let mut dctcp = Dctcp::new(Parameters { alpha: 0.1, ..Parameters::default() });
        for cause in [Cause::Loss, Cause::Timeout] {
            let mut limits = limits();
            dctcp.congestion(&mut limits, &Report::default(), cause).unwrap();
            assert_eq!(limits.ssthresh, 50.0);
        }
        let mut limits = Limits { cwnd: 3.0, ..limits() };
        dctcp.congestion(&mut limits, &Report::default(), Cause::Loss).unwrap();
        assert_eq!(limits.ssthresh, 2.0);
    }

    #[test]
    fn it_grows_as_standard_tcp() {
        // 9.5 and an ACK of 2: 0.5 to the threshold of 10, and 1.5/10 beyond.
        let mut dctcp = Dctcp::new(Parameters::default());
        let mut limits = Limits { cwnd: 9.5, ssthresh: 10.0, ..limits() };
        dctcp.ack(&mut limits, &Report { growth: 2.0, ..Report::default() }).unwrap();
        close(limits.cwnd, 10.15, 1e-12);
    }
}

//! Congestion epochs, and the number of flows that back off together.

use elephan_units::Time;

/// Groups reductions of flows into congestion epochs.
///
/// An epoch begins with a flow's reduction and includes those that follow within one round-trip time, because
/// flows that lost packets in the same overflow detect the loss at times that differ by up to a round trip.
/// The synchronisation rate is the mean share of the active flows that back off in an epoch.
#[derive(Clone, Debug)]
pub struct Epochs {
    span: Time,
    began: Option<Time>,
    /// The number of flows that backed off in the current epoch, and for each flow the last epoch in which it
    /// did, counted from 1.
    flows: u32,
    last: Vec<u64>,
    active: usize,
    /// Epochs closed so far, and the sum of their shares.
    closed: u64,
    shares: f64,
}

impl Epochs {
    /// No epoch yet; `span` is the longest round-trip time of the flows.
    pub fn new(span: Time) -> Self {
        Self { span, began: None, flows: 0, last: Vec::new(), active: 0, closed: 0, shares: 0.0 }
    }

    /// `flow` reduced its window while `active` flows were active.
    pub fn reduction(&mut self, flow: u32, active: usize, now: Time) {
        if self.began.is_none_or(|began| now.since(began) > self.span) {
            self.close();
            self.began = Some(now);
        }
        self.active = active;
        let (flow, present) = (flow as usize, self.closed + 1);
        if self.last.len() <= flow {
            self.last.resize(flow + 1, 0);
        }
        if std::mem::replace(&mut self.last[flow], present) != present {
            self.flows += 1;
        }
    }

    fn close(&mut self) {
        if self.began.is_some() {
            self.closed += 1;
            self.shares += f64::from(self.flows) / self.active.max(1) as f64;
            self.flows = 0;
        }
    }

    /// Number of epochs, and the synchronisation rate (NaN without epochs).
    pub fn finish(mut self) -> (u64, f64) {
        self.close();
        (self.closed, self.shares / self.closed as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_of_two_and_one_of_two() {
        let mut epochs = Epochs::new(Time::from_millis(100));
        epochs.reduction(0, 2, Time::from_millis(1000));
        epochs.reduction(1, 2, Time::from_millis(1050));
        epochs.reduction(1, 2, Time::from_millis(1060));
        epochs.reduction(0, 2, Time::from_millis(5000));
        let (count, rate) = epochs.finish();
        assert_eq!((count, rate), (2, 0.75));
    }

    #[test]
    fn no_reduction_no_epoch() {
        let (count, rate) = Epochs::new(Time::from_millis(100)).finish();
        assert!(count == 0 && rate.is_nan());
    }
}

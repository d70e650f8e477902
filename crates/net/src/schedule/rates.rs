//! A rate that changes at given times.

use elephan_units::{Rate, Time};

use crate::serializer::PICOS_BITS;

/// A rate over time: each holds until the next begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates {
    steps: Vec<Step>,
    /// After this time all begins again.
    period: Option<Time>,
    /// What is allowed in a period.
    total: u128,
}

/// A rate, and from when on it holds.
#[derive(Clone, Debug, PartialEq)]
struct Step {
    from: Time,
    rate: Rate,
    /// What the steps before it allow, in bits times the picoseconds in a second.
    before: u128,
}

impl Rates {
    /// Rates from given times on, which increase from zero. With a `period`, which is later than all of them, they begin again
    /// after it. A rate of zero is an outage.
    ///
    /// # Panics
    /// Without any rate.
    pub fn new(rates: &[(Time, Rate)], period: Option<Time>) -> Self {
        let mut steps: Vec<Step> = Vec::with_capacity(rates.len());
        for &(from, rate) in rates {
            let before = steps.last().map_or(0, |last| last.before + worth(last.rate, from.since(last.from)));
            steps.push(Step { from, rate, before });
        }
        let last = steps.last().expect("there is a rate");
        let total = period.map_or(0, |period| last.before + worth(last.rate, period.since(last.from)));
        Self { steps, period, total }
    }

    /// The highest.
    pub fn fastest(&self) -> Rate {
        self.steps.iter().map(|step| step.rate).fold(Rate::from_bits_per_sec(0), Ord::max)
    }

    /// The one at a time.
    pub fn at(&self, at: Time) -> Rate {
        let (_, within) = self.split(at);
        self.steps[self.step_at(within)].rate
    }

    /// How many whole periods have passed, and the time within the next.
    fn split(&self, at: Time) -> (u64, Time) {
        match self.period {
            Some(period) => (at.picos() / period.picos(), Time::from_picos(at.picos() % period.picos())),
            None => (0, at),
        }
    }

    fn step_at(&self, within: Time) -> usize {
        self.steps.partition_point(|step| step.from <= within).saturating_sub(1)
    }

    /// What is allowed from time zero until `at`, in bits times the picoseconds in a second.
    pub fn work(&self, at: Time) -> u128 {
        let (periods, within) = self.split(at);
        let step = &self.steps[self.step_at(within)];
        u128::from(periods) * self.total + step.before + worth(step.rate, within.since(step.from))
    }

    /// The step, and the beginning of its period, in which as much as `work` is first allowed; `None` for never. Its rate is above
    /// zero.
    fn reaches(&self, work: u128) -> Option<(u64, &Step)> {
        let periods = match (work.checked_sub(1), self.period) {
            (Some(below), Some(_)) => u64::try_from(below.checked_div(self.total)?).ok()?,
            _ => 0,
        };
        let rest = work - u128::from(periods) * self.total;
        let number = self.steps.partition_point(|step| step.before < rest).saturating_sub(1);
        let step = &self.steps[number];
        (step.rate.bits_per_sec() > 0).then_some((periods, step))
    }

    fn beginning(&self, periods: u64, step: &Step) -> Time {
        (self.period.unwrap_or(Time::ZERO) * periods).saturating_add(step.from)
    }

    /// When as much as `work`, which is above zero, is first allowed, rounded down to a picosecond; `Time::MAX` for never.
    pub fn when(&self, work: u128) -> Time {
        let Some((periods, step)) = self.reaches(work) else { return Time::MAX };
        let within = work - u128::from(periods) * self.total - step.before;
        let picos = within / u128::from(step.rate.bits_per_sec());
        self.beginning(periods, step)
            .saturating_add(Time::from_picos(u64::try_from(picos).unwrap_or(u64::MAX)))
    }

    /// The first time from `now` on at which the rate is not zero; `Time::MAX` for never.
    pub fn next_service(&self, now: Time) -> Time {
        if self.at(now).bits_per_sec() > 0 {
            return now;
        }
        let next = self.reaches(self.work(now) + 1);
        next.map_or(Time::MAX, |(periods, step)| self.beginning(periods, step))
    }
}

fn worth(rate: Rate, span: Time) -> u128 {
    u128::from(rate.bits_per_sec()) * u128::from(span.picos())
}

/// What a packet of `bytes` needs.
pub(super) fn work_of(bytes: u32) -> u128 {
    u128::from(bytes) * PICOS_BITS
}

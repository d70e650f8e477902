//! Links whose service over time is known beforehand: a rate that changes, or opportunities to deliver.
//!
//! The end of a packet's service follows from its start, however often the rate changes meanwhile. So nothing has to happen
//! when it changes: such a link needs no more events than any other.

mod opportunities;
mod rates;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use elephan_units::{Rate, Time};

use crate::serializer::bytes_of;

pub use opportunities::{OPPORTUNITY_BYTES, Opportunities};
pub use rates::Rates;

/// When a link serves packets.
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// At a rate that changes; a packet in service goes on at the new rate.
    Rates(Arc<Rates>),
    /// At given times, a number of bytes each.
    Opportunities(Arc<Opportunities>),
}

impl Schedule {
    /// The highest rate that it reaches; none where bytes leave all at once.
    pub fn fastest(&self) -> Option<Rate> {
        match self {
            Self::Rates(rates) => Some(rates.fastest()),
            Self::Opportunities(_) => None,
        }
    }

    /// Bits that it allows until `at`, from time zero on; times the picoseconds in a second.
    pub fn allowed(&self, at: Time) -> u128 {
        match self {
            Self::Rates(rates) => rates.work(at),
            Self::Opportunities(opportunities) => opportunities.work(at),
        }
    }
}

/// A transmitter with a schedule: what it is about to serve.
#[derive(Debug)]
pub(crate) struct Server {
    schedule: Schedule,
    /// With rates: what has been allowed when the last packet has left, in bits times the picoseconds in a second.
    target: u128,
    /// With rates: the part of it that times in whole picoseconds leave over, less than one picosecond's worth.
    carry: u128,
    /// With opportunities: the number of the one that is used next, and its bytes that are left.
    next: u64,
    left: u32,
    /// When the last packet has left.
    finish: Time,
    /// The rate that the queue was last told.
    told: Option<Rate>,
}

impl Server {
    pub fn new(schedule: Schedule) -> Self {
        Self {
            schedule,
            target: 0,
            carry: 0,
            next: 0,
            left: OPPORTUNITY_BYTES,
            finish: Time::ZERO,
            told: None,
        }
    }

    /// When an idle transmitter begins with a packet that arrives at `now`; `Time::MAX` for never.
    pub fn begin(&mut self, now: Time) -> Time {
        match &self.schedule {
            Schedule::Rates(rates) => rates.next_service(now),
            Schedule::Opportunities(opportunities) => {
                (self.next, self.left) = (opportunities.count(now), OPPORTUNITY_BYTES);
                opportunities.time(self.next)
            }
        }
    }

    /// Serves a packet of `bytes` from `start` on, which is what [`Server::begin`] or the last call gave: when it has left, and
    /// when the next may begin.
    pub fn serve(&mut self, start: Time, bytes: u32) -> (Time, Time) {
        match &self.schedule {
            Schedule::Rates(rates) => {
                self.target = rates.work(start) + self.carry + rates::work_of(bytes);
                self.finish = rates.when(self.target);
                if self.finish == Time::MAX {
                    return (Time::MAX, Time::MAX);
                }
                self.carry = self.target - rates.work(self.finish);
                (self.finish, rates.next_service(self.finish))
            }
            Schedule::Opportunities(opportunities) => {
                let more = bytes.saturating_sub(self.left).div_ceil(OPPORTUNITY_BYTES);
                self.left = self.left + more * OPPORTUNITY_BYTES - bytes;
                self.next += u64::from(more);
                self.finish = opportunities.time(self.next);
                if self.left == 0 {
                    (self.next, self.left) = (self.next + 1, OPPORTUNITY_BYTES);
                }
                (self.finish, opportunities.time(self.next))
            }
        }
    }

    /// Bytes of the packet in service that have not left by `now`, to the nearest byte.
    pub fn unsent(&self, now: Time) -> u64 {
        if self.finish <= now {
            return 0;
        }
        match &self.schedule {
            Schedule::Rates(rates) => bytes_of(self.target.saturating_sub(rates.work(now))),
            Schedule::Opportunities(opportunities) => {
                let to_come = self.next.saturating_sub(opportunities.count(now));
                let of_the_last = u64::from(OPPORTUNITY_BYTES - self.left);
                to_come * u64::from(OPPORTUNITY_BYTES) + of_the_last
            }
        }
    }

    /// Drops the packet in service at `now`; gives when the transmitter may begin again.
    pub fn clear(&mut self, now: Time) -> Time {
        self.finish = now;
        self.carry = 0;
        self.begin(now)
    }

    /// The rate at `now`, if it is not the one of the last call, and not zero.
    pub fn new_rate(&mut self, now: Time) -> Option<Rate> {
        let Schedule::Rates(rates) = &self.schedule else { return None };
        let rate = rates.at(now);
        if rate.bits_per_sec() == 0 || self.told == Some(rate) {
            return None;
        }
        self.told = Some(rate);
        self.told
    }
}

//! Web users: think, fetch a page object by object, think again.
//!
//! The model of Kelly 2003, section 4.2 and Table 4, which is a closed loop: the next page is not requested
//! until the last one has arrived. Objects of a page are fetched one after the other, each on a separate
//! connection. The publication does not say whether they may overlap; with sequential fetching every request
//! waits for the previous one.

use elephan_units::{Seed, Stream, Time};

use crate::distribution::Distribution;

/// The behaviour of users.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Web {
    /// Time from the end of a page to the next, s.
    pub think: Distribution,
    /// Number of objects of a page; rounded, and at least one.
    pub objects: Distribution,
    /// Time from the end of an object to the next one of its page, s.
    pub between: Distribution,
    /// Size of an object, bytes; rounded, and at least one.
    pub size: Distribution,
}

/// A request of a user for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Delay after the arrival of the last object.
    pub wait: Time,
    /// Its size, bytes.
    pub size: u64,
    /// Whether it is the first of its page.
    pub is_first: bool,
    /// Whether it is the last of its page.
    pub is_last: bool,
}

/// A user: a sequence of requests, which depends only on the seed and the user's number. So it is the same
/// whatever the network and other traffic do, as Kelly's comparison requires.
#[derive(Clone, Debug)]
pub struct User {
    stream: Stream,
    web: Web,
    /// Objects of this page that were not requested yet.
    left: u64,
    has_begun: bool,
}

impl User {
    /// User number `index` of a run, before the first page.
    pub fn new(web: &Web, seed: Seed, index: u64) -> Self {
        Self { stream: seed.stream("web user", index), web: *web, left: 0, has_begun: false }
    }

    /// The user's next request. The first page is requested without a wait.
    pub fn ask(&mut self) -> Request {
        let is_first = self.left == 0;
        let mut wait = 0.0;
        if is_first {
            let think = self.web.think.draw(&mut self.stream);
            if self.has_begun {
                wait = think;
            }
            self.has_begun = true;
            self.left = self.web.objects.draw(&mut self.stream).round().max(1.0) as u64;
        } else {
            wait = self.web.between.draw(&mut self.stream);
        }
        self.left -= 1;
        let size = self.web.size.draw(&mut self.stream).round().max(1.0) as u64;
        Request { wait: Time::from_secs_f64(wait), size, is_first, is_last: self.left == 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 2003;

    /// Kelly's Table 4.
    const TABLE_4: Web = Web {
        think: Distribution::Pareto { minimum: 10.0, shape: 2.0 },
        objects: Distribution::Pareto { minimum: 3.0, shape: 1.5 },
        between: Distribution::Pareto { minimum: 0.5, shape: 1.5 },
        size: Distribution::Pareto { minimum: 12_000.0, shape: 1.2 },
    };

    /// The first pages of many users.
    fn requests() -> Vec<Request> {
        let user = |index| {
            let mut user = User::new(&TABLE_4, Seed::new(SEED), index);
            (0..100).map(move |_| user.ask()).collect::<Vec<_>>()
        };
        (0..4200).flat_map(user).collect()
    }

    fn median(mut values: Vec<f64>) -> f64 {
        let middle = values.len() / 2;
        *values.select_nth_unstable_by(middle, f64::total_cmp).1
    }

    #[test]
    fn medians_are_those_of_table_4() {
        // The median of a Pareto distribution is k 2^(1/a); 1 % is more than four of its standard deviations
        // here.
        let requests = requests();
        let of =
            |choose: &dyn Fn(&Request) -> Option<f64>| median(requests.iter().filter_map(choose).collect());
        let think = of(&|r| (r.is_first && r.wait > Time::ZERO).then(|| r.wait.secs_f64()));
        let between = of(&|r| (!r.is_first).then(|| r.wait.secs_f64()));
        let size = of(&|r| Some(r.size as f64));
        for (name, found, expected) in [
            ("think", think, 10.0 * 2f64.powf(0.5)),
            ("between", between, 0.5 * 2f64.powf(1.0 / 1.5)),
            ("size", size, 12_000.0 * 2f64.powf(1.0 / 1.2)),
        ] {
            assert!((found / expected - 1.0).abs() < 0.01, "seed {SEED}: {name} {found}, not {expected}");
        }
    }

    #[test]
    fn objects_of_a_page_are_counted() {
        let mut counts = Vec::new();
        for index in 0..20_000 {
            let mut user = User::new(&TABLE_4, Seed::new(SEED), index);
            let mut count = 1;
            assert!(user.ask().is_first);
            while count < 1_000_000 && user.left > 0 {
                assert!(!user.ask().is_first);
                count += 1;
            }
            counts.push(f64::from(count));
        }
        // P(more than 30 objects) = (3/30.5)^1.5 = 3.08 %, with a standard deviation of 0.12 %.
        let many = counts.iter().filter(|&&count| count > 30.0).count() as f64 / counts.len() as f64;
        assert!((many - 0.0308).abs() < 0.005, "seed {SEED}: {many}");
        assert_eq!(counts.iter().copied().fold(f64::INFINITY, f64::min), 3.0);
    }

    #[test]
    fn a_user_has_one_sample_path() {
        let path = |index| {
            let mut user = User::new(&TABLE_4, Seed::new(SEED), index);
            (0..50).map(move |_| user.ask()).collect::<Vec<_>>()
        };
        assert_eq!(path(7), path(7));
        assert_ne!(path(7), path(8));
    }
}

//! A crowd while a plan is carried out: the pending requests, and the engine slots that its connections use.

use elephan_scenario::plan;
use elephan_units::Seed;

/// A crowd of short flows.
pub struct Crowd {
    /// Its users, or the process by which its flows arrive.
    pub members: elephan_traffic::Crowd,
    /// The slot of its first user.
    pub first: u32,
    /// Slots of the engine that belong to the crowd; users have one each.
    pub slots: Vec<u32>,
    /// Slots that are not in use, of flows that arrive at random.
    pub idle: Vec<u32>,
    /// Connections opened, finished, and given up.
    pub opened: u64,
    pub finished: u64,
    pub failed: u64,
}

impl Crowd {
    /// Crowd number `index` of a plan, with the slots `first`, `first + 1`, ... for its users, after the
    /// crowds with `users_before` users.
    pub fn new(crowd: &plan::Crowd, seed: Seed, index: u64, first: u32, users_before: u64) -> Self {
        let when = (&crowd.flow.start, crowd.flow.stop);
        let members = elephan_traffic::Crowd::new(&crowd.members, when, seed, index, users_before);
        let slots = (first..).take(members.starts().len()).collect();
        Self { members, first, slots, idle: Vec::new(), opened: 0, finished: 0, failed: 0 }
    }
}

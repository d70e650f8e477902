//! The links of all parts, by number.

use elephan_net::{Packet, View};

use crate::part::Part;
use crate::paths::Paths;

/// The links of all parts, which have advanced to the same time.
pub(crate) struct Links<'n, P: Packet> {
    pub parts: &'n mut [Part<P>],
    pub paths: &'n Paths,
}

impl<P: Packet> Links<'_, P> {
    /// Both ends of a link.
    pub fn view(&mut self, link: u32) -> View<'_, P> {
        let [near, far] = self.paths.places[link as usize];
        if near.part == far.part {
            return self.parts[near.part as usize].view(near.number as usize, far.number as usize);
        }
        let parts = self.parts.get_disjoint_mut([near.part as usize, far.part as usize]);
        let [from, to] = parts.expect("the parts differ");
        from.view_across(near.number as usize, to, far.number as usize)
    }
}

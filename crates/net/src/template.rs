//! Template (Author Year): the purpose of its rule, in a sentence.
//!
//! As given here it drops, or marks, packets that find a given number of packets waiting.

use elephan_units::{Mistake, Rate, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::packet::Head;
use crate::parameters::Parameters;
use crate::verdict::{Moment, Verdict};

elephan_units::with_defaults! {
    /// Template's parameters.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct Template {
        /// Queue length from which packets are dropped (Author Year, section 1).
        #[schemars(range(min = 1), extend("unit" = "packets"))]
        pub packets: u64 = 65,
        /// Whether ECN-capable packets are marked instead of dropped (RFC 3168, section 7).
        pub ecn: bool = true,
    }
}

impl Parameters for Template {
    fn rules(&self) -> Vec<Mistake> {
        Vec::new()
    }
}

/// Template's state.
#[derive(Clone, Debug)]
pub(crate) struct TemplateState {
    template: Template,
}

impl TemplateState {
    /// The state at a transmitter of this rate; random numbers come from the stream.
    pub fn new(template: &Template, _: Rate, _: Stream) -> Self {
        Self { template: template.clone() }
    }

    /// Decides on a packet when it arrives.
    #[inline]
    pub fn judge<H: Head>(&mut self, packet: &H, moment: &Moment) -> Verdict {
        if moment.waiting.packets < self.template.packets {
            return Verdict::Accept;
        }
        Verdict::notify(packet, self.template.ecn)
    }

    /// The transmitter's rate changed.
    pub fn tune(_: &mut Self, _: Rate) {}
}

#[cfg(test)]
mod tests {
    use elephan_units::{Seed, Time};

    use super::*;
    use crate::packet::Ecn;
    use crate::testing::{Parcel, parcel};
    use crate::waiting::Waiting;

    fn state(template: &Template) -> TemplateState {
        let rate = Rate::from_bits_per_sec(1_000_000);
        let mut state = TemplateState::new(template, rate, Seed::new(1).stream("test", 0));
        TemplateState::tune(&mut state, rate);
        state
    }

    #[test]
    fn packets_at_the_threshold_are_marked_or_dropped() {
        let mut template = state(&Template { packets: 2, ..Template::default() });
        let incapable = Parcel { ecn: Ecn::NotCapable, ..parcel(0) };
        for (packets, capable, other) in
            [(1, Verdict::Accept, Verdict::Accept), (2, Verdict::Mark, Verdict::Drop)]
        {
            let waiting = Waiting { packets, bytes: 1500 * packets };
            let moment = Moment { now: Time::ZERO, waiting, busy_until: Time::ZERO };
            assert_eq!(template.judge(&parcel(0), &moment), capable);
            assert_eq!(template.judge(&incapable, &moment), other);
        }
    }
}

//! RED: Random Early Detection.
//!
//! Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM Transactions on Networking 1(4),
//! 1993. Gentle: Floyd, "Recommendation on using the gentle_ variant of RED", 2000. Automatic settings: Floyd, Gummadi and
//! Shenker, "Adaptive RED", 2001. `wait` as in ns-2's RED, by the same author.

#[cfg(test)]
mod tests;

use elephan_units::{Rate, Stream, Time};
use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::packet::Head;
use crate::parameters::Parameters;
use crate::verdict::{Moment, Verdict};
use elephan_units::Mistake;

/// Smallest automatic `min_th`, in packets (Floyd, Gummadi and Shenker 2001, section 5).
const LEAST_MIN_TH: f64 = 5.0;
/// Automatic `max_th` over `min_th` (Floyd 1997, "RED: Discussions of setting parameters").
const MAX_OVER_MIN: f64 = 3.0;

elephan_units::with_defaults! {
    /// RED's parameters.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct Red {
        /// Average queue up to which no packet is dropped; automatic: half of the packets that the link sends in target_delay,
        /// at least 5 (Floyd, Gummadi and Shenker 2001, section 5).
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0.0), extend("unit" = "packets"))]
        pub min_th: Option<f64> = None,
        /// Average queue at which the drop probability reaches max_p; automatic: 3 min_th (Floyd 1997).
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("exclusiveMinimum" = 0.0), extend("unit" = "packets"))]
        pub max_th: Option<f64> = None,
        /// Drop probability at max_th (Floyd and Jacobson 1993, section 4; 0.1: Floyd 1997).
        #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
        pub max_p: f64 = 0.1,
        /// Weight of a new packet's queue in the average; automatic: 1 - exp(-1/C), C the rate in packets per second (Floyd,
        /// Gummadi and Shenker 2001, section 5).
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
        pub w_q: Option<f64> = None,
        /// Whether the probability rises from max_p to 1 between max_th and twice that, instead of at once (Floyd 2000).
        pub gentle: bool = true,
        /// Whether the queue is measured in bytes, and small packets are dropped less often (Floyd and Jacobson 1993, section
        /// 4).
        pub bytes: bool = false,
        /// Mean packet size: converts thresholds with bytes, and is the unit of C and of the idle time.
        #[schemars(range(min = 1), extend("unit" = "bytes"))]
        pub mean_pktsize: u32 = 1500,
        /// Whether the gap between drops is 1/p to 2/p packets, instead of 1 to 1/p (ns-2, `wait_`).
        pub wait: bool = true,
        /// Whether ECN-capable packets are marked instead of dropped, up to where all are dropped (RFC 3168, section 7).
        pub ecn: bool = true,
        /// Target queueing delay of automatic thresholds (Floyd, Gummadi and Shenker 2001, section 5).
        pub target_delay: Time = Time::from_millis(5),
    }
}

/// Mistakes in a pair of thresholds.
pub(crate) fn threshold_rules(min_th: Option<f64>, max_th: Option<f64>) -> Vec<Mistake> {
    match (min_th, max_th) {
        (Some(min), Some(max)) if max <= min => {
            vec![Mistake::new("max_th", format_args!("a number above min_th = {min}"), max)]
        }
        (None, Some(max)) if max <= LEAST_MIN_TH => {
            let expected =
                format!("a number above {LEAST_MIN_TH}, the least automatic min_th, or a min_th too");
            vec![Mistake::new("max_th", expected, max)]
        }
        _ => Vec::new(),
    }
}

impl Parameters for Red {
    fn rules(&self) -> Vec<Mistake> {
        threshold_rules(self.min_th, self.max_th)
    }
}

/// Packets of this size per second.
pub(crate) fn packets_per_second(rate: Rate, bytes: u32) -> f64 {
    rate.bits_per_sec() as f64 / (8.0 * f64::from(bytes))
}

/// The thresholds, with automatic values for those that are not given.
pub(crate) fn thresholds(
    min_th: Option<f64>,
    max_th: Option<f64>,
    target_delay: Time,
    packets_per_second: f64,
) -> (f64, f64) {
    let automatic = LEAST_MIN_TH.max(target_delay.secs_f64() * packets_per_second / 2.0);
    // A given maximum limits an automatic minimum to less than itself.
    let min = min_th.unwrap_or_else(|| max_th.map_or(automatic, |max| automatic.min(max / MAX_OVER_MIN)));
    (min, max_th.unwrap_or(MAX_OVER_MIN * min))
}

/// The automatic weight of a new packet's queue in the average.
fn automatic_weight(packets_per_second: f64) -> f64 {
    -libm::expm1(-1.0 / packets_per_second)
}

impl Red {
    /// The thresholds in packets and the weight at a link of this rate, with automatic values for those that
    /// are not given: `(min_th, max_th, w_q)`.
    pub fn settled(&self, packets_per_second: f64) -> (f64, f64, f64) {
        let (min, max) = thresholds(self.min_th, self.max_th, self.target_delay, packets_per_second);
        (min, max, self.w_q.unwrap_or_else(|| automatic_weight(packets_per_second)))
    }
}

/// The average queue.
#[derive(Clone, Debug)]
pub(crate) struct Average {
    /// In packets.
    pub value: f64,
    w_q: f64,
    given: Option<f64>,
    packets_per_second: f64,
}

impl Average {
    /// An average of zero, with weight `w_q` or the automatic one.
    pub fn new(w_q: Option<f64>, packets_per_second: f64) -> Self {
        let mut average = Self { value: 0.0, w_q: 0.0, given: w_q, packets_per_second };
        average.tune(packets_per_second);
        average
    }

    /// Adapts the average to another rate.
    pub fn tune(&mut self, packets_per_second: f64) {
        self.packets_per_second = packets_per_second;
        self.w_q = self.given.unwrap_or_else(|| automatic_weight(packets_per_second));
    }

    /// A packet arrives and finds `queue` packets waiting.
    #[inline]
    pub fn update(&mut self, queue: f64, moment: &Moment) {
        if moment.busy_until >= moment.now {
            self.value += self.w_q * (queue - self.value);
        } else {
            // As if the packets that could have been sent meanwhile had found an empty queue.
            let m = moment.now.since(moment.busy_until).secs_f64() * self.packets_per_second;
            self.value *= libm::exp(m * libm::log1p(-self.w_q));
        }
    }
}

/// How the drop probability depends on the average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Curve {
    pub min_th: f64,
    pub max_th: f64,
    pub max_p: f64,
    pub gentle: bool,
}

impl Curve {
    /// The probability p_b at this average; `None` if all packets are dropped.
    #[inline]
    pub fn at(&self, average: f64) -> Option<f64> {
        if average < self.min_th {
            Some(0.0)
        } else if average < self.max_th {
            Some(self.max_p * (average - self.min_th) / (self.max_th - self.min_th))
        } else if self.gentle && average < 2.0 * self.max_th {
            Some(self.max_p + (1.0 - self.max_p) * (average - self.max_th) / self.max_th)
        } else {
            None
        }
    }
}

/// Spreads drops: the longer ago the last one, the more probable the next.
#[derive(Clone, Debug)]
pub(crate) struct Spacing {
    /// Packets since the last drop, or since the average rose above its minimum; -1 below that.
    count: f64,
    wait: bool,
    ecn: bool,
    stream: Stream,
}

impl Spacing {
    pub fn new(wait: bool, ecn: bool, stream: Stream) -> Self {
        Self { count: -1.0, wait, ecn, stream }
    }

    /// The probability p_a for the packet that is number `count` after the last drop.
    fn probability(&self, p_b: f64) -> f64 {
        let spread = self.count * p_b;
        if self.wait {
            if spread < 1.0 {
                0.0
            } else if spread < 2.0 {
                p_b / (2.0 - spread)
            } else {
                1.0
            }
        } else if spread < 1.0 {
            p_b / (1.0 - spread)
        } else {
            1.0
        }
    }

    /// Decides on a packet at probability `p_b`; `None` drops it.
    #[inline]
    pub fn judge<H: Head>(&mut self, p_b: Option<f64>, packet: &H) -> Verdict {
        let Some(p_b) = p_b else {
            self.count = 0.0;
            return Verdict::Drop;
        };
        if p_b <= 0.0 {
            self.count = -1.0;
            return Verdict::Accept;
        }
        self.count += 1.0;
        let p_a = self.probability(p_b);
        if p_a > 0.0 && self.stream.random::<f64>() < p_a {
            self.count = 0.0;
            return Verdict::notify(packet, self.ecn);
        }
        Verdict::Accept
    }
}

/// RED's state.
#[derive(Clone, Debug)]
pub(crate) struct RedState {
    red: Red,
    average: Average,
    curve: Curve,
    spacing: Spacing,
}

impl RedState {
    pub fn new(red: &Red, rate: Rate, stream: Stream) -> Self {
        let curve = Curve { min_th: 0.0, max_th: 0.0, max_p: red.max_p, gentle: red.gentle };
        let spacing = Spacing::new(red.wait, red.ecn, stream);
        let mut state = Self { red: red.clone(), average: Average::new(red.w_q, 1.0), curve, spacing };
        state.tune(rate);
        state
    }

    pub fn tune(&mut self, rate: Rate) {
        let packets = packets_per_second(rate, self.red.mean_pktsize);
        self.average.tune(packets);
        (self.curve.min_th, self.curve.max_th) =
            thresholds(self.red.min_th, self.red.max_th, self.red.target_delay, packets);
    }

    #[inline]
    pub fn judge<H: Head>(&mut self, packet: &H, moment: &Moment) -> Verdict {
        let size = f64::from(self.red.mean_pktsize);
        let queue =
            if self.red.bytes { moment.waiting.bytes as f64 / size } else { moment.waiting.packets as f64 };
        self.average.update(queue, moment);
        let mut p_b = self.curve.at(self.average.value);
        if self.red.bytes {
            p_b = p_b.map(|p| (p * f64::from(packet.bytes()) / size).min(1.0));
        }
        self.spacing.judge(p_b, packet)
    }

    /// The average queue, in packets.
    #[cfg(test)]
    pub fn average(&self) -> f64 {
        self.average.value
    }
}

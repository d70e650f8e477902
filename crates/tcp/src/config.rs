//! What a scenario can choose of a TCP stack, apart from the congestion control algorithm.

use std::fmt::{self, Display};

use elephan_cc::{Quantisation, Undo};
use elephan_units::{Bytes, Entry, Mistake, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::sender::TICK;

/// Loss detection and recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Recovery {
    /// Fast retransmit, then slow start from one segment (Jacobson 1988).
    Tahoe,
    /// Fast retransmit and fast recovery (RFC 2581).
    Reno,
    /// Reno that stays in recovery on partial ACKs (RFC 6582).
    NewReno,
    /// Selective acknowledgments with a conservative pipe (RFC 6675).
    #[default]
    Sack,
}

/// Every recovery that `tcp.recovery` can name. None has parameters of its own: `fack`, `prr` and their like are keys of `tcp`.
pub const RECOVERIES: &[Entry<Recovery>] = &[
    recovery(Recovery::Tahoe, "tahoe", "Fast retransmit, then slow start from one segment", "Jacobson 1988"),
    recovery(Recovery::Reno, "reno", "Fast retransmit and fast recovery", "RFC 5681"),
    recovery(
        Recovery::NewReno,
        "newreno",
        "Fast recovery that goes on at partial acknowledgments",
        "RFC 6582",
    ),
    recovery(
        Recovery::Sack,
        "sack",
        "Selective acknowledgments with a conservative pipe",
        "RFC 2018, RFC 6675",
    ),
];

const fn recovery(
    make: Recovery,
    name: &'static str,
    title: &'static str,
    source: &'static str,
) -> Entry<Recovery> {
    Entry { name, title, source, implies: &[], parameters: Vec::new, make }
}

/// How an ACK counts towards window growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ByteCounting {
    /// One segment for each ACK of one or more, however many (Linux 2.4, `tcp_ack`). An ACK of a part of a segment counts for none.
    PerAck,
    /// One segment for each ACK of new data, also of a part of a segment (RFC 5681, section 3.1, without the limit that it
    /// recommends): what divided ACKs exploit (`misbehave.ack_division`).
    PerAnyAck,
    /// All that it newly delivers, cumulatively or selectively, without a limit in slow start, and also at the ACK that ends a
    /// recovery (Linux, `tcp_cong_avoid`).
    Delivered,
    /// Appropriate byte counting: what is acknowledged, in slow start at most `L` segments (RFC 3465).
    Abc {
        /// Limit in slow start, in segments.
        #[serde(rename = "L")]
        limit: u8,
    },
}

/// How the window is reduced to `ssthresh` in a recovery with selective acknowledgments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WindowReduction {
    /// At once (RFC 6675).
    #[default]
    AtOnce,
    /// Proportional rate reduction (RFC 9937): where less than ssthresh is in flight, only an ACK that shows progress without
    /// another loss (SafeACK) adds a segment.
    Prr,
    /// Proportional rate reduction as first standardised (RFC 6937): there, every ACK adds a segment.
    #[serde(rename = "prr_rfc6937")]
    PrrRfc6937,
    /// By a segment for every second ACK, and at each ACK to at most the packets in flight plus one (Linux 2.4,
    /// `tcp_cwnd_down`).
    RateHalving,
}

/// What Standard TCP halves at a congestion event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SsthreshBase {
    /// The data in flight (RFC 5681, equation 4).
    #[default]
    FlightSize,
    /// The window, also where the application did not fill it (Linux, `tcp_reno_ssthresh`).
    Cwnd,
}

/// What happens to the window when a sender resumes after an idle time of more than a timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AfterIdle {
    /// Slow start from the initial window (RFC 5681, section 4.1).
    #[default]
    Restart,
    /// The window is halved for each timeout that has passed, down to the initial window, and ssthresh remembers three quarters
    /// of it (RFC 2861; Linux, `tcp_cwnd_restart`).
    Decay,
    /// Nothing (Linux with `net.ipv4.tcp_slow_start_after_idle` of 0).
    Keep,
    /// Congestion window validation (RFC 7661), also of a sender that is never idle: a window is validated if half of it was
    /// acknowledged within a round trip of the last second, or of the last three round trips if these are longer. One that is not is kept for five
    /// minutes, then halved, down to the initial window, and ssthresh remembers three quarters. It grows only when it is full. After a
    /// loss it is half of what was used, less what was lost.
    Validate,
}

/// How many segments a sender passes on at once, where the window admits them: the largest super-segment of its TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BurstSize {
    /// As many as Linux sends at its pacing rate in a millisecond, 64 KiB at most (net/ipv4/tcp_output.c, `tcp_tso_autosize`).
    Tso,
    /// The same, and at most this number of segments (Linux, `gso_max_segs`). 1 is a segment for each that the window admits.
    Segments(u32),
}

impl BurstSize {
    const TSO: &str = "tso";
    /// The largest number, that of Linux's devices (include/linux/netdevice.h, `GSO_MAX_SEGS`).
    const MOST: u32 = 65_535;
    const EXPECTED: &str = "\"tso\", or 1 to 65535 segments";

    /// The largest number of segments that it allows; `None` leaves it to TCP.
    pub fn gso_max_segs(self) -> Option<u32> {
        match self {
            Self::Tso => None,
            Self::Segments(most) => Some(most),
        }
    }
}

impl Serialize for BurstSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Tso => serializer.serialize_str(Self::TSO),
            Self::Segments(segments) => serializer.serialize_u32(*segments),
        }
    }
}

impl<'de> Deserialize<'de> for BurstSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = BurstSize;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(BurstSize::EXPECTED)
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<BurstSize, E> {
                if text == BurstSize::TSO {
                    return Ok(BurstSize::Tso);
                }
                Err(E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }
            fn visit_u64<E: serde::de::Error>(self, segments: u64) -> Result<BurstSize, E> {
                let fits =
                    u32::try_from(segments).ok().filter(|segments| (1..=BurstSize::MOST).contains(segments));
                fits.map(BurstSize::Segments)
                    .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Unsigned(segments), &self))
            }
            fn visit_i64<E: serde::de::Error>(self, segments: i64) -> Result<BurstSize, E> {
                match u64::try_from(segments) {
                    Ok(segments) => self.visit_u64(segments),
                    Err(_) => Err(E::invalid_value(serde::de::Unexpected::Signed(segments), &self)),
                }
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for BurstSize {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "BurstSize".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "How many segments a sender passes on at once: \"tso\", as many as Linux, or a number of segments at most",
            "anyOf": [{ "const": Self::TSO }, { "type": "integer", "minimum": 1, "maximum": Self::MOST }]
        })
    }
}

elephan_units::with_defaults! {
    /// When a receiver sends acknowledgments.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct DelayedAck {
        /// Number of full segments for each ACK (RFC 5681, section 4.2); 1 acknowledges every segment.
        pub segments: u8 = 2,
        /// Maximum delay of an ACK (500 ms in RFC 5681; 40 to 200 ms in Linux).
        pub timeout: Time = Time::from_millis(200),
        /// Number of segments that are acknowledged without delay at the start of a connection, after a duplicate, and, with
        /// `compress`, after a silence longer than the retransmission timeout ("quick ACKs").
        pub quick: u16 = 0,
        /// With SACK: ACKs that report out-of-order data are held back for a twentieth of the round-trip time, at most 1 ms,
        /// and 0.1 ms more, and 44 of them at most; the first three after each advance, and reports of duplicates, are sent at once (Linux,
        /// `net.ipv4.tcp_comp_sack_delay_ns`, `tcp_comp_sack_slack_ns` and `tcp_comp_sack_nr`). An ACK of data in order is then
        /// delayed by `timeout`, or by up to a round-trip time where segments come farther apart than half of it
        /// (`tcp_event_data_recv`, `tcp_send_delayed_ack`).
        pub compress: bool = false,
        /// The first marked segment that an echo begins with, and the next, and one that tells of the sender's reduction (CWR), are
        /// acknowledged at once, because its window may be small (Linux, net/ipv4/tcp_input.c, `__tcp_ecn_check_ce` and
        /// `tcp_ecn_accept_cwr`).
        pub quick_marks: bool = false,
        /// At an end that has sent no data, a segment with PSH or a short one is acknowledged as soon as all that arrived is read
        /// (Linux, net/ipv4/tcp_input.c, `tcp_measure_rcv_mss`, and tcp.c, `__tcp_cleanup_rbuf`).
        pub read: bool = false,
    }
}

elephan_units::with_defaults! {
    /// How the two ends of a connection misbehave (RFC 9743, section 7.6). By default they do not. A receiver that withholds ACKs is one of
    /// `delayed_ack`: of many `segments`, or a long `timeout`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Misbehave {
        /// The receiver acknowledges each segment in so many pieces, one ACK each (ACK division; Savage, Cardwell, Wetherall and Anderson
        /// 1999). A stack that counts ACKs grows its window for each (`byte_counting = "per_any_ack"`); one that counts bytes does not
        /// (RFC 3465). At most one for each byte of a segment.
        pub ack_division: u16 = 1,
        /// The receiver acknowledges so many segments beyond the last that has arrived (optimistic ACKs; Savage et al. 1999; Sherwood,
        /// Bhattacharjee and Braud 2005), and all below them: what was lost is never repaired, and no loss is seen. It begins with none,
        /// and each segment that arrives adds one; one that was retransmitted shows that it went too far, and it begins again. Goodput counts
        /// what has arrived.
        pub optimistic_acks: u32 = 0,
        /// The receiver echoes no mark (RFC 3168, section 7; RFC 3540, section 1).
        pub conceal_marks: bool = false,
        /// The sender does not answer echoed marks (RFC 3168, section 7), and does not say that it did (CWR).
        pub ignore_marks: bool = false,
        /// The sender repairs what is lost and leaves its window as it is: the multiplicative decrease of a greedy sender is by a factor of 1
        /// (Akella, Seshan, Karp, Shenker and Papadimitriou 2002). The first loss ends a slow start without a threshold. A retransmission
        /// timeout has its usual response: without ACKs to send at, such a sender begins again, too.
        pub ignore_losses: bool = false,
    }
}

impl Misbehave {
    /// The keys that are not as an honest stack has them, with their values: for those who cannot do as they say.
    pub fn asked(&self) -> Vec<(&'static str, String)> {
        let Self { ack_division, optimistic_acks, conceal_marks, ignore_marks, ignore_losses } = *self;
        let all = [
            ("misbehave.ack_division", ack_division > 1, ack_division.to_string()),
            ("misbehave.optimistic_acks", optimistic_acks > 0, optimistic_acks.to_string()),
            ("misbehave.conceal_marks", conceal_marks, conceal_marks.to_string()),
            ("misbehave.ignore_marks", ignore_marks, ignore_marks.to_string()),
            ("misbehave.ignore_losses", ignore_losses, ignore_losses.to_string()),
        ];
        all.into_iter().filter(|(_, asked, _)| *asked).map(|(key, _, found)| (key, found)).collect()
    }

    /// What cannot work on a stack of these settings.
    fn mistakes(&self, tcp: &Config) -> Vec<Mistake> {
        let mss = tcp.mss();
        let without_ecn = "false, because ecn is false";
        let needs = [
            (
                "misbehave.ack_division",
                (1..=mss).contains(&self.ack_division.into()),
                format!("1 to {mss}, the bytes of a segment"),
            ),
            (
                "misbehave.optimistic_acks",
                u64::from(self.optimistic_acks) * u64::from(mss) <= LARGEST_WINDOW,
                format!("at most {}, a window of 2^30 bytes", LARGEST_WINDOW / u64::from(mss.max(1))),
            ),
            ("misbehave.conceal_marks", !self.conceal_marks || tcp.ecn, without_ecn.to_owned()),
            ("misbehave.ignore_marks", !self.ignore_marks || tcp.ecn, without_ecn.to_owned()),
            (
                "misbehave.ignore_losses",
                !self.ignore_losses || tcp.recovery != Recovery::Tahoe,
                "false, because recovery is tahoe, which repairs by slow start".to_owned(),
            ),
        ];
        let found = |key: &str| {
            let asked = self.asked().into_iter().find(|(asked, _)| *asked == key);
            asked.map_or_else(|| self.ack_division.to_string(), |(_, found)| found)
        };
        let wrong = needs.into_iter().filter(|(_, holds, _)| !holds);
        wrong.map(|(key, _, expected)| Mistake::new(key, expected, found(key))).collect()
    }
}

/// The largest window that TCP can express, in bytes (RFC 7323, section 2.3).
const LARGEST_WINDOW: u64 = 1 << 30;

/// A stack whose settings the other keys of `tcp` start from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Profile {
    /// The defaults of the other keys: the current RFCs.
    #[default]
    #[serde(rename = "rfc")]
    Rfc,
    /// Linux 6: RACK-TLP, F-RTO, Eifel, PRR, timestamps, a minimum of 200 ms for the timeout's variance term, ACKs delayed by at
    /// most 40 ms with quick ACKs at the start, a receive window that grows from 64 kB, a send buffer that follows `cwnd`, whole
    /// windows. CUBIC starts with HyStart.
    #[serde(rename = "linux-6")]
    Linux6,
    /// Linux 2.4, of the published test beds: rate halving, forward acknowledgment, window moderation, no RACK, initial windows
    /// of 3 segments, ACKs of one segment each in window growth.
    #[serde(rename = "linux-2.4")]
    Linux24,
}

elephan_units::with_defaults! {
    /// A TCP stack's settings. The defaults are those of the current RFCs.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Config {
        /// The stack that the other keys start from.
        pub profile: Profile = Profile::Rfc,
        /// Size of a full IP packet. A full segment carries 40 bytes less, and 12 less again with timestamps.
        pub packet: Bytes = Bytes::new(1500),
        /// Loss detection and recovery.
        pub recovery: Recovery = Recovery::Sack,
        /// Detects losses by forward acknowledgment: all holes more than three segments below the
        /// highest selectively acknowledged byte (Mathis and Mahdavi 1996), instead of RFC 6675's
        /// count.
        pub fack: bool = false,
        /// With SACK: detects the loss of a retransmission when later data is acknowledged, as Linux does; RFC 6675 waits for
        /// the timer.
        pub lost_retransmission: bool = true,
        /// With SACK: RACK (RFC 8985) finds losses by time instead of by count. A segment is lost if one that was sent later
        /// has arrived and a round trip and a reordering window have passed; the window is zero as long as no reordering was
        /// seen and three segments have arrived or a recovery is in progress. Retransmissions are found to be lost in the same
        /// way, and a timeout marks only what is overdue. Linux does this (`net.ipv4.tcp_recovery`).
        pub rack: bool = false,
        /// With RACK: tail loss probes (RFC 8985, section 7). Two round trips after the last transmission or ACK, and 200 ms
        /// more if one segment is outstanding, one segment is sent: new data, or the last segment again. Its ACK shows what
        /// else is lost before the timer does.
        pub tlp: bool = false,
        /// F-RTO (RFC 5682): after a timeout only the first segment is retransmitted. Its ACK releases two new segments, and
        /// the next ACK shows whether data of before the timeout arrives, in which case the timeout is undone. It does not need
        /// SACK.
        pub frto: bool = false,
        /// The Eifel algorithm: where the first ACK after a retransmission echoes an older timestamp (RFC 3522), the timeout or
        /// fast retransmit was spurious and is undone, and the retransmission timeout adapts to the delay (RFC 4015).
        pub eifel: bool = false,
        /// With SACK: how the window is reduced to ssthresh in a recovery.
        pub window_reduction: WindowReduction = WindowReduction::AtOnce,
        /// What Standard TCP halves at a congestion event.
        pub ssthresh_base: SsthreshBase = SsthreshBase::FlightSize,
        /// Whether a loss that is found during a recovery, of a retransmission or of data sent in it, reduces the window again
        /// (RFC 5681, section 4.3). Linux does not: a lost retransmission is only repaired, and lost new data is answered when
        /// the recovery has ended, if it is then still missing; and a timeout in a recovery leaves ssthresh.
        pub reduce_again: bool = true,
        /// What an undo restores when a reduction turns out to have been spurious. With `windows`, Linux's rules also say when that
        /// is so: F-RTO examines a second timeout too, Eifel any ACK of a recovery, an undo awaits other retransmissions in flight,
        /// duplicates beyond the number of retransmissions are the network's, and a timeout leaves a window of what may still arrive, and one
        /// segment more.
        pub undo: Undo = Undo::State,
        /// Limited transmit (RFC 3042).
        pub limited_transmit: bool = true,
        /// How an ACK counts towards window growth.
        pub byte_counting: ByteCounting = ByteCounting::Abc { limit: 2 },
        /// Delayed acknowledgments of the receiver.
        pub delayed_ack: DelayedAck = DelayedAck::default(),
        /// How the two ends misbehave; by default they do not.
        pub misbehave: Misbehave = Misbehave::default(),
        /// Initial window, in segments, at most 2^30 (RFC 6928: 10; RFC 5681: 2 to 4).
        pub initial_window: u32 = 10,
        /// Initial slow-start threshold, in segments; none means no limit (RFC 5681, section 3.1).
        pub initial_ssthresh: Option<u32> = None,
        /// Minimum of the retransmission timeout as a whole (RFC 6298, section 2.4: 1 s).
        pub rto_min: Time = Time::from_secs(1),
        /// Minimum of the timeout's variance term: RTO = SRTT + max(4 RTTVAR, this). Linux bounds this term, by 200 ms, and not
        /// the timeout (`TCP_RTO_MIN`).
        pub rto_variance_min: Time = Time::ZERO,
        /// What is added to the reordering timer of RACK, and to the two round trips of a tail loss probe, where more than one
        /// segment is outstanding, because a kernel's timers are coarse (Linux, `TCP_TIMEOUT_MIN_US`: 2 ms). With it, a probe
        /// for new data waits no longer than a timeout after the oldest segment was sent (Linux, `tcp_rto_delta_us`), and both it
        /// and the retransmission timer run out at the end of a slot: of 8 ms from 63 ms on, of 64 ms from 504 ms on, of 512 ms from
        /// 4.032 s on (kernel/time/timer.c, `calc_wheel_index`). And a round-trip time that a timestamp gives, because the segment
        /// was sent more than once, is a number of ticks of 1 ms (`tcp_ack_update_rtt`).
        pub timer_margin: Time = Time::ZERO,
        /// Timestamps (RFC 7323), with PAWS.
        pub timestamps: bool = true,
        /// D-SACK (RFC 2883), and undo of reductions that it shows to be spurious.
        pub dsack: bool = true,
        /// Explicit congestion notification (RFC 3168).
        pub ecn: bool = false,
        /// Alternative backoff with ECN (RFC 8511): a mark leaves 80 % of the data in flight with Standard TCP, and 85 % with CUBIC,
        /// because it comes from a short queue; a loss leaves what it does without. Other algorithms have no such factor. Linux
        /// does not have it.
        pub abe: bool = false,
        /// The ACK that ends the handshake goes alone, because the application writes when it is connected (Linux); else the first
        /// data carries it.
        pub confirm_alone: bool = false,
        /// The application writes when less than half of this is unsent, and until this is reached (Linux,
        /// `TCP_NOTSENT_LOWAT`): the last segment of such a write has PSH. It closes after its last write, so that a FIN
        /// is alone where the first window held everything, and waits for room in the window (Linux, `tcp_cwnd_test`).
        /// None: all that there is to send is written at once, and the last segment carries the FIN.
        pub unsent: Option<Bytes> = None,
        /// Maximum unacknowledged bytes of the sender; none means no limit.
        pub send_buffer: Option<Bytes> = None,
        /// The send buffer begins at 16 KiB and follows `cwnd`, as twice the memory that Linux expects of that many segments,
        /// and of ten at least (`tcp_sndbuf_expand`), up to `send_buffer`.
        pub send_buffer_tuning: bool = false,
        /// Buffer of the receiver, which determines its advertised window; none means the largest window that TCP can express,
        /// 1 GiB.
        pub receive_buffer: Option<Bytes> = None,
        /// The advertised window begins here and grows by two segments for each that arrives, up to `receive_buffer`, or with
        /// `auto_tuning` up to what that allows; a segment that lets it grow is acknowledged at once (Linux,
        /// `tcp_grow_window`). In a scenario without these limits it begins, after the SYN, at four times what the path can hold, and
        /// grows to what a kernel's socket has with such a buffer, 27 % more with segments of 1500 bytes. None means that the
        /// window begins at its limit.
        pub first_receive_window: Option<Bytes> = None,
        /// Dynamic right-sizing: the receiver advertises twice what it received in the last round trip, or `auto_tuning_factor`
        /// times (Fisk and Feng 2001), up to `receive_buffer`; with `first_receive_window`, what Linux does
        /// (`tcp_rcv_space_adjust`).
        pub auto_tuning: bool = false,
        /// The window of `auto_tuning` in units of what was received in the last round trip; `first_receive_window` has a rule
        /// of its own. The window grows until the path carries no more. A factor close to 1 then keeps it close to the
        /// bandwidth-delay product, if round trips are timed without `timestamps`, where the shortest counts, and
        /// `receive_buffer` is small enough for the window field to express a step of that size.
        pub auto_tuning_factor: f64 = 2.0,
        /// Maximum number of segments sent back to back for each ACK; none means no limit.
        pub burst_limit: Option<u32> = None,
        /// How many segments leave at once. With `"tso"`, or a number above 1, TCP sends super-segments, which leave as a burst of
        /// segments: of what it sends in a millisecond at its pacing rate, also where `pacing` is off, and more over short round trips;
        /// of at least two segments, at most 64 KiB and at most half the window (Linux, net/ipv4/tcp_output.c, `tcp_tso_autosize` and
        /// `tcp_cwnd_test`). It waits for ACKs until the window admits a whole one, or a third of the window; but not in a recovery,
        /// nor a millisecond after the last transmission, nor if the next ACK is expected later than that (`tcp_tso_should_defer`).
        pub burst: BurstSize = BurstSize::Segments(1),
        /// Paces segments over the round trip, at a rate in proportion to cwnd / SRTT; until the first round-trip time is
        /// known, segments are not paced. With super-segments (`burst`), the gap follows each of these, less what it left late, and
        /// the first ten segments are not paced (Linux, `tcp_update_skb_after_send`).
        pub pacing: bool = false,
        /// The pacing rate while cwnd is below half of ssthresh, in units of cwnd / SRTT (Linux, `tcp_pacing_ss_ratio`: 200 %).
        pub pacing_slow_start: f64 = 2.0,
        /// The pacing rate after that, in units of cwnd / SRTT (Linux, `tcp_pacing_ca_ratio`: 120 %).
        pub pacing_avoidance: f64 = 1.2,
        /// Limits `cwnd` to the packets in flight plus three at an undo and at every dubious ACK outside fast recovery: one
        /// that says nothing new or brings selective acknowledgments, and any while a segment is missing, after a timeout, and
        /// in the round trip after a recovery (Linux 2.4 and 2.6, `tcp_moderate_cwnd`).
        pub moderate_cwnd: bool = false,
        /// What happens to the window after an idle time.
        pub after_idle: AfterIdle = AfterIdle::Restart,
        /// Rate-limited increase (draft-ietf-ccwg-ratelimited-increase-10, section 3): the window also grows where the application does
        /// not fill it, but only to what the transmission of one window of maxFS would make of it, the largest amount in flight
        /// since the last reduction: twice that in slow start, and in congestion avoidance what the algorithm adds to it in a round
        /// trip. Without it the window grows if it was the limit, in slow start if half of it was in flight (Linux,
        /// `tcp_is_cwnd_limited`), or by the rules of `after_idle = "validate"`.
        pub rate_limited_increase: bool = false,
        /// Whether `cwnd` is a real number or an integer.
        pub quantisation: Quantisation = Quantisation::None,
    }
}

impl Config {
    /// Payload of a full segment, in bytes: the packet less headers and timestamps.
    pub fn mss(&self) -> u32 {
        (self.packet.get() as u32).saturating_sub(if self.timestamps { 52 } else { 40 })
    }

    /// Whether timers and timestamps count ticks, as a kernel's.
    pub fn is_coarse(&self) -> bool {
        self.timer_margin > Time::ZERO
    }

    /// The tick of timers and timestamps: a kernel's, or zero where clocks are exact. A round-trip time may be measured up to
    /// a tick too short.
    pub fn tick(&self) -> Time {
        if self.is_coarse() { TICK } else { Time::ZERO }
    }

    /// What cannot work.
    pub fn mistakes(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        let mut need = |holds: bool, key: &str, expected: &str, found: &dyn Display| {
            if !holds {
                mistakes.push(Mistake::new(key, expected, found));
            }
        };
        let packet = self.packet.get();
        let quoted = |quantity: &dyn Display| format!("\"{quantity}\"");
        need(
            (100..=65_535).contains(&packet),
            "packet",
            "a size from 100 to 65535 bytes",
            &quoted(&self.packet),
        );
        // A window has at most 2^30 bytes (RFC 7323, section 2.3), and an algorithm from outside at most 2^31 segments, to
        // which the initial window may grow.
        let window = self.initial_window;
        need((1..=1 << 30).contains(&window), "initial_window", "1 to 2^30 segments", &window);
        need(self.initial_ssthresh != Some(0), "initial_ssthresh", "1 segment or more", &0);
        need(self.rto_min > Time::ZERO, "rto_min", "a time above zero", &quoted(&self.rto_min));
        for (key, rate) in
            [("pacing_slow_start", self.pacing_slow_start), ("pacing_avoidance", self.pacing_avoidance)]
        {
            need((0.1..=100.0).contains(&rate), key, "a factor from 0.1 to 100", &rate);
        }
        let factor = self.auto_tuning_factor;
        need(
            factor > 1.0 && factor <= 100.0,
            "auto_tuning_factor",
            "a factor above 1 and at most 100",
            &factor,
        );
        need(
            factor == 2.0 || self.first_receive_window.is_none(),
            "auto_tuning_factor",
            "2, because first_receive_window is set",
            &factor,
        );
        need(
            !self.rack || self.recovery == Recovery::Sack,
            "rack",
            "false, because recovery is not sack",
            &true,
        );
        need(!self.tlp || self.rack, "tlp", "false, because rack is false", &true);
        need(!self.abe || self.ecn, "abe", "false, because ecn is false", &true);
        need(!self.eifel || self.timestamps, "eifel", "false, because timestamps is false", &true);
        need(!(self.rack && self.fack), "fack", "false, because rack is true", &true);
        need(self.burst_limit != Some(0), "burst_limit", "1 segment or more", &0);
        need(self.delayed_ack.segments > 0, "delayed_ack.segments", "1 or more", &0);
        need(
            self.byte_counting != ByteCounting::Abc { limit: 0 },
            "byte_counting.abc.L",
            "1 segment or more",
            &0,
        );
        for (key, buffer) in [
            ("unsent", self.unsent),
            ("send_buffer", self.send_buffer),
            ("receive_buffer", self.receive_buffer),
            ("first_receive_window", self.first_receive_window),
        ] {
            if let Some(bytes) = buffer {
                need(bytes.get() >= packet, key, "room for a packet", &quoted(&bytes));
            }
        }
        mistakes.extend(self.misbehave.mistakes(self));
        mistakes
    }
}

#[cfg(test)]
mod tests {
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, StrDeserializer};

    use super::*;

    #[test]
    fn every_recovery_is_read_by_the_name_of_its_entry() {
        for entry in RECOVERIES {
            let name: StrDeserializer<'_, Error> = entry.name.into_deserializer();
            assert_eq!(Recovery::deserialize(name), Ok(entry.make), "{}", entry.name);
        }
    }

    #[test]
    fn a_burst_is_tso_or_a_number_that_a_device_can_have() {
        fn read<'de>(value: impl IntoDeserializer<'de, Error>) -> Result<BurstSize, String> {
            BurstSize::deserialize(value.into_deserializer()).map_err(|error| error.to_string())
        }
        assert_eq!(read("tso"), Ok(BurstSize::Tso));
        assert_eq!(BurstSize::Tso.gso_max_segs(), None);
        for segments in [1u32, 65_535] {
            assert_eq!(read(u64::from(segments)), Ok(BurstSize::Segments(segments)));
            assert_eq!(read(i64::from(segments)), Ok(BurstSize::Segments(segments)));
            assert_eq!(BurstSize::Segments(segments).gso_max_segs(), Some(segments));
        }
        for refused in [read(0u64), read(65_536u64), read(-1i64), read(1.5), read("gso"), read(true)] {
            let refused = refused.unwrap_err();
            assert!(refused.ends_with("expected \"tso\", or 1 to 65535 segments"), "{refused}");
        }
    }
}

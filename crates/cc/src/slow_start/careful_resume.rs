//! Careful Resume (RFC 9959; its sections are cited as in draft-ietf-tsvwg-careful-resume-24, from which it was made): a connection jumps
//! to half of the window that an earlier one had, paced over a round trip, and retreats to half of what has arrived if that is too much.
//!
//! The scenario says what the earlier connection measured. Each connection that begins uses it: its lifetime and the endpoint that it is of
//! (section 3.2) are not modelled.

use elephan_units::Time;

use crate::algorithm::{Ack, Cause, Congestion, Window};
use crate::parameter::parameters;
use crate::variable::{Tell, variables};

parameters! {
    /// Careful Resume's parameters.
    pub struct Parameters {
        /// Window that an earlier connection over this path used: saved_cwnd (section 3.1). The jump is to half of it.
        saved_cwnd: Option<f64> = None, 1.0..=1e9, "segments";
        /// Smallest round-trip time of that connection: saved_rtt (section 3.1). There is no jump unless this one's is more than half of it and
        /// at most ten times as long (sections 3.2 and 4.2.1).
        saved_rtt: Option<f64> = None, 1e-6..=1e3, "s";
        /// Share of PipeSize that ssthresh is after a Safe Retreat: Beta (section 3.5).
        beta: f64 = 0.5, 0.5..=1.0, "";
    }
}

/// The largest round-trip time that confirms the path, in saved ones (section 4.2.1).
const LONGEST: f64 = 10.0;

/// The phases (section 3), as [`PHASES`] names them.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Reconnaissance,
    Unvalidated,
    Validating,
    SafeRetreat,
    /// Careful Resume is over.
    Normal,
}

/// The phases, in their order.
const PHASES: &[&str] = &["reconnaissance", "unvalidated", "validating", "safe_retreat", "normal"];

elephan_units::with_defaults! {
    /// Careful Resume.
    #[derive(Clone, Debug)]
    pub struct CarefulResume {
        phase: Phase = Phase::Reconnaissance,
        /// The window that it jumps to, in segments.
        jump: f64 = 0.0,
        /// Saved round-trip time, in seconds.
        saved_rtt: f64 = 0.0,
        beta: f64 = 0.0,
        /// The window at the first ACK, in segments; zero before it.
        initial_window: f64 = 0.0,
        /// In Reconnaissance the end of the initial data, then the offset of the first unvalidated byte.
        first: u64 = 0,
        /// The end of unvalidated data; none before it is known.
        last: Option<u64> = None,
        /// Everything below this was acknowledged before the next ACK.
        una: u64 = 0,
        /// When the Unvalidated Phase began, and the round-trip time then.
        entered: Time = Time::ZERO,
        rtt: Time = Time::ZERO,
        /// Segments in flight, and delivered, at that time.
        flight: f64 = 0.0,
        delivered: f64 = 0.0,
        /// Segments known to fit into the path: PipeSize.
        pipe: f64 = f64::NAN,
        /// The pacing rate of the Unvalidated Phase, in bytes per second; otherwise zero.
        rate: f64 = 0.0,
    }
}

impl CarefulResume {
    /// Careful Resume before the first ACK; without a saved window it does nothing.
    pub fn new(parameters: Parameters) -> Self {
        let Parameters { saved_cwnd, saved_rtt, beta } = parameters;
        // Section 3.3: jump_cwnd is no more than half of saved_cwnd.
        let jump = saved_cwnd.unwrap_or_default() / 2.0;
        Self { jump, saved_rtt: saved_rtt.unwrap_or_default(), beta, ..Self::default() }
    }

    /// Whether it is not over.
    pub fn is_active(&self) -> bool {
        self.phase != Phase::Normal
    }

    /// Whether the window is one that it has jumped to.
    pub fn has_jumped(&self) -> bool {
        self.phase == Phase::Unvalidated
    }

    /// Whether it drains the path after a jump that was too far.
    pub fn retreats(&self) -> bool {
        self.phase == Phase::SafeRetreat
    }

    /// The rate at which the sender must pace, in bytes per second; zero: none.
    pub fn pacing_rate(&self) -> f64 {
        self.rate
    }

    /// An ACK, in any state of the sender: may set the windows. Returns whether the window may not grow at this ACK.
    pub fn control(&mut self, window: &mut Window, ack: &Ack) -> bool {
        let una = std::mem::replace(&mut self.una, ack.una);
        match self.phase {
            Phase::Reconnaissance => self.reconnoitre(window, ack),
            Phase::Unvalidated => {
                self.track(ack.delivered);
                self.on_unvalidated(window, ack, una)
            }
            Phase::Validating => {
                self.track(ack.delivered);
                // Section 3.4: all that was sent in the Unvalidated Phase has arrived.
                if self.last.is_some_and(|last| ack.una >= last) {
                    self.phase = Phase::Normal;
                }
                false
            }
            Phase::SafeRetreat => {
                self.track(ack.delivered);
                let last = *self.last.get_or_insert(ack.next);
                if ack.una < last {
                    return true;
                }
                window.ssthresh = self.beta * self.pipe;
                self.phase = Phase::Normal;
                false
            }
            Phase::Normal => false,
        }
    }

    /// The Reconnaissance Phase (section 3.2): jumps at the first ACK after that of all initial data at which the window was the limit.
    fn reconnoitre(&mut self, window: &mut Window, ack: &Ack) -> bool {
        if self.initial_window == 0.0 {
            (self.initial_window, self.first) = (window.cwnd, ack.next);
        }
        if ack.una < self.first || ack.segments == 0.0 {
            return false;
        }
        let (min_rtt, rtt) = (ack.min_rtt.secs_f64(), ack.rtt.unwrap_or(ack.srtt));
        let is_confirmed = !self.is_too_small(ack) && min_rtt <= LONGEST * self.saved_rtt;
        if !is_confirmed || self.jump <= window.cwnd || rtt == Time::ZERO {
            self.phase = Phase::Normal;
            return false;
        }
        self.phase = Phase::Unvalidated;
        (self.first, self.last) = (ack.next, None);
        (self.entered, self.rtt) = (ack.now, rtt);
        (self.flight, self.delivered) = (flight(ack, ack.una), ack.delivered);
        self.track(ack.delivered);
        window.cwnd = self.jump;
        // Section 4.3.2: the jump is sent in one current round-trip time.
        self.rate = self.jump * f64::from(ack.mss) / rtt.secs_f64();
        true
    }

    /// Whether the smallest round-trip time shows another path (section 3.2).
    fn is_too_small(&self, ack: &Ack) -> bool {
        ack.min_rtt.secs_f64() <= self.saved_rtt / 2.0
    }

    /// An ACK in the Unvalidated Phase, before which everything below `una` was acknowledged (section 3.3).
    fn on_unvalidated(&mut self, window: &mut Window, ack: &Ack, una: u64) -> bool {
        if self.is_too_small(ack) {
            window.cwnd = self.retreat().min(window.cwnd);
            return true;
        }
        let is_all_sent = flight(ack, una) > window.cwnd - 1.0;
        if !is_all_sent && ack.una <= self.first && ack.now.since(self.entered) <= self.rtt {
            return true;
        }
        self.rate = 0.0;
        let flight = flight(ack, ack.una);
        if flight < self.initial_window || flight <= self.pipe {
            window.cwnd = self.pipe.max(self.initial_window).min(window.cwnd);
            self.phase = Phase::Normal;
        } else {
            window.cwnd = flight.min(window.cwnd);
            self.last = Some(ack.next);
            self.phase = Phase::Validating;
        }
        false
    }

    /// Enters the Safe Retreat Phase (section 3.5); returns the window of it.
    fn retreat(&mut self) -> f64 {
        self.phase = Phase::SafeRetreat;
        self.rate = 0.0;
        self.pipe / 2.0
    }

    /// So much was `delivered` since the connection began. PipeSize grows with the arrival of unvalidated packets (sections 2.4 and 3.3): what
    /// was in flight when that phase began is part of it already, as in the example of appendix B.4.
    fn track(&mut self, delivered: f64) {
        self.pipe = self.flight.max(delivered - self.delivered);
    }

    /// A congestion event: the window that it leaves at most, if it is a Safe Retreat.
    pub fn on_congestion(&mut self, event: &Congestion) -> Option<f64> {
        match self.phase {
            Phase::Unvalidated | Phase::Validating if event.cause != Cause::Timeout => {
                self.track(event.delivered);
                Some(self.retreat())
            }
            // A further loss is answered as usual.
            Phase::SafeRetreat if event.cause != Cause::Timeout => None,
            // Section 3.2, and section 3.6 for timeouts.
            _ => {
                (self.phase, self.rate) = (Phase::Normal, 0.0);
                None
            }
        }
    }

    /// Tells its variables, with the RFC's names.
    pub fn variables(&self, tell: &mut Tell<'_>) {
        variables! { tell;
            /// The phase (section 3); normal if Careful Resume is over.
            start_phase: PHASES = f64::from(self.phase as u8);
            /// The window that it jumps to, jump_cwnd (section 3.3).
            jump_cwnd: "segments" = self.jump;
            /// Segments known to fit into the path, PipeSize (section 3.3); unknown before the jump.
            pipe_size: "segments" = self.pipe;
        }
    }
}

/// Flight size, in segments: the data sent that is not acknowledged, from `una` on.
fn flight(ack: &Ack, una: u64) -> f64 {
    ack.next.saturating_sub(una) as f64 / f64::from(ack.mss)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{self, History, loss};

    const MSS: u64 = 1460;

    /// A sender without a stack: packets are numbered from 1, as in the RFC's appendix B.
    struct Sender {
        resume: CarefulResume,
        window: Window,
        min_rtt: Time,
    }

    impl Sender {
        /// An earlier connection had a window of 300 segments at 100 ms, and this one's smallest round-trip time is `min_rtt_ms`.
        fn new(min_rtt_ms: u64) -> Self {
            let parameters = Parameters { saved_cwnd: Some(300.0), saved_rtt: Some(0.1), beta: 0.5 };
            let window = Window { cwnd: 10.0, ssthresh: f64::INFINITY };
            Self { resume: CarefulResume::new(parameters), window, min_rtt: Time::from_millis(min_rtt_ms) }
        }

        /// An ACK up to packet `una`, when packets up to `next` were sent, `ms` after the beginning.
        fn ack(&mut self, una: u64, next: u64, ms: u64) -> bool {
            self.sack(una, una as f64, next, ms)
        }

        /// The same where so many packets were `delivered`.
        fn sack(&mut self, una: u64, delivered: f64, next: u64, ms: u64) -> bool {
            let rtt = self.min_rtt;
            let (una, next, now) = (una * MSS, next * MSS, Time::from_millis(ms));
            let ack = Ack { una, next, delivered, now, min_rtt: rtt, ..history::ack(rtt) };
            self.resume.control(&mut self.window, &ack)
        }

        /// In the Unvalidated Phase, with 29 packets in flight: the tenth of 39 was acknowledged after 100 ms.
        fn jumped() -> Self {
            let mut sender = Self::new(100);
            assert!(!sender.ack(1, 10, 100));
            sender.window.cwnd = 29.0;
            assert!(sender.ack(10, 39, 100));
            sender
        }
    }

    #[test]
    fn it_jumps_to_half_of_the_saved_window_paced_over_a_round_trip() {
        // Appendix B.1: PipeSize is 29, and the window 150; in 100 ms these are 150 * 1460/0.1 bytes per second.
        let sender = Sender::jumped();
        assert_eq!((sender.window.cwnd, sender.resume.pipe), (150.0, 29.0));
        assert_eq!(sender.resume.pacing_rate(), 2_190_000.0);
    }

    #[test]
    fn the_first_unvalidated_packet_leaves_what_is_in_flight_and_the_last_one_ends_it() {
        // Appendix B.1: packets 40 to 160 are unvalidated. After the ACK of 40, 120 are in flight.
        let mut sender = Sender::jumped();
        assert!(sender.ack(39, 159, 199));
        assert!(!sender.ack(40, 160, 200));
        assert_eq!((sender.resume.phase, sender.window.cwnd), (Phase::Validating, 120.0));
        assert_eq!(sender.resume.pacing_rate(), 0.0);
        assert!(!sender.ack(159, 300, 299));
        assert_eq!(sender.resume.phase, Phase::Validating);
        assert!(!sender.ack(160, 300, 300));
        assert!(!sender.resume.is_active());
    }

    #[test]
    fn a_window_that_was_sent_as_a_whole_is_validated() {
        // All 121 are in flight beside the 29 before the first of these is acknowledged.
        let mut sender = Sender::jumped();
        assert!(!sender.ack(11, 160, 150));
        assert_eq!((sender.resume.phase, sender.window.cwnd), (Phase::Validating, 149.0));
    }

    #[test]
    fn a_sender_that_does_not_use_the_jump_keeps_what_it_used() {
        // Appendix B.2: 50 unvalidated packets within a round trip leave 50. Five, fewer than the initial window, leave PipeSize.
        let mut sender = Sender::jumped();
        assert!(sender.ack(39, 89, 200));
        assert!(!sender.ack(39, 89, 201));
        assert_eq!((sender.resume.phase, sender.window.cwnd), (Phase::Validating, 50.0));
        let mut sender = Sender::jumped();
        assert!(!sender.ack(39, 44, 201));
        assert_eq!((sender.resume.phase, sender.window.cwnd), (Phase::Normal, 29.0));
    }

    #[test]
    fn a_loss_leaves_half_of_what_has_arrived() {
        // Appendix B.4: packet 74, the 35th unvalidated one, is lost; 29 + 34 = 63 of the pipe have arrived. When all but that and at last that
        // have arrived, PipeSize is 150.
        let mut sender = Sender::jumped();
        sender.ack(40, 160, 200);
        sender.ack(73, 190, 230);
        let event = Congestion { delivered: 73.0, ..loss(120.0) };
        assert_eq!(sender.resume.on_congestion(&event), Some(31.5));
        sender.window = Window { cwnd: 31.5, ssthresh: 31.5 };
        assert!(sender.sack(73, 159.0, 190, 330));
        assert_eq!(sender.resume.on_congestion(&event), None, "a further loss");
        assert!(!sender.sack(160, 160.0, 190, 340));
        assert_eq!((sender.window.cwnd, sender.window.ssthresh), (31.5, 75.0));
        assert!(!sender.resume.is_active());
    }

    #[test]
    fn congestion_before_the_jump_and_a_timeout_end_it() {
        let mut sender = Sender::new(100);
        sender.ack(1, 10, 100);
        assert_eq!(sender.resume.on_congestion(&loss(10.0)), None);
        assert!(!sender.resume.is_active());
        let mut sender = Sender::jumped();
        assert_eq!(sender.resume.on_congestion(&Congestion { cause: Cause::Timeout, ..loss(100.0) }), None);
        assert!(!sender.resume.is_active() && sender.resume.pacing_rate() == 0.0);
    }

    #[test]
    fn a_round_trip_time_of_another_path_prevents_the_jump() {
        for (ms, jumps) in [(50, false), (51, true), (1000, true), (1001, false)] {
            let mut sender = Sender::new(ms);
            sender.ack(1, 10, ms);
            assert_eq!(sender.ack(10, 20, ms), jumps, "{ms} ms");
        }
        // One that becomes smaller in the Unvalidated Phase is a path change: half of PipeSize.
        let mut sender = Sender::jumped();
        sender.min_rtt = Time::from_millis(50);
        assert!(sender.ack(11, 40, 150));
        assert_eq!((sender.resume.phase, sender.window.cwnd), (Phase::SafeRetreat, 14.5));
    }

    #[test]
    fn it_waits_until_the_window_is_the_limit_and_does_not_jump_down() {
        let mut history = History::of("reno").slow_start("careful-resume");
        history.wait(0.1).acks(5, 1.0).idle_acks(20).window_is(15.0);
        history.ack(1.0).window_is(150.0);
        assert_eq!(history.controller.pacing_rate(), 150.0 * 1460.0 / 0.1);
        let mut history = History::of("reno").slow_start("careful-resume").starting(150.0);
        history.acks(151, 1.0).window_is(301.0);
    }

    #[test]
    fn an_undo_returns_to_what_was() {
        let mut history = History::of("reno").slow_start("careful-resume");
        history.acks(20, 1.0);
        let before = (history.cwnd(), history.variables());
        history.loss();
        assert!(history.cwnd() < before.0);
        history.controller.undo(crate::Undo::State, Time::ZERO);
        assert_eq!((history.cwnd(), history.variables()), before);
    }
}

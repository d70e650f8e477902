//! Stacks as a whole: each is a table of the same keys that a scenario can set one by one.

use elephan_cc::{Quantisation, Undo};
use elephan_units::{Bytes, Time};

use crate::config::{AfterIdle, ByteCounting, Config, DelayedAck, Profile, SsthreshBase, WindowReduction};

impl Profile {
    /// The settings of this stack. File and function names are of the kernel's source.
    pub fn config(self) -> Config {
        match self {
            Self::Rfc => Config::default(),
            Self::Linux6 => Config {
                profile: self,
                rack: true,
                tlp: true,
                frto: true,
                eifel: true,
                window_reduction: WindowReduction::Prr,
                ssthresh_base: SsthreshBase::Cwnd,
                reduce_again: false,
                undo: Undo::Windows,
                byte_counting: ByteCounting::Delivered,
                // include/net/tcp.h: TCP_ATO_MIN and TCP_MAX_QUICKACKS.
                delayed_ack: DelayedAck {
                    segments: 2,
                    timeout: Time::from_millis(40),
                    quick: 16,
                    compress: true,
                    quick_marks: true,
                    read: true,
                },
                confirm_alone: true,
                // That of Elephan's own hosts on a kernel.
                unsent: Some(Bytes::new(512 << 10)),
                send_buffer_tuning: true,
                // The largest window of a SYN.
                first_receive_window: Some(Bytes::new(65_535)),
                // TCP_RTO_MIN bounds the variance; the timeout itself is one tick at least.
                rto_min: Time::from_millis(1),
                rto_variance_min: Time::from_millis(200),
                timer_margin: Time::from_millis(2),
                after_idle: AfterIdle::Decay,
                // Standard TCP's ssthresh is max(cwnd >> 1, 2) (net/ipv4/tcp_cong.c, tcp_reno_ssthresh).
                quantisation: Quantisation::RoundDown,
                ..Config::default()
            },
            Self::Linux24 => Config {
                profile: self,
                fack: true,
                window_reduction: WindowReduction::RateHalving,
                ssthresh_base: SsthreshBase::Cwnd,
                reduce_again: false,
                undo: Undo::TwiceSsthresh,
                // tcp_cong_avoid counts ACKs.
                byte_counting: ByteCounting::PerAck,
                delayed_ack: DelayedAck {
                    segments: 2,
                    timeout: Time::from_millis(40),
                    quick: 8,
                    compress: false,
                    quick_marks: false,
                    read: false,
                },
                // tcp_init_cwnd (RFC 2414) with an MSS of 1096 to 1460 bytes.
                initial_window: 3,
                rto_min: Time::from_millis(10),
                rto_variance_min: Time::from_millis(200),
                moderate_cwnd: true,
                after_idle: AfterIdle::Decay,
                quantisation: Quantisation::RoundDown,
                ..Config::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_is_sound_and_names_itself() {
        for profile in [Profile::Rfc, Profile::Linux6, Profile::Linux24] {
            let config = profile.config();
            assert_eq!(config.profile, profile);
            assert_eq!(config.mistakes(), []);
        }
    }
}

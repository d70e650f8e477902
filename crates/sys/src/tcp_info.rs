//! The kernel's data about a connection: `struct tcp_info` of include/uapi/linux/tcp.h.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};

use elephan_metrics::trace::{self, FlowRow, KernelRow};
use elephan_units::Time;
use serde::{Deserialize, Serialize};

/// `struct tcp_info`; an older kernel fills only a part of it, and the rest is zero. A message about a connection has what the
/// tables of a run need; what it does not have is zero where it arrives.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the kernel's names, documented there")]
pub struct TcpInfo {
    #[serde(skip)]
    pub state: u8,
    pub ca_state: u8,
    #[serde(skip)]
    pub retransmits: u8,
    #[serde(skip)]
    pub probes: u8,
    #[serde(skip)]
    pub backoff: u8,
    #[serde(skip)]
    pub options: u8,
    #[serde(skip)]
    pub window_scales: u8,
    #[serde(skip)]
    pub limits: u8,
    pub rto: u32,
    #[serde(skip)]
    pub ato: u32,
    pub snd_mss: u32,
    #[serde(skip)]
    pub rcv_mss: u32,
    pub unacked: u32,
    pub sacked: u32,
    pub lost: u32,
    pub retrans: u32,
    #[serde(skip)]
    pub fackets: u32,
    #[serde(skip)]
    pub last_data_sent: u32,
    #[serde(skip)]
    pub last_ack_sent: u32,
    #[serde(skip)]
    pub last_data_recv: u32,
    #[serde(skip)]
    pub last_ack_recv: u32,
    #[serde(skip)]
    pub pmtu: u32,
    #[serde(skip)]
    pub rcv_ssthresh: u32,
    pub rtt: u32,
    #[serde(skip)]
    pub rttvar: u32,
    pub snd_ssthresh: u32,
    pub snd_cwnd: u32,
    #[serde(skip)]
    pub advmss: u32,
    #[serde(skip)]
    pub reordering: u32,
    #[serde(skip)]
    pub rcv_rtt: u32,
    #[serde(skip)]
    pub rcv_space: u32,
    pub total_retrans: u32,
    pub pacing_rate: u64,
    #[serde(skip)]
    pub max_pacing_rate: u64,
    pub bytes_acked: u64,
    #[serde(skip)]
    pub bytes_received: u64,
    #[serde(skip)]
    pub segs_out: u32,
    #[serde(skip)]
    pub segs_in: u32,
    #[serde(skip)]
    pub notsent_bytes: u32,
    pub min_rtt: u32,
    #[serde(skip)]
    pub data_segs_in: u32,
    #[serde(skip)]
    pub data_segs_out: u32,
    pub delivery_rate: u64,
    pub busy_time: u64,
    pub rwnd_limited: u64,
    pub sndbuf_limited: u64,
    pub delivered: u32,
    #[serde(skip)]
    pub delivered_ce: u32,
    pub bytes_sent: u64,
    pub bytes_retrans: u64,
    #[serde(skip)]
    pub dsack_dups: u32,
    #[serde(skip)]
    pub reord_seen: u32,
    #[serde(skip)]
    pub rcv_ooopack: u32,
    #[serde(skip)]
    pub snd_wnd: u32,
    #[serde(skip)]
    pub rcv_wnd: u32,
    #[serde(skip)]
    pub rehash: u32,
    pub total_rto: u16,
    #[serde(skip)]
    pub total_rto_recoveries: u16,
    #[serde(skip)]
    pub total_rto_time: u32,
}

/// The kernel's states of a sender: open, disorder; in this state and all later ones the window is being
/// reduced.
const CA_CWR: u8 = 2;
/// The state after the retransmission timer has expired.
const CA_LOSS: u8 = 4;
/// `TCP_INFINITE_SSTHRESH`.
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// The number of timeouts on kernels before 6.7, which do not report it.
const UNKNOWN: u16 = u16::MAX;

impl TcpInfo {
    /// Timeouts of the connection; `None` if the kernel does not report them.
    pub fn timeouts(&self) -> Option<u64> {
        (self.total_rto < UNKNOWN).then_some(u64::from(self.total_rto))
    }

    /// The smoothed round-trip time; `None` before the first RTT sample.
    pub fn srtt(&self) -> Option<Time> {
        (self.rtt > 0).then(|| Time::from_micros(u64::from(self.rtt)))
    }

    /// The shortest round-trip time, in µs; `None` if the kernel has not measured any (`tcp_min_rtt`).
    pub fn min_rtt(&self) -> Option<u32> {
        (self.min_rtt < u32::MAX).then_some(self.min_rtt)
    }

    /// Whether the retransmission timer has expired since the sender was in this state.
    pub fn expired_since(&self, ca_state: u8) -> bool {
        self.ca_state == CA_LOSS && ca_state < CA_LOSS
    }

    /// Whether the window was reduced since the sender was in this state: it began recovery or responded to a mark, or its
    /// timer expired.
    pub fn reduced_since(&self, ca_state: u8) -> bool {
        (self.ca_state >= CA_CWR && ca_state < CA_CWR) || self.expired_since(ca_state)
    }

    /// A sample of a flow that has this connection only. What needs earlier samples is zero: goodput and reductions.
    pub fn flow_row(&self, at: Time, flow: u32) -> FlowRow {
        let in_flight = (self.unacked + self.retrans).saturating_sub(self.sacked + self.lost);
        FlowRow {
            time_s: at.secs_f64(),
            flow,
            cwnd_segments: f64::from(self.snd_cwnd),
            ssthresh_segments: match self.snd_ssthresh {
                INFINITE_SSTHRESH.. => f64::INFINITY,
                segments => f64::from(segments),
            },
            srtt_s: trace::seconds(self.srtt()),
            rto_s: f64::from(self.rto) * 1e-6,
            pipe_bytes: u64::from(in_flight) * u64::from(self.snd_mss),
            goodput_bit_s: 0.0,
            receive_rate_bit_s: f64::NAN,
            delivered_bytes: self.bytes_acked,
            sent_bytes: self.bytes_sent,
            retransmits: u64::from(self.total_retrans),
            timeouts: self.timeouts().map_or(trace::UNKNOWN, |count| count as u32),
            congestion_events: 0,
        }
    }

    /// The kernel's own columns of that sample.
    pub fn kernel_row(&self) -> KernelRow {
        KernelRow {
            pacing_rate_bit_s: match self.pacing_rate {
                u64::MAX => f64::INFINITY,
                bytes => bytes as f64 * 8.0,
            },
            min_rtt_s: self.min_rtt().map_or(f64::NAN, |micros| f64::from(micros) * 1e-6),
            delivery_rate_bit_s: match self.delivery_rate {
                0 => f64::NAN,
                bytes => bytes as f64 * 8.0,
            },
            busy_s: self.busy_time as f64 * 1e-6,
            rwnd_limited_s: self.rwnd_limited as f64 * 1e-6,
            sndbuf_limited_s: self.sndbuf_limited as f64 * 1e-6,
        }
    }
}

/// What a kernel wrote, of any length: it may know fewer fields, or more.
pub(crate) fn from_bytes(bytes: &[u8]) -> TcpInfo {
    let mut info = TcpInfo { total_rto: UNKNOWN, ..TcpInfo::default() };
    let length = bytes.len().min(size_of::<TcpInfo>());
    #[expect(unsafe_code, reason = "the form of the kernel's structure")]
    // SAFETY: no more is written than there is room for, and all byte values are valid.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut info).cast(), length);
    }
    info
}

/// Queries it.
pub fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    let mut info = TcpInfo { total_rto: UNKNOWN, ..TcpInfo::default() };
    let mut length = size_of::<TcpInfo>() as libc::socklen_t;
    let place = (&raw mut info).cast();
    #[expect(unsafe_code, reason = "rustix does not have this option")]
    // SAFETY: the kernel writes no more than the given length, and all byte values are valid.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, place, &raw mut length)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(info) }
}

/// `union tcp_cc_info` has no more bytes.
const CC_INFO_BYTES: usize = 20;
/// The unit of BBR's gains (`BBR_UNIT`, net/ipv4/tcp_bbr.c), and that of DCTCP's alpha (`DCTCP_MAX_ALPHA`, net/ipv4/tcp_dctcp.c).
const BBR_UNIT: f64 = 256.0;
const DCTCP_MAX_ALPHA: f64 = 1024.0;

/// What the kernel's `algorithm` of a socket tells of itself, by the names of `elephan_cc::registry::told_by_linux`, in SI units and
/// segments of `mss` bytes. It is empty for an algorithm that tells nothing.
pub fn tcp_cc_info(
    socket: BorrowedFd<'_>,
    algorithm: &str,
    mss: u32,
) -> io::Result<Vec<(&'static str, f64)>> {
    let mut told = [0_u8; CC_INFO_BYTES];
    let mut length = CC_INFO_BYTES as libc::socklen_t;
    #[expect(unsafe_code, reason = "rustix does not have this option")]
    // SAFETY: the kernel writes no more than the given length, and all byte values are valid.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CC_INFO,
            told.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(of_algorithm(&told[..length as usize], algorithm, mss))
    }
}

/// What an algorithm tells, of the bytes of its structure: `tcp_bbr_info`, `tcp_dctcp_info`.
fn of_algorithm(told: &[u8], algorithm: &str, mss: u32) -> Vec<(&'static str, f64)> {
    let word = |at: usize| u32::from_ne_bytes(told[at..at + 4].try_into().expect("four bytes"));
    match (algorithm, told.len()) {
        ("bbr", 20..) => {
            let bytes_s = u64::from(word(0)) | u64::from(word(4)) << 32;
            let min_rtt = if word(8) == u32::MAX { f64::NAN } else { f64::from(word(8)) * 1e-6 };
            vec![
                ("max_bw", if bytes_s == 0 { f64::NAN } else { bytes_s as f64 / f64::from(mss) }),
                ("min_rtt", min_rtt),
                ("pacing_gain", f64::from(word(12)) / BBR_UNIT),
                ("cwnd_gain", f64::from(word(16)) / BBR_UNIT),
            ]
        }
        ("dctcp", 16..) => vec![("alpha", f64::from(word(4)) / DCTCP_MAX_ALPHA)],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_an_algorithm_tells_is_in_segments_and_seconds() {
        let words: [u32; 5] = [15_000_000, 0, 40_000, 320, 512];
        let told: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let bbr = of_algorithm(&told, "bbr", 1500);
        assert_eq!(bbr, [("max_bw", 10_000.0), ("min_rtt", 0.04), ("pacing_gain", 1.25), ("cwnd_gain", 2.0)]);
        assert_eq!(of_algorithm(&told[..16], "dctcp", 1500), [("alpha", 0.0)]);
        assert_eq!(of_algorithm(&told[..16], "bbr", 1500), []);
        assert_eq!(of_algorithm(&[], "cubic", 1500), []);
        let unknown = of_algorithm(&[[0xff; 4], [0; 4], [0xff; 4], [0; 4], [0; 4]].concat(), "bbr", 1500);
        assert!(unknown[1].1.is_nan(), "{unknown:?}");
    }

    #[test]
    fn a_message_has_what_the_tables_need() {
        let info = TcpInfo {
            rtt: 20_000,
            total_rto: UNKNOWN,
            bytes_acked: u64::MAX,
            snd_wnd: 7,
            ..TcpInfo::default()
        };
        let bytes = rmp_serde::to_vec_named(&info).unwrap();
        assert_eq!(rmp_serde::from_slice::<TcpInfo>(&bytes).unwrap(), TcpInfo { snd_wnd: 0, ..info });
        let named: BTreeMap<String, u64> = rmp_serde::from_slice(&bytes).unwrap();
        let names: Vec<_> = named.keys().map(String::as_str).collect();
        let expected = "busy_time bytes_acked bytes_retrans bytes_sent ca_state delivered delivery_rate lost min_rtt \
                        pacing_rate retrans rto rtt rwnd_limited sacked snd_cwnd snd_mss snd_ssthresh sndbuf_limited \
                        total_retrans total_rto unacked";
        assert_eq!(names.join(" "), expected);
    }
}

//! The kernel's data about a connection: `struct tcp_info` of include/uapi/linux/tcp.h.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};

use elephan_metrics::trace::{FlowRow, KernelRow};
use elephan_units::Time;

/// `struct tcp_info`; an older kernel fills only a part of it, and the rest is zero.
#[repr(C)]
#[derive(Clone, Copy, Default)]
#[allow(missing_docs, reason = "the kernel's names, documented there")]
pub struct TcpInfo {
    pub state: u8,
    pub ca_state: u8,
    pub retransmits: u8,
    pub probes: u8,
    pub backoff: u8,
    pub options: u8,
    pub window_scales: u8,
    pub limits: u8,
    pub rto: u32,
    pub ato: u32,
    pub snd_mss: u32,
    pub rcv_mss: u32,
    pub unacked: u32,
    pub sacked: u32,
    pub lost: u32,
    pub retrans: u32,
    pub fackets: u32,
    pub last_data_sent: u32,
    pub last_ack_sent: u32,
    pub last_data_recv: u32,
    pub last_ack_recv: u32,
    pub pmtu: u32,
    pub rcv_ssthresh: u32,
    pub rtt: u32,
    pub rttvar: u32,
    pub snd_ssthresh: u32,
    pub snd_cwnd: u32,
    pub advmss: u32,
    pub reordering: u32,
    pub rcv_rtt: u32,
    pub rcv_space: u32,
    pub total_retrans: u32,
    pub pacing_rate: u64,
    pub max_pacing_rate: u64,
    pub bytes_acked: u64,
    pub bytes_received: u64,
    pub segs_out: u32,
    pub segs_in: u32,
    pub notsent_bytes: u32,
    pub min_rtt: u32,
    pub data_segs_in: u32,
    pub data_segs_out: u32,
    pub delivery_rate: u64,
    pub busy_time: u64,
    pub rwnd_limited: u64,
    pub sndbuf_limited: u64,
    pub delivered: u32,
    pub delivered_ce: u32,
    pub bytes_sent: u64,
    pub bytes_retrans: u64,
    pub dsack_dups: u32,
    pub reord_seen: u32,
    pub rcv_ooopack: u32,
    pub snd_wnd: u32,
    pub rcv_wnd: u32,
    pub rehash: u32,
    pub total_rto: u16,
    pub total_rto_recoveries: u16,
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
            srtt_s: f64::from(self.rtt) * 1e-6,
            rto_s: f64::from(self.rto) * 1e-6,
            pipe_bytes: u64::from(in_flight) * u64::from(self.snd_mss),
            goodput_bit_s: 0.0,
            receive_rate_bit_s: f64::NAN,
            delivered_bytes: self.bytes_acked,
            sent_bytes: self.bytes_sent,
            retransmits: u64::from(self.total_retrans),
            timeouts: self.timeouts().unwrap_or(0) as u32,
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
            min_rtt_s: f64::from(self.min_rtt) * 1e-6,
            delivery_rate_bit_s: self.delivery_rate as f64 * 8.0,
            busy_s: self.busy_time as f64 * 1e-6,
            rwnd_limited_s: self.rwnd_limited as f64 * 1e-6,
            sndbuf_limited_s: self.sndbuf_limited as f64 * 1e-6,
        }
    }
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

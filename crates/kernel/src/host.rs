//! A connection as seen by a kernel's algorithm, on the host.

use std::ffi::{CStr, c_char};

use elephan_cc::governor::{Fault, Governor, Limits, Report};
use elephan_cc::{Cause, State};

/// A kernel's "infinite" threshold: `TCP_INFINITE_SSTHRESH`.
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;
/// RFC 5681, equation 4: `ssthresh` is never below two segments.
const MIN_SSTHRESH: f64 = 2.0;
/// `TCP_CONG_NEEDS_ECN`.
const NEEDS_ECN: u32 = 2;

/// `struct parameter` of kernel/elephan.h.
#[repr(C)]
pub struct Row {
    name: [c_char; 32],
    pub bits: u64,
    pub value: u64,
}

impl Row {
    pub fn name(&self) -> &str {
        // SAFETY: names in the tables are shorter than their field, and so are zero-terminated.
        unsafe { CStr::from_ptr(self.name.as_ptr()) }.to_str().expect("names are ASCII")
    }
}

/// A table of parameters, up to the row without a name.
#[derive(Clone, Copy)]
pub struct Table(pub *const Row);

// SAFETY: tables are never written to.
unsafe impl Sync for Table {}

impl Table {
    pub fn rows(&self) -> &'static [Row] {
        // SAFETY: every table ends with a row of zeros.
        unsafe {
            let mut count = 0;
            while (*self.0.add(count)).name[0] != 0 {
                count += 1;
            }
            std::slice::from_raw_parts(self.0, count)
        }
    }
}

type Call = Option<unsafe extern "C" fn(*mut u64)>;
type Answer = Option<unsafe extern "C" fn(*mut u64) -> u32>;

/// `struct tcp_congestion_ops` of kernel/elephan.h.
#[repr(C)]
pub struct Operations {
    ssthresh: Answer,
    cong_avoid: Call,
    undo_cwnd: Answer,
    set_state: Call,
    cwnd_event: Call,
    pkts_acked: Call,
    init: Call,
    name: [c_char; 16],
    flags: u32,
}

/// `struct tcp_sock` of kernel/elephan.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct TcpSock {
    private: [u64; 13],
    ack_pending: u64,
    snd_cwnd: u32,
    snd_ssthresh: u32,
    snd_una: u32,
    snd_nxt: u32,
    rcv_nxt: u32,
    srtt_us: u32,
    mss_cache: u32,
    delivered: u32,
    delivered_ce: u32,
    max_packets_out: u32,
    tcp_mstamp: u64,
    rtt_min: [u32; 6],
    ecn_flags: u8,
    is_cwnd_limited: u8,
}

#[repr(C)]
struct AckSample {
    pkts_acked: u32,
    rtt_us: i32,
    in_flight: u32,
}

unsafe extern "C" {
    fn el_use(values: *const u64);
    static el_sizeof_tcp_sock: u64;
}

/// A kernel's algorithm in place of one of `elephan-cc`.
#[derive(Clone)]
pub struct Host {
    operations: &'static Operations,
    values: Vec<u64>,
    tp: TcpSock,
    /// Fractions of segments that were acknowledged and not yet reported: a kernel counts whole segments.
    owed: f64,
    /// Growth beyond `ssthresh` that slow start must leave to congestion avoidance.
    beyond: f64,
    /// The state that it was told last, by its number.
    state: u32,
}

impl Host {
    pub fn new(operations: &'static Operations, values: Vec<u64>) -> Self {
        // SAFETY: a constant.
        assert_eq!(std::mem::size_of::<TcpSock>() as u64, unsafe { el_sizeof_tcp_sock });
        let tp = TcpSock { snd_nxt: 1, is_cwnd_limited: 1, ..TcpSock::default() };
        let mut host = Self { operations, values, tp, owed: 0.0, beyond: 0.0, state: State::Open.into() };
        host.call(operations.init, 0, 0);
        host
    }

    fn arguments(&mut self, second: u64, third: u64) -> [u64; 3] {
        // SAFETY: `values` has a value for each row of the algorithm's table, and outlives the call.
        unsafe { el_use(self.values.as_ptr()) };
        [&raw mut self.tp as u64, second, third]
    }

    fn call(&mut self, operation: Call, second: u64, third: u64) {
        let mut arguments = self.arguments(second, third);
        if let Some(operation) = operation {
            // SAFETY: the operation reads and writes `tp`, whose layout is the header's, and its arguments.
            unsafe { operation(arguments.as_mut_ptr()) };
        }
    }

    fn set_state(&mut self, state: u32) {
        if state != self.state {
            self.state = state;
            self.call(self.operations.set_state, u64::from(state), 0);
        }
    }

    fn set_window(&mut self, limits: &Limits) {
        self.tp.snd_cwnd = (limits.cwnd as u32).max(1);
        self.tp.snd_ssthresh = limits.ssthresh.min(f64::from(INFINITE_SSTHRESH)) as u32;
    }

    /// The connection as the kernel has it.
    fn set(&mut self, limits: &Limits, report: &Report) {
        self.set_window(limits);
        let tp = &mut self.tp;
        tp.tcp_mstamp = report.now_ns / 1000;
        tp.delivered = report.delivered as u32;
        tp.delivered_ce = report.delivered_ce as u32;
        tp.rtt_min[1] = (report.min_rtt_ns / 1000) as u32;
    }

    /// Lets the kernel's algorithm change the window; returns the change.
    fn avoid(&mut self, limits: &Limits, growth: f64) -> f64 {
        self.set_window(limits);
        self.owed += growth;
        let acked = self.owed as u32;
        self.owed -= f64::from(acked);
        if acked == 0 {
            return 0.0;
        }
        let before = self.tp.snd_cwnd;
        self.call(self.operations.cong_avoid, 0, u64::from(acked));
        f64::from(self.tp.snd_cwnd) - f64::from(before)
    }
}

impl Governor for Host {
    fn ack(&mut self, limits: &mut Limits, report: &Report) -> Result<(), Fault> {
        self.set(limits, report);
        let tp = &mut self.tp;
        tp.srtt_us = (report.srtt_ns / 1000 * 8) as u32;
        tp.mss_cache = report.mss;
        // Segments sent in a round trip are acknowledged in the next.
        tp.snd_una = 2 * report.round as u32;
        tp.snd_nxt = tp.snd_una + 1;
        self.set_state(report.state);
        let rtt_us = if report.rtt_ns < 0 { -1 } else { (report.rtt_ns / 1000) as i32 };
        let sample = AckSample { pkts_acked: 1, rtt_us, in_flight: report.rate.sent_in_flight };
        self.call(self.operations.pkts_acked, &raw const sample as u64, 0);
        if report.growth == 0.0 {
            return Ok(());
        }
        let mut growth = self.avoid(limits, report.growth);
        if limits.cwnd < limits.ssthresh {
            // The kernel's slow start goes on beyond ssthresh by itself: what it adds there counts at the next ACK.
            let room = limits.ssthresh - limits.cwnd;
            self.beyond = (growth - room).max(0.0);
            growth = growth.min(room);
            let grown = (limits.cwnd + growth.min(report.growth)).max(1.0);
            if f64::from(self.tp.snd_ssthresh) < limits.ssthresh.min(f64::from(INFINITE_SSTHRESH)) {
                limits.ssthresh = grown.max(MIN_SSTHRESH);
            }
            limits.cwnd = grown;
        } else {
            growth += std::mem::take(&mut self.beyond);
            // No ACK adds more than in slow start.
            limits.cwnd = (limits.cwnd + growth.min(report.growth)).max(1.0);
            if f64::from(self.tp.snd_ssthresh) < limits.ssthresh.floor() {
                limits.ssthresh = limits.cwnd.max(MIN_SSTHRESH);
            }
        }
        Ok(())
    }

    fn congestion(&mut self, limits: &mut Limits, report: &Report, cause: Cause) -> Result<(), Fault> {
        self.set(limits, report);
        self.beyond = 0.0;
        let mut arguments = self.arguments(0, 0);
        let ssthresh = self.operations.ssthresh.expect("every algorithm has ssthresh");
        // SAFETY: as in `call`.
        self.tp.snd_ssthresh = unsafe { ssthresh(arguments.as_mut_ptr()) };
        let state = match cause {
            Cause::Timeout => State::Loss,
            Cause::Ecn => State::Cwr,
            Cause::Loss => State::Recovery,
        };
        // The kernel tells the state again at each event; some algorithms change the threshold for it.
        self.state = state.into();
        self.call(self.operations.set_state, u64::from(self.state), 0);
        limits.ssthresh = f64::from(self.tp.snd_ssthresh);
        Ok(())
    }

    fn needs_ecn(&self) -> bool {
        self.operations.flags & NEEDS_ECN != 0
    }

    fn fresh(&self, _: u64) -> Box<dyn Governor> {
        self.boxed()
    }

    fn boxed(&self) -> Box<dyn Governor> {
        Box::new(self.clone())
    }
}

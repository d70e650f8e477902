//! A connection as seen by a kernel's algorithm, on the host.

use std::ffi::{CStr, c_char};

use elephan_cc::{Ack, Algorithm, Cause, Congestion, Start, State, Window};
use elephan_units::Time;

/// A kernel's "infinite" threshold: `TCP_INFINITE_SSTHRESH`.
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;
/// Connections begin one second after the start of the kernel's clock, because some algorithms use zero for
/// "never".
const EPOCH_US: u64 = 1_000_000;

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
    snd_cwnd: u32,
    snd_ssthresh: u32,
    snd_una: u32,
    snd_nxt: u32,
    srtt_us: u32,
    mss_cache: u32,
    delivered: u32,
    max_packets_out: u32,
    tcp_mstamp: u64,
    rtt_min: [u32; 6],
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
    state: State,
}

fn micros(time: Time) -> u64 {
    time.picos() / 1_000_000
}

impl Host {
    pub fn new(operations: &'static Operations, values: Vec<u64>) -> Self {
        // SAFETY: a constant.
        assert_eq!(std::mem::size_of::<TcpSock>() as u64, unsafe { el_sizeof_tcp_sock });
        let tp = TcpSock { snd_nxt: 1, is_cwnd_limited: 1, ..TcpSock::default() };
        let mut host = Self { operations, values, tp, owed: 0.0, beyond: 0.0, state: State::Open };
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

    fn set_state(&mut self, state: State) {
        if state != self.state {
            self.state = state;
            // The kernel's numbers are in the order of the states.
            self.call(self.operations.set_state, state as u64, 0);
        }
    }

    fn set_window(&mut self, window: &Window) {
        self.tp.snd_cwnd = (window.cwnd as u32).max(1);
        self.tp.snd_ssthresh = window.ssthresh.min(f64::from(INFINITE_SSTHRESH)) as u32;
    }

    /// Lets the kernel's algorithm change the window; returns the change.
    fn avoid(&mut self, window: &Window, ack: &Ack) -> f64 {
        self.set_window(window);
        self.owed += ack.segments;
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

impl Algorithm for Host {
    fn observe(&mut self, window: &Window, ack: &Ack) {
        self.set_window(window);
        let min_rtt = micros(ack.min_rtt) as u32;
        let tp = &mut self.tp;
        tp.tcp_mstamp = EPOCH_US + micros(ack.now);
        tp.srtt_us = (micros(ack.srtt) * 8) as u32;
        tp.rtt_min[1] = min_rtt;
        tp.mss_cache = ack.mss;
        tp.delivered = ack.delivered as u32;
        // Segments sent in a round trip are acknowledged in the next.
        tp.snd_una = 2 * ack.round as u32;
        tp.snd_nxt = tp.snd_una + 1;
        self.set_state(ack.state);
        let rtt_us = ack.rtt.map_or(-1, |rtt| micros(rtt) as i32);
        let sample = AckSample { pkts_acked: 1, rtt_us, in_flight: ack.flight_size as u32 };
        self.call(self.operations.pkts_acked, &raw const sample as u64, 0);
    }

    fn start(&mut self, window: &Window, ack: &Ack) -> Option<Start> {
        let growth = self.avoid(window, ack);
        // The kernel's slow start goes on beyond ssthresh by itself.
        let room = window.ssthresh - window.cwnd;
        self.beyond = (growth - room).max(0.0);
        let ends = f64::from(self.tp.snd_ssthresh) < window.ssthresh.min(f64::from(INFINITE_SSTHRESH));
        Some(Start { growth: growth.min(room), ends })
    }

    fn increase(&mut self, window: &Window, ack: &Ack) -> f64 {
        self.avoid(window, ack) + std::mem::take(&mut self.beyond)
    }

    fn decrease(&mut self, window: &Window, event: &Congestion) -> f64 {
        self.set_window(window);
        self.tp.tcp_mstamp = EPOCH_US + micros(event.now);
        self.tp.delivered = event.delivered as u32;
        self.tp.rtt_min[1] = micros(event.min_rtt) as u32;
        self.beyond = 0.0;
        let mut arguments = self.arguments(0, 0);
        let ssthresh = self.operations.ssthresh.expect("every algorithm has ssthresh");
        // SAFETY: as in `call`.
        let target = unsafe { ssthresh(arguments.as_mut_ptr()) };
        self.set_state(match event.cause {
            Cause::Timeout => State::Loss,
            Cause::Ecn => State::Cwr,
            Cause::Loss => State::Recovery,
        });
        f64::from(target)
    }

    fn boxed(&self) -> Box<dyn Algorithm> {
        Box::new(self.clone())
    }
}

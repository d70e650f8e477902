//! The C interface: `kernel/guest/host.h`, declared there.
#![expect(unsafe_code, reason = "the caller is C")]

use std::ffi::{c_char, c_int, c_uint, c_ulong, c_ulonglong, c_void};
use std::{env, fs, ptr, slice, str};

use elephan_network::Parcel;
use elephan_scenario::{Error, Plan, Scenario};
use elephan_units::Time;

use crate::events::Window;
use crate::links::{Kernel, Links};

/// `ELEPHAN_ABI`.
const ABI: c_uint = 2;

/// The environment variable with the file for the events of a run that asks for them ([`elephan_metrics::trace::EventTrace`],
/// MessagePack). They may be larger than the guest's memory.
pub const EVENTS: &str = "ELEPHAN_EVENTS";

/// `struct elephan_abi`.
#[repr(C)]
struct Calls {
    deliver: unsafe extern "C" fn(*mut c_void, c_int, c_int),
    discard: unsafe extern "C" fn(*mut c_void),
}

struct Guest(&'static Calls);

impl Kernel for Guest {
    fn deliver(&self, parcel: &Parcel) {
        let service = if parcel.changed { c_int::from(parcel.service) } else { -1 };
        // SAFETY: `place` is the address that the kernel passed with the packet, which it gets back once.
        unsafe { (self.0.deliver)(parcel.place as *mut c_void, c_int::from(parcel.direction), service) }
    }
    fn discard(&self, parcel: &Parcel) {
        // SAFETY: as above.
        unsafe { (self.0.discard)(parcel.place as *mut c_void) }
    }
}

type Network = Links<Guest>;

/// `struct elephan_links`.
#[repr(C)]
pub struct Table {
    open: unsafe extern "C" fn(*const c_char, c_ulong, &'static Calls, *mut c_char, c_ulong) -> *mut Network,
    enter: unsafe extern "C" fn(
        &mut Network,
        c_ulonglong,
        c_int,
        *const u8,
        c_ulong,
        c_uint,
        Window,
        *mut c_void,
    ),
    state: extern "C" fn(&mut Network, c_ulonglong, c_uint, c_int, c_int, Window),
    next: extern "C" fn(&Network) -> c_ulonglong,
    advance: extern "C" fn(&mut Network, c_ulonglong),
    finish: unsafe extern "C" fn(&mut Network, c_ulonglong, *mut *const u8) -> c_ulong,
}

static TABLE: Table = Table { open, enter, state, next, advance, finish };

/// The functions of the library; null for another ABI.
#[unsafe(no_mangle)]
pub extern "C" fn elephan_links(abi: c_uint) -> *const Table {
    if abi == ABI { &raw const TABLE } else { ptr::null() }
}

fn time(ns: c_ulonglong) -> Time {
    Time::from_picos(ns.saturating_mul(1000))
}

fn resolved(scenario: &str) -> Result<Plan, Error> {
    Scenario::from_json(scenario, "scenario", &[])?.resolve("scenario")
}

unsafe extern "C" fn open(
    scenario: *const c_char,
    length: c_ulong,
    kernel: &'static Calls,
    error: *mut c_char,
    error_length: c_ulong,
) -> *mut Network {
    // SAFETY: the kernel passes `length` bytes.
    let scenario = unsafe { slice::from_raw_parts(scenario.cast::<u8>(), length as usize) };
    let made = str::from_utf8(scenario)
        .map_err(|error| format!("scenario: expected UTF-8: {error}"))
        .and_then(|scenario| resolved(scenario).map_err(|error| error.to_string()))
        .map(|plan| Links::new(&plan, Guest(kernel)));
    match made {
        Ok(network) => Box::into_raw(Box::new(network)),
        Err(message) => {
            let room = (error_length as usize).saturating_sub(1).min(message.len());
            // SAFETY: the kernel passes room for `error_length` bytes, of which the last is for the end.
            unsafe {
                ptr::copy_nonoverlapping(message.as_ptr().cast(), error, room);
                error.add(room).write(0);
            }
            ptr::null_mut()
        }
    }
}

unsafe extern "C" fn enter(
    network: &mut Network,
    now: c_ulonglong,
    direction: c_int,
    header: *const u8,
    header_length: c_ulong,
    length: c_uint,
    window: Window,
    packet: *mut c_void,
) {
    // SAFETY: the kernel passes `header_length` bytes.
    let header = unsafe { slice::from_raw_parts(header, header_length as usize) };
    network.leave(time(now), direction as u8, header, length, window, packet as usize);
}

extern "C" fn state(
    network: &mut Network,
    now: c_ulonglong,
    port: c_uint,
    before: c_int,
    state: c_int,
    window: Window,
) {
    network.state(time(now), port as u16, (before as u8, state as u8), window);
}

/// The kernel's time has whole nanoseconds: what is due is due at the next of them.
extern "C" fn next(network: &Network) -> c_ulonglong {
    match network.next() {
        Time::MAX => c_ulonglong::MAX,
        due => due.picos().div_ceil(1000),
    }
}

extern "C" fn advance(network: &mut Network, now: c_ulonglong) {
    network.advance(time(now));
}

unsafe extern "C" fn finish(network: &mut Network, now: c_ulonglong, records: *mut *const u8) -> c_ulong {
    // The host fails to read what could not be written.
    if let (Some(events), Some(path)) = (network.events(), env::var_os(EVENTS)) {
        let _ = fs::write(path, rmp_serde::to_vec_named(&events).expect("events can be written"));
    }
    let bytes = rmp_serde::to_vec_named(&network.finish(time(now))).expect("records can be written").leak();
    // SAFETY: the kernel passes a place for the address.
    unsafe { records.write(bytes.as_ptr()) };
    bytes.len() as c_ulong
}

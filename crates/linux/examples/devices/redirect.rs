//! The program of XDP that gives a device's packets to a socket of AF_XDP, by the system call bpf(2).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::check;

// Of linux/bpf.h: commands, kinds, and how a program is attached.
const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;
const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;

/// Where the kernel runs the program: XDP_FLAGS_SKB_MODE and XDP_FLAGS_DRV_MODE of linux/if_link.h.
#[derive(Clone, Copy)]
pub enum Mode {
    /// On its way up from any device.
    Generic = 1 << 1,
    /// In the device's driver.
    Native = 1 << 2,
}

/// Attached until it goes.
pub struct Redirect {
    _map: OwnedFd,
    _program: OwnedFd,
    _link: OwnedFd,
}

impl Redirect {
    /// Everything that arrives at a device's first queue goes to the socket.
    pub fn to(socket: &OwnedFd, device: u32, mode: Mode) -> io::Result<Self> {
        let map = owned(bpf(MAP_CREATE, &[MAP_TYPE_XSKMAP, 4, 4, 1])?);
        let (key, value) = (0u32, socket.as_raw_fd());
        let update = [map.as_raw_fd() as u64, (&raw const key) as u64, (&raw const value) as u64, 0];
        bpf(MAP_UPDATE_ELEM, &update)?;
        let program = program(map.as_raw_fd());
        let license = c"MIT";
        let kind = u64::from(PROG_TYPE_XDP) | (program.len() as u64) << 32;
        let load = [kind, program.as_ptr() as u64, license.as_ptr() as u64];
        let program = owned(bpf(PROG_LOAD, &load)?);
        let create = [program.as_raw_fd() as u32, device, ATTACH_XDP, mode as u32];
        let link = owned(bpf(LINK_CREATE, &create)?);
        Ok(Self { _map: map, _program: program, _link: link })
    }
}

/// `return bpf_redirect_map(&map, context->rx_queue_index, XDP_PASS)`, in instructions of 64 bits: operation, registers (the source in
/// the upper half of its byte), offset, value (RFC 9669).
fn program(map: libc::c_int) -> [u64; 6] {
    const LOAD_WORD: u8 = 0x61;
    const LOAD_DOUBLE: u8 = 0x18;
    const MOVE: u8 = 0xb7;
    const CALL: u8 = 0x85;
    const EXIT: u8 = 0x95;
    /// In place of a source: the value is the descriptor of a map.
    const MAP: u8 = 1;
    const RX_QUEUE_INDEX: i16 = 16;
    const XDP_PASS: i32 = 2;
    const REDIRECT_MAP: i32 = 51;
    let instruction = |operation: u8, to: u8, from: u8, offset: i16, value: i32| {
        let [low, high] = offset.to_ne_bytes();
        let [a, b, c, d] = value.to_ne_bytes();
        u64::from_ne_bytes([operation, from << 4 | to, low, high, a, b, c, d])
    };
    [
        instruction(LOAD_WORD, 2, 1, RX_QUEUE_INDEX, 0),
        instruction(LOAD_DOUBLE, 1, MAP, 0, map),
        instruction(0, 0, 0, 0, 0),
        instruction(MOVE, 3, 0, 0, XDP_PASS),
        instruction(CALL, 0, 0, 0, REDIRECT_MAP),
        instruction(EXIT, 0, 0, 0, 0),
    ]
}

/// Carries out a command, whose attributes are numbers of one length.
fn bpf<T>(command: libc::c_int, attributes: &[T]) -> io::Result<libc::c_int> {
    // SAFETY: as long as it says; what it points to outlives the call.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, attributes.as_ptr(), std::mem::size_of_val(attributes))
    };
    check(result as libc::c_int)
}

fn owned(descriptor: libc::c_int) -> OwnedFd {
    // SAFETY: it was made just now.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

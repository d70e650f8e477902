//! `/dev/elephan`, by which the guest's kernel carries out requests (`kernel/uml/network.c`).
#![expect(unsafe_code, reason = "rustix has no such requests")]

use std::fs::File;
use std::io;

use elephan_emulator::Records;
use rustix::ioctl::{Getter, IntegerSetter, Opcode, Setter, Updater, ioctl, opcode};

/// The device.
pub const DEVICE: &str = "/dev/elephan";

/// `struct elephan_bytes`.
#[repr(C)]
struct Bytes {
    at: u64,
    length: u64,
}

const OPEN: Opcode = opcode::read_write::<Bytes>(b'E', 1);
const MAKE: Opcode = opcode::none(b'E', 2);
const START: Opcode = opcode::read::<u64>(b'E', 3);
const FINISH: Opcode = opcode::read::<u64>(b'E', 4);
const RECORDS: Opcode = opcode::write::<Bytes>(b'E', 5);

/// The network of a run.
pub struct Device(File);

impl Device {
    /// Makes the links of a scenario (JSON).
    pub fn open(device: File, scenario: &str) -> io::Result<Self> {
        // The reason of a refusal is written over it.
        let mut text = scenario.as_bytes().to_vec();
        let mut bytes = Bytes { at: text.as_mut_ptr() as u64, length: text.len() as u64 };
        // SAFETY: the kernel reads and writes within the given bytes.
        let made = unsafe { ioctl(&device, Updater::<OPEN, Bytes>::new(&mut bytes)) };
        match made {
            Ok(()) => Ok(Self(device)),
            Err(rustix::io::Errno::PROTO) => {
                Err(io::Error::other(String::from_utf8_lossy(&text[..bytes.length as usize]).into_owned()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Makes the network device of a host in the namespace of the calling thread.
    pub fn make(&self, direction: usize) -> io::Result<()> {
        // SAFETY: the argument is a number.
        Ok(unsafe { ioctl(&self.0, IntegerSetter::<MAKE>::new_usize(direction)) }?)
    }

    /// The run begins: the time of its beginning on CLOCK_MONOTONIC, ns.
    pub fn start(&self) -> io::Result<u64> {
        // SAFETY: the kernel writes eight bytes.
        Ok(unsafe { ioctl(&self.0, Getter::<START, u64>::new()) }?)
    }

    /// The run ends: the records of its links.
    pub fn finish(&self) -> io::Result<Records> {
        // SAFETY: the kernel writes eight bytes.
        let length = unsafe { ioctl(&self.0, Getter::<FINISH, u64>::new()) }?;
        let mut records = vec![0u8; length as usize];
        let bytes = Bytes { at: records.as_mut_ptr() as u64, length };
        // SAFETY: the kernel writes within the given bytes.
        unsafe { ioctl(&self.0, Setter::<RECORDS, Bytes>::new(bytes)) }?;
        rmp_serde::from_slice(&records).map_err(io::Error::other)
    }
}

//! `/dev/elephan`, by which the guest's kernel carries out requests (`kernel/guest/network.c`).
#![expect(unsafe_code, reason = "rustix has no such requests")]

use std::fs::File;
use std::io;

use elephan_emulator::Records;
use elephan_guest::Load;
use elephan_linux::{Clock, Emulated, Host, Path};
use rustix::ioctl::{Getter, IntegerSetter, Opcode, Setter, Updater, ioctl, opcode};

/// The device.
pub const DEVICE: &str = "/dev/elephan";

/// `struct elephan_bytes`.
#[repr(C)]
struct Bytes {
    at: u64,
    length: u64,
}

/// `struct elephan_load`.
#[repr(C)]
struct Loading {
    name: [u8; 32],
    registered: [u8; 32],
    values: [u64; 32],
    count: u64,
}

const OPEN: Opcode = opcode::read_write::<Bytes>(b'E', 1);
const MAKE: Opcode = opcode::none(b'E', 2);
const START: Opcode = opcode::read::<u64>(b'E', 3);
const FINISH: Opcode = opcode::read::<u64>(b'E', 4);
const RECORDS: Opcode = opcode::write::<Bytes>(b'E', 5);

const LOAD: Opcode = opcode::write::<Loading>(b'E', 6);

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

    /// Registers an algorithm with other parameters.
    pub fn load(&self, load: &Load) -> io::Result<()> {
        let mut loading =
            Loading { name: [0; 32], registered: [0; 32], values: [0; 32], count: load.values.len() as u64 };
        let too_long =
            |()| io::Error::other(format!("{}: expected a shorter name or fewer parameters", load.name));
        let texts = [(&mut loading.name, &load.name), (&mut loading.registered, &load.registered)];
        for (to, from) in texts {
            to.get_mut(..from.len()).ok_or(()).map_err(too_long)?.copy_from_slice(from.as_bytes());
        }
        let values = loading.values.get_mut(..load.values.len()).ok_or(()).map_err(too_long)?;
        values.copy_from_slice(&load.values);
        // SAFETY: the kernel reads the structure.
        let loaded = unsafe { ioctl(&self.0, Setter::<LOAD, Loading>::new(loading)) };
        loaded.map_err(|error| io::Error::other(format!("congestion control {}: {error}", load.registered)))
    }
}

impl Path for Device {
    fn device(&mut self, host: Host) -> io::Result<()> {
        let direction = usize::from(host == Host::Listener);
        // SAFETY: the argument is a number.
        Ok(unsafe { ioctl(&self.0, IntegerSetter::<MAKE>::new_usize(direction)) }?)
    }

    fn start(&mut self) -> io::Result<Clock> {
        // SAFETY: the kernel writes eight bytes.
        let zero_ns = unsafe { ioctl(&self.0, Getter::<START, u64>::new()) }?;
        Ok(Clock::Virtual { zero_ns })
    }

    fn finish(self) -> io::Result<Emulated> {
        // SAFETY: the kernel writes eight bytes.
        let length = unsafe { ioctl(&self.0, Getter::<FINISH, u64>::new()) }?;
        let mut written = vec![0u8; length as usize];
        let bytes = Bytes { at: written.as_mut_ptr() as u64, length };
        // SAFETY: the kernel writes within the given bytes.
        unsafe { ioctl(&self.0, Setter::<RECORDS, Bytes>::new(bytes)) }?;
        let Records { recorded, lateness, reductions } =
            rmp_serde::from_slice(&written).map_err(io::Error::other)?;
        Ok(Emulated { recorded, lateness, reductions: Some(reductions), ..Emulated::default() })
    }
}

//! Reading a block device of our own with several read-ahead windows.
//!
//! The window of a disk is a setting of the system, and is not touched. A loop device over a file without a name is ours: it is made for the
//! test, reads the file around the page cache, and the kernel releases it when its descriptor closes (loop(4), `LO_FLAGS_AUTOCLEAR`),
//! also when the process is killed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use rustix::fs::{Advice, fadvise};
use serde::Deserialize;

use crate::disk::{ALIGNMENT, fill, unnamed};
use crate::{Error, Moved, Stop, Stopwatch, refused};

/// Requests of include/uapi/linux/loop.h and fs.h, which `libc` does not have.
const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4c82;
const LOOP_CONFIGURE: libc::c_ulong = 0x4c0a;
const BLKRASET: libc::c_ulong = 0x1262;
/// Read only, released with the last descriptor, around the page cache of the file.
const FLAGS: u32 = 1 | 4 | 16;
/// Attempts to get a device that no other process takes at the same time.
const ATTEMPTS: usize = 16;
/// Bytes of a sector, in which the window is told.
const SECTOR: u64 = 512;

/// A test of read-ahead.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadAhead {
    /// The folder whose disk is read.
    pub folder: PathBuf,
    /// Bytes of the file that is made there.
    pub bytes: u64,
    /// The windows in bytes, in this order; multiples of 512.
    pub windows: Vec<u64>,
    /// Bytes of each call.
    pub block: usize,
    /// The time of each window at most, s.
    pub seconds: f64,
}

/// `struct loop_config`: the file, the size of blocks, `struct loop_info64` with the flags in it.
#[repr(C)]
struct Config {
    file: u32,
    block: u32,
    info: [u64; 29],
    reserved: [u64; 8],
}

/// The word of `struct loop_info64` that has `lo_encrypt_key_size` and `lo_flags`: after six of 64 bits and two of 32.
const FLAGS_WORD: usize = 6;

impl ReadAhead {
    /// What was read with each window.
    pub fn measure(&self, stop: Stop<'_>) -> Result<Vec<Moved>, Error> {
        let shown = self.folder.display().to_string();
        if self.block == 0 || self.bytes < self.block as u64 || !self.bytes.is_multiple_of(ALIGNMENT as u64) {
            return Err(Error::Unfit(format!(
                "{shown}: expected blocks within a multiple of {ALIGNMENT} bytes, found {} of {} bytes",
                self.block, self.bytes
            )));
        }
        let file = unnamed(&self.folder).map_err(refused(&shown))?;
        fill(&file, self.bytes, stop, &shown)?;
        let mut device = attach(&file).map_err(refused("a loop device of our own"))?;
        let mut block = vec![0; self.block];
        let mut found = Vec::new();
        for &window in &self.windows {
            ask(&device, BLKRASET, (window / SECTOR) as libc::c_ulong)
                .map_err(refused("its read-ahead window"))?;
            let read =
                self.once(&mut device, &mut block, stop).map_err(refused(format!("{shown}: reading")))?;
            if stop() {
                return Err(Error::Cancelled);
            }
            found.push(read);
        }
        Ok(found)
    }

    fn once(&self, device: &mut File, block: &mut [u8], stop: Stop<'_>) -> io::Result<Moved> {
        fadvise(&*device, 0, None, Advice::DontNeed)?;
        device.rewind()?;
        let (watch, mut read) = (Stopwatch::start(), 0);
        while read + block.len() as u64 <= self.bytes && watch.seconds() < self.seconds && !stop() {
            device.read_exact(block)?;
            read += block.len() as u64;
        }
        Ok(watch.moved(read))
    }
}

/// Connects a new loop device with a file, and opens it.
fn attach(file: &File) -> io::Result<File> {
    let control = OpenOptions::new().read(true).write(true).open("/dev/loop-control")?;
    for _ in 0..ATTEMPTS {
        let number = ask(&control, LOOP_CTL_GET_FREE, 0)?;
        let device = OpenOptions::new().read(true).open(format!("/dev/loop{number}"))?;
        let mut config = Config { file: file.as_raw_fd() as u32, block: 0, info: [0; 29], reserved: [0; 8] };
        config.info[FLAGS_WORD] = u64::from_ne_bytes(
            [0_u32.to_ne_bytes(), FLAGS.to_ne_bytes()].concat().try_into().expect("it is eight bytes"),
        );
        match ask(&device, LOOP_CONFIGURE, (&raw const config) as libc::c_ulong) {
            Ok(_) => return Ok(device),
            // Another process was faster.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

fn ask(file: &File, request: libc::c_ulong, argument: libc::c_ulong) -> io::Result<i32> {
    #[expect(unsafe_code, reason = "rustix does not have these requests")]
    // SAFETY: the argument is a number, or the address of a `Config` that outlives the call and is only read.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), request as _, argument) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_window_reads_the_whole_file_and_the_device_is_released() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let test = ReadAhead {
            folder: folder.path().into(),
            bytes: 1 << 22,
            windows: vec![0, 4096, 1 << 20],
            block: 1 << 16,
            seconds: 60.0,
        };
        match test.measure(&|| false) {
            Ok(found) => {
                assert!(found.len() == 3 && found.iter().all(|one| one.bytes == 1 << 22), "{found:?}");
            }
            // Not root, or no loop devices: said by name.
            Err(error) => assert!(error.to_string().starts_with("a loop device of our own: "), "{error}"),
        }
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    }
}

//! Memory that the kernel shares.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::AtomicU32;

/// Mapped until it goes; a socket lives as long as what is mapped of it.
pub struct Mapping {
    start: *mut u8,
    length: usize,
}

impl Mapping {
    /// What a socket shows at an offset.
    pub fn of(socket: &OwnedFd, offset: libc::off_t, length: usize) -> io::Result<Self> {
        Self::new(libc::MAP_SHARED, socket.as_raw_fd(), offset, length)
    }

    /// Fresh memory.
    pub fn anonymous(length: usize) -> io::Result<Self> {
        Self::new(libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, 0, length)
    }

    fn new(how: libc::c_int, file: libc::c_int, offset: libc::off_t, length: usize) -> io::Result<Self> {
        let (access, how) = (libc::PROT_READ | libc::PROT_WRITE, how | libc::MAP_POPULATE);
        // SAFETY: at an address of the kernel's choice.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, access, how, file, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { start: start.cast(), length })
    }

    /// Where something `length` long begins.
    pub fn at(&self, offset: usize, length: usize) -> *mut u8 {
        assert!(offset + length <= self.length, "{offset} + {length} of {}", self.length);
        // SAFETY: within the mapping.
        unsafe { self.start.add(offset) }
    }

    /// A word that both sides read and write.
    #[expect(clippy::cast_ptr_alignment, reason = "it is looked at")]
    pub fn word(&self, offset: usize) -> &AtomicU32 {
        let word = self.at(offset, size_of::<u32>()).cast::<u32>();
        assert!(word.is_aligned());
        // SAFETY: within the mapping, aligned, and nobody writes it but as a whole.
        unsafe { AtomicU32::from_ptr(word) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length; references to it end before it.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}

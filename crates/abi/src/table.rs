//! The tables of parameters of `kernel/*.bpf.c`.

use std::ffi::{CStr, c_char};

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

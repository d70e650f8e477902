//! The links of a run within a guest kernel: the network of `elephan-network` behind a C interface.
//!
//! A guest kernel is a process. Its driver (`kernel/guest/network.c`) opens this library, passes it the header of
//! each packet that a host sends, and calls it when something is due. The interface is declared in
//! `kernel/guest/host.h`. Rust code that has a virtual time of its own has the same links as [`Links`].

mod events;
mod ffi;
mod links;

pub use events::Window;
pub use ffi::EVENTS;
pub use links::{Kernel, Links, Records};

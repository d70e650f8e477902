//! The links of a run within a guest kernel: the network of `elephan-network` behind a C interface.
//!
//! A guest kernel is a process. Its driver (`kernel/uml/network.c`) opens this library, passes it the header of
//! each packet that a host sends, and calls it when something is due. The interface is declared in
//! `kernel/uml/host.h`.

mod events;
mod ffi;
mod links;

pub use ffi::EVENTS;
pub use links::Records;

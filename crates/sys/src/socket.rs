//! Options of sockets that rustix does not have, or whose errors need words.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rustix::net::sockopt;

/// Sets an option whose value is a number, or an array of numbers.
pub fn set<T: Copy>(socket: impl AsFd, level: libc::c_int, name: libc::c_int, value: &[T]) -> io::Result<()> {
    let length = size_of_val(value) as libc::socklen_t;
    #[expect(unsafe_code, reason = "options that neither rustix nor nix has")]
    // SAFETY: the value outlives the call, and its length is correct.
    let result =
        unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), level, name, value.as_ptr().cast(), length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Selects the congestion control by its name in the kernel.
pub fn set_congestion_control(socket: impl AsFd, name: &str) -> io::Result<()> {
    sockopt::set_tcp_congestion(socket, name).map_err(io::Error::from).map_err(|error| {
        let wanted = "expected one that the kernel has and permits";
        io::Error::new(error.kind(), format!("congestion control {name:?}: {wanted}: {error}"))
    })
}

/// Limits the rate of a connection, bytes/s. TCP itself paces where the device has no queue discipline that does.
pub fn limit_rate(socket: impl AsFd, bytes_s: u64) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &[bytes_s])
}

//! The system calls of a script: what each does on the kernel, as a job for the thread that makes them, and their names and numbers.

use std::io;
use std::mem::size_of_val;
use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use elephan_sys::socket;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags, sockopt};

use crate::call::{Arguments, names};
use crate::run::{Returned, Stop};
use crate::script::{Call, Value};

/// Most bytes of a call.
const MOST_DATA: usize = 1 << 26;

/// What a system call gives.
pub(super) enum Outcome {
    Value(i64),
    Descriptor(OwnedFd),
    /// Success, and the number that the call wrote to its argument with the first number.
    Out(usize, libc::c_int),
    /// The number of descriptors with events, and what happened to each.
    Polled(usize, Vec<PollFlags>),
}

pub(super) type Outcomes = Result<Outcome, Errno>;
pub(super) type Job = Box<dyn FnOnce() -> Outcomes + Send>;

/// The names of events (poll(2)).
const EVENTS: [(&str, PollFlags); 8] = [
    ("POLLIN", PollFlags::IN),
    ("POLLPRI", PollFlags::PRI),
    ("POLLOUT", PollFlags::OUT),
    ("POLLERR", PollFlags::ERR),
    ("POLLHUP", PollFlags::HUP),
    ("POLLRDHUP", PollFlags::RDHUP),
    ("POLLRDNORM", PollFlags::RDNORM),
    ("POLLWRNORM", PollFlags::WRNORM),
];

pub(super) fn field<'a>(record: &'a [(String, Value)], name: &str) -> Option<&'a Value> {
    record.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

pub(super) fn poll_flags(value: Option<&Value>) -> Result<PollFlags, Stop> {
    let mut flags = PollFlags::empty();
    for name in names(value) {
        match EVENTS.iter().find(|(known, _)| *known == name) {
            Some((_, flag)) => flags |= *flag,
            None => return Err(Stop::Skip(format!("poll with {name}"))),
        }
    }
    Ok(flags)
}

/// The first argument of `poll` as the script writes it, with the events that happened.
pub(super) fn polled(call: &Call, events: &[PollFlags]) -> Value {
    let mut seen = Vec::new();
    for (record, events) in Arguments::new(call).records(0).unwrap_or_default().into_iter().zip(events) {
        let with_events = |(name, value): (String, Value)| match name.as_str() {
            "revents" if poll_flags(Some(&value)).is_ok_and(|flags| flags == *events) => (name, value),
            "revents" => {
                let all = EVENTS.iter().filter(|(_, flag)| events.contains(*flag));
                (name, Value::Flags(all.map(|(known, _)| Value::Word((*known).to_owned())).collect()))
            }
            _ => (name, value),
        };
        seen.push(Value::Fields(record.iter().cloned().map(with_events).collect()));
    }
    // A list of one stands for its item.
    if seen.len() == 1 { seen.remove(0) } else { Value::List(seen) }
}

/// Writes zeros; with `MSG_FASTOPEN` it opens the connection to an address.
pub(super) fn write(fd: Arc<OwnedFd>, arguments: &Arguments<'_>, to: SocketAddrV4) -> Result<Job, Stop> {
    let known = [
        ("MSG_DONTWAIT", SendFlags::DONTWAIT),
        ("MSG_NOSIGNAL", SendFlags::NOSIGNAL),
        ("MSG_MORE", SendFlags::MORE),
        ("MSG_EOR", SendFlags::EOR),
        ("MSG_FASTOPEN", FAST_OPEN),
    ];
    let flags = arguments.flags(3, &known)?.into_iter().fold(SendFlags::NOSIGNAL, |all, one| all | one);
    if arguments.word(4) == "AF_UNSPEC" {
        return Err(Stop::Skip("sendto with AF_UNSPEC".to_owned()));
    }
    let (is_null, length) = (arguments.is_null(1), (arguments.size(2)? as usize).min(MOST_DATA));
    Ok(Box::new(move || {
        let sent = if is_null {
            call_with_nowhere(|address| {
                #[expect(unsafe_code, reason = "no safe call passes such an address")]
                // SAFETY: the kernel refuses the address.
                unsafe {
                    libc::send(fd.as_raw_fd(), address, length, flags.bits() as libc::c_int)
                }
            })
        } else if flags.contains(FAST_OPEN) {
            net::sendto(&fd, &vec![0; length], flags, &to)
        } else {
            net::send(&fd, &vec![0; length], flags)
        };
        sent.map(|sent| Outcome::Value(sent as i64))
    }))
}

/// `MSG_FASTOPEN`, which rustix does not have.
const FAST_OPEN: SendFlags = SendFlags::from_bits_retain(libc::MSG_FASTOPEN as u32);

/// The result of a system call with an address where nothing is.
fn call_with_nowhere(call: impl Fn(*mut libc::c_void) -> isize) -> Result<usize, Errno> {
    usize::try_from(call(std::ptr::null_mut())).map_err(|_| errno(&io::Error::last_os_error()))
}

pub(super) fn read(fd: Arc<OwnedFd>, arguments: &Arguments<'_>) -> Result<Job, Stop> {
    let known = [("MSG_DONTWAIT", RecvFlags::DONTWAIT), ("MSG_PEEK", RecvFlags::PEEK)];
    let flags = arguments.flags(3, &known)?.into_iter().fold(RecvFlags::empty(), |all, one| all | one);
    let (is_null, length) = (arguments.is_null(1), (arguments.size(2)? as usize).min(MOST_DATA));
    Ok(Box::new(move || {
        let taken = if is_null {
            call_with_nowhere(|address| {
                #[expect(unsafe_code, reason = "no safe call passes such an address")]
                // SAFETY: the kernel refuses the address.
                unsafe {
                    libc::recv(fd.as_raw_fd(), address, length, flags.bits() as libc::c_int)
                }
            })
        } else {
            net::recv(&fd, &mut vec![0; length][..], flags).map(|(taken, _)| taken)
        };
        taken.map(|taken| Outcome::Value(taken as i64))
    }))
}

pub(super) fn failed(error: Errno) -> Returned {
    let name = match error {
        Errno::AGAIN => "EAGAIN",
        Errno::INPROGRESS => "EINPROGRESS",
        Errno::ALREADY => "EALREADY",
        Errno::ISCONN => "EISCONN",
        Errno::NOTCONN => "ENOTCONN",
        Errno::CONNREFUSED => "ECONNREFUSED",
        Errno::CONNRESET => "ECONNRESET",
        Errno::CONNABORTED => "ECONNABORTED",
        Errno::TIMEDOUT => "ETIMEDOUT",
        Errno::PIPE => "EPIPE",
        Errno::INVAL => "EINVAL",
        Errno::BADF => "EBADF",
        Errno::HOSTUNREACH => "EHOSTUNREACH",
        Errno::NETUNREACH => "ENETUNREACH",
        Errno::OPNOTSUPP => "EOPNOTSUPP",
        Errno::NOPROTOOPT => "ENOPROTOOPT",
        Errno::NOENT => "ENOENT",
        Errno::FAULT => "EFAULT",
        Errno::DESTADDRREQ => "EDESTADDRREQ",
        other => return Returned::error(&format!("{other:?}")),
    };
    Returned::error(name)
}

/// Level and number of a socket's option.
pub(super) fn option_number(level: &str, name: &str) -> Result<(libc::c_int, libc::c_int), Stop> {
    let level_number = match level {
        "SOL_SOCKET" => libc::SOL_SOCKET,
        "SOL_TCP" | "IPPROTO_TCP" => libc::IPPROTO_TCP,
        "SOL_IP" | "IPPROTO_IP" => libc::IPPROTO_IP,
        _ => return Err(Stop::Skip(format!("options of {level}"))),
    };
    let number = match name {
        "SO_REUSEADDR" => libc::SO_REUSEADDR,
        "SO_REUSEPORT" => libc::SO_REUSEPORT,
        "SO_KEEPALIVE" => libc::SO_KEEPALIVE,
        "SO_SNDBUF" => libc::SO_SNDBUF,
        "SO_RCVBUF" => libc::SO_RCVBUF,
        "SO_ERROR" => libc::SO_ERROR,
        "SO_LINGER" => libc::SO_LINGER,
        "SO_RCVLOWAT" => libc::SO_RCVLOWAT,
        "SO_MAX_PACING_RATE" => libc::SO_MAX_PACING_RATE,
        "TCP_NODELAY" => libc::TCP_NODELAY,
        "TCP_CORK" => libc::TCP_CORK,
        "TCP_MAXSEG" => libc::TCP_MAXSEG,
        "TCP_USER_TIMEOUT" => libc::TCP_USER_TIMEOUT,
        "TCP_QUICKACK" => libc::TCP_QUICKACK,
        "TCP_SYNCNT" => libc::TCP_SYNCNT,
        "TCP_DEFER_ACCEPT" => libc::TCP_DEFER_ACCEPT,
        "TCP_WINDOW_CLAMP" => libc::TCP_WINDOW_CLAMP,
        "TCP_KEEPIDLE" => libc::TCP_KEEPIDLE,
        "TCP_KEEPINTVL" => libc::TCP_KEEPINTVL,
        "TCP_KEEPCNT" => libc::TCP_KEEPCNT,
        "TCP_LINGER2" => libc::TCP_LINGER2,
        "TCP_FASTOPEN" => libc::TCP_FASTOPEN,
        "TCP_FASTOPEN_CONNECT" => libc::TCP_FASTOPEN_CONNECT,
        "TCP_NOTSENT_LOWAT" => libc::TCP_NOTSENT_LOWAT,
        "IP_TOS" => libc::IP_TOS,
        "IP_MTU_DISCOVER" => libc::IP_MTU_DISCOVER,
        _ => return Err(Stop::Skip(format!("the option {name}"))),
    };
    Ok((level_number, number))
}

pub(super) fn set_option(fd: Arc<OwnedFd>, arguments: &Arguments<'_>) -> Result<Job, Stop> {
    let name = arguments.word(2);
    if name == "TCP_CONGESTION" {
        let algorithm = arguments.text(3)?.to_owned();
        return Ok(Box::new(move || {
            sockopt::set_tcp_congestion(&fd, &algorithm).map(|()| Outcome::Value(0))
        }));
    }
    let (level, number) = option_number(arguments.word(1), name)?;
    let numbers: Vec<libc::c_int> = if name == "SO_LINGER" {
        arguments.fields(3).into_iter().map(|number| number as libc::c_int).collect()
    } else {
        vec![arguments.listed(3)? as libc::c_int]
    };
    Ok(Box::new(move || {
        let set = socket::set(&*fd, level, number, &numbers);
        set.map(|()| Outcome::Value(0)).map_err(|error| errno(&error))
    }))
}

pub(super) fn get_number(
    fd: &OwnedFd,
    level: libc::c_int,
    number: libc::c_int,
) -> Result<libc::c_int, Errno> {
    let mut value: libc::c_int = 0;
    let mut length = size_of_val(&value) as libc::socklen_t;
    #[expect(unsafe_code, reason = "options that rustix does not have")]
    // SAFETY: the kernel writes no more than the given length.
    let result =
        unsafe { libc::getsockopt(fd.as_raw_fd(), level, number, (&raw mut value).cast(), &raw mut length) };
    if result < 0 { Err(errno(&io::Error::last_os_error())) } else { Ok(value) }
}

/// The bytes in a queue of a socket.
pub(super) fn get_queued(fd: &OwnedFd, request: libc::c_ulong) -> Result<libc::c_int, Errno> {
    let mut bytes: libc::c_int = 0;
    #[expect(unsafe_code, reason = "rustix has one of the two requests")]
    // SAFETY: the kernel writes one number.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), request as _, &raw mut bytes) };
    if result < 0 { Err(errno(&io::Error::last_os_error())) } else { Ok(bytes) }
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

//! The running kernel's TCP as a stack under test, in real time.
//!
//! It lives in a network namespace of its own, with one TUN device; the script is the other end of the device. Sockets do not block,
//! so that one thread waits for packets and calls alike; a call that the script expects to block is tried again.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::iter;
use std::mem::size_of_val;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Instant;

use elephan_sys::{Namespace, Urgency, device, make_urgent, socket, tcp_info};
use elephan_units::Time;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, sockopt};

use crate::call::{Arguments, names};
use crate::run::{Done, Judge, Options, Returned, Run, Sent, Stack, Stop};
use crate::script::{Call, Directive, Packet, Script, Value, flags};
use crate::settings::{self, Setting};
use crate::wire::{self, Ends};

/// The port of sockets that listen, on either side.
const PORT: u16 = 8080;
/// A state of `tcpi_state` (include/net/tcp_states.h).
const SYN_SENT: u8 = 2;
/// The port from which a script connects.
const REMOTE_PORT: u16 = 40_000;
/// How long a wait lasts at most before the caller is asked whether to go on.
const LONGEST_SLEEP: Time = Time::from_millis(20);
/// What is left of a wait is spent without sleeping.
const SPIN: Time = Time::from_micros(50);
/// Most bytes of a call.
const MOST_DATA: usize = 1 << 26;
/// Largest packet of a device.
const LARGEST: usize = 65_536;

/// What a namespace begins with, whatever the host has: the kernel's defaults, but room for what scripts write, and a SYN is
/// retransmitted as RFC 6298 requires.
const BASE: [(&str, &str); 4] = [
    ("ipv4/tcp_syn_linear_timeouts", "0"),
    ("ipv4/tcp_rmem", "4096 131072 6291456"),
    ("ipv4/tcp_wmem", "4096 4194304 4194304"),
    ("ipv4/tcp_no_metrics_save", "1"),
];

/// Runs a script on the kernel, in a namespace of its own.
pub fn run(
    script: &Script,
    options: Options,
    judge: Judge<'_>,
    is_cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<Done, Stop> {
    let refused = |what: &str| {
        let what = what.to_owned();
        move |error| Stop::Kernel(what, error)
    };
    let bursts = script.directives.iter().filter_map(|directive| match directive {
        Directive::Set(key, value) if key == settings::BURST => Some((key.clone(), value.clone())),
        _ => None,
    });
    let bursts = iter::once(settings::segment_by_segment()).chain(bursts).collect();
    let gso_max_segs = settings::stack(&bursts, &script.file).map_err(Stop::Wrong)?.0.burst.gso_max_segs();
    let namespace = Namespace::new().map_err(refused("a network namespace"))?;
    namespace
        .set(&BASE.map(|(key, value)| (key, value.to_owned())))
        .map_err(refused("settings of a namespace"))?;
    let ran = namespace.within(|| {
        let device = device::tun()?;
        let (local, remote) = options.addresses;
        device::configure(&[local], remote, options.mtu, gso_max_segs)?;
        make_urgent(Urgency::Realtime);
        let folder = Path::new(&script.file).parent().unwrap_or(Path::new("")).to_owned();
        let stack = Kernel {
            device,
            folder,
            began: Instant::now(),
            is_cancelled,
            descriptors: BTreeMap::new(),
            connection: None,
            congestion_control: "reno".to_owned(),
            ends: Ends { from: (remote, REMOTE_PORT), to: (local, PORT) },
            sent: VecDeque::new(),
            blocked: None,
            is_over: false,
            next_port: REMOTE_PORT + 1,
        };
        Ok(Run::new(script, stack, options).run(judge))
    });
    ran.map_err(refused("a network device"))?
}

struct Descriptor {
    fd: OwnedFd,
    is_blocking: bool,
}

/// A call that blocks: how much of it is done, and its result.
#[derive(Clone, Debug)]
struct Blocked {
    call: Call,
    done: usize,
    returned: Option<(Time, Returned)>,
}

struct Kernel<'a> {
    device: OwnedFd,
    folder: PathBuf,
    began: Instant,
    is_cancelled: &'a (dyn Fn() -> bool + Sync),
    descriptors: BTreeMap<i64, Descriptor>,
    /// The descriptor of the connection.
    connection: Option<i64>,
    /// The congestion control of new sockets. Namespaces may not select every one as their default.
    congestion_control: String,
    /// Addresses and ports of packets that arrive.
    ends: Ends,
    sent: Sent,
    blocked: Option<Blocked>,
    /// Whether the script has closed its last connection: the next one that it opens has another port.
    is_over: bool,
    next_port: u16,
}

impl Kernel<'_> {
    fn clock(&self) -> Time {
        Time::from_picos(self.began.elapsed().as_nanos() as u64 * 1000)
    }

    /// Takes what the kernel has sent, and tries the blocked call again.
    fn collect(&mut self) -> Result<(), Stop> {
        let mut bytes = vec![0; LARGEST];
        loop {
            match rustix::io::read(&self.device, &mut bytes) {
                Ok(length) => self.take(&bytes[..length]),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(Stop::Kernel("the device".to_owned(), error.into())),
            }
        }
        if let Some(mut blocked) = self.blocked.take() {
            if blocked.returned.is_none() {
                let mut done = blocked.done;
                blocked.returned = self.attempt(&blocked.call, &mut done, true)?.map(|it| (self.clock(), it));
                blocked.done = done;
            }
            self.blocked = Some(blocked);
        }
        Ok(())
    }

    /// Keeps a packet of ours. The first packet of a connection tells its port.
    fn take(&mut self, bytes: &[u8]) {
        let Some((packet, ends)) = wire::decode(bytes) else { return };
        let back = Ends { from: ends.to, to: ends.from };
        if (back.from.0, back.to.0) != (self.ends.from.0, self.ends.to.0) {
            return;
        }
        if ends.to.1 == PORT && packet.flags & (flags::SYN | flags::ACK) == flags::SYN && back != self.ends {
            self.turn_to(back);
        }
        // As in packetdrill, what an earlier connection still sends is not of the script.
        if back != self.ends {
            return;
        }
        self.sent.push_back((self.clock(), packet));
    }

    /// The script goes on with another connection.
    fn turn_to(&mut self, ends: Ends) {
        self.ends = ends;
        self.sent.clear();
    }

    /// Waits until a time, or until `done`.
    fn wait(&mut self, until: Time, done: impl Fn(&Self) -> bool) -> Result<(), Stop> {
        loop {
            self.collect()?;
            let left = until.since(self.clock());
            if done(self) || left == Time::ZERO {
                return Ok(());
            }
            if (self.is_cancelled)() {
                return Err(Stop::Cancelled);
            }
            if left <= SPIN {
                continue;
            }
            let nanos = (left.since(SPIN).min(LONGEST_SLEEP).picos() / 1000) as i64;
            let sleep = Timespec { tv_sec: 0, tv_nsec: nanos };
            let waits = self.blocked.as_ref().filter(|blocked| blocked.returned.is_none());
            let socket = waits.and_then(|blocked| {
                let writes = ["write", "send", "sendto", "connect"].contains(&blocked.call.name.as_str());
                let number = Arguments::new(&blocked.call).number(0).ok()?;
                let flags = if writes { PollFlags::OUT } else { PollFlags::IN };
                Some(PollFd::new(&self.descriptors.get(&number)?.fd, flags))
            });
            let mut ready = vec![PollFd::new(&self.device, PollFlags::IN)];
            ready.extend(socket);
            match poll(&mut ready, Some(&sleep)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(Stop::Kernel("a wait".to_owned(), error.into())),
            }
        }
    }

    /// Tries a call, maybe again, of which `done` bytes are done. `None` if it has to wait and the script's descriptor blocks.
    fn attempt(&mut self, call: &Call, done: &mut usize, is_again: bool) -> Result<Option<Returned>, Stop> {
        let arguments = Arguments::new(call);
        arguments.check_name()?;
        let expected = arguments.expected();
        if call.name == "socket" {
            if !arguments.is_tcp_over_ipv4() {
                return Err(Stop::Skip(format!("socket({})", arguments.texts())));
            }
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            return match net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None) {
                Ok(fd) => {
                    let name = &self.congestion_control;
                    if sockopt::set_tcp_congestion(&fd, name).is_err() {
                        return Err(Stop::Skip(format!("congestion control {name}")));
                    }
                    self.descriptors.insert(expected, Descriptor { fd, is_blocking: true });
                    Ok(Some(Returned::value(expected)))
                }
                Err(error) => Ok(Some(failed(error))),
            };
        }
        let number = arguments.number(0)?;
        let Some(Descriptor { fd, is_blocking }) = self.descriptors.get(&number) else {
            return Ok(Some(Returned::error("EBADF")));
        };
        let is_blocking = *is_blocking;
        let result = match call.name.as_str() {
            "bind" => net::bind(fd, &SocketAddrV4::new(self.ends.to.0, PORT)).map(|()| 0),
            "listen" => {
                self.is_over |= self.connection.is_some();
                net::listen(fd, arguments.number(1)? as i32).map(|()| 0)
            }
            "connect" => {
                let result = net::connect(fd, &SocketAddrV4::new(self.ends.from.0, PORT)).map(|()| 0);
                self.connection = Some(number);
                match result {
                    Err(Errno::INPROGRESS | Errno::ALREADY) if is_blocking => return Ok(None),
                    result => result,
                }
            }
            "accept" | "accept4" => {
                let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
                net::accept_with(fd, flags).map(|fd| {
                    let is_blocking = !names(call.arguments.get(3)).contains(&"SOCK_NONBLOCK");
                    self.descriptors.insert(expected, Descriptor { fd, is_blocking });
                    self.connection = Some(expected);
                    expected
                })
            }
            "write" | "send" | "sendto" => {
                let opens = !is_again && names(call.arguments.get(3)).contains(&"MSG_FASTOPEN");
                self.connection = if opens { Some(number) } else { self.connection };
                let to = opens.then(|| SocketAddrV4::new(self.ends.from.0, PORT));
                write(fd, &arguments, is_blocking, to, done)?
            }
            "read" | "recv" | "recvfrom" => read(fd, &arguments)?,
            "shutdown" => {
                let how = match arguments.word(1) {
                    "SHUT_RD" => Shutdown::Read,
                    "SHUT_WR" => Shutdown::Write,
                    _ => Shutdown::Both,
                };
                net::shutdown(fd, how).map(|()| 0)
            }
            "close" => {
                self.descriptors.remove(&number);
                self.is_over |= self.connection == Some(number);
                Ok(0)
            }
            "fcntl" => match (arguments.word(1), call.arguments.get(2)) {
                ("F_SETFL", flags) => {
                    let is_blocking = !names(flags).contains(&"O_NONBLOCK");
                    self.descriptors.get_mut(&number).expect("it was there").is_blocking = is_blocking;
                    Ok(0)
                }
                ("F_GETFL", _) => Ok(if is_blocking { 0x2 } else { 0x802 }),
                (name, _) => return Err(Stop::Skip(format!("fcntl {name}"))),
            },
            "setsockopt" => set_option(fd, &arguments)?,
            "getsockopt" => {
                let (level, number) = option_number(arguments.word(1), arguments.word(2))?;
                match get_number(fd, level, number) {
                    Ok(found) => {
                        let out = Some((3, Value::Number(i64::from(found))));
                        return Ok(Some(Returned { out, ..Returned::value(0) }));
                    }
                    Err(error) => Err(error),
                }
            }
            name => return Err(Stop::Skip(name.to_owned())),
        };
        Ok(match result {
            Ok(value) => Some(Returned::value(value)),
            // In progress is a connection that Fast Open opens, and that takes the data afterwards.
            Err(Errno::AGAIN | Errno::INPROGRESS) if is_blocking => None,
            Err(error) => Some(failed(error)),
        })
    }
}

impl Stack for Kernel<'_> {
    fn now(&self) -> Time {
        self.clock()
    }

    fn advance(&mut self, to: Time) -> Result<(), Stop> {
        self.wait(to, |_| false)
    }

    fn arrive(&mut self, packet: &Packet) -> Result<(), Stop> {
        if !packet.options.as_ref().is_none_or(|options| wire::fits(options)) {
            return Err(Stop::Fail("options that fit into 40 bytes".to_owned(), "more".to_owned()));
        }
        if packet.flags & (flags::SYN | flags::ACK) == flags::SYN && std::mem::take(&mut self.is_over) {
            self.turn_to(Ends { from: (self.ends.from.0, self.next_port), to: (self.ends.to.0, PORT) });
            self.next_port += 1;
        }
        let bytes = wire::encode(packet, self.ends);
        rustix::io::write(&self.device, &bytes)
            .map_err(|error| Stop::Kernel("the device".to_owned(), error.into()))?;
        self.collect()
    }

    fn sent(&mut self, until: Time) -> Result<Option<(Time, Packet)>, Stop> {
        self.wait(until, |stack| !stack.sent.is_empty())?;
        Ok(self.sent.pop_front())
    }

    fn call(&mut self, call: &Call) -> Result<Option<Returned>, Stop> {
        let mut done = 0;
        let returned = self.attempt(call, &mut done, false)?;
        if returned.is_none() {
            self.blocked = Some(Blocked { call: call.clone(), done, returned: None });
        }
        self.collect()?;
        Ok(returned)
    }

    fn returned(&mut self, until: Time) -> Result<Option<(Time, Returned)>, Stop> {
        let is_done = |stack: &Self| matches!(stack.blocked, Some(Blocked { returned: Some(_), .. }));
        self.wait(until, is_done)?;
        Ok(if is_done(self) { self.blocked.take().and_then(|blocked| blocked.returned) } else { None })
    }

    fn command(&mut self, command: &str) -> Result<Vec<String>, Stop> {
        let mut unknown = Vec::new();
        for setting in settings::of_command(command, &self.folder).map_err(Stop::Skip)? {
            match setting {
                Setting::Sysctl(key, value) if key == "net.ipv4.tcp_congestion_control" => {
                    self.congestion_control = value;
                }
                Setting::Sysctl(key, value) => {
                    if !set(&key, &value)? {
                        unknown.push(format!("{key}={value}"));
                    }
                }
                // Modules are the host's: their parameters are not changed.
                Setting::Module(parameter, value) => {
                    let found = fs::read_to_string(format!("/sys/module/{parameter}")).unwrap_or_default();
                    if parameter.contains("..") || found.trim() != value {
                        return Err(Stop::Skip(format!("{parameter}={value}, which is {}", found.trim())));
                    }
                }
                Setting::InitialWindow(window) => device::route(self.ends.to.0, self.ends.from.0, window)
                    .map_err(|error| Stop::Kernel("an initial window".to_owned(), error))?,
            }
        }
        Ok(unknown)
    }

    fn info(&mut self) -> Result<BTreeMap<&'static str, i64>, Stop> {
        let Some(connection) = self.connection.and_then(|number| self.descriptors.get(&number)) else {
            return Err(Stop::Skip("code before a connection".to_owned()));
        };
        let info = tcp_info(connection.fd.as_fd())
            .map_err(|error| Stop::Kernel("the state of the connection".to_owned(), error))?;
        macro_rules! named {
            ($($name:ident)*) => {
                BTreeMap::from([$((concat!("tcpi_", stringify!($name)), info.$name as i64)),*])
            };
        }
        let mut found = named! {
            state ca_state retransmits probes backoff options rto ato snd_mss rcv_mss unacked sacked lost retrans fackets
            last_data_sent last_ack_sent last_data_recv last_ack_recv pmtu rcv_ssthresh rtt rttvar snd_ssthresh snd_cwnd
            advmss reordering rcv_rtt rcv_space total_retrans pacing_rate max_pacing_rate bytes_acked bytes_received
            segs_out segs_in notsent_bytes min_rtt data_segs_in data_segs_out delivery_rate busy_time rwnd_limited
            sndbuf_limited delivered delivered_ce bytes_sent bytes_retrans dsack_dups reord_seen rcv_ooopack snd_wnd
            rcv_wnd rehash total_rto total_rto_recoveries total_rto_time
        };
        if info.timeouts().is_none() {
            found.retain(|name, _| !name.starts_with("tcpi_total_rto"));
        }
        Ok(found)
    }
}

/// Writes, where a blocking call goes on until `done` is everything; with an address it opens the connection.
fn write(
    fd: &OwnedFd,
    arguments: &Arguments<'_>,
    is_blocking: bool,
    to: Option<SocketAddrV4>,
    done: &mut usize,
) -> Result<Result<i64, Errno>, Stop> {
    let known = [
        ("MSG_DONTWAIT", SendFlags::DONTWAIT),
        ("MSG_NOSIGNAL", SendFlags::NOSIGNAL),
        ("MSG_MORE", SendFlags::MORE),
        ("MSG_EOR", SendFlags::EOR),
        // Of the first attempt alone.
        ("MSG_FASTOPEN", SendFlags::empty()),
    ];
    let mut flags = arguments.flags(3, &known)?.into_iter().fold(SendFlags::NOSIGNAL, |all, one| all | one);
    let data = vec![0; (arguments.size(2)? as usize).min(MOST_DATA)];
    let sent = if arguments.is_null(1) {
        call_with_nowhere(|address| {
            #[expect(unsafe_code, reason = "no safe call passes such an address")]
            // SAFETY: the kernel refuses the address.
            unsafe {
                libc::send(fd.as_raw_fd(), address, data.len(), flags.bits() as libc::c_int)
            }
        })
    } else if let Some(to) = to {
        flags |= SendFlags::from_bits_retain(libc::MSG_FASTOPEN as u32);
        net::sendto(fd, &data, flags, &to)
    } else if *done == data.len() && *done > 0 {
        Ok(0)
    } else {
        net::send(fd, &data[*done..], flags)
    };
    if !is_blocking || flags.contains(SendFlags::DONTWAIT) {
        return Ok(sent.map(|sent| sent as i64));
    }
    *done += sent.unwrap_or(0);
    // Linux's tcp_sendmsg_fastopen waits for the handshake.
    let is_opening = || tcp_info(fd.as_fd()).is_ok_and(|info| info.state == SYN_SENT);
    Ok(match sent {
        Ok(_) if *done < data.len() || is_opening() => Err(Errno::AGAIN),
        sent => sent.map(|_| *done as i64),
    })
}

/// The result of a system call with an address where nothing is.
fn call_with_nowhere(call: impl Fn(*mut libc::c_void) -> isize) -> Result<usize, Errno> {
    usize::try_from(call(std::ptr::null_mut())).map_err(|_| errno(&io::Error::last_os_error()))
}

fn read(fd: &OwnedFd, arguments: &Arguments<'_>) -> Result<Result<i64, Errno>, Stop> {
    let known = [("MSG_DONTWAIT", RecvFlags::DONTWAIT), ("MSG_PEEK", RecvFlags::PEEK)];
    let flags = arguments.flags(3, &known)?.into_iter().fold(RecvFlags::empty(), |all, one| all | one);
    if arguments.is_null(1) {
        return Ok(call_with_nowhere(|address| {
            #[expect(unsafe_code, reason = "no safe call passes such an address")]
            // SAFETY: the kernel refuses the address.
            unsafe {
                libc::recv(fd.as_raw_fd(), address, arguments.size(2).unwrap_or(0) as usize, 0)
            }
        })
        .map(|taken| taken as i64));
    }
    let mut room = vec![0; (arguments.size(2)? as usize).min(MOST_DATA)];
    Ok(net::recv(fd, &mut room[..], flags).map(|(taken, _)| taken as i64))
}

/// Sets a key of the namespace, in which the thread is. Returns whether this kernel has it.
fn set(key: &str, value: &str) -> Result<bool, Stop> {
    if !key.starts_with("net.") || key.contains("..") {
        return Err(Stop::Skip(format!("{key}={value}")));
    }
    let path = format!("/proc/sys/{}", key.replace('.', "/"));
    match fs::write(path, value) {
        Ok(()) => Ok(true),
        // These are the host's, and a namespace does not have them.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(key.starts_with("net.core.")),
        Err(error) => Err(Stop::Skip(format!("{key}={value} ({error})"))),
    }
}

fn failed(error: Errno) -> Returned {
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
fn option_number(level: &str, name: &str) -> Result<(libc::c_int, libc::c_int), Stop> {
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

fn set_option(fd: &OwnedFd, arguments: &Arguments<'_>) -> Result<Result<i64, Errno>, Stop> {
    let name = arguments.word(2);
    if name == "TCP_CONGESTION" {
        return Ok(sockopt::set_tcp_congestion(fd, arguments.text(3)?).map(|()| 0));
    }
    let (level, number) = match option_number(arguments.word(1), name)? {
        // The maximum of SO_SNDBUF is a setting of the host (net.core.wmem_max).
        (level, libc::SO_SNDBUF) if level == libc::SOL_SOCKET => (level, libc::SO_SNDBUFFORCE),
        option => option,
    };
    let numbers: Vec<libc::c_int> = if name == "SO_LINGER" {
        arguments.fields(3).into_iter().map(|number| number as libc::c_int).collect()
    } else {
        vec![arguments.listed(3)? as libc::c_int]
    };
    Ok(socket::set(fd, level, number, &numbers).map(|()| 0).map_err(|error| errno(&error)))
}

fn get_number(fd: &OwnedFd, level: libc::c_int, number: libc::c_int) -> Result<libc::c_int, Errno> {
    let mut value: libc::c_int = 0;
    let mut length = size_of_val(&value) as libc::socklen_t;
    #[expect(unsafe_code, reason = "options that rustix does not have")]
    // SAFETY: the kernel writes no more than the given length.
    let result =
        unsafe { libc::getsockopt(fd.as_raw_fd(), level, number, (&raw mut value).cast(), &raw mut length) };
    if result < 0 { Err(errno(&io::Error::last_os_error())) } else { Ok(value) }
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

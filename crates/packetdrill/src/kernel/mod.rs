//! A guest kernel's TCP as a stack under test.
//!
//! The script is the other end of a TUN device. System calls are made by a thread of their own, whose priority is higher: when the
//! script goes on, a call has returned, or it blocks in the kernel as an application's does. The clock stands still meanwhile.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::mem::size_of_val;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Instant;

use elephan_sys::{Urgency, device, make_urgent, socket, tcp_info};
use elephan_tcp::BurstSize;
use elephan_units::Time;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, sockopt};

use crate::call::{Arguments, names};
use crate::run::{Done, Judge, Options, Returned, Run, Sent, Stack, Stop};
use crate::script::{Call, Directive, Packet, Script, Setting, Value, flags};
use crate::settings;
use crate::wire::{self, Ends};

/// The port of sockets that listen, on either side.
const PORT: u16 = 8080;
/// The port from which a script connects.
const REMOTE_PORT: u16 = 40_000;
/// Most bytes of a call.
const MOST_DATA: usize = 1 << 26;
/// Largest packet of a device.
const LARGEST: usize = 65_536;

/// What a script begins with besides the kernel's defaults: Reno's window, room for what scripts write, a SYN that is
/// retransmitted as RFC 6298 requires, and sockets whose send buffer is what they ask for.
const BASE: [(&str, &str); 6] = [
    ("net.ipv4.tcp_congestion_control", "reno"),
    ("net.ipv4.tcp_syn_linear_timeouts", "0"),
    ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
    ("net.ipv4.tcp_wmem", "4096 4194304 4194304"),
    ("net.ipv4.tcp_no_metrics_save", "1"),
    ("net.core.wmem_max", "1000000000"),
];
/// Of a window, the part that is not waited with: segments are sent when the window permits, rather than later in larger packets
/// (net/ipv4/tcp_output.c, `tcp_tso_should_defer`), unless a script is about that (`tcp.burst`).
const NO_DEFERRAL: (&str, &str) = ("net.ipv4.tcp_tso_win_divisor", "255");

/// The bursts that a script asks for by `tcp.burst`, if it does.
fn bursts(script: &Script) -> Result<Option<BurstSize>, Stop> {
    let asked = script.directives.iter().filter_map(|directive| match directive {
        Directive::Set(key, value) if key == settings::BURST => Some((key.clone(), value.clone())),
        _ => None,
    });
    let keys: settings::Keys = asked.collect();
    if keys.is_empty() {
        return Ok(None);
    }
    Ok(Some(settings::stack(&keys, &script.file).map_err(Stop::Wrong)?.0.burst))
}

/// Runs a script on the kernel.
pub fn run(script: &Script, options: Options, judge: Judge<'_>) -> Result<Done, Stop> {
    let (local, remote) = options.addresses;
    let bursts = bursts(script)?;
    let device = (|| {
        device::loopback()?;
        let device = device::tun()?;
        device::configure(&[local], remote, options.mtu, bursts.and_then(BurstSize::gso_max_segs))?;
        Ok(device)
    })();
    for (key, value) in BASE {
        set(key, value)?;
    }
    if bursts.is_none() {
        set(NO_DEFERRAL.0, NO_DEFERRAL.1)?;
    }
    make_urgent(Urgency::Realtime);
    let stack = Kernel {
        device: device.map_err(refused("a network device"))?,
        began: Instant::now(),
        now: Time::ZERO,
        caller: Caller::new().map_err(refused("a thread"))?,
        descriptors: BTreeMap::new(),
        connection: None,
        ends: Ends { from: (remote, REMOTE_PORT), to: (local, PORT) },
        sent: VecDeque::new(),
        blocked: None,
        is_over: false,
        next_port: REMOTE_PORT + 1,
    };
    Run::new(script, stack, options).run(judge)
}

fn refused(what: &'static str) -> impl Fn(io::Error) -> Stop {
    move |error| Stop::Kernel(what.to_owned(), error)
}

/// What a system call gives.
enum Outcome {
    Value(i64),
    Descriptor(OwnedFd),
    /// Success, and the number that the call wrote to its argument with the first number.
    Out(usize, libc::c_int),
    /// The number of descriptors with events, and what happened to each.
    Polled(usize, Vec<PollFlags>),
}

type Outcomes = Result<Outcome, Errno>;
type Job = Box<dyn FnOnce() -> Outcomes + Send>;

/// The thread that makes system calls, one after the other.
struct Caller {
    jobs: Sender<Job>,
    done: Receiver<Outcomes>,
    /// Readable when a call has returned.
    returns: Arc<OwnedFd>,
}

impl Caller {
    fn new() -> io::Result<Self> {
        let (jobs, todo) = mpsc::channel::<Job>();
        let (does, done) = mpsc::channel();
        let returns = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        let tells = Arc::clone(&returns);
        // It ends with its last call, or with the guest if that call never returns.
        thread::Builder::new().spawn(move || {
            make_urgent(Urgency::Socket);
            // From here on it runs as soon as there is a call.
            let _ = does.send(Ok(Outcome::Value(0)));
            for job in todo {
                if does.send(job()).is_err() {
                    break;
                }
                let _ = rustix::io::write(&tells, &1u64.to_ne_bytes());
            }
        })?;
        let _ = done.recv();
        Ok(Self { jobs, done, returns })
    }

    /// The result of the last call, if it has returned.
    fn returned(&self) -> Option<Outcomes> {
        let outcome = self.done.try_recv().ok()?;
        let _ = rustix::io::read(&self.returns, &mut [0; 8]);
        Some(outcome)
    }
}

/// A call that blocks, and its result.
#[derive(Clone, Debug)]
struct Blocked {
    call: Call,
    returned: Option<(Time, Returned)>,
}

struct Kernel {
    device: OwnedFd,
    began: Instant,
    /// The time since then. Reading a guest's clock moves it, so it is read after a sleep alone.
    now: Time,
    caller: Caller,
    descriptors: BTreeMap<i64, Arc<OwnedFd>>,
    /// The descriptor of the connection.
    connection: Option<i64>,
    /// Addresses and ports of packets that arrive.
    ends: Ends,
    sent: Sent,
    blocked: Option<Blocked>,
    /// Whether the script has closed its last connection: the next one that it opens has another port.
    is_over: bool,
    next_port: u16,
}

impl Kernel {
    /// Takes what the kernel has sent, and the result of the blocked call.
    fn collect(&mut self) -> Result<(), Stop> {
        let mut bytes = vec![0; LARGEST];
        // A call that fails takes a guest a microsecond (Linux's handle_syscall in arch/um), so nothing is read that is not there.
        while self.wakes(Time::ZERO)? {
            let length = rustix::io::read(&self.device, &mut bytes)
                .map_err(|error| Stop::Kernel("the device".to_owned(), error.into()))?;
            self.take(&bytes[..length]);
        }
        if let Some(mut blocked) = self.blocked.take() {
            if let Some(outcome) = self.caller.returned() {
                let returned = self.finish(&blocked.call, outcome);
                blocked.returned = Some((self.now, returned));
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
            // A SYN that now arrives crosses this one.
            self.is_over = false;
        }
        // As in packetdrill, what an earlier connection still sends is not of the script.
        if back != self.ends {
            return;
        }
        self.sent.push_back((self.now, packet));
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
            let left = until.since(self.now);
            if done(self) || left == Time::ZERO {
                return Ok(());
            }
            self.wakes(left)?;
            self.now = Time::from_picos(self.began.elapsed().as_nanos() as u64 * 1000);
        }
    }

    /// Sleeps for a time, or until there is a packet, or the blocked call returns. Returns whether there is a packet.
    fn wakes(&self, most: Time) -> Result<bool, Stop> {
        let nanos = most.picos().div_ceil(1000);
        let (tv_sec, tv_nsec) = ((nanos / 1_000_000_000) as i64, (nanos % 1_000_000_000) as i64);
        let mut ready =
            [PollFd::new(&self.device, PollFlags::IN), PollFd::new(&self.caller.returns, PollFlags::IN)];
        match poll(&mut ready, Some(&Timespec { tv_sec, tv_nsec })) {
            Ok(_) | Err(Errno::INTR) => Ok(ready[0].revents().contains(PollFlags::IN)),
            Err(error) => Err(Stop::Kernel("a wait".to_owned(), error.into())),
        }
    }

    /// The job of a call, or its result if there is nothing to do.
    fn job(&mut self, call: &Call) -> Result<Result<Job, Returned>, Stop> {
        let arguments = Arguments::new(call);
        arguments.check_name()?;
        let job = |job: Job| Ok(Ok(job));
        let value = |result: Result<(), Errno>| result.map(|()| Outcome::Value(0));
        if call.name == "socket" {
            if !arguments.is_tcp_over_ipv4() {
                return Err(Stop::Skip(format!("socket({})", arguments.texts())));
            }
            return job(Box::new(|| {
                net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                    .map(Outcome::Descriptor)
            }));
        }
        if call.name == "poll" {
            return job(self.poll(&arguments)?);
        }
        let number = arguments.number(0)?;
        let Some(fd) = self.descriptors.get(&number).cloned() else {
            return Ok(Err(Returned::error("EBADF")));
        };
        match call.name.as_str() {
            "bind" => {
                let address = SocketAddrV4::new(self.ends.to.0, PORT);
                job(Box::new(move || value(net::bind(&fd, &address))))
            }
            "listen" => {
                self.is_over |= self.connection.is_some();
                let backlog = arguments.number(1)? as i32;
                job(Box::new(move || value(net::listen(&fd, backlog))))
            }
            "connect" => {
                self.connection = Some(number);
                let address = SocketAddrV4::new(self.ends.from.0, PORT);
                job(Box::new(move || value(net::connect(&fd, &address))))
            }
            "accept" | "accept4" => {
                let waits = !names(call.arguments.get(3)).contains(&"SOCK_NONBLOCK");
                let flags = if waits { SocketFlags::empty() } else { SocketFlags::NONBLOCK };
                job(Box::new(move || {
                    net::accept_with(&fd, flags | SocketFlags::CLOEXEC).map(Outcome::Descriptor)
                }))
            }
            "write" | "send" | "sendto" => {
                let opens = names(call.arguments.get(3)).contains(&"MSG_FASTOPEN");
                self.connection = if opens { Some(number) } else { self.connection };
                job(write(fd, &arguments, SocketAddrV4::new(self.ends.from.0, PORT))?)
            }
            "read" | "recv" | "recvfrom" => job(read(fd, &arguments)?),
            "shutdown" => {
                let how = match arguments.word(1) {
                    "SHUT_RD" => Shutdown::Read,
                    "SHUT_WR" => Shutdown::Write,
                    _ => Shutdown::Both,
                };
                job(Box::new(move || value(net::shutdown(&fd, how))))
            }
            "close" => {
                self.descriptors.remove(&number);
                self.is_over |= self.connection == Some(number);
                job(Box::new(move || {
                    drop(fd);
                    Ok(Outcome::Value(0))
                }))
            }
            "fcntl" => match (arguments.word(1), call.arguments.get(2)) {
                ("F_SETFL", flags) => {
                    let waits = !names(flags).contains(&"O_NONBLOCK");
                    let flags = if waits { OFlags::empty() } else { OFlags::NONBLOCK };
                    job(Box::new(move || value(fcntl_setfl(&fd, flags))))
                }
                ("F_GETFL", _) => job(Box::new(move || {
                    fcntl_getfl(&fd).map(|flags| Outcome::Value(i64::from(flags.bits())))
                })),
                (name, _) => Err(Stop::Skip(format!("fcntl {name}"))),
            },
            "ioctl" => {
                let request = match arguments.word(1) {
                    "SIOCINQ" | "FIONREAD" => libc::FIONREAD,
                    "SIOCOUTQ" | "TIOCOUTQ" => libc::TIOCOUTQ,
                    name => return Err(Stop::Skip(format!("ioctl {name}"))),
                };
                job(Box::new(move || {
                    get_queued(&fd, request as libc::c_ulong).map(|bytes| Outcome::Out(2, bytes))
                }))
            }
            "setsockopt" => job(set_option(fd, &arguments)?),
            "getsockopt" => {
                let (level, number) = option_number(arguments.word(1), arguments.word(2))?;
                job(Box::new(move || get_number(&fd, level, number).map(|number| Outcome::Out(3, number))))
            }
            name => Err(Stop::Skip(name.to_owned())),
        }
    }

    fn poll(&self, arguments: &Arguments<'_>) -> Result<Job, Stop> {
        let mut asked = Vec::new();
        for record in arguments.records(0)? {
            let descriptor = match field(record, "fd") {
                Some(Value::Number(number)) => self.descriptors.get(number).cloned(),
                _ => None,
            };
            let Some(fd) = descriptor else {
                return Err(Stop::Skip("poll of something else than a socket".to_owned()));
            };
            asked.push((fd, poll_flags(field(record, "events"))?));
        }
        let most = arguments.number(2)?;
        let most = (most >= 0).then(|| Timespec { tv_sec: most / 1000, tv_nsec: most % 1000 * 1_000_000 });
        Ok(Box::new(move || {
            let mut all: Vec<PollFd<'_>> = asked.iter().map(|(fd, flags)| PollFd::new(fd, *flags)).collect();
            let ready = poll(&mut all, most.as_ref())?;
            Ok(Outcome::Polled(ready, all.iter().map(PollFd::revents).collect()))
        }))
    }

    /// The result of a call. A new descriptor gets the number that the script expects.
    fn finish(&mut self, call: &Call, outcome: Outcomes) -> Returned {
        match outcome {
            Ok(Outcome::Value(value)) => Returned::value(value),
            Ok(Outcome::Out(index, number)) => {
                Returned { out: Some((index, Value::Number(i64::from(number)))), ..Returned::value(0) }
            }
            Ok(Outcome::Polled(ready, events)) => {
                let seen = polled(call, &events);
                Returned { out: Some((0, seen)), ..Returned::value(ready as i64) }
            }
            Ok(Outcome::Descriptor(fd)) => {
                let expected = Arguments::new(call).expected();
                self.descriptors.insert(expected, Arc::new(fd));
                if call.name != "socket" {
                    self.connection = Some(expected);
                }
                Returned::value(expected)
            }
            Err(error) => failed(error),
        }
    }
}

impl Stack for Kernel {
    fn now(&self) -> Time {
        self.now
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
        let returned = match self.job(call)? {
            Ok(job) => {
                self.caller.jobs.send(job).expect("the thread waits for calls");
                self.caller.returned().map(|outcome| self.finish(call, outcome))
            }
            Err(returned) => Some(returned),
        };
        if returned.is_none() {
            self.blocked = Some(Blocked { call: call.clone(), returned: None });
        }
        self.collect()?;
        Ok(returned)
    }

    fn returned(&mut self, until: Time) -> Result<Option<(Time, Returned)>, Stop> {
        let is_done = |stack: &Self| matches!(stack.blocked, Some(Blocked { returned: Some(_), .. }));
        self.wait(until, is_done)?;
        Ok(if is_done(self) { self.blocked.take().and_then(|blocked| blocked.returned) } else { None })
    }

    fn set(&mut self, settings: &[Setting]) -> Result<Vec<String>, Stop> {
        let mut unknown = Vec::new();
        for setting in settings {
            match setting {
                Setting::Sysctl(key, value) => {
                    if !set(key, value)? {
                        unknown.push(setting.to_string());
                    }
                }
                Setting::Module(parameter, value) => {
                    let path = format!("/sys/module/{parameter}");
                    if parameter.contains("..") || fs::write(path, value).is_err() {
                        return Err(Stop::Skip(setting.to_string()));
                    }
                }
                Setting::InitialWindow(window) => device::route(self.ends.to.0, self.ends.from.0, *window)
                    .map_err(refused("an initial window"))?,
            }
        }
        Ok(unknown)
    }

    fn info(&mut self) -> Result<BTreeMap<String, i64>, Stop> {
        let Some(connection) = self.connection.and_then(|number| self.descriptors.get(&number)) else {
            return Err(Stop::Skip("code before a connection".to_owned()));
        };
        let info = tcp_info(connection.as_fd()).map_err(refused("the state of the connection"))?;
        macro_rules! named {
            ($($name:ident)*) => {
                BTreeMap::from([$((concat!("tcpi_", stringify!($name)).to_owned(), info.$name as i64)),*])
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

fn field<'a>(record: &'a [(String, Value)], name: &str) -> Option<&'a Value> {
    record.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

fn poll_flags(value: Option<&Value>) -> Result<PollFlags, Stop> {
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
fn polled(call: &Call, events: &[PollFlags]) -> Value {
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
fn write(fd: Arc<OwnedFd>, arguments: &Arguments<'_>, to: SocketAddrV4) -> Result<Job, Stop> {
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

fn read(fd: Arc<OwnedFd>, arguments: &Arguments<'_>) -> Result<Job, Stop> {
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

/// Sets a key. Returns whether this kernel has it.
fn set(key: &str, value: &str) -> Result<bool, Stop> {
    if !key.starts_with("net.") || key.contains("..") {
        return Err(Stop::Skip(format!("{key}={value}")));
    }
    let path = format!("/proc/sys/{}", key.replace('.', "/"));
    match fs::write(path, value) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
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

fn set_option(fd: Arc<OwnedFd>, arguments: &Arguments<'_>) -> Result<Job, Stop> {
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

fn get_number(fd: &OwnedFd, level: libc::c_int, number: libc::c_int) -> Result<libc::c_int, Errno> {
    let mut value: libc::c_int = 0;
    let mut length = size_of_val(&value) as libc::socklen_t;
    #[expect(unsafe_code, reason = "options that rustix does not have")]
    // SAFETY: the kernel writes no more than the given length.
    let result =
        unsafe { libc::getsockopt(fd.as_raw_fd(), level, number, (&raw mut value).cast(), &raw mut length) };
    if result < 0 { Err(errno(&io::Error::last_os_error())) } else { Ok(value) }
}

/// The bytes in a queue of a socket.
fn get_queued(fd: &OwnedFd, request: libc::c_ulong) -> Result<libc::c_int, Errno> {
    let mut bytes: libc::c_int = 0;
    #[expect(unsafe_code, reason = "rustix has one of the two requests")]
    // SAFETY: the kernel writes one number.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), request as _, &raw mut bytes) };
    if result < 0 { Err(errno(&io::Error::last_os_error())) } else { Ok(bytes) }
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

//! A guest kernel's TCP as a stack under test.
//!
//! The script is the other end of a TUN device. System calls are made by a thread of their own, whose priority is higher: when the
//! script goes on, a call has returned, or it blocks in the kernel as an application's does. The clock stands still meanwhile.

mod calls;

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Instant;

use elephan_sys::{Urgency, device, make_urgent, tcp_info};
use elephan_tcp::BurstSize;
use elephan_units::Time;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, Shutdown, SocketFlags, SocketType};

use crate::call::{Arguments, names};
use crate::run::{Done, Judge, Options, Returned, Run, Sent, Stack, Stop};
use crate::script::{Call, Directive, Packet, Script, Setting, Value, flags};
use crate::settings;
use crate::wire::{self, Ends};

use calls::{
    Job, Outcome, Outcomes, failed, field, get_number, get_queued, option_number, poll_flags, polled, read,
    set_option, write,
};

/// The port of sockets that listen, on either side.
const PORT: u16 = 8080;
/// The port from which a script connects.
const REMOTE_PORT: u16 = 40_000;
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

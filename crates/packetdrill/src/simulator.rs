//! The simulator's TCP as a stack under test, in virtual time.

use std::collections::{BTreeMap, VecDeque};

use elephan_tcp::{Endpoint, Flags, SackBlocks, Segment};
use elephan_units::Time;

use crate::call::{Arguments, names};
use crate::run::{Returned, Sent, Stack, Stop};
use crate::script::{Call, Directive, Ecn, Packet, Script, Setting, TcpOption, Value, flags};
use crate::settings::{self, Keys};

/// The script begins when the stack's clock shows this; timestamps are then not zero.
const ORIGIN: Time = Time::from_secs(1);
/// The initial sequence number of the stack.
const ISS: u32 = 0x7000_0000;
/// The receive buffer unless the script sets one: Linux's maximum.
const RECEIVE_BUFFER: &str = "6291456 B";
/// The largest segment of a peer that announces none (RFC 9293, section 3.7.1).
const SMALLEST: u16 = 536;
/// Bytes that timestamps take with their padding (RFC 7323, appendix A).
const STAMPS: i64 = 12;
/// Timers that may expire without time passing.
const MOST_TIMERS: u32 = 10_000;
/// Flags of `tcp_fastopen` with which each socket that listens has it (include/net/tcp.h: `TFO_SERVER_ENABLE`,
/// `TFO_SERVER_WO_SOCKOPT1`).
const FAST_OPEN: u64 = 0x402;
/// Bits of `tcpi_options`: ECN, and that a packet with a codepoint of ECN arrived.
const TCPI_OPT_ECN: i64 = 8;
const TCPI_OPT_ECN_SEEN: i64 = 16;
/// `TCP_INFINITE_SSTHRESH`.
const INFINITE: i64 = 0x7fff_ffff;

/// What a descriptor of the script is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Fresh,
    Listening,
    /// Connecting or connected.
    Connection,
}

#[derive(Clone, Copy, Debug)]
struct Descriptor {
    state: State,
    is_blocking: bool,
}

/// A call that blocks.
#[derive(Clone, Debug)]
struct Blocked {
    call: Call,
    returned: Option<(Time, Returned)>,
}

/// The simulated stack: one connection, or the socket that waits for it.
pub struct Simulated {
    file: String,
    now: Time,
    descriptors: BTreeMap<i64, Descriptor>,
    end: Option<Endpoint>,
    accepted: bool,
    /// Whether the connection was ever established, and whether a call has told the script so, or of its end.
    established: bool,
    told: bool,
    /// Whether the peer sent a reset.
    reset: bool,
    sent: Sent,
    blocked: Option<Blocked>,
    /// What sysctl and `ip route` set, what `setsockopt` sets, and what the caller sets.
    settings: Vec<Setting>,
    options: Keys,
    overrides: Keys,
    /// What the comments of the script set.
    directives: Keys,
    /// Bytes written.
    written: u64,
    send_buffer: Option<u64>,
    /// The largest segments that the two ends announced, bytes, and whether timestamps take room in them.
    segments: (u16, u16),
    stamped: bool,
    /// What the SYNs of the two ends offered, as bits of `tcpi_options`, and whether a packet could have been marked by the network.
    offered: (i64, i64),
    marked: bool,
    /// When data last arrived in sequence, or else when the connection was established.
    heard: Time,
    /// Whether the script is done with its connection, so that the next SYN opens another one.
    is_over: bool,
    /// Whether the peer closed first: nothing is left of the connection once its FIN is acknowledged.
    passive: bool,
    /// Whether `shutdown` has ended reading.
    reads_no_more: bool,
}

impl Simulated {
    /// A stack for a script, whose largest packets are of `mtu` bytes, with these keys of the caller.
    pub fn new(script: &Script, mtu: u32, overrides: &Keys) -> Result<Self, Stop> {
        let directives = script.directives.iter().filter_map(|directive| match directive {
            Directive::Set(key, value) => Some((key.clone(), value.clone())),
            _ => None,
        });
        let stack = Self {
            file: script.file.clone(),
            now: ORIGIN,
            descriptors: BTreeMap::new(),
            end: None,
            accepted: false,
            established: false,
            told: false,
            reset: false,
            sent: VecDeque::new(),
            blocked: None,
            settings: Vec::new(),
            options: vec![("tcp.packet".to_owned(), format!("{mtu} B")), settings::segment_by_segment()],
            overrides: overrides.clone(),
            directives: directives.collect(),
            written: 0,
            send_buffer: None,
            segments: (0, SMALLEST),
            stamped: false,
            offered: (0, 0),
            marked: false,
            heard: ORIGIN,
            is_over: false,
            passive: false,
            reads_no_more: false,
        };
        // Settings are wrong or right whether or not a connection opens.
        settings::stack(&stack.keys(true)?, &stack.file).map_err(Stop::Wrong)?;
        Ok(stack)
    }

    /// The keys of the stack, the last of which counts.
    fn keys(&self, opens: bool) -> Result<Keys, Stop> {
        let mut keys = vec![("tcp.receive_buffer".to_owned(), RECEIVE_BUFFER.to_owned())];
        keys.extend(settings::of_settings(&self.settings, opens).map_err(Stop::Skip)?);
        for more in [&self.options, &self.directives, &self.overrides] {
            keys.extend(more.iter().cloned());
        }
        Ok(keys)
    }

    fn open(&mut self, opens: bool) -> Result<(), Stop> {
        let (config, controller) = settings::stack(&self.keys(opens)?, &self.file).map_err(Stop::Wrong)?;
        self.send_buffer = config.send_buffer.map(elephan_units::Bytes::get);
        let open = if opens { Endpoint::connect } else { Endpoint::listen };
        let mut end = open(&elephan_tcp::Stack::new(&config, controller), ISS);
        end.set_reading(false);
        self.end = Some(end);
        (self.accepted, self.established, self.told, self.reset) = (false, false, false, false);
        (self.reads_no_more, self.passive, self.is_over) = (false, false, false);
        (self.written, self.offered, self.marked) = (0, (0, 0), false);
        Ok(())
    }

    /// Answers a packet of no connection (RFC 9293, section 3.10.7.1, and 3.10.7.2 where a socket listens).
    fn refuse(&mut self, packet: &Packet) {
        let listens = self.descriptors.values().any(|fd| fd.state == State::Listening);
        if packet.flags & flags::RST != 0 || listens && packet.flags & flags::ACK == 0 {
            return;
        }
        let occupied = packet.len
            + u32::from(packet.flags & flags::SYN != 0)
            + u32::from(packet.flags & flags::FIN != 0);
        let reset = match packet.ack.filter(|_| packet.flags & flags::ACK != 0) {
            Some(ack) => reset(ack, None),
            None => reset(0, Some(packet.seq.wrapping_add(occupied))),
        };
        self.sent.push_back((self.now.since(ORIGIN), reset));
    }

    /// Takes what the stack sends now, and completes the blocked call if it can.
    fn pump(&mut self) {
        let since = self.now.since(ORIGIN);
        if let Some(end) = &mut self.end {
            if end.is_established() && !std::mem::replace(&mut self.established, true) {
                self.heard = self.now;
            }
            while let Some(segment) = end.poll_transmit(self.now) {
                let ecn = if end.ecn_capable() { Ecn::Ect0 } else { Ecn::None };
                self.stamped = segment.timestamps;
                if segment.mss > 0 {
                    self.segments.0 = segment.mss;
                }
                let packet = to_packet(&segment, ecn);
                if packet.flags & flags::SYN != 0 {
                    self.offered.0 = offered(&packet);
                }
                self.sent.push_back((since, packet));
            }
        }
        let Some(Blocked { call, returned: None }) = self.blocked.clone() else { return };
        // What has no counterpart was found at the first try.
        if let Ok(Some(returned)) = self.attempt(&call) {
            self.blocked = Some(Blocked { call, returned: Some((since, returned)) });
        }
    }

    /// The next timer.
    fn due(&self) -> Time {
        self.end.as_ref().map_or(Time::MAX, Endpoint::poll_timeout)
    }

    /// Lets time pass until `to` on the stack's clock, or until `done`.
    fn pass(&mut self, to: Time, done: impl Fn(&Self) -> bool) -> Result<(), Stop> {
        let mut at_once = 0;
        while !done(self) {
            let due = self.due();
            if due > to {
                // If nothing will happen any more, time stands still.
                if to < Time::MAX {
                    self.now = self.now.max(to);
                }
                break;
            }
            at_once = if due > self.now { 0 } else { at_once + 1 };
            if at_once > MOST_TIMERS {
                let expected = "timers that expire as time passes".to_owned();
                return Err(Stop::Fail(expected, "one that expires for ever at once".to_owned()));
            }
            self.now = self.now.max(due);
            if let Some(end) = &mut self.end {
                end.on_timer(self.now);
            }
            self.pump();
        }
        Ok(())
    }

    /// Carries out a call, if it can return now.
    fn attempt(&mut self, call: &Call) -> Result<Option<Returned>, Stop> {
        let arguments = Arguments::new(call);
        let lacks = || Err(Stop::Skip(call.name.clone()));
        arguments.check_name()?;
        let value = |value: i64| Ok(Some(Returned::value(value)));
        let error = |name: &str| Ok(Some(Returned::error(name)));
        if call.name == "socket" {
            if !arguments.is_tcp_over_ipv4() {
                return Err(Stop::Skip(format!("socket({})", arguments.texts())));
            }
            let fd = arguments.expected();
            self.descriptors.insert(fd, Descriptor { state: State::Fresh, is_blocking: true });
            return value(fd);
        }
        if call.name == "poll" {
            return lacks();
        }
        let number = arguments.number(0)?;
        let Some(&fd) = self.descriptors.get(&number) else { return error("EBADF") };
        // A call that has to wait: an error where sockets do not block.
        let wait = || if fd.is_blocking { Ok(None) } else { error("EAGAIN") };
        match call.name.as_str() {
            "bind" => value(0),
            "listen" => {
                self.is_over |= self.accepted;
                self.set_state(number, State::Listening);
                value(0)
            }
            "connect" => self.connect(number, fd),
            "accept" | "accept4" => {
                if fd.state != State::Listening {
                    return error("EINVAL");
                }
                if self.accepted || !self.is_established() {
                    return wait();
                }
                self.accepted = true;
                let accepted = arguments.expected();
                let is_blocking = !names(call.arguments.get(3)).contains(&"SOCK_NONBLOCK");
                self.descriptors.insert(accepted, Descriptor { state: State::Connection, is_blocking });
                value(accepted)
            }
            "write" | "send" | "sendto" => self.write(&arguments, fd),
            "read" | "recv" | "recvfrom" => {
                arguments.flags(3, &[("MSG_DONTWAIT", ())])?;
                let most = arguments.size(2)?;
                let Some(end) = self.connection(fd) else { return error("ENOTCONN") };
                if arguments.is_null(1) && end.unread() > 0 {
                    return error("EFAULT");
                }
                let taken = end.read(most);
                if taken > 0 {
                    return value(taken as i64);
                }
                let (is_reset, is_finished) = (end.is_reset(), end.peer_is_finished());
                if is_reset {
                    return error(self.refusal().0);
                }
                if is_finished || self.reads_no_more { value(0) } else { wait() }
            }
            "shutdown" | "close" => self.close(call, number, fd),
            "fcntl" => match (arguments.word(1), call.arguments.get(2)) {
                ("F_SETFL", flags) => {
                    let is_blocking = !names(flags).contains(&"O_NONBLOCK");
                    self.descriptors.insert(number, Descriptor { is_blocking, ..fd });
                    value(0)
                }
                ("F_GETFL", _) => value(if fd.is_blocking { 0x2 } else { 0x802 }),
                _ => lacks(),
            },
            "ioctl" => self.queued(&arguments, fd),
            "setsockopt" => self.set_option(&arguments),
            "getsockopt" => match arguments.word(2) {
                // Only before the connection begins is it what `setsockopt` has set.
                "TCP_MAXSEG" if self.end.is_none() => {
                    let set = self.options.iter().rfind(|(key, _)| key == "tcp.packet");
                    let packet = set.and_then(|(_, value)| value.strip_suffix(" B")?.parse::<i64>().ok());
                    let out = packet.map(|packet| (3, Value::Number(packet - 40)));
                    Ok(Some(Returned { out, ..Returned::value(0) }))
                }
                "TCP_MAXSEG" => {
                    let out =
                        Some((3, Value::Number(self.largest_data(self.segments.0.min(self.segments.1)))));
                    Ok(Some(Returned { out, ..Returned::value(0) }))
                }
                "SO_ERROR" => {
                    let is_refused = self.end.as_ref().is_some_and(Endpoint::is_reset) && !self.told;
                    self.told |= is_refused;
                    let number = if is_refused { self.refusal().1 } else { 0 };
                    Ok(Some(Returned { out: Some((3, Value::Number(number))), ..Returned::value(0) }))
                }
                name => Err(Stop::Skip(format!("getsockopt {name}"))),
            },
            _ => lacks(),
        }
    }

    /// The bytes in a queue of a socket (Linux's tcp_ioctl).
    fn queued(&mut self, arguments: &Arguments<'_>, fd: Descriptor) -> Result<Option<Returned>, Stop> {
        let written = self.written;
        let Some(end) = self.connection(fd) else { return Ok(Some(Returned::error("EINVAL"))) };
        let bytes = match arguments.word(1) {
            "SIOCINQ" | "FIONREAD" => end.unread(),
            "SIOCOUTQ" | "TIOCOUTQ" => written.saturating_sub(end.counters().bytes_acked),
            name => return Err(Stop::Skip(format!("ioctl {name}"))),
        };
        Ok(Some(Returned { out: Some((2, Value::Number(bytes as i64))), ..Returned::value(0) }))
    }

    /// Data that fits into a segment of this announced size beside the timestamps: Linux's `mss_cache` (tcp_current_mss) and `advmss`.
    fn largest_data(&self, announced: u16) -> i64 {
        i64::from(announced) - if self.stamped { STAMPS } else { 0 }
    }

    /// The error of a connection that did not come about or ended, and its number.
    fn refusal(&self) -> (&'static str, i64) {
        match (self.reset, self.established) {
            (false, _) => ("ETIMEDOUT", 110),
            (true, true) => ("ECONNRESET", 104),
            (true, false) => ("ECONNREFUSED", 111),
        }
    }

    fn is_established(&self) -> bool {
        self.end.as_ref().is_some_and(Endpoint::is_established)
    }

    fn connection(&mut self, fd: Descriptor) -> Option<&mut Endpoint> {
        self.end.as_mut().filter(|_| fd.state == State::Connection)
    }

    fn set_state(&mut self, number: i64, state: State) {
        if let Some(fd) = self.descriptors.get_mut(&number) {
            fd.state = state;
        }
    }

    fn connect(&mut self, number: i64, fd: Descriptor) -> Result<Option<Returned>, Stop> {
        let wait = |name| if fd.is_blocking { Ok(None) } else { Ok(Some(Returned::error(name))) };
        match fd.state {
            State::Listening => Ok(Some(Returned::error("EISCONN"))),
            State::Fresh => {
                self.open(true)?;
                self.set_state(number, State::Connection);
                self.pump();
                wait("EINPROGRESS")
            }
            State::Connection => {
                let Some(end) = &self.end else { return Ok(Some(Returned::error("EINVAL"))) };
                if end.is_reset() {
                    let (name, _) = self.refusal();
                    return Ok(Some(Returned::error(name)));
                }
                if !end.is_established() {
                    return wait("EALREADY");
                }
                let known = std::mem::replace(&mut self.told, true);
                Ok(Some(if known { Returned::error("EISCONN") } else { Returned::value(0) }))
            }
        }
    }

    fn write(&mut self, arguments: &Arguments<'_>, fd: Descriptor) -> Result<Option<Returned>, Stop> {
        arguments.flags(3, &[("MSG_DONTWAIT", ()), ("MSG_NOSIGNAL", ())])?;
        let bytes = arguments.size(2)?;
        let is_null = arguments.is_null(1);
        let (buffer, written) = (self.send_buffer, self.written);
        let Some(end) = self.connection(fd) else { return Ok(Some(Returned::error("ENOTCONN"))) };
        if end.is_reset() {
            return Ok(Some(Returned::error(self.refusal().0)));
        }
        if end.is_closed() {
            return Ok(Some(Returned::error("EPIPE")));
        }
        let room =
            buffer.map_or(u64::MAX, |buffer| (buffer + end.counters().bytes_acked).saturating_sub(written));
        let taken = bytes.min(room);
        if taken == 0 && bytes > 0 || !end.is_established() {
            return Ok(if fd.is_blocking { None } else { Some(Returned::error("EAGAIN")) });
        }
        if is_null {
            return Ok(Some(Returned::error("EFAULT")));
        }
        end.write(taken);
        self.written += taken;
        Ok(Some(Returned::value(taken as i64)))
    }

    fn close(&mut self, call: &Call, number: i64, fd: Descriptor) -> Result<Option<Returned>, Stop> {
        let arguments = Arguments::new(call);
        let is_close = call.name == "close";
        // Linux's inet_shutdown: TCP itself learns of the end of writing only, and takes what arrives.
        let how = arguments.word(1);
        self.reads_no_more |= !is_close && fd.state == State::Connection && how != "SHUT_WR";
        if !is_close && how == "SHUT_RD" {
            return Ok(Some(Returned::value(0)));
        }
        let now = self.now;
        if let Some(end) = self.connection(fd) {
            let is_opening = !end.is_established() && !end.is_reset();
            if is_opening && !is_close {
                return Err(Stop::Skip("shutdown before the connection is established".to_owned()));
            }
            let (unread, finished) = (end.unread(), end.peer_is_finished());
            let is_first = !end.is_closed();
            end.close();
            // The peer learns that its data is lost (RFC 2525, section 2.17; Linux's __tcp_close).
            if is_close && unread > 0 {
                let reset = to_packet(&end.abort(now), Ecn::None);
                self.sent.push_back((now.since(ORIGIN), reset));
            }
            self.passive |= is_first && finished;
            // An attempt ends without a segment (RFC 9293, section 3.10.4).
            if is_close && (unread > 0 || is_opening) {
                self.end = None;
            }
        }
        if is_close {
            self.is_over |= self.accepted;
            self.descriptors.remove(&number);
        }
        Ok(Some(Returned::value(0)))
    }

    fn set_option(&mut self, arguments: &Arguments<'_>) -> Result<Option<Returned>, Stop> {
        let name = arguments.word(2);
        let number = || arguments.listed(3);
        let (key, value) = match name {
            // The simulator's sender sends at once what it may send.
            // The bits of IP_TOS that are ECN's stay TCP's (Linux's do_ip_setsockopt), and the others are not compared.
            "SO_REUSEADDR" | "SO_REUSEPORT" | "TCP_NODELAY" | "IP_MTU_DISCOVER" | "IP_TOS" => {
                return Ok(Some(Returned::value(0)));
            }
            // Afterwards it is how much the application may write.
            "SO_SNDBUF" if self.end.is_some() => {
                self.send_buffer = Some(arguments.listed_size(3)?.saturating_mul(2));
                return Ok(Some(Returned::value(0)));
            }
            // Linux's sk_setsockopt doubles it, because it counts the memory of packets. Large packets are nearly all data.
            "SO_SNDBUF" => ("tcp.send_buffer", format!("{} B", number()?.saturating_mul(2))),
            "SO_RCVBUF" => ("tcp.receive_buffer", format!("{} B", number()?)),
            "TCP_MAXSEG" => ("tcp.packet", format!("{} B", number()?.saturating_add(40))),
            "TCP_CONGESTION" => ("cc", settings::cc(arguments.text(3)?).map_err(Stop::Skip)?),
            _ => return Err(Stop::Skip(format!("setsockopt {name}"))),
        };
        if self.end.is_some() {
            return Err(Stop::Skip(format!("setsockopt {name} after the connection has begun")));
        }
        self.options.push((key.to_owned(), value));
        Ok(Some(Returned::value(0)))
    }
}

impl Stack for Simulated {
    fn now(&self) -> Time {
        self.now.since(ORIGIN)
    }

    fn advance(&mut self, to: Time) -> Result<(), Stop> {
        self.pass(ORIGIN.saturating_add(to), |_| false)
    }

    fn arrive(&mut self, packet: &Packet) -> Result<(), Stop> {
        let is_opening = packet.flags & (flags::SYN | flags::ACK | flags::RST) == flags::SYN;
        let listens = self.descriptors.values().any(|fd| fd.state == State::Listening);
        if is_opening
            && listens
            && self.end.as_ref().is_none_or(|end| self.is_over || end.is_reset() && !self.accepted)
        {
            self.open(false)?;
        }
        let now = self.now;
        let ended = self.passive && self.end.as_ref().is_some_and(Endpoint::is_finished);
        let Some(end) = self.end.as_mut().filter(|_| !ended) else {
            self.refuse(packet);
            return Ok(());
        };
        if is_opening
            && packet.options.iter().flatten().any(|option| matches!(option, TcpOption::FastOpen { .. }))
        {
            let value = settings::last(&self.settings, "net.ipv4.tcp_fastopen").unwrap_or("1");
            if settings::whole(value).is_none_or(|flags| flags & FAST_OPEN == FAST_OPEN) {
                return Err(Stop::Skip("TCP Fast Open".to_owned()));
            }
        }
        // Linux's tcp_rcv_state_process aborts such a connection (RFC 1122, section 4.2.2.13).
        if packet.len > 0 && self.reads_no_more && end.is_closed() {
            return Err(Stop::Skip("data after shutdown SHUT_RDWR".to_owned()));
        }
        let segment = to_segment(packet)?;
        self.reset |= packet.flags & flags::RST != 0;
        if packet.flags & flags::SYN != 0 {
            self.segments.1 = if segment.mss > 0 { segment.mss } else { SMALLEST };
            self.offered.1 = offered(packet);
        }
        self.marked |= !matches!(packet.ecn, None | Some(Ecn::None));
        let before = arrived(end);
        end.on_segment(&segment, packet.ecn == Some(Ecn::Ce), now);
        if arrived(end) > before {
            self.heard = now;
        }
        self.pump();
        Ok(())
    }

    fn sent(&mut self, until: Time) -> Result<Option<(Time, Packet)>, Stop> {
        self.pass(ORIGIN.saturating_add(until), |stack| !stack.sent.is_empty())?;
        Ok(self.sent.pop_front())
    }

    fn call(&mut self, call: &Call) -> Result<Option<Returned>, Stop> {
        let returned = self.attempt(call)?;
        if returned.is_none() {
            self.blocked = Some(Blocked { call: call.clone(), returned: None });
        }
        self.pump();
        Ok(returned)
    }

    fn returned(&mut self, until: Time) -> Result<Option<(Time, Returned)>, Stop> {
        let is_done = |stack: &Self| matches!(stack.blocked, Some(Blocked { returned: Some(_), .. }));
        self.pass(ORIGIN.saturating_add(until), is_done)?;
        Ok(if is_done(self) { self.blocked.take().and_then(|blocked| blocked.returned) } else { None })
    }

    fn set(&mut self, settings: &[Setting]) -> Result<Vec<String>, Stop> {
        let changes = settings::of_settings(settings, true).map_err(Stop::Skip)?;
        let is_late = self.end.is_some() && !self.is_over && !changes.is_empty();
        self.settings.extend_from_slice(settings);
        self.keys(true)?;
        if is_late {
            let all = settings.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            return Err(Stop::Skip(format!("{all} after the connection has begun")));
        }
        Ok(settings::unknown(settings))
    }

    fn info(&mut self) -> Result<BTreeMap<String, i64>, Stop> {
        let Some(end) = &self.end else {
            return Err(Stop::Skip("code before a connection".to_owned()));
        };
        let (snapshot, counters) = (end.snapshot(), end.counters());
        let mut options = self.offered.0 & self.offered.1;
        if options & TCPI_OPT_ECN != 0 && self.marked {
            options |= TCPI_OPT_ECN_SEEN;
        }
        let micros = |time: Time| (time.picos() / 1_000_000) as i64;
        let ssthresh = if snapshot.ssthresh.is_finite() { snapshot.ssthresh as i64 } else { INFINITE };
        let found = [
            ("tcpi_snd_cwnd", snapshot.cwnd as i64),
            ("tcpi_snd_ssthresh", ssthresh),
            ("tcpi_snd_mss", self.largest_data(self.segments.0.min(self.segments.1))),
            ("tcpi_advmss", self.largest_data(self.segments.0)),
            ("tcpi_rtt", micros(snapshot.srtt)),
            ("tcpi_min_rtt", micros(snapshot.min_rtt)),
            ("tcpi_rto", micros(snapshot.rto)),
            ("tcpi_ca_state", snapshot.state as i64),
            ("tcpi_unacked", snapshot.unacked as i64),
            ("tcpi_sacked", snapshot.sacked as i64),
            ("tcpi_lost", snapshot.lost as i64),
            ("tcpi_retrans", snapshot.retransmitted as i64),
            ("tcpi_reordering", snapshot.reordering as i64),
            ("tcpi_total_retrans", counters.segments_retransmitted as i64),
            ("tcpi_bytes_acked", counters.bytes_acked as i64),
            ("tcpi_bytes_received", arrived(end) as i64),
            ("tcpi_bytes_sent", counters.bytes_sent as i64),
            ("tcpi_bytes_retrans", counters.bytes_retransmitted as i64),
            ("tcpi_data_segs_out", counters.segments_sent as i64),
            ("tcpi_total_rto", counters.timeouts as i64),
            ("tcpi_options", options),
            ("tcpi_last_data_recv", (self.now.since(self.heard).picos() / 1_000_000_000) as i64),
        ];
        Ok(found.map(|(name, value)| (name.to_owned(), value)).into())
    }
}

/// Bytes that arrived in sequence.
fn arrived(end: &Endpoint) -> u64 {
    end.counters().bytes_delivered + end.unread()
}

/// What a SYN offers, as bits of `tcpi_options` (include/uapi/linux/tcp.h).
fn offered(packet: &Packet) -> i64 {
    let bit = |option: &TcpOption| match option {
        TcpOption::Timestamps { .. } => 1,
        TcpOption::SackPermitted => 2,
        TcpOption::WindowScale(_) => 4,
        _ => 0,
    };
    let ecn = if packet.flags & flags::ECE != 0 { TCPI_OPT_ECN } else { 0 };
    packet.options.iter().flatten().fold(ecn, |bits, option| bits | bit(option))
}

const BITS: [(u8, Flags); 7] = [
    (flags::FIN, Flags::FIN),
    (flags::SYN, Flags::SYN),
    (flags::RST, Flags::RST),
    (flags::PSH, Flags::PSH),
    (flags::ACK, Flags::ACK),
    (flags::ECE, Flags::ECE),
    (flags::CWR, Flags::CWR),
];

fn to_segment(packet: &Packet) -> Result<Segment, Stop> {
    if packet.flags & flags::URG != 0 {
        return Err(Stop::Skip("urgent data".to_owned()));
    }
    let mut segment = Segment {
        seq: packet.seq,
        ack: packet.ack.unwrap_or(0),
        len: packet.len as u16,
        // packetdrill sends a window of zero where the script gives none.
        window: packet.window.unwrap_or(0),
        ..Segment::default()
    };
    for (bit, flag) in BITS {
        if packet.flags & bit != 0 {
            segment.flags |= flag;
        }
    }
    for option in packet.options.iter().flatten() {
        match option {
            TcpOption::Mss(mss) => segment.mss = *mss,
            TcpOption::WindowScale(shift) => segment.window_scale_plus_one = shift.saturating_add(1),
            TcpOption::SackPermitted => segment.sack_permitted = true,
            TcpOption::Timestamps { val, ecr } => {
                (segment.timestamps, segment.ts_val, segment.ts_ecr) = (true, *val, *ecr);
            }
            TcpOption::Sack(blocks) => {
                let mut sack = SackBlocks::default();
                if !blocks.iter().all(|&(left, right)| sack.push(left, right)) {
                    return Err(Stop::Skip("more than four SACK blocks".to_owned()));
                }
                segment.sack = sack;
            }
            // The stack does not have it, and ignores it (RFC 9293, section 3.1, MUST-6).
            TcpOption::FastOpen { .. } => {}
            TcpOption::Other(name) => return Err(Stop::Skip(format!("the TCP option {name}"))),
        }
    }
    Ok(segment)
}

/// A reset with this number, which acknowledges `ack`.
fn reset(seq: u32, ack: Option<u32>) -> Packet {
    let flags = flags::RST | ack.map_or(0, |_| flags::ACK);
    Packet { ecn: Some(Ecn::None), flags, seq, len: 0, ack, window: Some(0), options: Some(Vec::new()) }
}

fn to_packet(segment: &Segment, ecn: Ecn) -> Packet {
    let mut options = Vec::new();
    if segment.mss > 0 {
        options.push(TcpOption::Mss(segment.mss));
    }
    if segment.sack_permitted {
        options.push(TcpOption::SackPermitted);
    }
    if segment.timestamps {
        options.push(TcpOption::Timestamps { val: segment.ts_val, ecr: segment.ts_ecr });
    }
    if let Some(shift) = segment.window_scale_plus_one.checked_sub(1) {
        options.push(TcpOption::WindowScale(shift));
    }
    if !segment.sack.is_empty() {
        options.push(TcpOption::Sack(segment.sack.as_slice().to_vec()));
    }
    Packet {
        ecn: Some(ecn),
        flags: BITS
            .iter()
            .filter(|(_, flag)| segment.flags.contains(*flag))
            .fold(0, |all, (bit, _)| all | bit),
        seq: segment.seq,
        len: u32::from(segment.len),
        ack: segment.flags.contains(Flags::ACK).then_some(segment.ack),
        window: Some(segment.window),
        options: Some(options),
    }
}

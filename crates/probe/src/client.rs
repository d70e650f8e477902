//! The near host: it asks for one test after the other, within what was agreed on.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use elephan_session::{Session, Token};

use crate::datagram::{Datagram, HEADER_BYTES, Key};
use crate::limits::{Limits, Meter};
use crate::message::{
    Arrivals, Ask, BYTES_PER_ARRIVAL, BYTES_PER_TEST, Hello, Host, SECRETS, Seen, VERSION, Welcome,
};
use crate::peer::Peer;
use crate::registry::MOST_DATAGRAMS;
use crate::served::PATIENCE;
use crate::server::{FOR_A_TEST, OPENING_BYTES};
use crate::socket::{BATCH, MOST_BYTES, header_bytes};
use crate::wire::{Udp, Wire};
use crate::{Error, Tcp, Transfer, schedule, tcp};

/// A wait ends this long before something is due; the rest is spent polling the clock, as sleeps end late.
const SPIN: Duration = Duration::from_micros(150);
/// A sender that is later than this was kept from running. It shifts the rest of its schedule, because a burst to catch up would
/// exceed the rate of the schedule, and fill queues.
const LATE: Duration = Duration::from_millis(1);
/// How often it is looked what has come. Times are the kernel's, so this does not show in them.
const LOOK: Duration = Duration::from_millis(1);

/// What was seen of a stream.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// When each datagram was handed to the device (or to the kernel, if it gave no time stamps), on the client's clock, ns since
    /// 1970; zero if it was not sent.
    pub sent_ns: Vec<u64>,
    /// Whether the times of departure are the kernel's.
    pub stamped: bool,
    /// What arrived at the server.
    pub arrived: Arrivals,
    /// Which echoes arrived here: sequence numbers and times. `echoed_ns` is zero.
    pub echoes: Arrivals,
    /// Bytes of IP packets that were sent, the echoes that the server sent included.
    pub bytes: u64,
}

/// A session with a server: who answers, and the wire of its datagrams.
pub struct Client<P = Session, W = Udp> {
    peer: P,
    wire: W,
    id: u64,
    keys: [Key; 3],
    limits: Limits,
    host: Host,
    meter: Meter,
    /// When the session began, on the clock of the wire.
    began: Duration,
    /// Number of the last test.
    test: u32,
}

impl Client {
    /// Opens a session with the server at an address, and agrees on limits.
    pub fn connect(to: SocketAddr, token: &Token, wanted: Limits) -> Result<Self, Error> {
        let wire = Udp::new(to);
        let began = wire.now();
        let mut session = elephan_session::over(
            tcp::narrow(to, PATIENCE).map_err(|error| Error::System("connection", error))?,
            token,
            PATIENCE,
        )?;
        session.send(&Hello { version: VERSION, limits: wanted })?;
        let (id, limits, host) = match session.receive("what the server permits")? {
            Welcome::Agreed { session, limits, host } => (session, limits, host),
            Welcome::Refused(why) => return Err(Error::Refused(why)),
        };
        let keys = SECRETS.map(|label| session.secret(label));
        Ok(Self::admitted(session, wire, began, wanted, (id, limits, host, keys)))
    }
}

impl<P: Peer, W: Wire> Client<P, W> {
    /// The session that began at a time, to which the server has agreed: number, limits, host and keys.
    pub(crate) fn admitted(
        peer: P,
        wire: W,
        began: Duration,
        wanted: Limits,
        (id, limits, host, keys): (u64, Limits, Host, [Key; 3]),
    ) -> Self {
        // Whatever the server says, no more than was wanted.
        let limits = limits.agree(wanted);
        let meter = Meter::new(limits.bytes);
        Self { peer, wire, id, keys, limits, host, meter, began, test: 0 }
    }

    /// The wire of its datagrams.
    #[cfg(any(test, feature = "virtual-time"))]
    pub fn wire(&self) -> &W {
        &self.wire
    }

    /// What was agreed on.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The server's host: name, kernel, and the congestion control that it permits.
    pub fn host(&self) -> (&str, &str, &[String]) {
        (&self.host.name, &self.host.kernel, &self.host.algorithms)
    }

    /// Whether packets have the headers of IPv6.
    pub fn is_v6(&self) -> bool {
        self.wire.is_v6()
    }

    /// Bytes of IP packets so far, in both directions together, at most: of tests, and of the session itself.
    pub fn spent(&self) -> u64 {
        self.meter.spent() + self.peer.wire_bytes()
    }

    /// Time since the session began.
    pub fn elapsed(&self) -> Duration {
        self.wire.now().saturating_sub(self.began)
    }

    fn permits(&self, bytes: u64, lasting: Duration) -> Result<(), Error> {
        let left = self.limits.bytes.saturating_sub(self.spent());
        if bytes > left {
            return Err(Error::Budget { left, needed: bytes, unit: "bytes" });
        }
        let left = Duration::from_millis(self.limits.millis).saturating_sub(self.elapsed());
        if lasting > left {
            let (left, needed) = (left.as_millis() as u64, lasting.as_millis() as u64);
            return Err(Error::Budget { left, needed, unit: "ms" });
        }
        Ok(())
    }

    /// Sends a stream: packets of these sizes (bytes of IP packets), each due at an offset from the first (ns). Waits at most `linger`
    /// for the last ones.
    pub fn stream(
        &mut self,
        sizes: &[u32],
        due_ns: &[u64],
        echo: bool,
        linger: Duration,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Stream, Error> {
        schedule::check(sizes, due_ns, self.limits.rate).map_err(Error::Wrong)?;
        let headers = header_bytes(self.is_v6()) as u32;
        let least = headers + HEADER_BYTES as u32;
        if let Some(size) = sizes.iter().find(|&&size| size < least || size > 65_535) {
            return Err(Error::Wrong(format!(
                "stream: expected sizes from {least} to 65535 bytes, found {size}"
            )));
        }
        let count = u32::try_from(sizes.len()).unwrap_or(u32::MAX);
        if count > MOST_DATAGRAMS {
            return Err(Error::Wrong(format!(
                "stream: expected at most {MOST_DATAGRAMS} datagrams, found {count}"
            )));
        }
        let bytes: u64 = sizes.iter().map(|&size| u64::from(size)).sum();
        let cost = bytes * if echo { 2 } else { 1 };
        let lasting = Duration::from_nanos(*due_ns.last().expect("not empty")) + linger;
        self.permits(cost + u64::from(count) * BYTES_PER_ARRIVAL + BYTES_PER_TEST, lasting)?;
        self.test += 1;
        let millis = lasting.as_millis() as u64 + 1;
        let header = Datagram { session: self.id, stream: self.test, sequence: 0, due_ns: 0 };
        self.peer.ask(&Ask::Stream { stream: self.test, echo, count, bytes, millis })?;
        // All that may be sent; what was not is given back.
        self.meter.add(cost);
        let payload = sizes.iter().map(|&size| (size - headers) as usize).collect::<Vec<_>>();
        let until = self.began + Duration::from_millis(self.limits.millis);
        let plan = Plan { header, key: &self.keys[0], payload: &payload, due_ns, until };
        let over = AtomicBool::new(false);
        self.wire.open().map_err(|error| Error::System("datagrams", error))?;
        let (wire, peer) = (&self.wire, &self.peer);
        let ends = || stop() || peer.is_gone();
        let (sent, seen) = wire.both(
            || {
                let sent = plan.send(wire, &ends);
                over.store(true, Ordering::Release);
                sent
            },
            || watch(wire, &header, &self.keys[1], if echo { sizes.len() } else { 0 }, &over, linger),
        );
        self.wire.close();
        let (sent_ns, seen) = (sent?, seen.map_err(|error| Error::System("datagrams", error))?);
        if stop() {
            return Err(Error::Cancelled);
        }
        if self.peer.is_gone() {
            return Err(elephan_session::Error::Closed.into());
        }
        let mut result = Stream { sent_ns, echoes: seen.echoes, ..Stream::default() };
        // A packet that the kernel refused may or may not have taken a number, so the numbers tell nothing then.
        let all = result.sent_ns.iter().all(|&at| at > 0);
        result.stamped = all && seen.stamps.len() == sizes.len();
        if all {
            for (number, at) in seen.stamps {
                if let Some(place) = result.sent_ns.get_mut(number as usize) {
                    *place = at;
                }
            }
        }
        result.arrived = self.peer.arrivals(self.test)?;
        let unsent: u64 = zip_sum(sizes, |index| result.sent_ns[index] == 0);
        let echoed = result.arrived.echoed_ns.iter().zip(&result.arrived.sequence);
        let answered: u64 = echoed
            .filter(|(at, _)| **at > 0)
            .map(|(_, &index)| sizes.get(index as usize).map_or(0, |&size| u64::from(size)))
            .sum();
        result.bytes = bytes - unsent + if echo { answered } else { 0 };
        self.meter.give_back(cost.saturating_sub(result.bytes));
        Ok(result)
    }

    /// Ends the session; its datagrams are a stranger's from then on.
    pub fn finish(mut self) -> Result<(), Error> {
        self.peer.leave()
    }
}

impl Client {
    /// Sends or receives by TCP. Returns what the sender saw and what the receiver saw.
    pub fn tcp(
        &mut self,
        test: &Tcp,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<(Transfer, Transfer), Error> {
        self.permits(test.bytes + BYTES_PER_TEST + 40_000, test.duration)?;
        let system = |error| Error::System("TCP test", error);
        if !test.down {
            tcp::offers(&test.cc, self.is_v6()).map_err(|error| Error::Refused(error.to_string()))?;
        }
        self.test += 1;
        let (millis, bytes) = (test.duration.as_millis() as u64, test.bytes);
        self.peer.ask(&Ask::Tcp { test: self.test, cc: test.cc.clone(), down: test.down, millis, bytes })?;
        self.meter.add(bytes);
        let mut stream = TcpStream::connect_timeout(&self.wire.to(), PATIENCE).map_err(system)?;
        if !test.down {
            tcp::prepare(&stream, &test.cc, self.limits.rate).map_err(system)?;
        }
        let mut opening = [0; OPENING_BYTES];
        opening[0] = FOR_A_TEST;
        let header =
            Datagram { session: self.id, stream: self.test, sequence: 0, due_ns: self.wire.wall_ns() };
        header.write(&self.keys[2], &mut opening[1..]);
        stream.write_all(&opening).map_err(system)?;
        self.peer.send(&Ask::Transferred { test: self.test })?;
        let done = if test.down {
            tcp::receive(&stream, test.duration + PATIENCE, bytes, stop)
        } else {
            tcp::send(&stream, test.duration, bytes, stop)
        };
        drop(stream);
        if stop() {
            return Err(Error::Cancelled);
        }
        let here = done.map_err(system)?;
        self.peer.set_patience(PATIENCE + test.duration);
        let seen: Seen = self.peer.receive("what was seen of a transfer")?;
        self.peer.set_patience(PATIENCE);
        let there = match seen {
            Seen::Transfer(there) => there,
            Seen::Failed(why) => return Err(Error::Refused(why)),
        };
        let cost = here.wire_bytes.max(there.wire_bytes);
        self.meter.give_back(bytes);
        self.meter.add(cost);
        Ok(if test.down { (there, here) } else { (here, there) })
    }
}

/// The sum of the sizes whose index is selected.
fn zip_sum(sizes: &[u32], select: impl Fn(usize) -> bool) -> u64 {
    (0..sizes.len()).filter(|&index| select(index)).map(|index| u64::from(sizes[index])).sum()
}

/// What is to be sent, and when.
struct Plan<'a> {
    header: Datagram,
    key: &'a Key,
    payload: &'a [usize],
    due_ns: &'a [u64],
    /// Nothing is sent later, on the clock of the wire.
    until: Duration,
}

impl Plan<'_> {
    /// Sends all, and returns when each was given to the kernel; zero if it was not sent: refused for its size or for want of space,
    /// or too late.
    fn send(&self, wire: &impl Wire, stop: &dyn Fn() -> bool) -> Result<Vec<u64>, Error> {
        let count = self.payload.len();
        let mut written = vec![0; count];
        let longest = self.payload.iter().max().copied().unwrap_or(0);
        let mut buffers = vec![vec![0; longest]; BATCH.min(count)];
        let (mut began, mut began_ns) = (wire.now(), wire.wall_ns());
        let mut at = 0;
        while at < count && wire.now() < self.until {
            let due = began + Duration::from_nanos(self.due_ns[at]);
            while wire.now() + SPIN < due {
                if stop() {
                    return Ok(written);
                }
                wire.sleep(due.saturating_sub(SPIN + wire.now()).min(Duration::from_millis(50)));
            }
            wire.spin_until(due);
            let late = wire.now().saturating_sub(due);
            if late > LATE {
                began += late;
                began_ns += late.as_nanos() as u64;
            }
            let now = wire.now().saturating_sub(began).as_nanos() as u64;
            let mut end = at + 1;
            while end < count && end - at < buffers.len() && self.due_ns[end] <= now {
                end += 1;
            }
            for (index, buffer) in (at..end).zip(&mut buffers) {
                let (sequence, due_ns) = (index as u32, began_ns + self.due_ns[index]);
                let datagram = Datagram { sequence, due_ns, ..self.header };
                datagram.write(self.key, &mut buffer[..self.payload[index]]);
            }
            let datagrams: Vec<_> =
                (at..end).zip(&buffers).map(|(index, buffer)| &buffer[..self.payload[index]]).collect();
            let now = wire.wall_ns();
            match wire.send(&datagrams) {
                Ok(sent) => {
                    written[at..at + sent].fill(now);
                    at += sent;
                }
                Err(error) if is_local(&error) => at += 1,
                // What an earlier packet met; this one was not sent yet.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::System("datagrams", error)),
            }
        }
        Ok(written)
    }
}

/// Whether this packet alone was refused: it is too long for the device, or the device has no room, or nobody listens there now.
fn is_local(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMSGSIZE)
        || error.raw_os_error() == Some(libc::ENOBUFS)
        || error.kind() == io::ErrorKind::ConnectionRefused
}

/// What came back while a stream was sent.
#[derive(Default)]
struct Watched {
    /// Number and time of packets that left.
    stamps: Vec<(u32, u64)>,
    echoes: Arrivals,
}

/// Gathers time stamps and echoes, until as many as `expected` have come, or for `linger` after the stream is `over`.
fn watch(
    wire: &impl Wire,
    header: &Datagram,
    key: &Key,
    expected: usize,
    over: &AtomicBool,
    linger: Duration,
) -> io::Result<Watched> {
    let mut buffers = vec![vec![0; if expected > 0 { MOST_BYTES } else { 1 }]; BATCH];
    let mut watched = Watched::default();
    let mut until = None;
    loop {
        let ended = over.load(Ordering::Acquire);
        while wire.transmitted(&mut |number, at| watched.stamps.push((number, at)))? > 0 {}
        while wire.receive(&mut buffers, &mut |datagram| {
            let Some(found) = Datagram::read(key, datagram.bytes) else { return };
            if (found.session, found.stream) == (header.session, header.stream) {
                watched.echoes.sequence.push(found.sequence);
                watched.echoes.at_ns.push(datagram.at_ns);
                watched.echoes.overflowed = datagram.overflowed;
            }
        })? > 0
        {}
        if ended {
            let until = *until.get_or_insert_with(|| wire.now() + linger);
            if (expected > 0 && watched.echoes.sequence.len() >= expected) || wire.now() >= until {
                watched.echoes.echoed_ns = vec![0; watched.echoes.sequence.len()];
                return Ok(watched);
            }
        }
        wire.sleep(LOOK);
    }
}

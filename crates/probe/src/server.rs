//! The far host: it waits for clients, agrees with them on limits, and does what they ask for within these.

use std::fmt;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use elephan_session::{Identity, Session, Stranger, Strangers, Token};
use elephan_sys::wall_ns;

use crate::datagram::{Datagram, HEADER_BYTES};
use crate::limits::Limits;
use crate::message::{
    Answer, Arrivals, Ask, BYTES_PER_TEST, CHUNK, Chunk, Hello, Host, SECRETS, Seen, VERSION, Welcome,
};
use crate::registry::{Live, Registry, lock};
use crate::served::{PATIENCE, Served};
use crate::socket::{BATCH, MOST_BYTES, Socket, everywhere, header_bytes, is_v6};
use crate::{Error, tcp};

/// Connections of strangers at once.
const MOST_STRANGERS: usize = 32;
/// The first byte of a connection for a test of TCP. That of a session is 22, a handshake of TLS.
pub const FOR_A_TEST: u8 = b'e';
/// What such a connection starts with: this byte and an empty datagram, keyed for connections.
pub const OPENING_BYTES: usize = 1 + HEADER_BYTES;
/// How often it is looked whether to stop.
const LOOK: Duration = Duration::from_millis(20);

/// What happened at a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A client was admitted, and this was agreed on.
    Admitted(SocketAddr, Limits),
    /// A client left, or was left: after so many bytes of IP packets.
    Left(SocketAddr, u64),
    /// Somebody was refused, and why.
    Refused(SocketAddr, String),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Admitted(from, Limits { bytes, millis, rate }) => {
                let seconds = *millis as f64 * 1e-3;
                write!(f, "{from}: admitted, for at most {bytes} bytes, {seconds} s")?;
                if *rate < u64::MAX { write!(f, ", {rate} bit/s") } else { Ok(()) }
            }
            Self::Left(from, bytes) => write!(f, "{from}: left after {bytes} bytes"),
            Self::Refused(from, why) => write!(f, "{from}: refused: {why}"),
        }
    }
}

/// A server that waits for clients.
pub struct Server {
    identity: Identity,
    listener: TcpListener,
    datagrams: Socket,
    limits: Limits,
    clients: usize,
    registry: Registry,
    strangers: Strangers,
    /// Those from where a client has been admitted.
    known: Strangers,
    /// Whether it has ended.
    over: AtomicBool,
    /// Datagrams that the socket has dropped for want of space.
    overflowed: Arc<AtomicU32>,
    sessions: Mutex<Vec<(u64, IpAddr, TcpStream)>>,
}

impl Server {
    /// Listens at an address, or at all of them, on a port (0: any), by TCP and UDP. A session costs at most `limits`; `clients`
    /// may have one at a time.
    pub fn bind(at: Option<IpAddr>, port: u16, limits: Limits, clients: usize) -> Result<Self, Error> {
        let mut failed = None;
        for at in everywhere(at, port) {
            let bound = TcpListener::bind(at).and_then(|listener| {
                let at = SocketAddr::new(at.ip(), listener.local_addr()?.port());
                listener.set_nonblocking(true)?;
                Ok((listener, Socket::server(at)?))
            });
            match bound {
                Ok((listener, datagrams)) => {
                    return Ok(Self {
                        identity: Identity::new(),
                        listener,
                        datagrams,
                        limits,
                        clients,
                        registry: Registry::default(),
                        strangers: Strangers::new(MOST_STRANGERS),
                        known: Strangers::new(MOST_STRANGERS),
                        over: AtomicBool::new(false),
                        overflowed: Arc::default(),
                        sessions: Mutex::default(),
                    });
                }
                Err(error) => failed = Some(error),
            }
        }
        Err(Error::System("port", failed.unwrap_or_else(|| io::ErrorKind::AddrNotAvailable.into())))
    }

    /// What clients need to be admitted.
    pub fn token(&self) -> &Token {
        self.identity.token()
    }

    /// The port, of TCP and UDP.
    pub fn port(&self) -> Result<u16, Error> {
        self.datagrams.port().map_err(|error| Error::System("port", error))
    }

    /// Serves until `stop`. `tell` hears what happens.
    pub fn run(&self, stop: &(dyn Fn() -> bool + Sync), tell: &(dyn Fn(Event) + Sync)) -> Result<(), Error> {
        self.over.store(false, Ordering::Relaxed);
        thread::scope(|scope| {
            let datagrams = scope.spawn(|| {
                let (mut buffers, mut echo) = (vec![vec![0; MOST_BYTES]; BATCH], vec![0; MOST_BYTES]);
                while !self.over.load(Ordering::Relaxed) {
                    self.echo(&mut buffers, &mut echo)?;
                }
                Ok(())
            });
            self.accept(scope, &|| stop() || datagrams.is_finished(), tell);
            self.over.store(true, Ordering::Relaxed);
            self.strangers.close();
            self.known.close();
            for (.., stream) in lock(&self.sessions).drain(..) {
                let _ = stream.shutdown(std::net::Shutdown::Both);
            }
            datagrams.join().expect("it does not panic")
        })
    }

    /// Receives datagrams, as many as there are, and echoes those that are to be echoed.
    fn echo(&self, buffers: &mut [Vec<u8>], echoed: &mut [u8]) -> Result<(), Error> {
        // If nothing comes for long, this ends, too, and the caller sees whether to stop.
        let received = self.datagrams.receive(buffers, true, |datagram| {
            let Some(from) = datagram.from else { return };
            let ip_bytes = datagram.bytes.len() as u64 + header_bytes(is_v6(&from));
            self.overflowed.fetch_max(datagram.overflowed, Ordering::Relaxed);
            let Some(echo) = self.registry.receive(datagram.bytes, ip_bytes, datagram.at_ns, echoed) else {
                return;
            };
            let at = wall_ns();
            // A full queue of the own device is a loss like another.
            if self.datagrams.send_to(&echoed[..datagram.bytes.len()], from).is_ok() {
                echo.sent(at);
            }
        });
        received.map(drop).map_err(|error| Error::System("datagrams", error))
    }

    fn accept<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        stop: &dyn Fn() -> bool,
        tell: &'scope (dyn Fn(Event) + Sync),
    ) {
        while !stop() {
            match self.listener.accept() {
                Ok((stream, from)) => {
                    // The connection of a test comes from where a session is.
                    let known =
                        lock(&self.sessions).iter().any(|(_, from_there, _)| *from_there == from.ip());
                    let places = if known { &self.known } else { &self.strangers };
                    let Ok(place) = places.enter(&stream, from.ip()) else { continue };
                    scope.spawn(move || self.admit(stream, place, from, tell));
                }
                // Nobody; or a stranger who is gone already, or too many files, neither of which ends a server.
                Err(_) => thread::sleep(LOOK),
            }
        }
    }

    /// Finds out what a connection is, and serves it.
    fn admit(&self, stream: TcpStream, place: Stranger<'_>, from: SocketAddr, tell: &(dyn Fn(Event) + Sync)) {
        let opened = self.open(stream);
        drop(place);
        let refused = match opened {
            Ok(None) => return,
            Ok(Some(session)) => self.serve(session, from, tell).err(),
            Err(error) => Some(error),
        };
        if let Some(error) = refused {
            tell(Event::Refused(from, error.to_string()));
        }
    }

    fn open(&self, stream: TcpStream) -> Result<Option<Session>, Error> {
        let system = |error| Error::System("connection", error);
        stream.set_nonblocking(false).map_err(system)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(system)?;
        let mut first = [0];
        if stream.peek(&mut first).map_err(system)? == 1 && first[0] == FOR_A_TEST {
            self.hand_over(stream).map_err(system)?;
            return Ok(None);
        }
        Ok(Some(self.identity.accept(stream, PATIENCE)?))
    }

    /// Gives a connection for a test of TCP to the session that waits for it.
    fn hand_over(&self, mut stream: TcpStream) -> io::Result<()> {
        let mut opening = [0; OPENING_BYTES];
        let until = Instant::now() + PATIENCE;
        let mut at = 0;
        while at < OPENING_BYTES {
            // A byte now and then is no better than none.
            let left = until.saturating_duration_since(Instant::now());
            stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
            match stream.read(&mut opening[at..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => at += count,
            }
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        let opening = &opening[1..];
        let live = crate::datagram::claimed_session(opening).and_then(|session| self.registry.find(session));
        let stranger =
            || io::Error::new(io::ErrorKind::PermissionDenied, "expected a session's, found a stranger's");
        let live = live.ok_or_else(stranger)?;
        let opening = Datagram::read(&live.connections, opening).ok_or_else(stranger)?;
        let mut awaited = lock(&live.awaited);
        match awaited.take() {
            Some((test, to)) if test == opening.stream => {
                // The session may have ended meanwhile.
                let _ = to.send(stream);
                Ok(())
            }
            other => {
                *awaited = other;
                Err(stranger())
            }
        }
    }

    fn serve(
        &self,
        mut session: Session,
        from: SocketAddr,
        tell: &(dyn Fn(Event) + Sync),
    ) -> Result<(), Error> {
        let hello: Hello = session.receive("what the client wants")?;
        if hello.version != VERSION {
            let text = format!("expected version {VERSION} of the probe, found {}", hello.version);
            session.send(&Welcome::Refused(text.clone()))?;
            return Err(Error::Wrong(text));
        }
        let id = u64::from_be_bytes(session.secret("elephan probe: session")[..8].try_into().expect("eight"));
        let live = Live::new(id, SECRETS.map(|label| session.secret(label)));
        if !self.registry.add(&live, self.clients) {
            let text = format!("expected at most {} clients at a time, found one more", self.clients);
            session.send(&Welcome::Refused(text.clone()))?;
            return Err(Error::Wrong(text));
        }
        let limits = self.limits.agree(hello.limits);
        if let Ok(stream) = session.socket().try_clone() {
            lock(&self.sessions).push((id, from.ip(), stream));
        }
        tell(Event::Admitted(from, limits));
        let began = Instant::now();
        let mut served = Served::new(Arc::clone(&live), limits, is_v6(&from), Arc::clone(&self.overflowed));
        let result = session
            .send(&Welcome::Agreed { session: id, limits, host: host() })
            .map_err(Error::from)
            .and_then(|()| served.answer(&mut session, began, &self.over));
        self.registry.remove(id);
        lock(&self.sessions).retain(|(other, ..)| *other != id);
        tell(Event::Left(from, served.meter.spent()));
        result
    }
}

impl Served {
    /// Answers until the client has nothing else to ask for.
    fn answer(&mut self, session: &mut Session, began: Instant, over: &AtomicBool) -> Result<(), Error> {
        // The connection of a test of TCP that is to come, and which.
        let mut test: Option<(u32, Receiver<TcpStream>, Ask)> = None;
        loop {
            session.set_patience(self.patience(began.elapsed())?);
            let ask: Ask = session.receive("a test")?;
            session.set_patience(PATIENCE);
            match ask {
                Ask::Bye => return Ok(()),
                Ask::Stream { stream, echo, count, bytes, millis } => {
                    session.send(&self.stream(stream, echo, count, bytes, millis))?;
                }
                Ask::Arrivals { stream } => send_in_chunks(session, &self.arrivals(stream))?,
                Ask::Tcp { test: number, .. } => {
                    let answer = self.expect(&ask);
                    if matches!(answer, Answer::Ready) {
                        let (to, from) = mpsc::channel();
                        *lock(&self.live.awaited) = Some((number, to));
                        test = Some((number, from, ask));
                    }
                    session.send(&answer)?;
                }
                Ask::Transferred { test: number } => {
                    let seen = match test.take() {
                        Some((expected, from, ask)) if expected == number => {
                            self.transfer(&from, &ask, self.ends().saturating_sub(began.elapsed()), over)
                        }
                        _ => Seen::Failed("expected a test of TCP, found none".to_owned()),
                    };
                    session.send(&seen)?;
                }
            }
        }
    }

    /// Whether a test of TCP is permitted.
    fn expect(&mut self, ask: &Ask) -> Answer {
        let Ask::Tcp { cc, down, bytes, .. } = ask else {
            return Answer::Refused("expected a test of TCP, found another".to_owned());
        };
        if *down && let Err(error) = tcp::offers(cc, self.v6) {
            return Answer::Refused(error.to_string());
        }
        self.refuse(bytes.saturating_add(BYTES_PER_TEST), *bytes).unwrap_or(Answer::Ready)
    }

    /// Carries out a test of TCP, for no longer than is `left` of the session, and until the server is `over`.
    fn transfer(&mut self, from: &Receiver<TcpStream>, ask: &Ask, left: Duration, over: &AtomicBool) -> Seen {
        let Ask::Tcp { cc, down, millis, bytes, .. } = ask else {
            return Seen::Failed("expected a test of TCP, found another".to_owned());
        };
        let duration = Duration::from_millis(*millis).min(left);
        let stop = || over.load(Ordering::Relaxed);
        let until = Instant::now() + PATIENCE;
        let stream = loop {
            match from.recv_timeout(LOOK) {
                Err(mpsc::RecvTimeoutError::Timeout) if Instant::now() < until && !stop() => {}
                came => break came,
            }
        };
        let Ok(stream) = stream else {
            *lock(&self.live.awaited) = None;
            return Seen::Failed("expected a connection for the test, found none".to_owned());
        };
        let done = if *down {
            tcp::prepare(&stream, cc, self.limits.rate)
                .and_then(|()| tcp::send(&stream, duration, *bytes, &stop))
        } else {
            // The client ends it; it may take a little longer here.
            tcp::receive(&stream, duration + PATIENCE, *bytes, &stop)
        };
        match done {
            Ok(transfer) => {
                self.meter.give_back(bytes.saturating_sub(transfer.wire_bytes));
                Seen::Transfer(transfer)
            }
            Err(error) => Seen::Failed(error.to_string()),
        }
    }
}

fn send_in_chunks(session: &mut Session, all: &Arrivals) -> Result<(), Error> {
    let mut at = 0;
    loop {
        let end = (at + CHUNK).min(all.sequence.len());
        let arrivals = Arrivals {
            sequence: all.sequence[at..end].to_vec(),
            at_ns: all.at_ns[at..end].to_vec(),
            echoed_ns: all.echoed_ns[at..end].to_vec(),
            overflowed: all.overflowed,
        };
        let more = end < all.sequence.len();
        session.send(&Chunk { arrivals, more })?;
        if !more {
            return Ok(());
        }
        at = end;
    }
}

fn host() -> Host {
    let system = rustix::system::uname();
    let algorithms = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
    Host {
        name: system.nodename().to_string_lossy().into_owned(),
        kernel: system.release().to_string_lossy().into_owned(),
        algorithms: algorithms.unwrap_or_default().split_whitespace().map(str::to_owned).collect(),
    }
}

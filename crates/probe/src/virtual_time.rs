//! A path in virtual time: the links of a scenario, and at their far end what a server does with datagrams and questions.
//!
//! The client, its schedule and its budget are those of real paths, and so are the server's registry, limits and MACs. The session
//! alone is not: its questions and answers are calls. Each still crosses the links as a packet, so that it takes its time, waits in
//! queues, and is retransmitted if it is lost. Nothing waits in real time, and a scenario's seed decides all that is random.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use elephan_emulator::{Kernel, Links, Window};
use elephan_network::Parcel;
use elephan_scenario::Plan;
use elephan_units::Time;

use crate::client::Client;
use crate::datagram::Key;
use crate::limits::Limits;
use crate::message::{Answer, Arrivals, Ask, BYTES_PER_ARRIVAL, BYTES_PER_TEST, Host};
use crate::peer::Peer;
use crate::registry::{Live, Registry, lock};
use crate::served::{PATIENCE, Served};
use crate::socket::{Received, header_bytes};
use crate::wire::Wire;
use crate::{Error, PORT, schedule};

/// The clocks at time zero, ns since 1970. They differ, so that a difference of both is of no use.
const NEAR_EPOCH_NS: u64 = 1_700_000_000_000_000_000;
const FAR_EPOCH_NS: u64 = NEAR_EPOCH_NS - 3_600_000_000_000;
/// The keys of the only session, and its number.
const KEYS: [Key; 3] = [[1; 32], [2; 32], [3; 32]];
const SESSION: u64 = 7;
/// The length of a question or an answer, bytes, and when it is retransmitted: TCP's least timeout on Linux.
const MESSAGE_BYTES: u32 = 150;
const AGAIN: Duration = Duration::from_millis(200);
/// Directions of the links.
const OUT: u8 = 0;
const BACK: u8 = 1;
/// Protocols of IP.
const TCP: u8 = 6;
const UDP: u8 = 17;

/// The near host, and what of the path is in no scenario.
#[derive(Clone, Debug)]
pub struct NearHost {
    /// The rate at which its device sends, bit/s; the largest number stands for no limit.
    pub rate: u64,
    /// The longest packet that its device takes, bytes.
    pub mtu: u32,
    /// The longest packet that the path passes, bytes: a longer one vanishes.
    pub path_mtu: u32,
    /// When the host stands still, and for how long. What sleeps meanwhile wakes up at the end.
    pub stalls: Vec<(Duration, Duration)>,
    /// How fast the clock of the far host gains on that of this one, parts per million.
    pub drift_ppm: i32,
}

impl Default for NearHost {
    fn default() -> Self {
        Self { rate: u64::MAX, mtu: 1500, path_mtu: u32::MAX, stalls: Vec::new(), drift_ppm: 0 }
    }
}

/// A client in virtual time.
pub type VirtualClient = Client<VirtualPeer, VirtualWire>;

impl VirtualClient {
    /// Opens a session over the links of a plan, with a server that permits so much.
    pub fn over(plan: &Plan, near: NearHost, permitted: Limits, wanted: Limits) -> Result<Self, Error> {
        let (fates, settled) = mpsc::channel();
        let world = World {
            links: Links::new(plan, Fates(fates)),
            settled,
            now_ns: 0,
            near,
            free_ns: 0,
            leaving: VecDeque::new(),
            packets: HashMap::new(),
            places: 0,
            stream: None,
            message: None,
            far: Far::new(),
        };
        let world = Arc::new(Mutex::new(world));
        let mut peer = VirtualPeer { world: Arc::clone(&world), bytes: BYTES_PER_TEST };
        let limits = peer.exchange(|world| Ok(world.far.admit(world.now_ns, permitted.agree(wanted))))?;
        let host = Host {
            name: "far".to_owned(),
            kernel: "virtual time".to_owned(),
            algorithms: vec!["cubic".to_owned()],
        };
        Ok(Self::admitted(peer, VirtualWire(world), Duration::ZERO, wanted, (SESSION, limits, host, KEYS)))
    }
}

/// The client's end of the links.
pub struct VirtualWire(Arc<Mutex<World>>);

impl Wire for VirtualWire {
    fn now(&self) -> Duration {
        Duration::from_nanos(lock(&self.0).now_ns)
    }

    fn wall_ns(&self) -> u64 {
        lock(&self.0).near_wall_ns()
    }

    fn sleep(&self, lasting: Duration) {
        lock(&self.0).sleep(lasting);
    }

    fn spin_until(&self, until: Duration) {
        let mut world = lock(&self.0);
        let left = until.saturating_sub(Duration::from_nanos(world.now_ns));
        if !left.is_zero() {
            world.sleep(left);
        }
    }

    fn is_v6(&self) -> bool {
        false
    }

    fn open(&mut self) -> io::Result<()> {
        lock(&self.0).stream = Some(Port::default());
        Ok(())
    }

    fn close(&mut self) {
        lock(&self.0).stream = None;
    }

    fn send(&self, datagrams: &[&[u8]]) -> io::Result<usize> {
        let mut world = lock(&self.0);
        for (index, bytes) in datagrams.iter().enumerate() {
            match world.send(bytes) {
                Err(error) if index == 0 => return Err(error),
                Err(_) => return Ok(index),
                Ok(()) => {}
            }
        }
        Ok(datagrams.len())
    }

    fn receive(&self, _: &mut [Vec<u8>], each: &mut dyn FnMut(&Received<'_>)) -> io::Result<usize> {
        let came = lock(&self.0).stream.as_mut().map(|port| std::mem::take(&mut port.came));
        let came = came.unwrap_or_default();
        for (bytes, at_ns) in &came {
            each(&Received { bytes, from: None, at_ns: *at_ns, overflowed: 0 });
        }
        Ok(came.len())
    }

    fn transmitted(&self, each: &mut dyn FnMut(u32, u64)) -> io::Result<usize> {
        let stamps = lock(&self.0).stream.as_mut().map(|port| std::mem::take(&mut port.stamps));
        let stamps = stamps.unwrap_or_default();
        for &(number, at_ns) in &stamps {
            each(number, at_ns);
        }
        Ok(stamps.len())
    }

    fn both<A, B: Send>(&self, send: impl FnOnce() -> A, gather: impl FnOnce() -> B + Send) -> (A, B) {
        let sent = send();
        (sent, gather())
    }
}

/// The server, over the links.
pub struct VirtualPeer {
    world: Arc<Mutex<World>>,
    /// What the session took, at most.
    bytes: u64,
}

impl VirtualPeer {
    /// A question reaches the server, which does what it asks for, and its answer comes back.
    fn exchange<T>(&mut self, work: impl FnOnce(&mut World) -> Result<T, Error>) -> Result<T, Error> {
        let mut world = lock(&self.world);
        world.message(OUT)?;
        let answer = work(&mut world)?;
        world.message(BACK)?;
        // The host may stand still when it comes.
        world.sleep(Duration::ZERO);
        Ok(answer)
    }
}

impl Peer for VirtualPeer {
    fn is_gone(&self) -> bool {
        false
    }

    fn ask(&mut self, ask: &Ask) -> Result<(), Error> {
        self.bytes += BYTES_PER_TEST / 2;
        let answer = self.exchange(|world| world.far.answer(world.now_ns, ask))?;
        match answer {
            Answer::Ready => Ok(()),
            Answer::Refused(why) => Err(Error::Refused(why)),
        }
    }

    fn arrivals(&mut self, stream: u32) -> Result<Arrivals, Error> {
        let arrivals = self.exchange(|world| world.far.arrivals(world.now_ns, stream))?;
        self.bytes += BYTES_PER_TEST / 2 + BYTES_PER_ARRIVAL * arrivals.sequence.len() as u64;
        Ok(arrivals)
    }

    fn leave(&mut self) -> Result<(), Error> {
        let mut world = lock(&self.world);
        world.message(OUT)?;
        world.far.end();
        Ok(())
    }

    fn wire_bytes(&self) -> u64 {
        self.bytes
    }
}

/// The end of a packet's way: its place, its direction, and whether it arrived.
type Fate = (usize, u8, bool);

/// The links report each packet that arrives or is gone.
struct Fates(Sender<Fate>);

impl Fates {
    fn tell(&self, parcel: &Parcel, arrived: bool) {
        // At the end of a session nobody listens.
        let _ = self.0.send((parcel.place, parcel.direction, arrived));
    }
}

impl Kernel for Fates {
    fn deliver(&self, parcel: &Parcel) {
        self.tell(parcel, true);
    }

    fn discard(&self, parcel: &Parcel) {
        self.tell(parcel, false);
    }
}

/// A packet in a queue of the near host, or on the links.
enum Packet {
    /// A datagram, with the number that the near host's socket gave it.
    Datagram(u32, Vec<u8>),
    /// A question or an answer of the session.
    Message,
}

impl Packet {
    /// Its length, bytes.
    fn length(&self) -> u32 {
        match self {
            Self::Datagram(_, payload) => payload.len() as u32 + header_bytes(false) as u32,
            Self::Message => MESSAGE_BYTES,
        }
    }

    /// The start of it, by which the links find its route.
    fn header(&self, direction: u8) -> [u8; 28] {
        let mut header = [0; 28];
        header[0] = 0x45;
        header[9] = if matches!(self, Self::Message) { TCP } else { UDP };
        // The server's port, which belongs to no flow of a scenario: the route is that of the first flow.
        let at = if direction == OUT { 22 } else { 20 };
        header[at..at + 2].copy_from_slice(&PORT.to_be_bytes());
        header
    }
}

/// What the near host's socket has for the client.
#[derive(Default)]
struct Port {
    /// Datagrams that were sent.
    sent: u32,
    stamps: Vec<(u32, u64)>,
    came: Vec<(Vec<u8>, u64)>,
}

/// Both hosts and the links between them.
struct World {
    links: Links<Fates>,
    settled: Receiver<Fate>,
    /// Time since the beginning.
    now_ns: u64,
    near: NearHost,
    /// When the near host's device has sent all that it was given.
    free_ns: u64,
    /// What it was given, by when it leaves.
    leaving: VecDeque<(u64, usize)>,
    /// By place.
    packets: HashMap<usize, Packet>,
    /// Places so far.
    places: usize,
    /// The socket of the stream that is under way.
    stream: Option<Port>,
    /// Whether the last message arrived, when that is known.
    message: Option<bool>,
    far: Far,
}

impl World {
    fn near_wall_ns(&self) -> u64 {
        NEAR_EPOCH_NS + self.now_ns
    }

    fn far_wall_ns(&self) -> u64 {
        let gained = i128::from(self.now_ns) * i128::from(self.near.drift_ppm) / 1_000_000;
        (FAR_EPOCH_NS + self.now_ns).saturating_add_signed(gained as i64)
    }

    /// Time passes; the near host's program goes on when the host does not stand still.
    fn sleep(&mut self, lasting: Duration) {
        let mut wakes = Duration::from_nanos(self.now_ns) + lasting;
        for &(at, lasting) in &self.near.stalls {
            if at <= wakes {
                wakes = wakes.max(at + lasting);
            }
        }
        self.advance(wakes.as_nanos() as u64);
    }

    /// When something happens next; the largest number for never.
    fn next_ns(&self) -> u64 {
        let leaves = self.leaving.front().map_or(u64::MAX, |(at, _)| *at);
        let arrives = self.links.next();
        leaves.min(if arrives == Time::MAX { u64::MAX } else { arrives.picos().div_ceil(1000) })
    }

    /// Does all that is due by a time, in order.
    fn advance(&mut self, until_ns: u64) {
        while self.next_ns() <= until_ns {
            self.now_ns = self.next_ns();
            self.links.advance(Time::from_picos(self.now_ns * 1000));
            self.settle();
            while let Some((_, place)) = self.leaving.pop_front_if(|(at, _)| *at <= self.now_ns) {
                self.leave(place, OUT);
            }
        }
        self.now_ns = until_ns;
    }

    fn store(&mut self, packet: Packet) -> usize {
        self.places += 1;
        self.packets.insert(self.places, packet);
        self.places
    }

    /// Gives a packet to the near host's device.
    fn queue(&mut self, packet: Packet) {
        let at = self.free_ns.max(self.now_ns);
        self.free_ns = at + schedule::passing_ns(packet.length(), self.near.rate);
        let place = self.store(packet);
        self.leaving.push_back((at, place));
    }

    fn send(&mut self, payload: &[u8]) -> io::Result<()> {
        let mut packet = Packet::Datagram(0, payload.to_vec());
        if packet.length() > self.near.mtu {
            return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
        }
        let port = self.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        if let Packet::Datagram(number, _) = &mut packet {
            *number = port.sent;
        }
        port.sent += 1;
        self.queue(packet);
        Ok(())
    }

    /// A packet leaves its host.
    fn leave(&mut self, place: usize, direction: u8) {
        let stamp = self.near_wall_ns();
        let packet = &self.packets[&place];
        if let (Packet::Datagram(number, _), OUT, Some(port)) = (packet, direction, &mut self.stream) {
            port.stamps.push((*number, stamp));
        }
        let (header, length) = (packet.header(direction), packet.length());
        if length > self.near.path_mtu {
            self.settle_one((place, direction, false));
            return;
        }
        let now = Time::from_picos(self.now_ns * 1000);
        self.links.leave(now, direction, &header, length, Window::default(), place);
        self.settle();
    }

    /// Hosts receive the packets that arrived.
    fn settle(&mut self) {
        while let Ok(fate) = self.settled.try_recv() {
            self.settle_one(fate);
        }
    }

    fn settle_one(&mut self, (place, direction, arrived): Fate) {
        let packet = self.packets.remove(&place).expect("a place has a packet until its fate is known");
        let length = packet.length();
        match packet {
            Packet::Message => self.message = Some(arrived),
            Packet::Datagram(..) if !arrived => {}
            Packet::Datagram(number, bytes) if direction == OUT => {
                let (now_ns, at_ns) = (self.now_ns, self.far_wall_ns());
                if let Some(echo) = self.far.receive(now_ns, &bytes, length, at_ns) {
                    let place = self.store(Packet::Datagram(number, echo));
                    self.leave(place, BACK);
                }
            }
            Packet::Datagram(_, bytes) => {
                let at_ns = self.near_wall_ns();
                if let Some(port) = &mut self.stream {
                    port.came.push((bytes, at_ns));
                }
            }
        }
    }

    /// A question or an answer goes to the other end, as often as it is lost; time passes until it is there.
    fn message(&mut self, direction: u8) -> Result<(), Error> {
        let until_ns = self.now_ns + PATIENCE.as_nanos() as u64;
        while self.now_ns < until_ns {
            self.message = None;
            if direction == OUT {
                self.queue(Packet::Message);
            } else {
                let place = self.store(Packet::Message);
                self.leave(place, direction);
            }
            while self.message.is_none() && self.next_ns() <= until_ns {
                self.advance(self.next_ns());
            }
            match self.message {
                Some(true) => return Ok(()),
                Some(false) => self.advance(self.now_ns + AGAIN.as_nanos() as u64),
                None => break,
            }
        }
        Err(elephan_session::Error::Silent(PATIENCE.as_secs_f64()).into())
    }
}

/// The far host: what a server has besides sockets.
struct Far {
    registry: Registry,
    /// The session, when it began, and until when its client may ask for the next thing.
    served: Option<(Served, u64, u64)>,
}

impl Far {
    fn new() -> Self {
        Self { registry: Registry::default(), served: None }
    }

    /// Admits the client; returns what it is permitted.
    fn admit(&mut self, now_ns: u64, limits: Limits) -> Limits {
        let live = Live::new(SESSION, KEYS);
        self.registry.add(&live, 1);
        let served = Served::new(live, limits, false, Arc::default());
        self.served = Some((served, now_ns, now_ns));
        self.wait(now_ns);
        limits
    }

    fn end(&mut self) {
        self.registry.remove(SESSION);
        self.served = None;
    }

    /// The session, unless its client was silent for too long.
    fn session(&mut self, now_ns: u64) -> Result<&mut Served, Error> {
        if self.served.as_ref().is_some_and(|(_, _, until_ns)| now_ns > *until_ns) {
            self.end();
        }
        let (served, _, _) = self.served.as_mut().ok_or(elephan_session::Error::Closed)?;
        Ok(served)
    }

    /// Waits for the next question, or ends the session if its time is over.
    fn wait(&mut self, now_ns: u64) {
        let Some((served, began_ns, until_ns)) = &mut self.served else { return };
        match served.patience(Duration::from_nanos(now_ns - *began_ns)) {
            Ok(patience) => *until_ns = now_ns.saturating_add(patience.as_nanos() as u64),
            Err(_) => self.end(),
        }
    }

    fn answer(&mut self, now_ns: u64, ask: &Ask) -> Result<Answer, Error> {
        let served = self.session(now_ns)?;
        let answer = match *ask {
            Ask::Stream { stream, echo, count, bytes, millis } => {
                served.stream(stream, echo, count, bytes, millis)
            }
            _ => {
                Answer::Refused("expected a stream, found a test that virtual time does not have".to_owned())
            }
        };
        self.wait(now_ns);
        Ok(answer)
    }

    fn arrivals(&mut self, now_ns: u64, stream: u32) -> Result<Arrivals, Error> {
        let arrivals = self.session(now_ns)?.arrivals(stream);
        self.wait(now_ns);
        Ok(arrivals)
    }

    /// Handles a datagram in an IP packet of so many bytes; returns the echo that it sends.
    fn receive(&mut self, now_ns: u64, bytes: &[u8], length: u32, at_ns: u64) -> Option<Vec<u8>> {
        self.session(now_ns).ok()?;
        let mut echoed = vec![0; bytes.len()];
        let echo = self.registry.receive(bytes, u64::from(length), at_ns, &mut echoed)?;
        echo.sent(at_ns);
        Some(echoed)
    }
}

#[cfg(test)]
mod tests;

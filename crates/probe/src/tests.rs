//! Both ends on loopback.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use elephan_session::{Identity, Token};

use crate::datagram::{Datagram, HEADER_BYTES};
use crate::{Client, Error, Event, Limits, Server, Tcp};

const LIMITS: Limits = Limits { bytes: 20_000_000, millis: 60_000, rate: u64::MAX };
const LINGER: Duration = Duration::from_millis(200);

/// A server on loopback, which ends when this is dropped.
struct Serving {
    at: SocketAddr,
    token: Token,
    ended: Arc<AtomicBool>,
    events: Arc<Mutex<Vec<Event>>>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    fn new(at: IpAddr, limits: Limits) -> Self {
        let server = Server::bind(Some(at), 0, limits, 1).expect("a port");
        let (token, port) = (server.token().clone(), server.port().expect("it has one"));
        let (ended, events) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (end, tell) = (Arc::clone(&ended), Arc::clone(&events));
        let thread = thread::spawn(move || {
            let stop = || end.load(Ordering::Relaxed);
            server.run(&stop, &|event| tell.lock().expect("unpoisoned").push(event)).expect("it runs");
        });
        Self { at: SocketAddr::new(at, port), token, ended, events, thread: Some(thread) }
    }

    fn v4() -> Self {
        Self::new(Ipv4Addr::LOCALHOST.into(), LIMITS)
    }

    fn client(&self, limits: Limits) -> Result<Client, Error> {
        Client::connect(self.at, &self.token, limits)
    }

    /// Waits for an event.
    fn wait(&self, is: impl Fn(&Event) -> bool) {
        let until = Instant::now() + Duration::from_secs(30);
        while !self.events.lock().expect("unpoisoned").iter().any(&is) {
            assert!(Instant::now() < until, "expected another event, found {:?}", self.events);
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.take().expect("it has one").join().expect("no panic");
    }
}

fn go() -> bool {
    false
}

#[test]
fn a_stream_is_echoed_over_ipv4_and_ipv6_with_times_in_order() {
    for at in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
        let serving = Serving::new(at, LIMITS);
        let mut client = serving.client(LIMITS).expect("admitted");
        let sizes = [100, 1500, 9000, 100, 100];
        let due = [0, 0, 1_000_000, 2_000_000, 4_000_000];
        let seen = client.stream(&sizes, &due, true, LINGER, &go).expect("a stream");
        assert_eq!(seen.arrived.sequence, [0, 1, 2, 3, 4], "{at}");
        assert_eq!(seen.echoes.sequence, [0, 1, 2, 3, 4]);
        assert!(seen.stamped);
        assert_eq!(seen.bytes, 2 * 10_800);
        for index in 0..sizes.len() {
            let way = [
                seen.sent_ns[index],
                seen.arrived.at_ns[index],
                seen.arrived.echoed_ns[index],
                seen.echoes.at_ns[index],
            ];
            // All on one clock. The echo's time is taken before it is sent.
            assert!(way.is_sorted(), "{at}: {way:?}");
        }
        let lasted = seen.sent_ns[4] - seen.sent_ns[0];
        assert!(lasted >= 3_900_000, "{lasted}");
        // Another stream of the same session, without echoes.
        let seen = client.stream(&sizes, &due, false, LINGER, &go).expect("a stream");
        assert_eq!((seen.arrived.sequence.len(), seen.echoes.sequence.len(), seen.bytes), (5, 0, 10_800));
        assert_eq!(seen.arrived.echoed_ns, [0; 5]);
        client.finish().expect("the end");
        serving.wait(|event| matches!(event, Event::Left(..)));
    }
}

#[test]
fn tcp_goes_both_ways_and_an_unknown_algorithm_is_refused() {
    let serving = Serving::v4();
    let mut client = serving.client(LIMITS).expect("admitted");
    for down in [false, true] {
        let test = Tcp { cc: "cubic".to_owned(), down, duration: Duration::from_secs(20), bytes: 3_000_000 };
        let before = client.spent();
        let (sender, receiver) = client.tcp(&test, &go).expect("a transfer");
        let total = receiver.received.last().expect("at the end").1;
        // Much less than 20 s: the bytes ended it.
        assert!((1_500_000..3_000_000).contains(&total), "{total}");
        assert!(sender.samples.last().expect("at the end").bytes_acked >= total / 2);
        assert!(client.spent() - before <= test.bytes, "{}", client.spent() - before);
        let wrong = Tcp { cc: "nonesuch".to_owned(), ..test };
        let refused = client.tcp(&wrong, &go).map(drop).expect_err("refused").to_string();
        assert!(refused.contains("congestion control \"nonesuch\""), "{refused}");
    }
    let short =
        Tcp { cc: "reno".to_owned(), down: false, duration: Duration::from_millis(450), bytes: 5_000_000 };
    let mut limited = client;
    let (sender, _) = limited.tcp(&short, &go).expect("a transfer");
    assert!(sender.samples.len() <= 6, "{}", sender.samples.len());
}

#[test]
fn the_smaller_limits_hold_on_both_sides() {
    let serving = Serving::new(Ipv4Addr::LOCALHOST.into(), Limits { bytes: 300_000, ..LIMITS });
    let mut client = serving.client(Limits { rate: 8_000_000, ..LIMITS }).expect("admitted");
    assert_eq!(client.limits(), Limits { bytes: 300_000, millis: 60_000, rate: 8_000_000 });
    let many = client.stream(&[1000; 300], &at_rate(300, 1_000_000), false, LINGER, &go);
    assert!(matches!(many, Err(Error::Budget { unit: "bytes", .. })), "{many:?}");
    let fast = client.stream(&[1000; 10], &at_rate(10, 999_999), false, LINGER, &go);
    assert!(matches!(fast, Err(Error::Wrong(_))), "{fast:?}");
    let long = client.stream(&[1000; 2], &[0, 70_000_000_000], false, LINGER, &go);
    assert!(matches!(long, Err(Error::Budget { unit: "ms", .. })), "{long:?}");
    // What was refused cost nothing, and the session goes on.
    let seen = client.stream(&[1000; 10], &at_rate(10, 1_000_000), false, LINGER, &go).expect("a stream");
    assert_eq!(seen.arrived.sequence.len(), 10);
    assert!(client.spent() < 60_000, "{}", client.spent());
}

/// The client's host may stand still. What it measured within its time is not lost by that.
#[test]
fn a_client_that_is_late_gets_its_arrivals() {
    let serving = Serving::v4();
    let millis = 1000;
    let mut client = serving.client(Limits { millis, ..LIMITS }).expect("admitted");
    let stalls = || {
        thread::sleep(Duration::from_millis(millis));
        false
    };
    let seen = client.stream(&[100; 2], &[0, 1_000_000], false, LINGER, &stalls).expect("a stream");
    assert_eq!(seen.arrived.sequence, [0, 1]);
    // But nothing new begins.
    let next = client.stream(&[100; 2], &[0, 1_000_000], false, LINGER, &go);
    assert!(matches!(next, Err(Error::Budget { unit: "ms", .. })), "{next:?}");
}

fn at_rate(count: u64, gap_ns: u64) -> Vec<u64> {
    (0..count).map(|index| index * gap_ns).collect()
}

#[test]
fn a_server_has_room_for_its_clients_and_for_the_next_when_one_vanishes() {
    let serving = Serving::v4();
    let client = serving.client(LIMITS).expect("admitted");
    let second = serving.client(LIMITS).map(drop).expect_err("refused").to_string();
    assert_eq!(second, "server: expected at most 1 clients at a time, found one more");
    drop(client);
    serving.wait(|event| matches!(event, Event::Left(..)));
    serving.client(LIMITS).expect("admitted");
}

#[test]
fn wrong_tokens_and_strangers_are_told_nothing() {
    let serving = Serving::v4();
    let other = Identity::new().token().clone();
    let refused = Client::connect(serving.at, &other, LIMITS);
    assert!(matches!(refused, Err(Error::Session(elephan_session::Error::WrongToken))));
    // A connection for a test that nobody asked for.
    let mut stranger = TcpStream::connect(serving.at).expect("a connection");
    std::io::Write::write_all(&mut stranger, &[b'e'; 40]).expect("it goes");
    serving.wait(|event| matches!(event, Event::Refused(_, why) if why.contains("stranger")));
    let mut client = serving.client(LIMITS).expect("the server goes on");
    client.stream(&[100], &[0], true, LINGER, &go).expect("a stream");
}

#[test]
fn datagrams_without_the_sessions_code_are_not_answered_and_not_counted() {
    let serving = Serving::v4();
    let hostile = UdpSocket::bind("127.0.0.1:0").expect("a port");
    hostile.connect(serving.at).expect("an address");
    hostile.set_read_timeout(Some(Duration::from_millis(300))).expect("an option");
    let mut client = serving.client(LIMITS).expect("admitted");
    let id = client.id();
    let seen = thread::scope(|scope| {
        let attack = scope.spawn(|| {
            // The stream lasts 380 ms, so some of these come within it.
            for stream in 0..4 {
                thread::sleep(Duration::from_millis(60));
                for length in [0, 7, HEADER_BYTES - 1, HEADER_BYTES, 1400] {
                    let mut bytes = vec![0; length];
                    if length >= HEADER_BYTES {
                        let datagram = Datagram { session: id, stream, sequence: 0, due_ns: 1 };
                        datagram.write(&[9; 32], &mut bytes);
                    }
                    hostile.send(&bytes).expect("it goes");
                }
            }
            hostile.recv(&mut [0; 2000]).map_err(|error| error.kind())
        });
        let seen = client.stream(&[100; 20], &at_rate(20, 20_000_000), true, LINGER, &go).expect("a stream");
        let answered = attack.join().expect("no panic");
        assert_eq!(answered, Err(std::io::ErrorKind::WouldBlock));
        seen
    });
    assert_eq!(seen.arrived.sequence, (0..20).collect::<Vec<_>>());
}

#[test]
fn a_stream_can_be_cancelled() {
    let serving = Serving::v4();
    let mut client = serving.client(LIMITS).expect("admitted");
    let began = Instant::now();
    let stop = || began.elapsed() > Duration::from_millis(200);
    let cancelled = client.stream(&[100, 100], &[0, 30_000_000_000], false, LINGER, &stop);
    assert!(matches!(cancelled, Err(Error::Cancelled)), "{cancelled:?}");
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_server_that_ends_is_noticed() {
    let serving = Serving::v4();
    let mut client = serving.client(LIMITS).expect("admitted");
    drop(serving);
    let gone = client.stream(&[100], &[0], true, LINGER, &go);
    assert!(matches!(gone, Err(Error::Session(elephan_session::Error::Closed))), "{gone:?}");
}

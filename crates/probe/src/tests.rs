//! Both ends on loopback. What needs no socket is tested in virtual time, in `virtual_time/tests.rs`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use elephan_session::{Identity, Token};

use crate::{Client, Error, Event, Limits, Server, Tcp};

const LIMITS: Limits = Limits { bytes: 20_000_000, millis: 3_600_000_000, rate: u64::MAX };
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
        while !self.events.lock().expect("unpoisoned").iter().any(&is) {
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
#[ignore = "real time"]
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
#[ignore = "real time"]
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
        assert!(sender.samples.last().expect("at the end").info.bytes_acked >= total / 2);
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
    serving.client(LIMITS).expect("the server goes on");
}

#[test]
fn silent_strangers_shut_nobody_out() {
    let serving = Serving::v4();
    let _silent: Vec<_> = (0..50).map(|_| TcpStream::connect(serving.at).expect("a connection")).collect();
    serving.client(LIMITS).expect("admitted");
}

#[test]
fn a_server_ends_during_a_test_of_tcp_and_its_client_with_it() {
    let serving = Serving::v4();
    let mut client = serving.client(LIMITS).expect("admitted");
    let lasting = Duration::from_hours(1000);
    let test = Tcp { cc: "reno".to_owned(), down: false, duration: lasting, bytes: 10_000_000 };
    thread::scope(|scope| {
        let testing = scope.spawn(|| client.tcp(&test, &go).map(drop));
        drop(serving);
        assert!(testing.join().expect("no panic").is_err());
    });
}

#[test]
fn a_server_that_ends_during_a_stream_is_noticed() {
    let serving = Serving::v4();
    let mut client = serving.client(LIMITS).expect("admitted");
    thread::scope(|scope| {
        let hour_ns = 3_600_000_000_000;
        let streaming = scope.spawn(move || client.stream(&[100; 2], &[0, hour_ns], false, LINGER, &go));
        drop(serving);
        let gone = streaming.join().expect("no panic");
        assert!(matches!(gone, Err(Error::Session(elephan_session::Error::Closed))), "{gone:?}");
    });
}

#[test]
fn a_server_that_ends_is_noticed() {
    let serving = Serving::v4();
    let mut client = serving.client(LIMITS).expect("admitted");
    drop(serving);
    let gone = client.stream(&[100], &[0], true, LINGER, &go);
    assert!(matches!(gone, Err(Error::Session(elephan_session::Error::Closed))), "{gone:?}");
}

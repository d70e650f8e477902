//! Connections that have not shown the token yet.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv6Addr, Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A limit on the connections that have not shown the token yet.
///
/// One connection more closes the one that has waited longest, of the network that has the most. So connections that say nothing shut nobody
/// out, unless they come from as many networks as there are places, and faster than a client takes to show its token.
pub struct Strangers {
    most: usize,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    next: u64,
    /// The one that has waited longest first.
    connections: VecDeque<Connection>,
}

struct Connection {
    number: u64,
    network: IpAddr,
    socket: TcpStream,
}

/// The place of a connection among the strangers, which it leaves when this is dropped.
pub struct Stranger<'a> {
    strangers: &'a Strangers,
    number: u64,
}

impl Strangers {
    /// At most so many at a time, at least one.
    pub fn new(most: usize) -> Self {
        Self { most, waiting: Mutex::default() }
    }

    /// Gives a connection a place. Fails if the system has no descriptor left.
    pub fn enter(&self, connection: &TcpStream, from: IpAddr) -> io::Result<Stranger<'_>> {
        let socket = connection.try_clone()?;
        let mut waiting = self.waiting();
        let number = waiting.next;
        waiting.next += 1;
        waiting.connections.push_back(Connection { number, network: network(from), socket });
        let all = &waiting.connections;
        let of_its_network = |&at: &usize| all.iter().filter(|one| one.network == all[at].network).count();
        if all.len() > self.most
            // Of equals `max_by_key` returns the last.
            && let Some(longest) = (0..all.len()).rev().max_by_key(of_its_network)
            && let Some(closed) = waiting.connections.remove(longest)
        {
            // It may be closed already.
            let _ = closed.socket.shutdown(Shutdown::Both);
        }
        Ok(Stranger { strangers: self, number })
    }

    /// Closes all of them.
    pub fn close(&self) {
        for one in &self.waiting().connections {
            let _ = one.socket.shutdown(Shutdown::Both);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Stranger<'_> {
    fn drop(&mut self) {
        self.strangers.waiting().connections.retain(|one| one.number != self.number);
    }
}

/// What one host can have many addresses of: 64 bits of IPv6 (RFC 4291, section 2.5.1).
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        IpAddr::V4(address) => address.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    /// Connections from these addresses enter two places one after the other; which of them are closed?
    fn closed(from: &[&str]) -> Vec<bool> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let strangers = Strangers::new(2);
        let at = listener.local_addr().expect("an address");
        let connections = from.iter().map(|from| {
            let client = TcpStream::connect(at).expect("a connection");
            let (server, _) = listener.accept().expect("a connection");
            let place = strangers.enter(&server, from.parse().expect("an address")).expect("a place");
            (client, server, place)
        });
        let all: Vec<_> = connections.collect();
        let ended = |client: &mut TcpStream| {
            client.set_nonblocking(true).expect("a socket");
            client.read(&mut [0]).is_ok()
        };
        all.into_iter().map(|(mut client, ..)| ended(&mut client)).collect()
    }

    #[test]
    fn who_has_waited_longest_makes_room() {
        assert_eq!(closed(&["10.0.0.1", "10.0.0.2"]), [false, false]);
        assert_eq!(closed(&["10.0.0.1", "10.0.0.2", "10.0.0.3"]), [true, false, false]);
    }

    #[test]
    fn a_network_with_many_displaces_its_own() {
        assert_eq!(closed(&["10.0.0.1", "10.0.0.1", "10.0.0.2"]), [true, false, false]);
        assert_eq!(closed(&["10.0.0.1", "10.0.0.2", "10.0.0.2"]), [false, true, false]);
        assert_eq!(closed(&["10.0.0.2", "10.0.0.1", "10.0.0.1", "10.0.0.1"]), [false, true, true, false]);
        assert_eq!(closed(&["2001:db8::1", "10.0.0.1", "2001:db8::2"]), [true, false, false]);
    }

    #[test]
    fn who_has_left_takes_no_place() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let strangers = Strangers::new(1);
        for _ in 0..3 {
            let mut client =
                TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
            let (server, peer) = listener.accept().expect("a connection");
            drop(strangers.enter(&server, peer.ip()).expect("a place"));
            let _another = strangers.enter(&server, peer.ip()).expect("a place");
            client.set_nonblocking(true).expect("a socket");
            assert!(client.read(&mut [0]).is_err());
        }
    }
}

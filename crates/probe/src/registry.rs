//! What a server knows of its sessions, and what it does with each datagram. Nothing here reads a socket or a clock.

use std::collections::HashMap;
use std::net::TcpStream;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::datagram::{Datagram, Key, claimed_session};
use crate::message::Arrivals;

/// The most datagrams of a stream: what a server keeps of it stays below 64 MB.
pub const MOST_DATAGRAMS: u32 = 1 << 20;

/// The sessions that are open. A session that has ended is removed, and its datagrams are strangers' from then on.
#[derive(Default)]
pub struct Registry(Mutex<HashMap<u64, Arc<Live>>>);

impl Registry {
    /// Adds a session, unless as many as `most` are open already.
    pub fn add(&self, live: &Arc<Live>, most: usize) -> bool {
        let mut sessions = lock(&self.0);
        let room = sessions.len() < most;
        if room {
            sessions.insert(live.id, Arc::clone(live));
        }
        room
    }

    pub fn remove(&self, id: u64) {
        lock(&self.0).remove(&id);
    }

    pub fn find(&self, id: u64) -> Option<Arc<Live>> {
        lock(&self.0).get(&id).cloned()
    }

    /// Handles a datagram that arrived in an IP packet of so many bytes. If it is to be echoed, the start of `echoed` becomes the
    /// echo, which is as long as the datagram.
    pub fn receive(&self, bytes: &[u8], ip_bytes: u64, at_ns: u64, echoed: &mut [u8]) -> Option<Echo> {
        let live = self.find(claimed_session(bytes)?)?;
        let datagram = Datagram::read(&live.from_client, bytes)?;
        let mut receiving = lock(&live.receiving);
        let index = receiving.as_mut()?.arrive(&datagram, ip_bytes, at_ns)?;
        datagram.write(&live.from_server, &mut echoed[..bytes.len()]);
        drop(receiving);
        Some(Echo { live, stream: datagram.stream, index })
    }
}

/// An echo that is to be sent.
pub struct Echo {
    live: Arc<Live>,
    stream: u32,
    index: usize,
}

impl Echo {
    /// It was sent.
    pub fn sent(&self, at_ns: u64) {
        if let Some(receiving) = lock(&self.live.receiving).as_mut()
            && receiving.stream == self.stream
            && let Some(place) = receiving.arrivals.echoed_ns.get_mut(self.index)
        {
            *place = at_ns;
        }
    }
}

/// A session that is open.
pub struct Live {
    pub id: u64,
    pub from_client: Key,
    pub from_server: Key,
    /// The key of what opens other connections.
    pub connections: Key,
    pub receiving: Mutex<Option<Receiving>>,
    /// The TCP test that waits for its connection.
    pub awaited: Mutex<Option<(u32, Sender<TcpStream>)>>,
}

impl Live {
    /// A session that begins, with the keys of the client's datagrams, of the server's, and of connections.
    pub fn new(id: u64, [from_client, from_server, connections]: [Key; 3]) -> Arc<Self> {
        let (receiving, awaited) = (Mutex::new(None), Mutex::new(None));
        Arc::new(Self { id, from_client, from_server, connections, receiving, awaited })
    }
}

/// A stream that is being received.
pub struct Receiving {
    stream: u32,
    echo: bool,
    bytes_left: u64,
    /// A bit for each sequence number that has come.
    seen: Vec<u64>,
    count: u32,
    pub arrivals: Arrivals,
}

impl Receiving {
    /// Expects `count` datagrams, `bytes` of IP packets in total.
    pub fn new(stream: u32, echo: bool, count: u32, bytes: u64) -> Self {
        let seen = vec![0; count.div_ceil(64) as usize];
        Self { stream, echo, bytes_left: bytes, seen, count, arrivals: Arrivals::default() }
    }

    pub fn is(&self, stream: u32) -> bool {
        self.stream == stream
    }

    /// Records a datagram. Returns its index if it is to be echoed: the first with its number, within the bytes that were agreed on.
    fn arrive(&mut self, datagram: &Datagram, ip_bytes: u64, at_ns: u64) -> Option<usize> {
        let sequence = datagram.sequence;
        // Duplicates are recorded, too, but not without end.
        let room = self.arrivals.sequence.len() < 2 * self.count as usize;
        if datagram.stream != self.stream || sequence >= self.count || !room {
            return None;
        }
        let (word, bit) = ((sequence / 64) as usize, 1_u64 << (sequence % 64));
        let first = self.seen[word] & bit == 0;
        self.seen[word] |= bit;
        let index = self.arrivals.sequence.len();
        self.arrivals.sequence.push(sequence);
        self.arrivals.at_ns.push(at_ns);
        self.arrivals.echoed_ns.push(0);
        let fits = ip_bytes <= self.bytes_left;
        if !(first && self.echo && fits) {
            return None;
        }
        self.bytes_left -= ip_bytes;
        Some(index)
    }
}

/// Locks, whether or not another thread has panicked: what is kept here is whole at any time.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::{Live, Receiving, Registry, lock};
    use crate::datagram::{Datagram, HEADER_BYTES};

    fn live(id: u64, receiving: Option<Receiving>) -> Arc<Live> {
        let live = Live::new(id, [[1; 32], [2; 32], [3; 32]]);
        *lock(&live.receiving) = receiving;
        live
    }

    fn packet(session: u64, stream: u32, sequence: u32) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        Datagram { session, stream, sequence, due_ns: 0 }.write(&[1; 32], &mut bytes);
        bytes
    }

    proptest! {
        #[test]
        fn echoes_are_never_more_than_was_agreed_on_and_never_repeated(
            count in 1_u32..100, budget in 0_u64..5000,
            packets in prop::collection::vec((0_u64..3, 0_u32..3, 0_u32..120, 28_u64..200), 0..400),
        ) {
            let registry = Registry::default();
            let one = live(1, Some(Receiving::new(1, true, count, budget)));
            prop_assert!(registry.add(&one, 1));
            prop_assert!(!registry.add(&live(2, None), 1));
            let (mut echoed, mut numbers) = (0, std::collections::BTreeSet::new());
            for (session, stream, sequence, size) in packets {
                let mut answer = [0; HEADER_BYTES];
                if let Some(echo) = registry.receive(&packet(session, stream, sequence), size, 7, &mut answer) {
                    prop_assert!((session, stream) == (1, 1) && sequence < count);
                    echoed += size;
                    prop_assert!(numbers.insert(sequence), "{sequence} twice");
                    // An echo is no question: it has the other key.
                    prop_assert!(registry.receive(&answer, size, 7, &mut [0; HEADER_BYTES]).is_none());
                    echo.sent(9);
                } else {
                    prop_assert_eq!(answer, [0; HEADER_BYTES]);
                }
            }
            prop_assert!(echoed <= budget);
            let receiving = lock(&one.receiving);
            let arrivals = &receiving.as_ref().expect("it is there").arrivals;
            prop_assert!(arrivals.sequence.len() <= 2 * count as usize);
            prop_assert_eq!(arrivals.echoed_ns.iter().filter(|&&at| at == 9).count(), numbers.len());
            drop(receiving);
            registry.remove(1);
            prop_assert!(registry.receive(&packet(1, 1, 0), 60, 7, &mut [0; HEADER_BYTES]).is_none());
        }

        #[test]
        fn strangers_bytes_do_nothing(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let registry = Registry::default();
            let one = live(1, Some(Receiving::new(1, true, 10, 10_000)));
            registry.add(&one, 1);
            if bytes.len() >= 8 {
                bytes[..8].copy_from_slice(&1_u64.to_be_bytes());
            }
            prop_assert!(registry.receive(&bytes, 100, 7, &mut [0; 200]).is_none());
            prop_assert!(lock(&one.receiving).as_ref().expect("it is there").arrivals.sequence.is_empty());
        }
    }
}

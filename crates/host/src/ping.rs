//! Requests and their responses between two namespaces, as datagrams (Li 2006, A.2.2).

use std::io;
use std::net::UdpSocket;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use elephan_sys::{Urgency, make_urgent};
use serde::{Deserialize, Serialize};

use crate::veth::{Cable, RECEIVER, SENDER};
use crate::{Error, PATIENCE, Stop, patience, refused};

/// Bytes of headers: IPv4 and UDP.
const HEADERS: u32 = 28;
/// Bytes of a response, whatever the size of the request, and of the smallest request.
const RESPONSE: usize = 8;

/// Requests of several sizes, each answered by a short response.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ping {
    /// Bytes of application data of the requests, 8 or more.
    pub sizes: Vec<u32>,
    /// Requests of each size, one after the other.
    pub count: NonZeroU32,
}

/// The times of the requests of one size.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RoundTrip {
    /// Bytes of application data of the requests.
    pub size: u32,
    /// The shortest time from the request to its response, s.
    pub shortest: f64,
}

impl Ping {
    /// The times of each size.
    pub fn measure(&self, stop: Stop<'_>) -> Result<Vec<RoundTrip>, Error> {
        let largest = self.sizes.iter().copied().max().unwrap_or(0);
        let cable = Cable::new(largest.saturating_add(HEADERS).max(1500))?;
        let (sender, receiver) = connected(&cable).map_err(refused("datagrams between namespaces"))?;
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                make_urgent(Urgency::Realtime);
                answer(&receiver, &over);
            });
            make_urgent(Urgency::Realtime);
            let found = self.of_all_sizes(&sender, stop);
            make_urgent(Urgency::Ordinary);
            over.store(true, Ordering::Relaxed);
            found
        })
    }

    /// All sizes once, then all of them again: a processor that wakes up sooner with time would be taken for an effect of the size.
    fn of_all_sizes(&self, socket: &UdpSocket, stop: Stop<'_>) -> Result<Vec<RoundTrip>, Error> {
        let mut found: Vec<_> =
            self.sizes.iter().map(|&size| RoundTrip { size, shortest: f64::INFINITY }).collect();
        for number in 0..self.count.get() {
            for (place, one) in (0_u32..).zip(&mut found) {
                if stop() {
                    return Err(Error::Cancelled);
                }
                let time = round_trip(one.size, [number, place], socket)
                    .map_err(refused("datagrams between namespaces"))?;
                one.shortest = one.shortest.min(time);
            }
        }
        Ok(found)
    }
}

/// A connected socket in each namespace.
fn connected(cable: &Cable) -> io::Result<(UdpSocket, UdpSocket)> {
    let [sender, receiver] =
        [(&cable.sender, SENDER), (&cable.receiver, RECEIVER)].map(|(end, (_, address))| {
            end.within(|| {
                let socket = UdpSocket::bind((address, 0))?;
                socket.set_read_timeout(Some(PATIENCE))?;
                Ok(socket)
            })
        });
    let (sender, receiver) = (sender?, receiver?);
    sender.connect(receiver.local_addr()?)?;
    receiver.connect(sender.local_addr()?)?;
    Ok((sender, receiver))
}

/// The time from a request, known by its numbers, to its response, s.
fn round_trip(size: u32, numbers: [u32; 2], socket: &UdpSocket) -> io::Result<f64> {
    let (mut data, mut response, mut waited) = (vec![0; RESPONSE.max(size as usize)], [0; RESPONSE], 0);
    let asked = numbers.map(u32::to_ne_bytes).concat();
    data[..RESPONSE].copy_from_slice(&asked);
    let start = Instant::now();
    socket.send(&data)?;
    loop {
        match socket.recv(&mut response) {
            // A late response to an earlier request does not count.
            Ok(_) if response[..] == asked => return Ok(start.elapsed().as_secs_f64()),
            Ok(_) => {}
            Err(error) => waited = patience(error, waited)?,
        }
    }
}

/// Answers requests with their first bytes.
fn answer(socket: &UdpSocket, over: &AtomicBool) {
    let mut data = vec![0; 1 << 16];
    while !over.load(Ordering::Relaxed) {
        if let Ok(length) = socket.recv(&mut data) {
            // A response that is lost ends the test at the other end.
            let _ = socket.send(&data[..length.min(RESPONSE)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_its_time() {
        if Cable::new(1500).is_err() {
            return;
        }
        let ping = Ping { sizes: vec![8, 1400, 9000], count: 50.try_into().unwrap() };
        let found = ping.measure(&|| false).unwrap();
        assert_eq!(found.iter().map(|one| one.size).collect::<Vec<_>>(), [8, 1400, 9000]);
        assert!(found.iter().all(|one| 0.0 < one.shortest && one.shortest.is_finite()), "{found:?}");
        let too_large = Ping { sizes: vec![65_508], ..ping }.measure(&|| false).unwrap_err();
        assert!(matches!(too_large, Error::System(..)), "{too_large}");
    }
}

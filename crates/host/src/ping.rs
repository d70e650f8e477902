//! Datagrams between two namespaces: requests and their responses (Li 2006, A.2.2), and a stream at a fixed spacing.

use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use elephan_sys::{Urgency, make_urgent};
use serde::{Deserialize, Serialize};

use crate::tcp::patience;
use crate::veth::{Cable, RECEIVER, SENDER, kernel_seconds, raise};
use crate::{Error, Stop, Stopwatch, refused};

/// Bytes of headers: IPv4 and UDP.
const HEADERS: u32 = 28;
/// How long a call may wait before it looks whether to stop.
const PATIENCE: Duration = Duration::from_millis(100);
/// Bytes of a response, whatever the size of the request.
const RESPONSE: usize = 8;

/// Requests of several sizes, each answered by a short response.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ping {
    /// Bytes of application data of the requests.
    pub sizes: Vec<u32>,
    /// Requests of each size, one after the other.
    pub count: u32,
    /// How long the receiving device waits after its work, ns: see [`Paced::waiting_ns`]; none: ordinary devices, without threads
    /// of the kernel.
    #[serde(default)]
    pub waiting_ns: Option<u64>,
}

/// The times of the requests of one size.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RoundTrip {
    /// Bytes of application data of the requests.
    pub size: u32,
    /// The shortest time from the request to its response, s.
    pub shortest: f64,
    /// The median, s.
    pub median: f64,
}

/// A stream of datagrams at a fixed spacing.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paced {
    /// Bytes of application data.
    pub size: u32,
    /// From one to the next, s.
    pub spacing: f64,
    /// How long, s.
    pub seconds: f64,
    /// How long the receiving device waits after its work before it looks for packets again, ns; zero: each packet is an event.
    pub waiting_ns: u64,
}

/// What arrived of a stream, and what that cost.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Received {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that the receiver read.
    pub arrived: u64,
    /// Wall-clock time, s.
    pub seconds: f64,
    /// Processor time of the receiving thread, s.
    pub receiver_seconds: f64,
    /// Processor time of the kernel's thread for what arrives at the receiver, s.
    pub kernel_seconds: f64,
}

/// Two hosts with a connected socket each, and the kernel's threads at the receiver.
struct Connected {
    _cable: Cable,
    threads: Vec<u32>,
    sender: UdpSocket,
    receiver: UdpSocket,
}

fn cable(largest: u32, waiting_ns: Option<u64>) -> Result<Connected, Error> {
    let cable =
        Cable::new((largest + HEADERS).max(1500)).map_err(refused("namespaces, and veth between them"))?;
    let mut threads = vec![];
    if let Some(waiting_ns) = waiting_ns {
        let [sender, receiver] =
            cable.receive_in_threads().map_err(refused("threads of the kernel for veth"))?;
        raise(sender.iter().chain(&receiver));
        threads = receiver;
        cable.coalesce(waiting_ns).map_err(refused("gro_flush_timeout of veth"))?;
    }
    let socket = |end: &elephan_sys::Namespace, address| {
        end.within(|| {
            let socket = UdpSocket::bind((address, 0))?;
            socket.set_read_timeout(Some(PATIENCE))?;
            Ok(socket)
        })
    };
    let connected = || {
        let (sender, receiver) = (socket(&cable.sender, SENDER.1)?, socket(&cable.receiver, RECEIVER.1)?);
        sender.connect(receiver.local_addr()?)?;
        receiver.connect(sender.local_addr()?)?;
        Ok((sender, receiver))
    };
    let (sender, receiver) = connected().map_err(refused("datagrams between namespaces"))?;
    Ok(Connected { _cable: cable, threads, sender, receiver })
}

impl Ping {
    /// The times of each size.
    pub fn measure(&self, stop: Stop<'_>) -> Result<Vec<RoundTrip>, Error> {
        let largest = self.sizes.iter().copied().max().unwrap_or(0);
        let smallest = self.sizes.iter().copied().min().unwrap_or(0);
        if self.count == 0 || smallest < RESPONSE as u32 || largest > 65_507 {
            return Err(Error::Unfit(format!(
                "ping: expected sizes from {RESPONSE} to 65507 bytes and a count, found {:?}, {}",
                self.sizes, self.count
            )));
        }
        let Connected { sender, receiver, .. } = &cable(largest, self.waiting_ns)?;
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                make_urgent(Urgency::Realtime);
                answer(receiver, &over);
            });
            make_urgent(Urgency::Realtime);
            let found = self.of_all_sizes(sender, stop);
            make_urgent(Urgency::Ordinary);
            over.store(true, Ordering::Relaxed);
            found
        })
    }

    /// All sizes once, then all of them again: a processor that wakes up sooner with time would be taken for an effect of the size.
    fn of_all_sizes(&self, socket: &UdpSocket, stop: Stop<'_>) -> Result<Vec<RoundTrip>, Error> {
        let mut times = vec![Vec::new(); self.sizes.len()];
        let mut number = 0;
        for _ in 0..self.count {
            for (&size, times) in self.sizes.iter().zip(&mut times) {
                if stop() {
                    return Err(Error::Cancelled);
                }
                number += 1;
                let time =
                    round_trip(size, number, socket).map_err(refused("datagrams between namespaces"))?;
                times.push(time);
            }
        }
        let each = self.sizes.iter().zip(times).map(|(&size, mut times)| {
            times.sort_by(f64::total_cmp);
            RoundTrip { size, shortest: times[0], median: times[times.len() / 2] }
        });
        Ok(each.collect())
    }
}

/// The time from a request, known by its number, to its response, s.
fn round_trip(size: u32, number: u64, socket: &UdpSocket) -> io::Result<f64> {
    let (mut data, mut response, mut waited) = (vec![0; size as usize], [0; RESPONSE], 0);
    data[..RESPONSE].copy_from_slice(&number.to_ne_bytes());
    let start = Instant::now();
    socket.send(&data)?;
    loop {
        match socket.recv(&mut response) {
            // A late response to an earlier request does not count.
            Ok(_) if response == number.to_ne_bytes() => return Ok(start.elapsed().as_secs_f64()),
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

impl Paced {
    /// Sends the stream, and counts what arrives.
    pub fn measure(&self, stop: Stop<'_>) -> Result<Received, Error> {
        if self.size > 65_507 || self.spacing <= 0.0 || self.seconds <= 0.0 {
            return Err(Error::Unfit(format!(
                "paced: expected at most 65507 bytes, a spacing and a time, found {} bytes, {} s, {} s",
                self.size, self.spacing, self.seconds
            )));
        }
        let Connected { threads, sender, receiver, .. } = &cable(self.size, Some(self.waiting_ns))?;
        let before = kernel_seconds(threads);
        let over = AtomicBool::new(false);
        let watch = Stopwatch::start();
        let (sent, received, receiver_seconds) = thread::scope(|scope| {
            let counting = scope.spawn(|| {
                make_urgent(Urgency::Realtime);
                count(receiver, &over)
            });
            make_urgent(Urgency::Realtime);
            let sent = self.send(sender, &watch, stop);
            make_urgent(Urgency::Ordinary);
            over.store(true, Ordering::Relaxed);
            let (received, seconds) = counting.join().expect("it does not panic");
            (sent, received, seconds)
        });
        if stop() {
            return Err(Error::Cancelled);
        }
        Ok(Received {
            sent: sent.map_err(refused("datagrams between namespaces"))?,
            arrived: received,
            seconds: watch.seconds(),
            receiver_seconds,
            kernel_seconds: kernel_seconds(threads) - before,
        })
    }

    fn send(&self, socket: &UdpSocket, watch: &Stopwatch, stop: Stop<'_>) -> io::Result<u64> {
        let (data, mut sent) = (vec![0; self.size as usize], 0);
        while watch.seconds() < self.seconds && !stop() {
            let due = sent as f64 * self.spacing - watch.seconds();
            if due > 0.0 {
                thread::sleep(Duration::from_secs_f64(due));
            }
            socket.send(&data)?;
            sent += 1;
        }
        Ok(sent)
    }
}

/// Counts datagrams, and the processor time that this takes.
fn count(socket: &UdpSocket, over: &AtomicBool) -> (u64, f64) {
    let (mut data, mut received, watch) = (vec![0; 1 << 16], 0, Stopwatch::start());
    loop {
        match socket.recv(&mut data) {
            Ok(_) => received += 1,
            Err(_) if over.load(Ordering::Relaxed) => return (received, watch.cpu_seconds()),
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether this machine permits it: in a user namespace nobody may set how long a device waits.
    fn possible() -> bool {
        Cable::new(1500).and_then(|cable| cable.coalesce(0)).is_ok()
    }

    #[test]
    fn every_size_has_its_times() {
        if !possible() {
            return;
        }
        let ping = Ping { sizes: vec![8, 1400, 9000], count: 50, waiting_ns: None };
        let found = ping.measure(&|| false).unwrap();
        assert_eq!(found.iter().map(|one| one.size).collect::<Vec<_>>(), [8, 1400, 9000]);
        assert!(found.iter().all(|one| 0.0 < one.shortest && one.shortest <= one.median), "{found:?}");
    }

    #[test]
    #[ignore = "real time"]
    fn a_device_that_waits_delays_every_request() {
        if !possible() {
            return;
        }
        let ping = Ping { sizes: vec![64], count: 100, waiting_ns: Some(2_000_000) };
        let slow = ping.measure(&|| false).unwrap()[0];
        let fast = Ping { waiting_ns: Some(0), ..ping }.measure(&|| false).unwrap()[0];
        // A request waits for the next round, up to 2 ms; responses are sent at once, so that the next waits all of it.
        assert!(slow.median > 1.5e-3 && slow.median > 2.0 * fast.median, "{slow:?} {fast:?}");
    }

    #[test]
    #[ignore = "real time"]
    fn a_stream_arrives_and_its_cost_is_known() {
        if !possible() {
            return;
        }
        let paced = Paced { size: 100, spacing: 1e-3, seconds: 0.5, waiting_ns: 0 };
        let found = paced.measure(&|| false).unwrap();
        assert!(found.sent > 50 && found.sent <= 501, "{found:?}");
        assert_eq!(found.arrived, found.sent, "{found:?}");
        assert!(found.kernel_seconds > 0.0 && found.receiver_seconds > 0.0, "{found:?}");
    }

    #[test]
    fn requests_that_do_not_fit_are_refused() {
        let none = Ping { sizes: vec![4], count: 1, waiting_ns: None }.measure(&|| false).unwrap_err();
        assert!(none.to_string().contains("expected sizes from 8 to 65507 bytes"), "{none}");
    }
}

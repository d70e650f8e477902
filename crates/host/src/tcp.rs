//! TCP within this host: over the loopback device, or between two namespaces.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::thread;
use std::time::Instant;

use elephan_sys::{Namespace, cpu_s, tcp_info};
use serde::{Deserialize, Serialize};

use crate::ethtool::Feature;
use crate::veth::{Cable, RECEIVER, kernel_seconds};
use crate::{Error, PATIENCE, Stop, patience, refused};

/// Bytes of a call: as many as the kernel gives the device at once.
const CALL: usize = 1 << 17;
/// The MTU of the devices between the namespaces: Ethernet's.
const MTU: u32 = 1500;

/// A test of TCP.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tcp {
    /// Between two namespaces; otherwise over the loopback device.
    pub namespaces: bool,
    /// Connections, each with two threads.
    pub streams: NonZeroUsize,
    /// How long, s.
    pub seconds: f64,
    /// Offloads of the devices between the namespaces that are off.
    #[serde(default)]
    pub off: Vec<Feature>,
    /// Threads of the kernel process what arrives between the namespaces, so that their processor time is known. The sending
    /// device then cuts no segments, and what arrives is merged (GRO).
    #[serde(default)]
    pub threaded: bool,
}

/// What TCP carried.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Carried {
    /// Application bytes that the receivers read.
    pub bytes: u64,
    /// Wall-clock time of the longest connection, s.
    pub seconds: f64,
    /// Processor time of the sending threads, s. Without `threaded` it has the work of the receiver's kernel up to the socket, too: on
    /// these devices a packet is received where it is sent.
    pub sender_seconds: f64,
    /// Processor time of the receiving threads, s.
    pub receiver_seconds: f64,
    /// Processor time of the kernel's threads for what arrives at the sender, ACKs, s; none without `threaded`.
    pub sender_kernel_seconds: Option<f64>,
    /// The same of the receiver, data, s.
    pub receiver_kernel_seconds: Option<f64>,
    /// Data segments sent, and segments received by the sender: ACKs.
    pub segments: u64,
    /// ACKs that the senders received.
    pub acks: u64,
}

/// What threads moved side by side: all bytes, in the time of the slowest, and the processor time of all.
#[derive(Clone, Copy, Debug, Default)]
struct Moved {
    bytes: u64,
    seconds: f64,
    cpu_seconds: f64,
}

impl Moved {
    fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            seconds: self.seconds.max(other.seconds),
            cpu_seconds: self.cpu_seconds + other.cpu_seconds,
        }
    }
}

impl Tcp {
    /// Sends as much as it can in the time.
    pub fn measure(&self, stop: Stop<'_>) -> Result<Carried, Error> {
        let no_threads = [vec![], vec![]];
        let found = if self.namespaces {
            let cable = Cable::new(MTU)?;
            // It is off until it is asked for. What another switch turned off, such as segmentation without checksums, stays off.
            cable.switch(Feature::Gro, true)?;
            self.off.iter().try_for_each(|&feature| cable.switch(feature, false))?;
            let threads = if self.threaded { cable.receive_in_threads()? } else { no_threads };
            self.over(Some(&cable), RECEIVER.1, &threads, stop).map_err(refused("tcp between namespaces"))
        } else {
            self.over(None, Ipv4Addr::LOCALHOST, &no_threads, stop)
                .map_err(refused("tcp over the loopback device"))
        };
        if stop() { Err(Error::Cancelled) } else { found }
    }

    fn over(
        &self,
        cable: Option<&Cable>,
        address: Ipv4Addr,
        threads: &[Vec<u32>; 2],
        stop: Stop<'_>,
    ) -> io::Result<Carried> {
        let listener = on(cable.map(|cable| &cable.receiver), || TcpListener::bind((address, 0)))?;
        let port = listener.local_addr()?.port();
        let pairs = (0..self.streams.get())
            .map(|_| {
                let sender = on(cable.map(|cable| &cable.sender), || TcpStream::connect((address, port)))?;
                let receiver = listener.accept()?.0;
                sender.set_write_timeout(Some(PATIENCE))?;
                receiver.set_read_timeout(Some(PATIENCE))?;
                Ok((sender, receiver))
            })
            .collect::<io::Result<Vec<_>>>()?;
        let before = threads.each_ref().map(|ids| kernel_seconds(ids));
        let [sent, received] = thread::scope(|scope| {
            let running: Vec<_> = pairs
                .iter()
                .map(|(sender, receiver)| {
                    [
                        scope.spawn(|| send(sender, self.seconds, stop)),
                        scope.spawn(|| receive(receiver, stop)),
                    ]
                })
                .collect();
            running.into_iter().try_fold([Moved::default(); 2], |[sent, received], [sender, receiver]| {
                let now = [sender, receiver].map(|thread| thread.join().expect("it does not panic"));
                let [now_sent, now_received] = now;
                Ok::<_, io::Error>([sent.and(now_sent?), received.and(now_received?)])
            })
        })?;
        let kernel =
            [0, 1].map(|end| (!threads[end].is_empty()).then(|| kernel_seconds(&threads[end]) - before[end]));
        let (mut segments, mut acks) = (0, 0);
        for (sender, _) in &pairs {
            let info = tcp_info(sender.as_fd())?;
            segments += u64::from(info.data_segs_out);
            acks += u64::from(info.segs_in);
        }
        Ok(Carried {
            bytes: received.bytes,
            seconds: sent.seconds,
            sender_seconds: sent.cpu_seconds,
            receiver_seconds: received.cpu_seconds,
            sender_kernel_seconds: kernel[0],
            receiver_kernel_seconds: kernel[1],
            segments,
            acks,
        })
    }
}

/// Makes something in a namespace, or in that of the process.
fn on<T: Send>(namespace: Option<&Namespace>, make: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    match namespace {
        Some(namespace) => namespace.within(make),
        None => make(),
    }
}

fn send(mut socket: &TcpStream, seconds: f64, stop: Stop<'_>) -> io::Result<Moved> {
    let (data, began) = (vec![0x5a; CALL], Instant::now());
    let write = || if began.elapsed().as_secs_f64() < seconds { socket.write(&data) } else { Ok(0) };
    let sent = moved(write, stop)?;
    socket.shutdown(Shutdown::Write)?;
    Ok(sent)
}

fn receive(mut socket: &TcpStream, stop: Stop<'_>) -> io::Result<Moved> {
    let mut data = vec![0; CALL];
    moved(|| socket.read(&mut data), stop)
}

/// What calls moved, until one moves nothing.
fn moved(mut call: impl FnMut() -> io::Result<usize>, stop: Stop<'_>) -> io::Result<Moved> {
    let (began, cpu_before_s, mut bytes, mut waited) = (Instant::now(), cpu_s(), 0, 0);
    while !stop() {
        waited = match call() {
            Ok(0) => break,
            Ok(more) => {
                bytes += more as u64;
                0
            }
            Err(error) => patience(error, waited)?,
        };
    }
    Ok(Moved { bytes, seconds: began.elapsed().as_secs_f64(), cpu_seconds: cpu_s() - cpu_before_s })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test() -> Tcp {
        let (streams, off) = (1.try_into().unwrap(), vec![]);
        Tcp { namespaces: false, streams, seconds: 0.3, off, threaded: false }
    }

    fn sane(carried: &Carried) {
        assert!(carried.bytes > 0 && carried.seconds >= 0.3, "{carried:?}");
        assert!(carried.segments > 0 && carried.acks > 0, "{carried:?}");
        assert!(
            carried.sender_seconds > 0.0 && carried.sender_seconds <= 2.0 * carried.seconds,
            "{carried:?}"
        );
    }

    #[test]
    #[ignore = "real time"]
    fn the_loopback_device_carries_one_stream_and_two() {
        for streams in [1, 2] {
            sane(&Tcp { streams: streams.try_into().unwrap(), ..test() }.measure(&|| false).unwrap());
        }
    }

    #[test]
    #[ignore = "real time"]
    fn namespaces_carry_packets_of_the_mtu_where_nothing_is_offloaded() {
        if Cable::new(1500).is_err() {
            return;
        }
        for off in [vec![], Feature::ALL.to_vec()] {
            let carried = Tcp { namespaces: true, off, ..test() }.measure(&|| false).unwrap();
            sane(&carried);
            // Timestamps take 12 bytes of each packet. The last packets may still be under way, and some may be retransmitted.
            let per_segment = carried.bytes as f64 / carried.segments as f64;
            assert!((1000.0..=1460.0).contains(&per_segment), "{carried:?}");
        }
    }

    #[test]
    #[ignore = "real time"]
    fn threads_of_the_kernel_tell_what_receiving_takes() {
        if Cable::new(1500).is_err() {
            return;
        }
        let carried = Tcp { namespaces: true, threaded: true, ..test() }.measure(&|| false).unwrap();
        sane(&carried);
        assert!(carried.receiver_kernel_seconds.unwrap() > 0.0, "{carried:?}");
        assert!(carried.sender_kernel_seconds.unwrap() > 0.0, "{carried:?}");
    }

    #[test]
    fn a_stop_ends_it_at_once() {
        assert!(matches!(Tcp { seconds: 1e9, ..test() }.measure(&|| true), Err(Error::Cancelled)));
    }
}

//! TCP within this host: over the loopback device, or between two namespaces.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use elephan_sys::{Namespace, tcp_info};
use serde::{Deserialize, Serialize};

use crate::ethtool::Feature;
use crate::veth::{Cable, RECEIVER, kernel_seconds};
use crate::{Error, Moved, Stop, Stopwatch, refused, together};

/// Bytes of a call: as many as the kernel gives the device at once.
const CALL: usize = 1 << 17;
/// How long a call may wait before it looks whether to stop.
const PATIENCE: Duration = Duration::from_millis(100);
/// A peer that says nothing for so many such times is gone.
const PATIENCES: u32 = 50;

/// A test of TCP.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tcp {
    /// Between two namespaces; otherwise over the loopback device.
    pub namespaces: bool,
    /// Connections, each with two threads.
    pub streams: usize,
    /// How long, s.
    pub seconds: f64,
    /// The MTU of the devices between the namespaces.
    #[serde(default = "ethernet")]
    pub mtu: u32,
    /// Offloads of the devices between the namespaces.
    #[serde(default)]
    pub offloads: Offloads,
    /// Threads of the kernel process what arrives between the namespaces, so that their processor time is known. The sending
    /// device then cuts no segments, and what arrives is merged (GRO).
    #[serde(default)]
    pub threaded: bool,
}

fn ethernet() -> u32 {
    1500
}

/// Which work is done for many packets at once, or left to the device.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs, reason = "the names of ethtool(8)")]
pub struct Offloads {
    pub checksums: bool,
    pub tso: bool,
    pub gso: bool,
    pub gro: bool,
}

impl Default for Offloads {
    fn default() -> Self {
        Self { checksums: true, tso: true, gso: true, gro: true }
    }
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

impl Tcp {
    /// Sends as much as it can in the time.
    pub fn measure(&self, stop: Stop<'_>) -> Result<Carried, Error> {
        if self.streams == 0 || self.seconds <= 0.0 {
            let text = format!(
                "tcp: expected a stream and a time, found {} streams, {} s",
                self.streams, self.seconds
            );
            return Err(Error::Unfit(text));
        }
        if !self.namespaces {
            return self
                .over(None, Ipv4Addr::LOCALHOST, &[vec![], vec![]], stop)
                .map_err(refused("tcp over the loopback device"))?;
        }
        let cable = Cable::new(self.mtu).map_err(refused("namespaces, and veth between them"))?;
        let switched = [
            (Feature::ReceiveChecksums, self.offloads.checksums),
            (Feature::SendChecksums, self.offloads.checksums),
            (Feature::DeviceSegmentation, self.offloads.tso),
            (Feature::Segmentation, self.offloads.gso),
            (Feature::ReceiveMerging, self.offloads.gro),
        ];
        // What another switch turned off, such as segmentation without checksums, stays off.
        for (feature, on) in
            switched.into_iter().filter(|&(feature, on)| !on || feature == Feature::ReceiveMerging)
        {
            cable.switch(feature, on).map_err(refused(format!("offload {feature:?} of veth")))?;
        }
        let threads = if self.threaded {
            cable.receive_in_threads().map_err(refused("threads of the kernel for veth"))?
        } else {
            [vec![], vec![]]
        };
        self.over(Some(&cable), RECEIVER.1, &threads, stop).map_err(refused("tcp between namespaces"))?
    }

    fn over(
        &self,
        cable: Option<&Cable>,
        address: Ipv4Addr,
        threads: &[Vec<u32>; 2],
        stop: Stop<'_>,
    ) -> io::Result<Result<Carried, Error>> {
        let listener = on(cable.map(|cable| &cable.receiver), || TcpListener::bind((address, 0)))?;
        let port = listener.local_addr()?.port();
        let pairs = (0..self.streams)
            .map(|_| {
                let sender = on(cable.map(|cable| &cable.sender), || TcpStream::connect((address, port)))?;
                let receiver = listener.accept()?.0;
                sender.set_write_timeout(Some(PATIENCE))?;
                receiver.set_read_timeout(Some(PATIENCE))?;
                Ok((sender, receiver))
            })
            .collect::<io::Result<Vec<_>>>()?;
        let before = threads.each_ref().map(|ids| kernel_seconds(ids));
        let done: Vec<io::Result<(Moved, Moved)>> = thread::scope(|scope| {
            let running: Vec<_> = pairs
                .iter()
                .map(|(sender, receiver)| {
                    (
                        scope.spawn(|| send(sender, self.seconds, stop)),
                        scope.spawn(|| receive(receiver, stop)),
                    )
                })
                .collect();
            let ended = running.into_iter().map(|(sender, receiver)| {
                let sent = sender.join().expect("it does not panic");
                let received = receiver.join().expect("it does not panic");
                Ok((sent?, received?))
            });
            ended.collect()
        });
        if stop() {
            return Ok(Err(Error::Cancelled));
        }
        let after = threads.each_ref().map(|ids| kernel_seconds(ids));
        let done = done.into_iter().collect::<io::Result<Vec<_>>>()?;
        let sent = together(done.iter().map(|pair| pair.0));
        let received = together(done.iter().map(|pair| pair.1));
        let (mut segments, mut acks) = (0, 0);
        for (sender, _) in &pairs {
            let info = tcp_info(sender.as_fd())?;
            segments += u64::from(info.data_segs_out);
            acks += u64::from(info.segs_in);
        }
        let kernel = |end: usize| (!threads[end].is_empty()).then(|| after[end] - before[end]);
        Ok(Ok(Carried {
            bytes: received.bytes,
            seconds: sent.seconds,
            sender_seconds: sent.cpu_seconds,
            receiver_seconds: received.cpu_seconds,
            sender_kernel_seconds: kernel(0),
            receiver_kernel_seconds: kernel(1),
            segments,
            acks,
        }))
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
    let data = vec![0x5a; CALL];
    let (watch, mut sent, mut waited) = (Stopwatch::start(), 0, 0);
    while watch.seconds() < seconds && !stop() {
        waited = match socket.write(&data) {
            Ok(bytes) => {
                sent += bytes as u64;
                0
            }
            Err(error) => patience(error, waited)?,
        };
    }
    let moved = watch.moved(sent);
    socket.shutdown(Shutdown::Write)?;
    Ok(moved)
}

fn receive(mut socket: &TcpStream, stop: Stop<'_>) -> io::Result<Moved> {
    let mut data = vec![0; CALL];
    let (watch, mut received, mut waited) = (Stopwatch::start(), 0, 0);
    while !stop() {
        waited = match socket.read(&mut data) {
            Ok(0) => break,
            Ok(bytes) => {
                received += bytes as u64;
                0
            }
            Err(error) => patience(error, waited)?,
        };
    }
    Ok(watch.moved(received))
}

/// Counts the times that a call waited in vain, of which there may be some.
pub fn patience(error: io::Error, waited: u32) -> io::Result<u32> {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
            if waited < PATIENCES =>
        {
            Ok(waited + 1)
        }
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test() -> Tcp {
        let offloads = Offloads::default();
        Tcp { namespaces: false, streams: 1, seconds: 0.3, mtu: 1500, offloads, threaded: false }
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
            sane(&Tcp { streams, ..test() }.measure(&|| false).unwrap());
        }
    }

    #[test]
    #[ignore = "real time"]
    fn namespaces_carry_packets_of_the_mtu_where_nothing_is_offloaded() {
        if Cable::new(1500).is_err() {
            return;
        }
        let none = Offloads { checksums: false, tso: false, gso: false, gro: false };
        for offloads in [Offloads::default(), none] {
            let carried = Tcp { namespaces: true, offloads, ..test() }.measure(&|| false).unwrap();
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

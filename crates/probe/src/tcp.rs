//! TCP for some seconds: the sender's `TCP_INFO`, and what the receiver got.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use elephan_sys::socket::{limit_rate, set, set_congestion_control};
use elephan_sys::{TcpInfo, tcp_info, wall_ns};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use serde::{Deserialize, Serialize};

/// Data in a segment of the session: with the headers of IPv6 and TCP it fits into 1280 bytes (RFC 8200, section 5).
const NARROW: libc::c_int = 1200;
/// Interval of the samples.
const SAMPLE: Duration = Duration::from_millis(100);
/// The most samples of a transfer that are told, so that they fit into a message.
const MOST_SAMPLES: usize = 1500;
/// How often a sender looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(5);
/// Headers of IPv6 and TCP, and options: a packet has no more beside its data.
const HEADERS: u64 = 100;
/// Share of the permitted bytes at which a sender stops, because some are sent before it looks again.
const STOPS_AT: f64 = 0.95;

/// A test of TCP.
#[derive(Clone, Debug)]
pub struct Tcp {
    /// The kernel's name of the congestion control.
    pub cc: String,
    /// Whether the server sends.
    pub down: bool,
    /// How long it lasts at most.
    pub duration: Duration,
    /// Bytes of IP packets that it may cost, in both directions together.
    pub bytes: u64,
}

/// `TCP_INFO` of the sender at a time: what the tables of a run need.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Time on the sender's clock, ns since 1970.
    pub at_ns: u64,
    /// The state of the connection.
    #[serde(flatten)]
    pub info: TcpInfo,
}

/// What one side saw of a transfer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Transfer {
    /// The sender's samples: every 100 ms, where the state of its recovery has changed, and at the end; empty at the receiver.
    pub samples: Vec<Sample>,
    /// What the receiver had received, every 100 ms and at the end: time on its clock (ns since 1970), bytes; empty at the sender.
    pub received: Vec<(u64, u64)>,
    /// Bytes of IP packets that this side sent and received, at most.
    pub wire_bytes: u64,
}

/// Whether this kernel lets this user select a congestion control.
pub fn offers(cc: &str, v6: bool) -> io::Result<()> {
    let family = if v6 { AddressFamily::INET6 } else { AddressFamily::INET };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_congestion_control(&socket, cc)
}

/// Selects the congestion control of a sender, and limits its rate (bit/s).
pub fn prepare(stream: &TcpStream, cc: &str, rate: u64) -> io::Result<()> {
    set_congestion_control(stream, cc)?;
    if rate < u64::MAX {
        limit_rate(stream, rate / 8)?;
    }
    Ok(())
}

/// Connects with segments that pass wherever IPv6 does: what is measured may be a black hole for longer ones, and the session
/// must not fall into it.
pub fn narrow(to: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    let family = if to.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set(&socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, &[NARROW])?;
    // This is the time-out of connecting, too.
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(patience))?;
    connect(&socket, &to)?;
    Ok(TcpStream::from(socket))
}

/// Bytes of IP packets of a connection, both directions, at most: each packet is counted with the longest headers.
pub fn wire_bytes(info: &TcpInfo) -> u64 {
    info.bytes_sent + info.bytes_received + HEADERS * (u64::from(info.segs_out) + u64::from(info.segs_in))
}

/// Data that a sender may write, so that with headers, and with an acknowledgement for each second packet, no more than `bytes` pass.
fn data_bytes(bytes: u64, mss: u32) -> u64 {
    let mss = f64::from(mss.max(1));
    (bytes as f64 * STOPS_AT * mss / (mss + 1.5 * HEADERS as f64)) as u64
}

/// `tcpi_state` of a connection that was reset (include/net/tcp_states.h).
const TCP_CLOSE: u8 = 7;

/// Sends for `duration`, at most `bytes` of IP packets, and then resets the connection: nothing is sent after the end.
pub fn send(
    stream: &TcpStream,
    duration: Duration,
    bytes: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> io::Result<Transfer> {
    stream.set_write_timeout(Some(LOOK))?;
    let began = Instant::now();
    let data = data_bytes(bytes, tcp_info(stream.as_fd())?.snd_mss);
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let (block, mut written) = (vec![0x5a; 128 << 10], 0);
            while !ended.load(Ordering::Relaxed) && written < data {
                let most = block.len().min((data - written) as usize);
                match (&mut &*stream).write(&block[..most]) {
                    Ok(count) => written += count as u64,
                    Err(error) if is_wait(&error) => {}
                    // The peer is gone; the other thread sees the time pass, or the same error.
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        });
        let mut result = Transfer::default();
        let mut look = || -> io::Result<()> {
            let (mut next, mut state) = (Duration::ZERO, 0);
            loop {
                // Asked before the kernel is: what was written afterwards may still wait.
                let is_written = writer.is_finished();
                let info = tcp_info(stream.as_fd())?;
                let over = began.elapsed() >= duration
                    || stop()
                    || wire_bytes(&info) as f64 >= bytes as f64 * STOPS_AT
                    || info.bytes_acked >= data
                    // The receiver has enough, or is gone.
                    || info.state == TCP_CLOSE
                    || is_written && info.unacked == 0 && info.notsent_bytes == 0;
                let due = began.elapsed() >= next;
                // The start and the end of a recovery between samples are kept, too.
                let changed = info.ca_state != state && result.samples.len() < MOST_SAMPLES;
                if due || changed || over {
                    result.samples.push(Sample { at_ns: wall_ns(), info });
                    (result.wire_bytes, state) = (wire_bytes(&info), info.ca_state);
                }
                if due {
                    next += SAMPLE;
                }
                if over {
                    return Ok(());
                }
                thread::sleep(LOOK);
            }
        };
        let looked = look();
        ended.store(true, Ordering::Relaxed);
        sockopt::set_socket_linger(stream, Some(Duration::ZERO))?;
        looked?;
        match writer.join().expect("it does not panic") {
            // A receiver that has enough closes.
            Err(error) if !is_end(&error) => Err(error),
            _ => Ok(result),
        }
    })
}

/// Receives until the sender ends, or for `duration`, or until `bytes` of IP packets have passed.
pub fn receive(
    stream: &TcpStream,
    duration: Duration,
    bytes: u64,
    stop: &dyn Fn() -> bool,
) -> io::Result<Transfer> {
    stream.set_read_timeout(Some(LOOK))?;
    let began = Instant::now();
    let (mut block, mut total, mut next) = (vec![0; 256 << 10], 0, Duration::ZERO);
    let mut result = Transfer::default();
    loop {
        let read = (&mut &*stream).read(&mut block);
        let ended = match &read {
            Ok(0) => true,
            Ok(count) => {
                total += *count as u64;
                false
            }
            Err(error) if is_wait(error) => false,
            Err(error) if is_end(error) => true,
            Err(error) => return Err(io::Error::new(error.kind(), error.to_string())),
        };
        if let Ok(info) = tcp_info(stream.as_fd()) {
            result.wire_bytes = result.wire_bytes.max(wire_bytes(&info));
        }
        let over = ended || began.elapsed() >= duration || stop() || result.wire_bytes >= bytes;
        if began.elapsed() >= next || over {
            result.received.push((wall_ns(), total));
            next += SAMPLE;
        }
        if over {
            sockopt::set_socket_linger(stream, Some(Duration::ZERO))?;
            return Ok(result);
        }
    }
}

fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
}

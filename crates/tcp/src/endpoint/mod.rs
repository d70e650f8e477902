//! One end of a connection: the two halves wired together. How it opens is in `handshake.rs`, what a segment
//! that arrives means in `receive.rs`, which one goes next in `transmit.rs`.

mod handshake;
mod receive;
mod transmit;

use elephan_cc::Controller;
use elephan_units::Time;

use crate::config::{Config, Recovery};
use crate::receiver::Receiver;
use crate::report::{Counters, Snapshot};
use crate::segment::Segment;
use crate::sender::Sender;
use crate::sequence;

use handshake::Handshake;

/// Where the connection stands (RFC 9293, section 3.3.2). Its end is kept by the two halves: a FIN
/// is acknowledged like data. There is no TIME-WAIT: a late segment is answered as long as the
/// endpoint lives, and nobody reuses its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Listen,
    SynSent,
    SynReceived,
    Established,
    /// Reset by the peer, or given up.
    Reset,
}

/// One end of a TCP connection.
pub struct Endpoint {
    state: State,
    sender: Sender,
    receiver: Receiver,
    handshake: Handshake,
    counters: Counters,
    /// Initial sequence numbers: ours, and the peer's.
    iss: u32,
    irs: u32,
    /// Shift of the window fields that we read, and that we write.
    peer_shift: u8,
    our_shift: u8,
    /// Options that we offer, and after the handshake that both ends use.
    sack: bool,
    timestamps: bool,
    ecn: bool,
    /// A congestion mark is to be echoed until the peer says that it reduced.
    echo: bool,
    /// Whether the segment that was polled last is to be sent ECN-capable.
    capable: bool,
    /// RFC 7323's TS.Recent, and the acknowledgment that was sent last.
    ts_recent: u32,
    last_ack: u64,
    /// The connection was given up, and the peer is to be told.
    send_reset: bool,
}

impl Endpoint {
    fn new(config: &Config, controller: Controller, iss: u32, state: State) -> Self {
        let controller = match config.initial_ssthresh {
            Some(segments) => controller.with_ssthresh(f64::from(segments)),
            None => controller,
        };
        let receiver = Receiver::new(config);
        Self {
            state,
            our_shift: receiver.shift(),
            sender: Sender::new(config, controller),
            receiver,
            handshake: Handshake::new(config, state == State::SynSent),
            counters: Counters::default(),
            iss,
            irs: 0,
            peer_shift: 0,
            sack: config.recovery == Recovery::Sack,
            timestamps: config.timestamps,
            ecn: config.ecn,
            echo: false,
            capable: false,
            ts_recent: 0,
            last_ack: 0,
            send_reset: false,
        }
    }

    /// An endpoint that opens the connection: its SYN is ready to be sent.
    ///
    /// `iss` is the initial sequence number.
    pub fn connect(config: &Config, controller: Controller, iss: u32) -> Self {
        Self::new(config, controller, iss, State::SynSent)
    }

    /// An endpoint that waits for a SYN.
    pub fn listen(config: &Config, controller: Controller, iss: u32) -> Self {
        Self::new(config, controller, iss, State::Listen)
    }

    /// The application has `bytes` more to send; `u64::MAX` means that it never ends.
    pub fn write(&mut self, bytes: u64) {
        self.sender.write(bytes);
    }

    /// The application will write no more: a FIN follows the last byte.
    pub fn close(&mut self) {
        self.sender.close();
    }

    /// The application drops what was not sent yet, and closes: how an endless writer ends.
    pub fn stop(&mut self) {
        self.sender.stop();
    }

    /// The application begins or stops reading what arrives; it reads at once unless told otherwise.
    pub fn set_reading(&mut self, reading: bool) {
        self.receiver.set_reading(reading);
        self.counters.bytes_delivered = self.receiver.delivered();
    }

    /// The time that [`Endpoint::poll_timeout`] asked for has come; harmless when it has not.
    pub fn on_timer(&mut self, now: Time) {
        match self.state {
            State::Established => {
                self.receiver.on_timer(now);
                self.sender.on_timer(&mut self.counters, now);
                if self.sender.is_hopeless() {
                    self.give_up();
                }
            }
            State::Listen | State::SynSent | State::SynReceived => self.on_handshake_timer(now),
            State::Reset => {}
        }
    }

    /// The peer's sequence number that is due.
    fn due(&self) -> u32 {
        sequence::wire(self.receiver.next(), self.irs.wrapping_add(1))
    }

    /// Too many timeouts in a row: the connection ends, and the peer is notified (RFC 9293, section 3.8.3).
    fn give_up(&mut self) {
        self.state = State::Reset;
        self.send_reset = true;
    }

    /// When the endpoint wants [`Endpoint::on_timer`]; `Time::MAX` when it waits for nothing.
    pub fn poll_timeout(&self) -> Time {
        match self.state {
            State::Established => self.receiver.deadline.min(self.sender.deadline()),
            State::Listen | State::SynSent | State::SynReceived => self.handshake.deadline(),
            State::Reset => Time::MAX,
        }
    }

    /// The same without what is due at `now`: for a caller that has answered it, and cannot send the resulting segments yet.
    pub fn poll_timeout_after(&self, now: Time) -> Time {
        let timers = match self.state {
            State::Established => [self.receiver.deadline, self.sender.timeout_at()],
            State::Listen | State::SynSent | State::SynReceived => [self.handshake.deadline(), Time::MAX],
            State::Reset => [Time::MAX; 2],
        };
        timers.into_iter().filter(|&timer| timer > now).min().unwrap_or(Time::MAX)
    }

    /// Whether [`Endpoint::poll_transmit`] would give a data segment.
    pub fn would_send(&self, now: Time) -> bool {
        self.state == State::Established && self.sender.would_send(now)
    }

    /// The host's own device queue has no room for what would be sent: nothing was lost, but the window is reduced as for a
    /// mark, once for each window of data (Linux, net/ipv4/tcp_output.c, `tcp_enter_cwr` in `tcp_transmit_skb`).
    pub fn on_local_congestion(&mut self, now: Time) {
        self.sender.on_local_congestion(&mut self.counters, now);
    }

    /// What a stack that keeps segments in a list would pass by to take in the SACK blocks of `segment`: for each block those
    /// that are not acknowledged cumulatively, from the oldest to the block's end (Linux 2.4, net/ipv4/tcp_input.c,
    /// `tcp_sacktag_write_queue`), and for each block those that wait to be retransmitted.
    pub fn sack_walk(&self, segment: &Segment) -> (u64, u64) {
        let una = sequence::wire(self.sender.space().una, self.iss.wrapping_add(1));
        let blocks = segment.sack.as_slice();
        let below =
            |&(_, right): &(u32, u32)| self.sender.segments_below(right.wrapping_sub(una).cast_signed());
        (blocks.iter().map(below).sum(), self.sender.waiting() * blocks.len() as u64)
    }

    /// Whether everything written was acknowledged, the FIN too where there was one.
    pub fn is_finished(&self) -> bool {
        self.sender.space().is_finished()
    }

    /// Whether the peer's FIN, and all before it, has arrived.
    pub fn peer_is_finished(&self) -> bool {
        self.receiver.is_finished()
    }

    /// Whether the application has closed.
    pub fn is_closed(&self) -> bool {
        self.sender.space().closed
    }

    /// Whether the handshake is over.
    pub fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// Whether the connection was reset by the peer, or given up after too many timeouts.
    pub fn is_reset(&self) -> bool {
        self.state == State::Reset
    }

    /// What was counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What a trace samples.
    pub fn snapshot(&self) -> Snapshot {
        let rtt = self.sender.rtt();
        Snapshot {
            cwnd: self.sender.controller.cwnd(),
            ssthresh: self.sender.controller.ssthresh(),
            srtt: rtt.srtt(),
            min_rtt: rtt.min(),
            rto: rtt.rto(),
            pipe: self.sender.pipe(),
            in_recovery: self.sender.in_recovery(),
        }
    }

    /// The congestion controller.
    pub fn controller(&self) -> &Controller {
        &self.sender.controller
    }
}

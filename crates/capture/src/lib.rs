//! Captures of TCP: reads pcap and pcapng files, and follows the connections in them.
//!
//! Nothing is estimated here. A [`Followed`] connection has what its packets show at the place of the capture, which may be
//! anywhere on the path: what was sent when, what of it was retransmitted, and what was acknowledged when.

mod follow;
mod packet;
mod read;

pub use follow::{Ack, Again, Data, Followed, follow};
pub use packet::{End, Packet};
pub use read::{Capture, Error, read};

/// The packets of a connection, both directions in the order of time.
pub struct Connection {
    /// Its ends; that of the first packet's sender is first.
    pub ends: [End; 2],
    /// The packets; [`Packet::source`] is one of the ends.
    pub packets: Vec<Packet>,
}

/// Divides packets, which are in the order of time, into connections. A SYN with another sequence number begins a new one
/// between the same ends.
pub fn connections(packets: Vec<Packet>) -> Vec<Connection> {
    let mut found: Vec<Connection> = Vec::new();
    let mut open = std::collections::HashMap::new();
    let mut begun = std::collections::HashMap::new();
    for packet in packets {
        let ends = [packet.source, packet.target];
        let key = if ends[0] <= ends[1] { ends } else { [ends[1], ends[0]] };
        let is_new = packet.syn && begun.insert((key, packet.source), packet.seq) != Some(packet.seq);
        // The answer to a SYN has a sequence number of its own, which begins nothing.
        let number = match open.get(&key) {
            Some(&number) if !is_new || packet.ack_set => number,
            _ => {
                open.insert(key, found.len());
                found.push(Connection { ends, packets: Vec::new() });
                found.len() - 1
            }
        };
        let connection: &mut Connection = &mut found[number];
        connection.packets.push(packet);
    }
    found
}

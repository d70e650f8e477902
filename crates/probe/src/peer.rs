//! The server, as a client speaks with it beside the datagrams.

use std::os::fd::AsFd;

use elephan_session::Session;
use elephan_sys::tcp_info;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::message::{Answer, Arrivals, Ask, Chunk};
use crate::registry::MOST_DATAGRAMS;
use crate::{Error, tcp};

/// Who answers a client: the server at the other end of a session, or, in virtual time, a server that is called directly.
pub trait Peer {
    /// Asks for a test; an error if it is refused.
    fn ask(&mut self, ask: &Ask) -> Result<(), Error>;

    /// What arrived of a stream that is over.
    fn arrivals(&mut self, stream: u32) -> Result<Arrivals, Error>;

    /// There is nothing else to ask for.
    fn leave(&mut self) -> Result<(), Error>;

    /// Whether it has ended.
    fn is_gone(&self) -> bool;

    /// Bytes of IP packets that the questions and answers took so far, in both directions, at most.
    fn wire_bytes(&self) -> u64;
}

impl Peer for Session {
    fn ask(&mut self, ask: &Ask) -> Result<(), Error> {
        self.send(ask)?;
        match self.receive("an answer")? {
            Answer::Ready => Ok(()),
            Answer::Refused(why) => Err(Error::Refused(why)),
        }
    }

    fn arrivals(&mut self, stream: u32) -> Result<Arrivals, Error> {
        self.send(&Ask::Arrivals { stream })?;
        let mut all = Arrivals::default();
        loop {
            let chunk: Chunk = self.receive("what arrived")?;
            all.sequence.extend(chunk.arrivals.sequence);
            all.at_ns.extend(chunk.arrivals.at_ns);
            all.echoed_ns.extend(chunk.arrivals.echoed_ns);
            all.overflowed = chunk.arrivals.overflowed;
            let whole = all.sequence.len() == all.at_ns.len() && all.at_ns.len() == all.echoed_ns.len();
            if !whole || all.sequence.len() > 2 * MOST_DATAGRAMS as usize {
                let found = "columns of different lengths, or too many".to_owned();
                return Err(elephan_session::Error::Protocol { expected: "what arrived", found }.into());
            }
            if !chunk.more {
                return Ok(all);
            }
        }
    }

    fn leave(&mut self) -> Result<(), Error> {
        Ok(self.send(&Ask::Bye)?)
    }

    fn is_gone(&self) -> bool {
        // It says nothing unless it is asked.
        let peeked = recv(self.socket(), &mut [0], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        !matches!(peeked, Ok((1.., _)) | Err(Errno::AGAIN | Errno::INTR))
    }

    fn wire_bytes(&self) -> u64 {
        tcp_info(self.socket().as_fd()).map_or(0, |info| tcp::wire_bytes(&info))
    }
}

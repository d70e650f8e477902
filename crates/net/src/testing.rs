//! Shared helpers for the tests of queues.

use crate::packet::{Ecn, Packet};

/// A packet with a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parcel {
    pub id: u64,
    pub bytes: u32,
    pub ecn: Ecn,
    pub dscp: u8,
    pub flow: u64,
}

impl Packet for Parcel {
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark(&mut self) {
        assert_ne!(self.ecn, Ecn::NotCapable, "only capable packets are marked");
        self.ecn = Ecn::Congestion;
    }
    fn dscp(&self) -> u8 {
        self.dscp
    }
    fn set_dscp(&mut self, dscp: u8) {
        self.dscp = dscp;
    }
    fn flow(&self) -> u64 {
        self.flow
    }
}

/// An ECN-capable packet of 1500 bytes.
pub fn parcel(id: u64) -> Parcel {
    Parcel { id, bytes: 1500, ecn: Ecn::Capable0, dscp: 0, flow: 0 }
}

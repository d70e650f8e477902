//! A packetdrill script as data: options, settings, and events in order.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Script {
    /// What errors call it.
    pub file: String,
    /// Lines such as `--tolerance_usecs=10000`.
    pub options: Vec<ScriptOption>,
    /// What comments `// elephan: ...` say, which packetdrill ignores.
    pub directives: Vec<Directive>,
    /// What happens, in order.
    pub events: Vec<Event>,
}

/// A line `--name=value`, or `--name`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptOption {
    /// Its line.
    pub line: u32,
    /// The name, without dashes.
    pub name: String,
    /// The value; empty without one.
    pub value: String,
}

/// What one comment `// elephan: ...` says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Directive {
    /// `// elephan: tcp.rack=true, cc=cubic`: a setting of the simulated stack.
    Set(String, String),
    /// `// elephan: kernel differs: REASON`: the kernel does otherwise, so the script is skipped there.
    KernelDiffers(String),
    /// `// elephan: simulator differs: REASON`: the simulator does otherwise, so the script is skipped there.
    SimulatorDiffers(String),
}

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The line of its time.
    pub line: u32,
    /// When it happens.
    pub when: When,
    /// What happens.
    pub action: Action,
    /// Its text in the script, on one line.
    pub text: String,
}

/// The time of an event, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum When {
    /// Between two times since the start of the script, which are mostly the same.
    At(u64, u64),
    /// Between two times since the event before, which are mostly the same.
    After(u64, u64),
    /// `*`: at any time.
    Any,
}

/// What an event is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Action {
    /// `<`: a packet arrives at the stack under test.
    Arrives(Packet),
    /// `>`: the stack under test sends a packet.
    Sends(Packet),
    /// A system call.
    Call(Call),
    /// A command of the shell, in backticks: what it sets.
    Set(Vec<Setting>),
    /// Python code between `%{` and `}%`.
    Code(String),
    /// What the language has and neither stack can do; its name.
    Unsupported(String),
}

/// A setting that a command of the shell makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Setting {
    /// A key such as `net.ipv4.tcp_sack`, and its value.
    Sysctl(String, String),
    /// The initial window of connections, in segments, of a route.
    InitialWindow(u32),
    /// A parameter of one of the kernel's modules, such as `tcp_cubic/parameters/hystart_detect`, and its value.
    Module(String, String),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sysctl(key, value) | Self::Module(key, value) => write!(f, "{key}={value}"),
            Self::InitialWindow(window) => write!(f, "initcwnd {window}"),
        }
    }
}

/// The flags of a TCP header.
pub mod flags {
    /// No more data.
    pub const FIN: u8 = 0x01;
    /// Synchronise sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Reset.
    pub const RST: u8 = 0x04;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// The acknowledgment number is valid.
    pub const ACK: u8 = 0x10;
    /// Urgent.
    pub const URG: u8 = 0x20;
    /// Echo of a congestion mark.
    pub const ECE: u8 = 0x40;
    /// Congestion window reduced.
    pub const CWR: u8 = 0x80;
    /// The letters of a script, in the order in which packetdrill writes them.
    pub const LETTERS: [(char, u8); 8] =
        [('S', SYN), ('F', FIN), ('R', RST), ('P', PSH), ('U', URG), ('E', ECE), ('W', CWR), ('.', ACK)];
}

/// The ECN codepoint of an IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ecn {
    /// Not ECN-capable.
    None,
    /// ECT(0).
    Ect0,
    /// ECT(1).
    Ect1,
    /// Either of the two; only expected, never sent.
    Ect01,
    /// Congestion experienced.
    Ce,
}

/// A TCP packet: of a script, with the script's sequence numbers, or of a stack, with its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packet {
    /// The codepoint; `None` if the script does not say.
    pub ecn: Option<Ecn>,
    /// Flags, as encoded in the header's byte.
    pub flags: u8,
    /// Sequence number of the first byte.
    pub seq: u32,
    /// Payload, in bytes. A script may expect more than fits in one packet.
    pub len: u32,
    /// Acknowledgment number; `None` if the script does not say.
    pub ack: Option<u32>,
    /// The window field, before scaling; `None` if the script does not say.
    pub window: Option<u16>,
    /// Options without padding; `None` for `<...>`, which is not compared.
    pub options: Option<Vec<TcpOption>>,
}

/// An option of a TCP header.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TcpOption {
    /// Maximum segment size.
    Mss(u16),
    /// The shift of later window fields.
    WindowScale(u8),
    /// Selective acknowledgments may be sent.
    SackPermitted,
    /// Timestamps.
    Timestamps {
        /// The sender's clock.
        val: u32,
        /// The echoed value.
        ecr: u32,
    },
    /// Blocks `[left, right)`.
    Sack(Vec<(u32, u32)>),
    /// A cookie of TCP Fast Open, or the request for one, which is empty (RFC 7413, section 4.1.1).
    FastOpen {
        /// Whether it has the kind for experiments (RFC 6994) in place of its own.
        experimental: bool,
        /// The cookie.
        cookie: Vec<u8>,
    },
    /// An option that neither stack has, by name or number.
    Other(String),
}

/// A system call, and its expected result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Name of the call.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<Value>,
    /// The expected result.
    pub result: Value,
    /// The expected error, such as `EAGAIN`.
    pub error: Option<String>,
    /// If it blocks: when it returns, in microseconds since the same origin as its start.
    pub ends: Option<u64>,
}

/// An argument or a result of a system call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// `...`: anything.
    Any,
    /// A number.
    Number(i64),
    /// The name of a constant.
    Word(String),
    /// Text in quotes.
    Text(String),
    /// `a|b`: flags together.
    Flags(Vec<Value>),
    /// `[a, b]`.
    List(Vec<Value>),
    /// `{name = value, ...}`, and what looks like a call within it, such as `htons(8080)`.
    Fields(Vec<(String, Value)>),
}

//! Runs a script against a stack, and compares.
//!
//! Time, sequence numbers and timestamps are as in packetdrill: a relative time counts from the moment when the event before
//! was done, a packet's numbers are relative to the initial ones, and an echoed timestamp stands for the one that the stack sent
//! in its place.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::Ipv4Addr;

use elephan_units::Time;
use serde::{Deserialize, Serialize};

use crate::compare::{self, Numbers};
use crate::script::{
    Action, Call, Directive, Event, Packet, Script, ScriptOption, Setting, TcpOption, Value, When, flags,
};

/// packetdrill's own addresses, of the stack and of the script.
const ADDRESSES: (Ipv4Addr, Ipv4Addr) = (Ipv4Addr::new(192, 168, 0, 1), Ipv4Addr::new(192, 0, 2, 1));
/// The clock runs for not much more.
const LONGEST: Time = Time::from_secs(10_000_000);
/// How long a packet or the end of a call is waited for that may come at any time.
const LONGEST_WAIT: Time = Time::from_secs(130);

/// The result of a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub enum Report {
    /// Every line is as expected.
    Passed,
    /// The script asks for something that has no counterpart here.
    Skipped {
        /// What it asks for.
        reason: String,
        /// The line; 0 for the script as a whole.
        line: u32,
    },
    /// A line is not as expected.
    Failed {
        /// The line.
        line: u32,
        /// Its text.
        text: String,
        /// What was expected.
        expected: String,
        /// What was seen.
        seen: String,
    },
}

/// The result of a script, and what it set in vain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// The result.
    #[serde(flatten)]
    pub report: Report,
    /// Settings `KEY=VALUE` of the kernel that the stack does not know, and that were left out.
    pub ignored: Vec<String>,
}

/// Why a script ends before its last line.
#[derive(Debug)]
pub enum Stop {
    /// It asks for this, which has no counterpart.
    Skip(String),
    /// A line is not as expected: expected, and seen.
    Fail(String, String),
    /// The caller stopped it.
    Cancelled,
    /// The input is wrong.
    Wrong(elephan_scenario::Error),
    /// The kernel refused something: what, and why.
    Kernel(String, std::io::Error),
}

/// The result of code between `%{` and `}%`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Judgement {
    /// It raised nothing.
    Holds,
    /// An assertion failed, or it raised something else: which.
    Fails(String),
    /// It uses a name that does not exist.
    Lacks(String),
    /// The caller stops the script.
    Cancelled,
}

/// Runs a piece of code with these variables, whose names begin with `tcpi_`.
pub type Judge<'a> = &'a mut (dyn FnMut(&str, &BTreeMap<String, i64>) -> Judgement + Send);

/// The result of a system call.
#[derive(Clone, Debug, PartialEq)]
pub struct Returned {
    /// The value.
    pub value: i64,
    /// The error, such as `EAGAIN`, if the value is -1.
    pub error: Option<String>,
    /// What the call wrote to its argument with this number.
    pub out: Option<(usize, Value)>,
}

impl Returned {
    /// Success, with this value.
    pub fn value(value: i64) -> Self {
        Self { value, error: None, out: None }
    }
    /// An error.
    pub fn error(name: &str) -> Self {
        Self { value: -1, error: Some(name.to_owned()), out: None }
    }
}

/// A TCP stack under test, with its clock. Packets have the stack's own numbers.
pub trait Stack {
    /// Time since the script began.
    fn now(&self) -> Time;
    /// Lets time pass.
    fn advance(&mut self, to: Time) -> Result<(), Stop>;
    /// A packet arrives.
    fn arrive(&mut self, packet: &Packet) -> Result<(), Stop>;
    /// The next packet that the stack sent, and when; waits for it until a time.
    fn sent(&mut self, until: Time) -> Result<Option<(Time, Packet)>, Stop>;
    /// Carries out a system call; `None` if it blocks. A new descriptor gets the number of the expected result.
    fn call(&mut self, call: &Call) -> Result<Option<Returned>, Stop>;
    /// The result of the call that blocked, and when it returned; waits for it until a time.
    fn returned(&mut self, until: Time) -> Result<Option<(Time, Returned)>, Stop>;
    /// Makes settings. Returns those that the stack does not know.
    fn set(&mut self, settings: &[Setting]) -> Result<Vec<String>, Stop>;
    /// The state of the connection, by the names of the kernel's `struct tcp_info` with `tcpi_` before them.
    fn info(&mut self) -> Result<BTreeMap<String, i64>, Stop>;
}

/// What the options of a script say.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How far times may be off.
    pub tolerance: Time,
    /// The same as a share of the time since the event before.
    pub tolerance_share: f64,
    /// Length of a tick of the stack's timestamps, if they are to be compared.
    pub tick: Option<Time>,
    /// Whether each packet is one of the script, rather than several together, and PSH is compared.
    pub strict: bool,
    /// Largest packet of the device, bytes.
    pub mtu: u32,
    /// The addresses of the stack and of the script, which Fast Open's cookies depend on.
    pub addresses: (Ipv4Addr, Ipv4Addr),
}

impl Options {
    /// What these options say; one that has no counterpart ends the script, and so does one with a wrong value, at its line.
    pub fn new(options: &[ScriptOption]) -> Result<Self, (u32, Stop)> {
        let mut found = Self {
            tolerance: Time::from_micros(4000),
            tolerance_share: 0.125,
            tick: None,
            strict: false,
            mtu: 1500,
            addresses: ADDRESSES,
        };
        for option in options {
            let text = format!("--{}={}", option.name, option.value);
            let number = || {
                let number = option.value.parse::<f64>().ok().filter(|number| (0.0..1e9).contains(number));
                let expected = format!("--{} with a number of 0 or more", option.name);
                number.ok_or_else(|| (option.line, Stop::Fail(expected, text.clone())))
            };
            match option.name.as_str() {
                "tolerance_usecs" => found.tolerance = Time::from_micros(number()? as u64),
                "tolerance_percent" => found.tolerance_share = number()? / 100.0,
                "tcp_ts_tick_usecs" => {
                    let tick = Time::from_micros(number()? as u64);
                    found.tick = (tick > Time::ZERO).then_some(tick);
                }
                "mtu" => found.mtu = number()? as u32,
                "strict_segments" => found.strict = true,
                "ip_version" if option.value == "ipv4" => {}
                "local_ip" | "remote_ip" => {
                    let Ok(address) = option.value.parse() else {
                        return Err((option.line, Stop::Skip(text)));
                    };
                    let (local, remote) = &mut found.addresses;
                    *(if option.name == "local_ip" { local } else { remote }) = address;
                }
                "gateway_ip" | "netmask_ip" | "bind_port" | "connect_port" | "define" | "code_command"
                | "code_format" | "code_sockopt" | "verbose" | "debug" | "send_omit_free" => {}
                _ => return Err((option.line, Stop::Skip(text))),
            }
        }
        Ok(found)
    }
}

/// Which stack runs a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The simulator's, in virtual time.
    Simulator,
    /// The kernel's.
    Kernel,
}

/// The reason that the script itself gives for not running on a stack.
pub fn differs(script: &Script, engine: Engine) -> Option<&str> {
    script.directives.iter().find_map(|directive| match (directive, engine) {
        (Directive::KernelDiffers(reason), Engine::Kernel)
        | (Directive::SimulatorDiffers(reason), Engine::Simulator) => Some(reason.as_str()),
        _ => None,
    })
}

/// A call that blocks, and when it is to return.
struct Blocked<'a> {
    event: &'a Event,
    call: &'a Call,
    ends: Time,
    tolerance: Time,
}

/// The progress of a script.
pub struct Run<'a, S> {
    script: &'a Script,
    stack: S,
    options: Options,
    /// When the last event was due, and whether it was a packet that arrived.
    last: Option<(Time, bool)>,
    /// What the stack's numbers are when the script's are zero.
    numbers: Numbers,
    /// The stack's timestamps, by the script's.
    stamps: HashMap<u32, u32>,
    /// The first timestamp of the script and of the stack.
    first_stamps: Option<(u32, u32)>,
    blocked: Option<Blocked<'a>>,
    ignored: Vec<String>,
}

impl<'a, S: Stack> Run<'a, S> {
    /// At the beginning of a script.
    pub fn new(script: &'a Script, stack: S, options: Options) -> Self {
        Self {
            script,
            stack,
            options,
            last: None,
            numbers: Numbers::default(),
            stamps: HashMap::new(),
            first_stamps: None,
            blocked: None,
            ignored: Vec::new(),
        }
    }

    /// Runs it to its end.
    pub fn run(mut self, judge: Judge<'_>) -> Result<Done, Stop> {
        let report = self.steps(judge)?;
        self.ignored.dedup();
        Ok(Done { report, ignored: self.ignored })
    }

    fn steps(&mut self, judge: Judge<'_>) -> Result<Report, Stop> {
        let script = self.script;
        for event in &script.events {
            let done = self.step(event, judge).and_then(|()| self.collect(self.stack.now()));
            if let Err(stop) = done {
                return report(event, stop);
            }
        }
        if let Some(event) = self.blocked.as_ref().map(|blocked| blocked.event)
            && let Err(stop) = self.await_blocked()
        {
            return report(event, stop);
        }
        Ok(Report::Passed)
    }

    fn step(&mut self, event: &'a Event, judge: Judge<'_>) -> Result<(), Stop> {
        let arrives = matches!(event.action, Action::Arrives(_));
        let base = match self.last {
            // Packets that arrive one after the other keep their distances.
            Some((due, true)) if arrives => due,
            _ => self.stack.now(),
        };
        let micros = |us: u64| Time::from_micros(us);
        let due = match event.when {
            When::Any => (Time::ZERO, Time::MAX),
            When::At(from, to) => (micros(from), micros(to)),
            When::After(from, to) => (base + micros(from), base + micros(to)),
        };
        if event.when != When::Any && due.1 > LONGEST {
            return Err(Stop::Fail(format!("a script of at most {}", seconds(LONGEST)), seconds(due.1)));
        }
        let since_last = due.0.since(self.last.map_or(Time::ZERO, |(due, _)| due));
        let tolerance = self.options.tolerance.max(since_last.mul_f64(self.options.tolerance_share));
        // A blocked call may return while time passes.
        self.stack.advance(if event.when == When::Any { base } else { due.0 })?;
        if event.when != When::Any {
            let late = self.stack.now().since(due.1);
            if late > tolerance && !matches!(event.action, Action::Sends(_)) {
                let at = seconds(self.stack.now());
                return Err(Stop::Fail(format!("it at {}", seconds(due.0)), format!("it at {at}, too late")));
            }
        }
        match &event.action {
            Action::Arrives(packet) => {
                let packet = self.arriving(packet)?;
                self.stack.arrive(&packet)?;
            }
            Action::Sends(packet) => self.expect(event, packet, due, tolerance)?,
            Action::Call(call) => {
                if self.blocked.is_some() {
                    self.await_blocked()?;
                }
                let blocked = self.stack.call(call)?;
                match (blocked, call.ends) {
                    (Some(returned), None) => check(call, &returned)?,
                    (returned, Some(ends)) => {
                        let ends = match event.when {
                            When::After(..) => base.saturating_add(micros(ends)),
                            _ => micros(ends),
                        };
                        let lasts = ends.since(due.0).mul_f64(self.options.tolerance_share);
                        let tolerance = self.options.tolerance.max(lasts);
                        let blocked = Blocked { event, call, ends, tolerance };
                        match returned {
                            Some(returned) => blocked.check(self.stack.now(), &returned)?,
                            None => self.blocked = Some(blocked),
                        }
                    }
                    (None, None) => match self.stack.returned(self.stack.now() + self.options.tolerance)? {
                        Some((_, returned)) => check(call, &returned)?,
                        None => return Err(Stop::Fail(result(call), "nothing: the call blocks".to_owned())),
                    },
                }
            }
            Action::Set(settings) => self.ignored.extend(self.stack.set(settings)?),
            Action::Code(code) => {
                let info = self.stack.info()?;
                match judge(code, &info) {
                    Judgement::Holds => {}
                    Judgement::Fails(seen) => {
                        let values = mentioned(code, &info);
                        return Err(Stop::Fail(code.clone(), [seen, values].join("; ")));
                    }
                    Judgement::Lacks(name) => return Err(Stop::Skip(name)),
                    Judgement::Cancelled => return Err(Stop::Cancelled),
                }
            }
            Action::Unsupported(name) => return Err(Stop::Skip(name.clone())),
        }
        let due = if event.when == When::Any { self.stack.now() } else { due.0 };
        self.last = Some((due, arrives));
        Ok(())
    }

    /// Checks the blocked call if it has returned by `until`.
    fn collect(&mut self, until: Time) -> Result<(), Stop> {
        if self.blocked.is_none() {
            return Ok(());
        }
        let Some((at, returned)) = self.stack.returned(until)? else { return Ok(()) };
        let blocked = self.blocked.take().expect("it was there");
        blocked.check(at, &returned).map_err(|stop| blocked.with_line(stop))
    }

    /// Waits for the blocked call.
    fn await_blocked(&mut self) -> Result<(), Stop> {
        let Some(blocked) = &self.blocked else { return Ok(()) };
        let latest = blocked.ends + blocked.tolerance;
        self.collect(latest)?;
        match self.blocked.take() {
            None => Ok(()),
            Some(blocked) => {
                let expected = format!("{} at {}", result(blocked.call), seconds(blocked.ends));
                Err(blocked.with_line(Stop::Fail(expected, "nothing: the call blocks".to_owned())))
            }
        }
    }

    /// Waits for the packet that the script expects, or for several that together are it.
    fn expect(
        &mut self,
        event: &Event,
        packet: &Packet,
        due: (Time, Time),
        tolerance: Time,
    ) -> Result<(), Stop> {
        let latest = match event.when {
            When::Any => self.stack.now() + LONGEST_WAIT,
            _ => due.1 + tolerance,
        };
        let mut expected = packet.clone();
        loop {
            let Some((at, seen)) = self.stack.sent(latest)? else {
                let seen = format!("nothing until {}", seconds(latest));
                return Err(Stop::Fail(expectation(&expected, due, event.when), seen));
            };
            let seen = self.numbers.of_stack(&seen, &expected);
            let part = (!self.options.strict).then(|| compare::first_part(&expected, &seen)).flatten();
            let compared = part.as_ref().map_or(&expected, |(first, _)| first);
            let mut differences = compare::differences(compared, &seen, self.options.strict);
            differences.extend(self.stamp(compared, &seen));
            if at + tolerance < due.0 || at > latest {
                differences.insert(0, "time");
            }
            if !differences.is_empty() {
                let seen = format!(
                    "{} at {} (differs: {})",
                    compare::text(&seen),
                    seconds(at),
                    differences.join(", ")
                );
                return Err(Stop::Fail(expectation(compared, due, event.when), seen));
            }
            match part {
                Some((_, rest)) => expected = rest,
                None => return Ok(()),
            }
        }
    }

    /// Learns which timestamp of the stack stands for one of the script, and compares both if the script asks for it.
    fn stamp(&mut self, expected: &Packet, seen: &Packet) -> Option<&'static str> {
        let (script, stack) = (timestamp(expected)?, timestamp(seen)?);
        self.stamps.insert(script, stack);
        let (first_script, first_stack) = *self.first_stamps.get_or_insert((script, stack));
        let tick = self.options.tick?;
        let apart =
            script.wrapping_sub(first_script).wrapping_sub(stack.wrapping_sub(first_stack)).cast_signed();
        // As in packetdrill: a clock may be off by the share of the time since the script began.
        let share = self.stack.now().mul_f64(self.options.tolerance_share);
        (tick * u64::from(apart.unsigned_abs()) > self.options.tolerance.max(share)).then_some("timestamp")
    }

    /// A packet that arrives, with the stack's numbers.
    fn arriving(&mut self, packet: &Packet) -> Result<Packet, Stop> {
        let mut packet = self.numbers.of_script(packet);
        for option in packet.options.iter_mut().flatten() {
            match option {
                // A segment without an acknowledgment echoes nothing (RFC 7323, section 3.2).
                TcpOption::Timestamps { ecr, .. }
                    if packet.flags & flags::ACK != 0 && *ecr != 0 || self.stamps.contains_key(ecr) =>
                {
                    *ecr = *self.stamps.get(ecr).ok_or_else(|| {
                        let expected = "an echo of a timestamp that the script expected before";
                        Stop::Fail(expected.to_owned(), format!("ecr {ecr}"))
                    })?;
                }
                TcpOption::Other(name) => return Err(Stop::Skip(format!("the TCP option {name}"))),
                _ => {}
            }
        }
        Ok(packet)
    }
}

impl Blocked<'_> {
    fn check(&self, at: Time, returned: &Returned) -> Result<(), Stop> {
        check(self.call, returned)?;
        if at.since(self.ends).max(self.ends.since(at)) > self.tolerance {
            let expected = format!("{} at {}", result(self.call), seconds(self.ends));
            return Err(Stop::Fail(expected, format!("it at {}", seconds(at))));
        }
        Ok(())
    }

    /// Names the line of the call, which began before the event at hand.
    fn with_line(&self, stop: Stop) -> Stop {
        match stop {
            Stop::Fail(expected, seen) => {
                Stop::Fail(format!("line {}, {}: {expected}", self.event.line, self.call.name), seen)
            }
            other => other,
        }
    }
}

/// The report of a script that ends here.
fn report(event: &Event, stop: Stop) -> Result<Report, Stop> {
    let line = event.line;
    match stop {
        Stop::Skip(reason) => Ok(Report::Skipped { reason, line }),
        Stop::Fail(expected, seen) => Ok(Report::Failed { line, text: event.text.clone(), expected, seen }),
        other => Err(other),
    }
}

fn timestamp(packet: &Packet) -> Option<u32> {
    packet.options.iter().flatten().find_map(|option| match option {
        TcpOption::Timestamps { val, .. } => Some(*val),
        _ => None,
    })
}

/// Compares the result of a call.
fn check(call: &Call, returned: &Returned) -> Result<(), Stop> {
    let is_same = match &call.result {
        Value::Number(number) => {
            *number == returned.value && (call.error.is_none() || call.error == returned.error)
        }
        _ => true,
    };
    let argument = returned.out.as_ref().and_then(|(index, out)| Some((call.arguments.get(*index)?, out)));
    let is_same = is_same
        && argument.is_none_or(|(expected, out)| match expected {
            Value::List(items) if items.len() == 1 => match (&items[0], out) {
                (Value::Any, _) => true,
                // Options have 32 bits, which a script may write with a sign or without one.
                (Value::Number(expected), Value::Number(out)) => *expected as u32 == *out as u32,
                (expected, out) => expected == out,
            },
            Value::Any => true,
            other => other == out,
        });
    if is_same {
        return Ok(());
    }
    let mut seen = format!("= {}", returned.value);
    if let Some(error) = &returned.error {
        seen = format!("{seen} {error}");
    }
    if let Some((_, out)) = &argument {
        seen = format!("{seen}, [{}]", shown(out));
    }
    Err(Stop::Fail(result(call), seen))
}

fn shown(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        Value::Word(text) => text.clone(),
        Value::Text(text) => format!("\"{text}\""),
        Value::Flags(all) => all.iter().map(shown).collect::<Vec<_>>().join("|"),
        Value::Fields(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name}={}", shown(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        _ => "...".to_owned(),
    }
}

/// The expected result of a call, as the script writes it.
fn result(call: &Call) -> String {
    let error = call.error.as_ref().map(|error| format!(" {error}")).unwrap_or_default();
    format!("= {}{error}", shown(&call.result))
}

fn expectation(packet: &Packet, (from, to): (Time, Time), when: When) -> String {
    let packet = compare::text(packet);
    match when {
        When::Any => packet,
        _ if from == to => format!("{packet} at {}", seconds(from)),
        _ => format!("{packet} from {} to {}", seconds(from), seconds(to)),
    }
}

fn seconds(time: Time) -> String {
    format!("{:.6} s", time.secs_f64())
}

/// The variables that a piece of code names, with their values.
fn mentioned(code: &str, info: &BTreeMap<String, i64>) -> String {
    let is_named =
        |name: &str| code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
    let values =
        info.iter().filter(|(name, _)| is_named(name)).map(|(name, value)| format!("{name} = {value}"));
    values.collect::<Vec<_>>().join(", ")
}

/// Packets that a stack sent and the script has not yet come to.
pub type Sent = VecDeque<(Time, Packet)>;

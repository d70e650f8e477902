//! Watches the TCP connections of programs that this process starts, whatever they are, and records them.
//!
//! A socket belongs to a process whose `/proc/PID/fd` has its inode. The processes are polled, so a connection that ends between two
//! polls may be missed. The state of a socket is read by sock_diag(7): no program is changed, and no packet is touched.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use elephan_units::Time;
use rustix::process::{Pid, child_subreaper, getpid, set_child_subreaper};

use crate::diag::{Diag, LISTEN, SYN_SENT, Socket};
use crate::record::Record;
use crate::{Recorded, TcpInfo};

/// Time between polls, unless samples are wanted more often; longer where there are many connections, so that polls take a tenth of
/// the time of one processor.
const POLL: Duration = Duration::from_millis(5);
const SHARE: u32 = 10;
/// Longest time after the end of a program in which data that it left in its sockets are watched.
const DRAIN: Time = Time::from_secs(5);
/// The kernel reports the removal of a socket within this time.
const REPORT: Time = Time::from_millis(100);

/// What was seen of programs.
#[derive(Default)]
pub struct Watched {
    /// The connections, as flows; none if there was none.
    pub recorded: Option<Recorded>,
    /// Of each flow: the kernel's name of the congestion control, when it began (s), and the bytes that it received.
    pub flows: Vec<(String, f64, u64)>,
    /// Connections.
    pub connections: u64,
    /// Connections without `TCP_INFO`.
    pub without_info: u64,
    /// Processes of other users, whose sockets cannot be found.
    pub foreign: usize,
}

/// Watches the programs that this process starts from now on, and those that they start.
pub struct Watcher {
    _former: Subreaper,
    diag: Diag,
    interval: Time,
    record: Record,
    connections: BTreeMap<u64, Connection>,
    /// Inodes of sockets that the kernel's list has, and of those that it does not have: of another kind, or not connected yet.
    known: BTreeSet<u32>,
    unknown: BTreeSet<u32>,
    /// When the list was last asked for.
    listed: Time,
    foreign: BTreeSet<u32>,
    /// Processes that this one had started before.
    earlier: Vec<u32>,
    watched: Watched,
}

/// Whether orphans become children of this process, as it was before and is again.
struct Subreaper(Option<Pid>);

impl Drop for Subreaper {
    fn drop(&mut self) {
        // What fails here leaves orphans to this process, which does not wait for them.
        let _ = set_child_subreaper(self.0);
    }
}

struct Connection {
    socket: Socket,
    /// That of the socket, which has none when the kernel removes it.
    inode: u32,
    start: Time,
    received: u64,
    /// Its number in the record, once it is established.
    flow: Option<usize>,
    /// When it was first missing.
    gone: Option<Time>,
    /// Whether its last state is known.
    is_over: bool,
}

impl Watcher {
    /// Samples are kept at the interval, which is not zero. Fails where the kernel does not have sock_diag, or lists of children.
    pub fn new(interval: Time) -> io::Result<Self> {
        let diag = Diag::open()?;
        fs::metadata("/proc/thread-self/children")?;
        let former = Subreaper(child_subreaper()?);
        // A program whose parent ends becomes a child of this process, and is still watched.
        set_child_subreaper(Some(getpid()))?;
        Ok(Self {
            _former: former,
            diag,
            interval,
            record: Record::new(interval),
            connections: BTreeMap::new(),
            known: BTreeSet::new(),
            unknown: BTreeSet::new(),
            listed: Time::ZERO,
            foreign: BTreeSet::new(),
            earlier: children(process::id()),
            watched: Watched::default(),
        })
    }

    /// Watches until `is_over`, and then until what the programs left in their sockets is acknowledged, for some seconds at most.
    pub fn run(mut self, is_over: impl Fn() -> bool) -> Watched {
        let poll = POLL.min(Duration::from_secs_f64(self.interval.secs_f64()));
        let began = Instant::now();
        let now = || Time::from_secs_f64(began.elapsed().as_secs_f64());
        let mut ended = None;
        loop {
            let start = Instant::now();
            // Asked first, so that the last look comes after it.
            if is_over() {
                ended.get_or_insert_with(now);
            } else {
                self.discover(now());
            }
            let at = now();
            self.look(at);
            if ended.is_some_and(|ended| at.since(ended) > DRAIN || !self.drains()) {
                return self.finish(now());
            }
            thread::sleep(poll.max(start.elapsed() * (SHARE - 1)));
        }
    }

    /// Finds the connections of all processes to watch.
    fn discover(&mut self, at: Time) {
        let (mut inodes, mut processes) = (BTreeSet::new(), children(process::id()));
        processes.retain(|process| !self.earlier.contains(process));
        while let Some(process) = processes.pop() {
            match inodes_of(process, &mut inodes) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied && has_memory(process) => {
                    self.foreign.insert(process);
                }
                // It has ended.
                Ok(()) | Err(_) => {}
            }
            processes.extend(children(process));
        }
        self.known.retain(|inode| inodes.contains(inode));
        let unknown: BTreeSet<u32> = inodes.difference(&self.known).copied().collect();
        let is_new = !unknown.is_subset(&self.unknown);
        self.unknown = unknown;
        let is_due = !self.unknown.is_empty() && at.since(self.listed) >= self.interval;
        if !is_new && !is_due {
            return;
        }
        self.listed = at;
        // If the kernel has no memory for its answer, it is asked again.
        for socket in self.diag.list().unwrap_or_default() {
            if self.unknown.remove(&socket.inode) {
                self.known.insert(socket.inode);
                if socket.state != LISTEN {
                    let inode = socket.inode;
                    let connection = Connection {
                        socket,
                        inode,
                        start: at,
                        received: 0,
                        flow: None,
                        gone: None,
                        is_over: false,
                    };
                    self.connections.entry(connection.socket.cookie()).or_insert(connection);
                }
            }
        }
    }

    /// Looks at all connections.
    fn look(&mut self, at: Time) {
        let Self { diag, record, connections, known, watched, .. } = self;
        let mut infos: Vec<(usize, TcpInfo)> = Vec::new();
        for connection in connections.values_mut().filter(|one| one.gone.is_none()) {
            match diag.look(&connection.socket) {
                Ok(None) => connection.gone = Some(at),
                Ok(Some(now)) if now.state == SYN_SENT => {}
                Ok(Some(now)) => infos.extend(connection.update(now, record, watched)),
                Err(_) => {}
            }
        }
        for socket in diag.removed().unwrap_or_default() {
            if let Some(connection) = connections.get_mut(&socket.cookie()) {
                connection.gone = connection.gone.or(Some(at));
                connection.is_over = true;
                infos.extend(connection.update(socket, record, watched));
            }
        }
        record.look(at, infos);
        connections.retain(|_, connection| {
            connection.is_over |= connection.gone.is_some_and(|gone| at.since(gone) >= REPORT);
            if connection.is_over && connection.gone.is_some() {
                // The program may connect the socket again.
                known.remove(&connection.inode);
            }
            if connection.is_over
                && let Some(flow) = connection.flow
            {
                record.end(flow, connection.gone.unwrap_or(at));
            }
            !connection.is_over
        });
    }

    /// Whether more is to come of connections although the programs are over.
    fn drains(&self) -> bool {
        self.connections.values().any(|one| one.gone.is_some() || one.socket.drains())
    }

    fn finish(mut self, end: Time) -> Watched {
        self.watched.foreign = self.foreign.len();
        if !self.watched.flows.is_empty() {
            self.watched.recorded = Some(self.record.finish(end, []));
        }
        self.watched
    }
}

impl Connection {
    /// Takes its new state, and returns it with its number in the record.
    fn update(
        &mut self,
        mut now: Socket,
        record: &mut Record,
        watched: &mut Watched,
    ) -> Option<(usize, TcpInfo)> {
        // A socket that is removed has no name of an algorithm any more.
        if now.cc.is_empty() {
            now.cc = std::mem::take(&mut self.socket.cc);
        }
        self.socket = now;
        let Some(info) = self.socket.info else {
            watched.without_info += 1;
            self.is_over = true;
            return None;
        };
        // The counters of a socket that is disconnected begin at zero again.
        self.received = self.received.max(info.bytes_received);
        // It was refused.
        if self.is_over && self.flow.is_none() && info.bytes_acked + info.bytes_received == 0 {
            return None;
        }
        if self.flow.is_none() {
            watched.connections += 1;
            self.flow = record.begin(format!("{} ({})", self.socket.peer(), self.socket.port()), self.start);
            self.is_over |= self.flow.is_none();
        }
        let flow = self.flow?;
        watched.flows.resize_with(watched.flows.len().max(flow + 1), Default::default);
        watched.flows[flow] = (self.socket.cc.clone(), self.start.secs_f64(), self.received);
        Some((flow, info))
    }
}

/// The processes that one has started and that have not ended.
fn children(process: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Whether a process has memory; one that has ended has none, and a directory of files that nobody may read.
fn has_memory(process: u32) -> bool {
    fs::read(format!("/proc/{process}/cmdline")).is_ok_and(|line| !line.is_empty())
}

/// Adds the inodes of the sockets that a process has.
fn inodes_of(process: u32, inodes: &mut BTreeSet<u32>) -> io::Result<()> {
    for file in fs::read_dir(format!("/proc/{process}/fd"))?.flatten() {
        let target = fs::read_link(file.path()).unwrap_or_default();
        inodes.extend(target.to_str().and_then(inode));
    }
    Ok(())
}

/// The inode in `socket:[4026]`.
fn inode(target: &str) -> Option<u32> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::process::{Command, Stdio};

    use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, connect_unspec, socket_with};

    use super::*;

    #[test]
    fn each_connection_of_a_socket_is_seen() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let kind = SocketType::STREAM;
        let socket = socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None).unwrap();
        let mut watcher = Watcher::new(Time::from_millis(100)).unwrap();
        // It has the socket until its input ends.
        let holds = socket.try_clone().unwrap();
        let mut holder = Command::new("cat").stdin(Stdio::piped()).stdout(holds).spawn().unwrap();
        let mut at = Time::ZERO;
        let mut look = || {
            watcher.discover(at);
            watcher.look(at);
            at += Time::from_secs(1);
            watcher.watched.connections
        };
        let seen = [1, 2].map(|_| {
            connect(&socket, &address).unwrap();
            let seen = look();
            connect_unspec(&socket).unwrap();
            // It is missing, and then its last state is not reported in time.
            look();
            look();
            seen
        });
        holder.wait().unwrap();
        assert_eq!(seen, [1, 2]);
    }

    #[test]
    fn a_link_of_a_process_names_the_inode_of_its_socket() {
        assert_eq!(inode("socket:[4026]"), Some(4026));
        for other in [
            "pipe:[4026]",
            "socket:[]",
            "socket:[-1]",
            "socket:[99999999999]",
            "/tmp/socket:[1]",
            "socket:[1",
        ] {
            assert_eq!(inode(other), None, "{other}");
        }
    }
}

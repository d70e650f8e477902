//! The threads of a stream: one reads what is to be sent, and one sends it.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, Scope};
use std::time::Instant;

use super::{IDLE, LOOK, Sender, Shared};
use crate::Error;
use crate::carry::Stream;
use crate::frame::{Head, Kind};
use crate::hash::BLOCK;
use crate::source::{Source, Unit};

/// Blocks of a stream that are read and not sent yet.
const AHEAD: usize = 2;

impl Sender<'_> {
    /// Starts the threads of a stream: one that reads, and one that sends.
    pub(super) fn spawn<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        mut stream: Stream,
        shared: &'scope Shared,
    ) {
        let Some(source) = self.source else {
            scope.spawn(move || {
                self.stop.heed(|| send_memory(&mut stream, shared).map_err(|error| self.patient(error)));
            });
            return;
        };
        let (filled, to_send) = mpsc::sync_channel(AHEAD);
        let (returned, free) = mpsc::channel();
        for _ in 0..=AHEAD {
            let _ = returned.send(Vec::new());
        }
        scope.spawn(move || read(source, shared, &filled, &free));
        scope.spawn(move || {
            self.stop.heed(|| {
                loop {
                    let waits = Instant::now();
                    let next: Result<(Head, Vec<u8>), _> = to_send.recv_timeout(IDLE);
                    shared.waited_ns.fetch_add(waits.elapsed().as_nanos() as u64, Ordering::Relaxed);
                    let (head, data) = match next {
                        Ok(next) => next,
                        Err(RecvTimeoutError::Timeout) => (Head::plain(Kind::Idle, 0), Vec::new()),
                        Err(RecvTimeoutError::Disconnected) => break,
                    };
                    stream.send(&head, &data).map_err(|error| self.patient(error))?;
                    // Its reader may have ended.
                    let _ = returned.send(data);
                }
                stream.send(&Head::plain(Kind::End, 0), &[]).map_err(|error| self.patient(error))
            });
        });
    }

    /// A stream that was closed has no reason of its own: the receiver says it in the session that controls the transfer. Waits
    /// for that a little.
    fn patient(&self, error: Error) -> Error {
        let since = Instant::now();
        while matches!(error, Error::Session(elephan_session::Error::Closed))
            && !self.stop.has_failed()
            && since.elapsed() < self.options.patience.min(2 * IDLE)
        {
            thread::sleep(LOOK);
        }
        error
    }
}

fn send_memory(stream: &mut Stream, shared: &Shared) -> Result<(), Error> {
    // Not zeros: something on the way might compress them.
    let mut data = vec![0; BLOCK as usize];
    blake3::Hasher::new().finalize_xof().fill(&mut data);
    loop {
        let next = shared.work.lock().expect("nobody panics with it").next(&[]);
        let Some(Unit::Memory(bytes)) = next else { break };
        stream.send(&Head::plain(Kind::Memory, bytes), &data[..bytes as usize])?;
    }
    stream.send(&Head::plain(Kind::End, 0), &[])
}

/// Reads what is to be sent, until there is no more or the stream has ended. A file that cannot be read is left out, and the
/// receiver is told why.
fn read(
    source: &Source,
    shared: &Shared,
    filled: &mpsc::SyncSender<(Head, Vec<u8>)>,
    free: &mpsc::Receiver<Vec<u8>>,
) {
    let left = |file: u32, problem: &io::Error| {
        shared.work.lock().expect("nobody panics with it").skip(file);
        let text = problem.to_string().into_bytes();
        (Head { file, ..Head::plain(Kind::Left, text.len() as u32) }, text)
    };
    let mut opened: Option<(u32, Arc<File>)> = None;
    loop {
        let next = shared.work.lock().expect("nobody panics with it").next(&source.entries);
        let (Some(unit), Ok(mut data)) = (next, free.recv()) else { return };
        data.clear();
        let sent = match unit {
            Unit::Block { file, block } => {
                let read = match &opened {
                    Some((number, opened)) if *number == file => Ok(Arc::clone(opened)),
                    _ => source.open(file).map(Arc::new),
                };
                let read = read.and_then(|now| {
                    opened = Some((file, Arc::clone(&now)));
                    source.block(file, &now, block, &mut data)
                });
                filled.send(match read {
                    Ok(hash) => {
                        let length = data.len() as u32;
                        (Head { kind: Kind::Block, length, file, block: block as u32, hash }, data)
                    }
                    Err(problem) => left(file, &problem),
                })
            }
            Unit::Pack(files) => {
                let problems = source.pack(&files, &mut data);
                let hash = *blake3::hash(&data).as_bytes();
                let head = Head { hash, ..Head::plain(Kind::Pack, data.len() as u32) };
                let sent = filled.send((head, data));
                problems
                    .iter()
                    .fold(sent, |sent, (file, problem)| sent.and_then(|()| filled.send(left(*file, problem))))
            }
            Unit::Memory(_) => return,
        };
        if sent.is_err() {
            return;
        }
    }
}

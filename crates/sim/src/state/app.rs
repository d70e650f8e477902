//! The application of a flow that writes over time, while a plan is carried out.

use std::collections::VecDeque;

use elephan_tcp::Endpoint;
use elephan_traffic::Writer;
use elephan_units::{Seed, Time};

use crate::state::connection::Transfer;

/// The application of a flow: what it writes when, and the chunks that are not acknowledged.
///
/// It does not wait for room in the send buffer: what the socket does not take waits in the application, in order, and the delay of a
/// chunk counts from when it is due.
pub struct App {
    writer: Writer,
    /// When it closes the connection; `Time::MAX` once it has.
    stop: Time,
    /// Whether it writes no more.
    is_over: bool,
    /// Number of chunks written.
    written: u64,
    /// Chunks that were written and are not acknowledged, in order.
    chunks: VecDeque<Transfer>,
    /// Payload of those before them, all acknowledged.
    acked: u64,
}

impl App {
    /// The application of flow number `flow`, which starts at `now`.
    pub fn new(app: &elephan_traffic::App, stop: Option<Time>, seed: Seed, flow: u32, now: Time) -> Self {
        Self {
            writer: Writer::new(app, seed, flow.into(), now),
            stop: stop.unwrap_or(Time::MAX),
            is_over: false,
            written: 0,
            chunks: VecDeque::new(),
            acked: 0,
        }
    }

    /// When it next does something.
    pub fn turn(&self) -> Time {
        if self.is_over { Time::MAX } else { self.writer.next().min(self.stop) }
    }

    /// The time of [`App::turn`] has come: writes a chunk, or closes when it stops. What was written is still delivered then.
    pub fn take_turn(&mut self, endpoint: &mut Endpoint, now: Time) {
        if self.stop <= now || endpoint.is_reset() {
            self.is_over = true;
            endpoint.close();
        } else if let Some(size) = self.writer.write() {
            endpoint.write(size);
            self.chunks.push_back(Transfer { number: self.written, size, opened_at: now });
            self.written += 1;
        }
    }

    /// Of its data `acked` bytes are acknowledged: the next chunk of which all is, if there is one.
    pub fn acknowledge(&mut self, acked: u64, now: Time) -> Option<Transfer> {
        let end = self.acked.saturating_add(self.chunks.front()?.size);
        if end > acked {
            return None;
        }
        self.acked = end;
        let chunk = self.chunks.pop_front();
        if self.chunks.is_empty() {
            self.writer.acknowledged(now);
        }
        chunk
    }

    /// The chunks that are not acknowledged.
    pub fn unfinished(&self) -> impl Iterator<Item = Transfer> {
        self.chunks.iter().copied()
    }
}

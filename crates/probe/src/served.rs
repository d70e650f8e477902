//! What a server keeps of a session, and what it permits. Nothing here reads a socket or a clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::Error;
use crate::datagram::HEADER_BYTES;
use crate::limits::{Limits, Meter};
use crate::message::{Answer, Arrivals, BYTES_PER_ARRIVAL, BYTES_PER_TEST};
use crate::registry::{Live, MOST_DATAGRAMS, Receiving, lock};

/// How long a server may take to answer, a stranger to show the token, and an admitted client to say the next thing.
/// No test of the gate ends by it.
pub const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 1_000_000 } else { 10 });

/// A session that is being served. Times are those since it began.
pub struct Served {
    pub live: Arc<Live>,
    pub limits: Limits,
    pub meter: Meter,
    pub v6: bool,
    /// Datagrams that the server's socket has dropped for want of space.
    overflowed: Arc<AtomicU32>,
    /// What that was when the stream began.
    overflowed_before: u32,
    /// How long the client says nothing, because a stream is under way.
    silence: Duration,
}

impl Served {
    /// A session that begins.
    pub fn new(live: Arc<Live>, limits: Limits, v6: bool, overflowed: Arc<AtomicU32>) -> Self {
        let (meter, silence) = (Meter::new(limits.bytes), Duration::ZERO);
        Self { live, limits, meter, v6, overflowed, overflowed_before: 0, silence }
    }

    /// When the session ends.
    pub fn ends(&self) -> Duration {
        Duration::from_millis(self.limits.millis)
    }

    /// How long the client may take until it asks for the next thing; an error if its time is over.
    pub fn patience(&mut self, now: Duration) -> Result<Duration, Error> {
        // The client keeps to the time, but its host may stand still before it asks for what it sent in time.
        let left = (self.ends() + PATIENCE).saturating_sub(now);
        if left.is_zero() {
            return Err(Error::Wrong("expected the session to end in time, found it going on".to_owned()));
        }
        Ok(left.min(PATIENCE + std::mem::take(&mut self.silence)))
    }

    /// Whether a stream is permitted, during which the client says nothing for `millis`; if so, its datagrams are received from now
    /// on.
    pub fn stream(&mut self, stream: u32, echo: bool, count: u32, bytes: u64, millis: u64) -> Answer {
        self.silence = Duration::from_millis(millis);
        if count == 0 || count > MOST_DATAGRAMS || bytes < u64::from(count) * HEADER_BYTES as u64 {
            return Answer::Refused(format!(
                "expected a stream of 1 to {MOST_DATAGRAMS} datagrams, found {count} of {bytes} bytes in total"
            ));
        }
        let echoed = if echo { bytes } else { 0 };
        let cost = (bytes.saturating_add(echoed))
            .saturating_add(u64::from(count) * BYTES_PER_ARRIVAL + BYTES_PER_TEST);
        if let Some(refused) = self.refuse(cost, cost) {
            return refused;
        }
        *lock(&self.live.receiving) = Some(Receiving::new(stream, echo, count, bytes));
        self.overflowed_before = self.overflowed.load(Ordering::Relaxed);
        Answer::Ready
    }

    /// Spends the bytes of a test, of which the client knows `bytes`; returns a refusal if they do not fit.
    pub fn refuse(&mut self, cost: u64, bytes: u64) -> Option<Answer> {
        let fits = self.meter.take(cost);
        let left = self.meter.left();
        (!fits).then(|| Answer::Refused(format!("expected at most {left} bytes more, found {bytes}")))
    }

    /// What arrived of a stream, which is over.
    pub fn arrivals(&self, stream: u32) -> Arrivals {
        let receiving = lock(&self.live.receiving).take().filter(|receiving| receiving.is(stream));
        let mut all = receiving.map(|receiving| receiving.arrivals).unwrap_or_default();
        all.overflowed = self.overflowed.load(Ordering::Relaxed).saturating_sub(self.overflowed_before);
        all
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::{PATIENCE, Served};
    use crate::limits::Limits;
    use crate::registry::Live;

    #[test]
    fn patience_covers_a_stream_and_ends_with_the_session() {
        let live = Live::new(1, [[1; 32], [2; 32], [3; 32]]);
        let limits = Limits { bytes: 1_000_000, millis: 60_000, rate: u64::MAX };
        let mut served = Served::new(live, limits, false, Arc::default());
        let patience = |served: &mut Served, seconds| served.patience(Duration::from_secs(seconds)).ok();
        assert_eq!(patience(&mut served, 0), Some(PATIENCE));
        served.stream(1, false, 1, 100, 30_000);
        assert_eq!(patience(&mut served, 0), Some(PATIENCE + Duration::from_secs(30)));
        // Once for each stream.
        assert_eq!(patience(&mut served, 0), Some(PATIENCE));
        let end = 60 + PATIENCE.as_secs();
        assert_eq!(patience(&mut served, end - 1), Some(Duration::from_secs(1)));
        assert_eq!(patience(&mut served, end), None);
    }
}

//! Hosts whose processor takes time: packets that wait for the processor, and segments that wait for room in
//! the device queue.

use elephan_metrics::trace::EventKind;
use elephan_tcp::Segment;
use elephan_units::Time;

use crate::engine::site::Running;
use crate::engine::source::Source;
use crate::state::connection::SENDER;
use crate::state::timers::Timer;

impl<const DETAILED: bool> Running<'_, '_, DETAILED> {
    /// The processor of a sending host does one thing at a time: first a processed packet takes effect; then
    /// the segments that may be sent are sent; then the next packet of the backlog is processed.
    pub(super) fn work(&mut self, number: u32, now: Time) {
        let slot = self.site.place(number);
        while let Some(Some(host)) = self.site.hosts.get_mut(slot)
            && host.is_free(now)
            && let Some(connection) = &mut self.site.slots[slot].connection
        {
            if let Some(packet) = host.processed()
                && connection.half.number as u16 == packet.head.connection
            {
                connection.half.endpoint.on_segment(&packet.segment(), packet.is_marked(), now);
                if DETAILED {
                    self.tell_of_slot(EventKind::Receive, number, Some(&packet.head.header), now);
                }
            }
            if self.device_has_room(slot, now) && self.transmit(number, SENDER, now) {
                self.site.hosts[slot].iter_mut().for_each(|host| host.sent(now));
                if !self.site.steps.are_left() && self.stops(Source::Slot(number), now) {
                    return;
                }
                continue;
            }
            let sender = self.site.slots[slot].sender();
            let walk = |segment: &Segment| sender.map_or((0, 0), |sender| sender.sack_walk(segment));
            if !self.site.hosts[slot].as_mut().is_some_and(|host| host.take(walk, now)) {
                break;
            }
        }
        let next = self.site.hosts[slot].as_ref().map_or(Time::MAX, |host| host.next(now));
        self.site.timers.schedule(Timer::Host(number), next);
    }

    /// Whether the device's queue has room for what a sender would send. If it has none, the sender is
    /// notified.
    fn device_has_room(&mut self, slot: usize, now: Time) -> bool {
        let Some(limit) = self.site.hosts[slot].as_ref().and_then(|host| host.device_limit()) else {
            return true;
        };
        let Some(connection) = &mut self.site.slots[slot].connection else { return false };
        let (device, wire) = self.part.near_end_at(connection.half.start);
        let sender = &mut connection.half.endpoint;
        let has_room = device.waiting(wire, now).packets < limit;
        if !has_room && sender.would_send(now) {
            sender.on_local_congestion(now);
        }
        has_room
    }

    /// A sender's timer that was handled and is still due waits for its host: for the processor, which has an
    /// event of its own when it becomes free, or for room in the device queue. Its later timers do not wait.
    pub(super) fn hold(&mut self, number: u32, now: Time) {
        let slot = self.site.place(number);
        let Some(Some(host)) = self.site.hosts.get(slot) else { return };
        let Some(connection) = &mut self.site.slots[slot].connection else { return };
        let half = &mut connection.half;
        if half.wake > now {
            return;
        }
        let room = if host.is_free(now) {
            let (device, wire) = self.part.near_end_at(half.start);
            device.next_start(wire, now)
        } else {
            Time::MAX
        };
        let turn = if connection.has_app { connection.turn } else { Time::MAX };
        let next = room.min(half.endpoint.poll_timeout_after(now)).min(turn);
        half.wake = next;
        self.site.timers.schedule(Timer::End(number, SENDER), next);
    }
}

"""Captures (pcap, pcapng) of TCP, taken anywhere on the path.

The round trip of a packet has two parts: from the capture to the receiver and back, which acknowledgments time, and from the
capture to the sender and back, which timestamps time (RFC 7323: the sender echoes them). At the sender the second is about
zero, at the receiver the first. The queue is in the part that varies; of the other the minimum is taken.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elephan import _core
from elephan.paths.observed import Observed, by_row, together

# Connections with a smaller share of the bytes of the largest are left out: they are not the transfer.
LEAST_SHARE = 0.01
NEW, SEEN, LATE = 0, 1, 2
# A hole that is filled within this share of a round trip was reordering: a retransmission takes a whole one.
REORDERED_WITHIN = 0.5
# The sender's side takes at most this share of a round trip where a capture is at the sender.
AT_SENDER = 0.05
# The largest payload of a packet that is no super-segment of a network card or of GRO: jumbo frames.
MOST_PAYLOAD, USUAL_MSS = 8960, 1448


def observe(paths: Sequence[Path]) -> Observed:
    """What captures show of the path of their largest transfer. Raises `ScenarioError` if they have too little of one."""
    name = paths[0].name if len(paths) == 1 else f"{paths[0].name} and {len(paths) - 1} more"
    found = [one for one in _core.read_captures([*paths]) if len(one["data_time_ns"])]
    if not found:
        raise _core.ScenarioError(f"{paths[0]}: expected a connection with data, found none")
    sizes = [int(one["data_payload"].sum()) for one in found]
    largest = found[int(np.argmax(sizes))]
    ends = [_host(largest[end]) for end in ("from", "to")]
    chosen = [
        one
        for one, size in zip(found, sizes, strict=True)
        if [_host(one[end]) for end in ("from", "to")] == ends and size >= LEAST_SHARE * max(sizes)
    ]
    if not len(largest["ack_time_ns"]) or int(largest["ack_delivered"][-1]) == 0:
        raise _core.ScenarioError(
            f"{paths[0]}: expected data and their acknowledgments, found only data; give the captures of both directions"
        )
    chosen = [one for one in chosen if len(one["ack_time_ns"]) > 1]
    if not chosen:
        raise _core.ScenarioError(f"{paths[0]}: expected two acknowledgments or more, found fewer")
    starts = [float(one["ack_time_ns"][0]) * 1e-9 for one in chosen]
    return together([_one(one, name) for one in chosen], starts)


def _host(end: str) -> str:
    return end.rpartition(":")[0]


def _one(one: dict[str, Any], name: str) -> Observed:
    notes = ["the capture ends within a packet"] if one["is_cut"] else []
    payloads = one["data_payload"]
    mss, told = _mss(one)
    if told:
        notes.append(told)
    headers = float(one["headers"])
    time_ns = one["ack_time_ns"]
    sent_ns = one["ack_sent_ns"]
    has = sent_ns >= 0
    down_s = np.where(has, (time_ns - sent_ns) * 1e-9, np.nan)
    rtt_s, where = _whole(one, down_s, sent_ns)
    notes += where
    # Elsewhere on the path only a part of what is in flight passes between a packet and its acknowledgment.
    is_at_sender = bool(np.nanmin(rtt_s) - np.nanmin(down_s) <= AT_SENDER * np.nanmin(rtt_s)) if has.any() else False
    if not np.isfinite(rtt_s).any():
        raise _core.ScenarioError(f"{name}: expected an acknowledgment of data that was sent once, found none")
    again = one["data_again"]
    late_s = (one["data_time_ns"] - one["data_before_ns"]) * 1e-9
    reordered = (again == LATE) & (late_s < REORDERED_WITHIN * float(np.nanmin(rtt_s)))
    lost = ((again == SEEN) | (again == LATE)) & ~reordered
    lost = _without_needless(lost & (again == SEEN), one) | (lost & (again == LATE))
    packets = np.maximum(np.ceil(payloads / mss), 1)
    # What was lost before the capture passed the queue, too.
    passed = packets + np.where(lost & (again == LATE), packets, 0)
    before = one["data_before_ns"]
    window = one["ack_window"]
    known = window > 0
    handshake = one["handshake_ns"]
    start = float(time_ns[0]) * 1e-9
    delivered = one["ack_delivered"].astype(float)
    return Observed(
        source=name,
        time_s=time_ns * 1e-9 - start,
        delivered_bytes=(delivered - delivered[0]) * (mss + headers) / mss,
        rtt_s=rtt_s,
        sent=by_row(sent_ns, one["data_time_ns"], passed, known=has),
        # The row before: the lost packet met the queue as the one before it left it.
        lost=by_row(sent_ns, before[lost] - 1, packets[lost], known=has),
        window_bytes=one["ack_flight"].astype(float) if is_at_sender else np.full(len(time_ns), np.nan),
        packet_bytes=mss + headers,
        payload_bytes=float(mss),
        small_rtt_s=None if handshake is None else (handshake[2] - handshake[0]) * 1e-9,
        small_bytes=2 * (headers + 8),
        window_is="flight",
        reordered=float(packets[reordered].sum() / packets.sum()),
        limits={"receive window": float(np.mean((one["ack_flight"] > 0.9 * window)[known]))} if known.any() else {},
        notes=tuple(notes),
    )


def _mss(one: dict[str, Any]) -> tuple[int, str]:
    """Payload of a full packet, and a note if it is a guess."""
    most = int(one["data_payload"].max())
    options = int(one["headers"]) - (60 if one["is_ipv6"] else 40)
    if one["mss"] is not None:
        return min(max(int(one["mss"]) - max(options, 0), 1), most), ""
    if most <= MOST_PAYLOAD:
        return most, ""
    return USUAL_MSS, f"the capture has super-segments and no SYN: packets with {USUAL_MSS} B of data are assumed"


def _whole(one: dict[str, Any], down_s: Any, sent_ns: Any) -> tuple[Any, list[str]]:
    """The round-trip time of each row, with both parts of the path."""
    handshake = one["handshake_ns"]
    up_s = one["answer_ns"] * 1e-9
    least_up = float((handshake[2] - handshake[1]) * 1e-9) if handshake is not None else None
    if len(up_s) < 10:
        if least_up is None:
            return down_s, ["no timestamps and no handshake: the capture is taken for one at the sender"]
        return down_s + least_up, []
    least_up = float(min(up_s.min(), least_up if least_up is not None else np.inf))
    finite = down_s[np.isfinite(down_s)]
    if not len(finite) or np.ptp(np.percentile(finite, [1, 95])) >= np.ptp(np.percentile(up_s, [1, 95])):
        return down_s + least_up, []
    # A sender may wait before it answers, which makes a single one late: then that before it counts. Between two answers the
    # first counts, because after a pause the queue may have drained.
    calm = np.minimum(up_s, np.concatenate([up_s[:1], up_s[:-1]]))
    place = np.maximum(np.searchsorted(one["answer_time_ns"], sent_ns, side="right") - 1, 0)
    whole = calm[place] + float(np.nanmin(down_s))
    return np.where(np.isfinite(down_s), whole, np.nan), []


def _without_needless(lost: Any, one: dict[str, Any]) -> Any:
    """Of the data that was retransmitted, that which the receiver did not report to have twice (RFC 2883)."""
    lost = lost.copy()
    again, times = np.flatnonzero(lost), one["data_time_ns"]
    free = list(again)
    for when in one["ack_time_ns"][one["ack_dsack"]]:
        # The last that was sent before the report and is not yet accounted for.
        place = int(np.searchsorted(times[free], when)) - 1
        if place >= 0:
            lost[free.pop(place)] = False
    return lost

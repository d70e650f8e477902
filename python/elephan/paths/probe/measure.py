"""All tests in order, and the estimates that follow."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from elephan import _core
from elephan.paths.estimates import Estimates, Host, Value, absent
from elephan.paths.probe import buffer, curve, delays, loss, mtu, policer, tcp, trains
from elephan.paths.probe.budget import Share
from elephan.paths.probe.session import Session

# Echoes that tell how far the server is, before anything else.
FIRST, FIRST_GAP_S, FIRST_WAIT_S = 6, 20e-3, 3.0
# A rate at saturation that is this near to that of packet trains is the same, and known better.
AGREE = 0.05

Tell = Callable[[str], object]


@dataclass
class Found:
    """What the tests found: the estimates, figures of each test beside them, the curve, and the transfers."""

    estimates: Estimates
    figures: dict[str, Value]
    points: list[curve.Point] = field(default_factory=list)
    transfers: list[tcp.Transfer] = field(default_factory=list)


def measure(session: Session, shares: dict[str, Share], algorithms: Sequence[str], source: str, tell: Tell) -> Found:
    """Carry out all tests. `tell` gets a line before each.

    A session that ends after the rate is known leaves what was found; what is missing has the reason. Raises `ScenarioError`
    if no datagram is answered, and as `ProbeClient` if the session fails before.
    """
    figures: dict[str, Value] = {}
    notes: list[str] = []
    _first_echoes(session)

    tell("path MTU")
    packet, mtu_value, more = mtu.measure(session, shares["mtu"])
    notes += more
    session.rest(session.round_trip)

    tell("delays by packet size")
    delay = delays.measure(session, shares["delays"], packet)
    if delay is None:
        raise _core.ScenarioError("delays: expected echoes of the server, found too few: is UDP blocked on the path?")
    figures |= delay.figures
    notes += delay.notes

    tell("packet trains")
    train = trains.measure(session, shares["trains"], packet)
    figures["capacity_bit_s"] = train
    guess = train.best
    if guess is None:
        raise _core.ScenarioError(f"trains: expected the rate of the path, found none: {train.absent}")
    session.rest(session.round_trip + 0.2)

    found = _bottleneck(session, shares, packet, train, guess, tell)
    figures |= found.figures
    notes += found.notes
    if not all(seen.stamped for test, seen in session.streams if test not in ("mtu", "first")):
        notes.append("the kernel gave no time stamps of departure for some streams; their times are the program's")
    if dropped := sum(seen.overflowed for _, seen in session.streams):
        notes.append(f"the far host's socket dropped {dropped} packets for want of space; they are not counted as lost")

    transfers = _transfers(session, shares, algorithms, tell, notes)
    if note := tcp.queue_note(transfers, found.held, found.rate, delay.round_trip, found.lost):
        notes.append(note)
    figures |= {f"{one.name} goodput_bit_s": one.goodput for one in transfers}
    name, kernel, known = session.client.host()
    far = Host(role="receiver", name=name, facts={"kernel": kernel, "algorithms": " ".join(known)})
    session.finish()
    estimates = Estimates(
        made_by="probe",
        source=source,
        rate_bit_s=found.rate,
        base_rtt_s=delay.round_trip,
        burst_bytes=found.burst,
        links_bit_s=found.links,
        buffer_bytes=found.held,
        loss=found.lost,
        jitter_s=delay.jitter,
        reordered=delay.reordered,
        duplicated=delay.duplicated,
        mtu_bytes=mtu_value,
        cross_bit_s=found.cross,
        forward_s=_one_way(delay.round_trip),
        backward_s=_one_way(delay.round_trip),
        goodput_bit_s={one.cc: one.goodput for one in transfers if not one.down},
        hosts=[far],
        notes=notes,
    )
    return Found(estimates, figures, found.points, transfers)


@dataclass(frozen=True)
class _Bottleneck:
    """What loads of all sizes show: rate, buffer, random loss, what others send, the curve, figures and notes."""

    rate: Value
    held: Value
    lost: Value
    cross: Value | None
    points: list[curve.Point]
    figures: dict[str, Value]
    notes: list[str]
    burst: Value | None = None
    links: Value | None = None


def _bottleneck(
    session: Session, shares: dict[str, Share], packet: int, train: Value, guess: float, tell: Tell
) -> _Bottleneck:
    # Before any overload: a queue with a long memory (RED's average) goes on dropping after one.
    tell("random loss")
    try:
        lost = loss.measure(session, shares["loss"], packet, guess)
    except OSError as error:
        lost = absent("1", str(error))

    tell("throughput against spacing")
    try:
        found = curve.measure(session, shares["curve"], packet, guess)
    except OSError as error:
        return _Bottleneck(train, absent("B", str(error)), lost, None, [], {}, [])
    figures = {"available_bit_s": found.available, "saturated_bit_s": found.saturated}
    polices = found.saturated.value is not None and policer.by_curve(found.points, train)
    rate = found.saturated if polices else _rate(train, found.saturated)
    cross = curve.cross(found.points, rate, found.cost)
    session.rest(session.round_trip + 0.2)

    notes: list[str] = []
    held: Value = absent("B", "the rate is not known, so it cannot be exceeded for certain")
    bucket = None
    try:
        if polices:
            tell("policer")
            bucket = policer.measure(session, shares["buffer"], packet, rate)
        elif rate.value is not None:
            tell("buffer")
            held, notes = buffer.measure(session, shares["buffer"], packet, rate)
    except OSError as error:
        held = absent("B", str(error))
    else:
        test, last = session.streams[-1]
        if bucket is None and test == "buffer" and policer.by_overload(last, rate):
            bucket = policer.of_series(last, rate)
    session.rest(session.round_trip + 0.2)
    if bucket is None:
        overloads = [seen for test, seen in session.streams if test in ("curve", "buffer")]
        held = buffer.managed(overloads, held, rate, lost)
        return _Bottleneck(rate, held, lost, cross, found.points, figures, notes)

    rate = bucket.rate
    assert rate.value is not None
    if rate.value < curve.OVER * loss.LOAD * guess:
        lost = absent("1", "the path polices its rate to less than the load of this test")
    held = absent("B", "the path polices its rate: what exceeds it is dropped without a queue")
    cross = absent("bit/s", "the path polices its rate, so what it leaves tells nothing of others")
    note = f"the path carries trains of packets at {train.text}, and polices what is sent for longer to {rate.text}"
    if bucket.burst.value is None:
        note += f": the scenario has a link of that rate, and no policer, because {bucket.burst.absent}"
    links = policer.links([seen for test, seen in session.streams if test == "trains"], train)
    figures |= {"saturated_bit_s": rate}
    return _Bottleneck(rate, held, lost, cross, found.points, figures, [note], bucket.burst, links)


def _transfers(
    session: Session, shares: dict[str, Share], algorithms: Sequence[str], tell: Tell, notes: list[str]
) -> list[tcp.Transfer]:
    """The tests of TCP. What is refused is left out, and a note says why."""
    transfers = []
    for cc in algorithms:
        for down in (False, True):
            name = f"tcp {cc}{' back' if down else ''}"
            tell(name)
            try:
                transfers.append(tcp.measure(session, shares[name], cc, down=down))
            except OSError as error:
                notes.append(f"{name}: left out: {error}")
    return transfers


def _first_echoes(session: Session) -> None:
    sizes = np.full(FIRST, max(100, session.least_size))
    seen = session.stream("first", sizes, np.full(FIRST, FIRST_GAP_S), echo=True, linger=FIRST_WAIT_S)
    times = seen.round_trip[~np.isnan(seen.round_trip)]
    if len(times) == 0:
        raise _core.ScenarioError("datagrams: expected echoes of the server, found none: is UDP blocked on the path?")
    session.round_trip = float(times.max())


def _rate(train: Value, saturated: Value) -> Value:
    """The rate at saturation, which lasts longer, where it agrees with the dispersion of trains.

    Otherwise that of trains: others then take the rest at saturation.
    """
    if train.value is None:
        return saturated if saturated.value is not None else train
    if saturated.value is None or abs(saturated.value / train.value - 1) > AGREE:
        return train
    # Two methods: the interval holds both.
    assert saturated.low is not None
    assert saturated.high is not None
    low, high = min(saturated.low, train.value), max(saturated.high, train.value)
    return msgspec.structs.replace(saturated, low=low, high=high)


def _one_way(round_trip: Value) -> Value:
    reason = "the clocks of two hosts differ by an unknown offset: only the round trip is known"
    return absent("s", reason, low=0.0, high=round_trip.high)

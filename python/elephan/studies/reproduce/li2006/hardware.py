"""Li 2006, appendix A: disks and network cards. Measured on the machine at hand, which is another."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from elephan.base.errors import FailedError
from elephan.studies import bench
from elephan.studies.bench import MIB
from elephan.studies.reproduce.judge import Claim, Finding, Interval, Kind, Place, Row, judged
from elephan.studies.reproduce.lab import Lab, Report, experiment, figures, printed
from elephan.studies.statistics import Estimate

# Read-ahead windows: pages of 4 KiB, as `vm.max-readahead` of Linux 2.4 counts them. The default, one between, and the best.
WINDOWS = (31, 127, 1200)
PAGE = 4096
# The stream that measures what waiting saves: bytes, and spacing, s.
STREAM_BYTES, SPACING_S = 1000, 50e-6
# How long a device waits after its work before it looks for packets again, s. Two packets of the stream or more: a wait that
# sees one packet coalesces nothing. One request and its response take about 65 us on a virtual machine: a shorter wait is over.
WAITS_S = (100e-6, 200e-6, 400e-6)
# Sizes of requests, bytes of application data.
SIZES = (64, 512, 1472, 3000, 4500, 6000, 7500, 8972)
OTHER = "another machine, two decades later: neither number can be wrong about the other"
LOOP = "a read-ahead window can be set without changing the system only on a loop device of our own"


@experiment("li2006/appendix-a", "Disks and network cards", quick=False)
def appendix_a(lab: Lab) -> Report:
    """The tests of the appendix on this machine."""
    report = Report(lab)
    disks, cards = _disk_claim(), _card_claim()
    if lab.engine != "sim":
        report.untestable(disks.id, f"{lab.engine}: measures this machine, which needs no engine")
        report.untestable(cards.id, f"{lab.engine}: measures this machine, which needs no engine")
        return report
    folder, repeats = lab.folder, lab.pick(10, 3)
    folder.mkdir(parents=True, exist_ok=True)
    # The rest of the disk is for others.
    most = bench.measurable_bytes(folder)
    if lab.asks(disks.id):
        report.measured(disks, _of_disks(folder, repeats, min(most, lab.pick(512, 64) * MIB)))
    if lab.asks(cards.id):
        report.measured(cards, _of_cards(repeats, lab.pick(1.0, 0.3), lab.pick(500, 100)))
    if not lab.claims:
        _beside_print(report, folder, repeats, min(most, lab.pick(2048, 128) * MIB))
        report.notes.append(
            f"A wait of {SPACING_S * 1e6:g} us, the spacing of the stream, is not asked: there is nothing to coalesce, and it is over "
            "before a request has its response. It was asked at first, and changed neither load nor latency; it was left out then."
        )
        report.notes.append(
            "Not shown: the buses of Table A.8 (PCI, which this machine's devices do not have), and the throughput of UDP by packet "
            "size and spacing (figures A.10, A.11), for which two machines and cards between them are needed."
        )
    return report


def _disk_claim() -> Claim:
    return Claim(
        "L72",
        "",
        "windows of 31, 127 and 1200 pages on the disk of the results folder; arrays of disks",
        "reading speed of each window over that of the one before; writing speed of RAID-0 over RAID-5",
        "above 1: the speed rises with each step; above 1.5: about twice",
        kind=Kind.HARDWARE,
        tried=f"{LOOP}: it reads a file around the page cache, in calls of 64 KiB",
        means="with a disk that answers without seeking, read-ahead beyond the default need not be worth its memory",
    )


def _card_claim() -> Claim:
    return Claim(
        "L73",
        "",
        "a device of our own (veth, threaded NAPI) that looks for packets at most each 100, 200 and 400 us (gro_flush_timeout)",
        "processor time of the receiver for a datagram, over that of a device that does not wait; latency of a request, less that",
        "below 1: the load falls; above 0: the latency rises",
        kind=Kind.HARDWARE,
    )


def refusal(error: BaseException) -> str:
    """What an error says, without its number."""
    return str(getattr(error, "strerror", None) or error)


def _unusable(place: Place, why: str) -> Finding:
    nothing = Interval(float("nan"), float("-inf"), float("inf"), 0)
    return Finding(place.name, place.unit, nothing, None, unusable=why, above=place.above, below=place.below)


def findings_of(places: Sequence[tuple[Place, Sequence[float]]], whole: int) -> list[Finding]:
    """Each place judged by its samples, in one look; the claim has `whole` places."""
    return [judged(place, samples, 1, whole) for place, samples in places]


def _of_disks(folder: Path, repeats: int, size: int) -> list[Finding]:
    steps = list(itertools.pairwise(WINDOWS))
    places = [Place.sampled(f"read-ahead of {b} pages over {a}", above=1.0, unit="1") for a, b in steps]
    array = Place.sampled("writing, RAID-0 over RAID-5", above=1.5, unit="1")
    request = {
        "what": "read_ahead",
        "folder": str(folder),
        "bytes": size,
        "windows": [pages * PAGE for pages in WINDOWS],
        "block": 64 * 1024,
        "seconds": 60.0,
    }
    no_array = "no array of disks that is ours: several on one disk would measure that disk"
    try:
        answers = bench.in_turn({"read": request}, repeats)["read"]
    except (OSError, FailedError) as error:
        return [*(_unusable(place, f"{LOOP}: {refusal(error)}") for place in places), _unusable(array, no_array)]
    speeds = [bench.rates(answer) for answer in answers]
    found = [(place, [one[k + 1] / one[k] for one in speeds]) for k, place in enumerate(places)]
    return [*findings_of(found, len(places) + 1), _unusable(array, no_array)]


def waiting_requests(seconds: float, pings: int) -> dict[str, Mapping[str, Any]]:
    """Requests and a stream for each time that the receiver waits, and for none."""
    found: dict[str, Mapping[str, Any]] = {}
    for wait in (0.0, *WAITS_S):
        waiting = {"waiting_ns": round(wait * 1e9)}
        found[f"ping {wait}"] = {"what": "ping", "sizes": [64], "count": pings, **waiting}
        stream = {"size": STREAM_BYTES, "spacing": SPACING_S, "seconds": seconds}
        found[f"stream {wait}"] = {"what": "paced", **stream, **waiting}
    return found


def waiting_findings(answers: Mapping[str, Sequence[Any]]) -> list[Finding]:
    """What waiting saves, and what it costs, against a device that does not wait, repeat by repeat."""

    def cost(one: Mapping[str, Any]) -> float:
        return float((one["receiver_seconds"] + one["kernel_seconds"]) / max(1, one["arrived"]))

    found: list[tuple[Place, list[float]]] = []
    for wait in WAITS_S:
        name = f"{wait * 1e6:g} us"
        load = Place.sampled(f"processor time, waits of {name}", below=1.0, unit="1")
        pairs = zip(answers[f"stream {wait}"], answers["stream 0.0"], strict=True)
        found.append((load, [cost(one) / cost(other) for one, other in pairs]))
        latency = Place.sampled(f"added latency, waits of {name}", above=0.0, unit="us")
        both = zip(answers[f"ping {wait}"], answers["ping 0.0"], strict=True)
        found.append((latency, [1e6 * (one[0]["median"] - other[0]["median"]) for one, other in both]))
    return findings_of(found, len(found))


def _of_cards(repeats: int, seconds: float, pings: int) -> list[Finding]:
    between, why = bench.namespaces()
    try:
        if between is None:
            raise FailedError(why)
        return waiting_findings(bench.in_turn(waiting_requests(seconds, pings), repeats, by=between))
    except (OSError, FailedError) as error:
        place = Place.sampled("a device of our own that waits")
        return [_unusable(place, f"only root may let a device of its own wait: {refusal(error)}")]


def interval_of(estimate: Estimate) -> Interval:
    """An estimate in the form of the page."""
    nothing = (float("nan"), float("-inf"), float("inf"))
    mean, low, high = estimate.mean, estimate.low, estimate.high
    if mean is None:
        return Interval(*nothing, estimate.repeats)
    return Interval(mean, nothing[1] if low is None else low, nothing[2] if high is None else high, estimate.repeats)


def _beside_print(report: Report, folder: Path, repeats: int, size: int) -> None:
    passes = [{"write": write, "block": MIB, "threads": 1} for write in (False, True)]
    disk = {"what": "disk", "place": str(folder), "bytes": size, "seconds": 60.0, "passes": passes}
    answers = bench.in_turn({"disk": disk}, min(5, repeats))["disk"]
    for number, what in enumerate(("read", "write")):
        speeds = Estimate.of([8e-6 * bench.rates(answer)[number] for answer in answers])
        rows = []
        for disks in ("4 disks", "8 disks"):
            for array in ("RAID-0", "RAID-5"):
                numbers = printed("li2006", "Table A.4", f"{array} {what} speed, 2 GB files, {disks}")
                rows += [_row(f"{system}, {array}, {disks}", value, speeds) for system, (value, _) in numbers.items()]
        title = f"sequential {what} speed of a file of {size // MIB} MiB, one disk, Linux's default read-ahead"
        report.beside(title, "Mbit/s", rows, OTHER)
    memory = {"what": "memory", "operation": "copy", "threads": 1, "bytes": bench.bytes_beyond_cache(), "seconds": 0.3}
    copied = Estimate.of([8e-9 * bench.rates(one)[0] for one in bench.in_turn({"m": memory}, repeats)["m"]])
    buses = {row["system"]: float(row["value"]) for row in figures("li2006") if row["metric"] == "memory data rate"}
    rows = [_row(f"{system}, theory", value, copied) for system, value in buses.items()]
    report.beside("memory, copied by one thread", "Gbit/s", rows, f"{OTHER}; the printed ones are those of the bus")
    between, why = bench.namespaces()
    if between is None:
        report.notes.append(f"No latency by packet size and no processor time: {why}.")
        return
    _network_beside_print(report, between, repeats)


def _network_beside_print(report: Report, between: Callable[[Mapping[str, Any]], Any], repeats: int) -> None:
    ping = {"what": "ping", "sizes": list(SIZES), "count": 1000}
    tcp = {"what": "tcp", "namespaces": True, "streams": 1, "seconds": 1.0, "threaded": True}
    answers = bench.in_turn({"ping": ping, "tcp": tcp}, repeats, by=between)
    slope = bench.latency_line(answers["ping"]).slope.scaled(1e6)
    numbers = printed("li2006", "Sec A.2.2", "measured latency slope")
    rows = [_row(system, value, slope) for system, (value, _) in numbers.items()]
    report.beside("latency by packet size, between namespaces", "us/B", rows, f"{OTHER}; no bus and no cable here")
    clock = bench.clock_ghz()
    if clock is None:
        return
    for end in ("sender", "receiver"):
        times = [
            (one[f"{end}_seconds"] + one[f"{end}_kernel_seconds"]) / one["bytes"] / 8 * 1e9 * clock
            for one in answers["tcp"]
        ]
        value = printed("li2006", "Sec 5.1.3", "CPU need per Gbit/s")["Standard TCP"][0]
        rows = [_row("Standard TCP, one end", value, Estimate.of(times))]
        report.beside(f"clock that the {end} needs for 1 Gbit/s, packets of 1500 bytes, no TSO", "GHz", rows, OTHER)


def _row(system: str, value: float, ours: Estimate) -> Row:
    return Row(system, value, None, interval_of(ours), None)

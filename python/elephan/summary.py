"""What a run was worth, with types. The definitions stand in the Rust crate `elephan-metrics`, and in docs/metrics/."""

from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any

from elephan import _core


@dataclass(frozen=True)
class HostSummary:
    """The host of a flow's sender over the measuring window, where sending costs it something."""

    busy: float
    dropped: int
    backlog_max_packets: int
    stalls: int


@dataclass(frozen=True)
class FlowSummary:
    """A flow over the measuring window. `None` stands for what is undefined."""

    label: str
    start_s: float | None
    goodput_bit_s: float
    stability: float | None
    convergence_s: float | None
    sent_bytes: int
    retransmitted_bytes: int
    cwnd_mean_segments: float | None
    srtt_mean_s: float | None
    congestion_events: int
    timeouts: int
    host: HostSummary | None = None

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "FlowSummary":
        """Read what the simulator wrote."""
        host = data.get("host")
        return cls(**{**data, "host": None if host is None else HostSummary(**host)})


@dataclass(frozen=True)
class TransferSummary:
    """Transfers, or pages, that ended in the measuring window."""

    count: int
    bytes: int
    mean_s: float | None
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None


@dataclass(frozen=True)
class CrowdSummary:
    """A crowd of short flows over the measuring window: web users, or flows that arrive by themselves."""

    label: str
    goodput_bit_s: float
    delivered_bytes: int
    opened: int
    failed: int
    sent_bytes: int
    retransmitted_bytes: int
    timeouts: int
    transfers: TransferSummary | None
    pages: TransferSummary | None

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "CrowdSummary":
        """Read what the simulator wrote."""
        nested = {name: _transfers(data[name]) for name in ("transfers", "pages")}
        return cls(**{**data, **nested})


def _transfers(data: dict[str, Any] | None) -> TransferSummary | None:
    return None if data is None else TransferSummary(**{"bytes": 0, **data})


@dataclass(frozen=True)
class StreamSummary:
    """A stream of datagrams over the measuring window, at its receiver. Packets lost are those that a later one overtook."""

    label: str
    start_s: float | None
    goodput_bit_s: float
    sent: int
    received: int
    lost: int
    reordered: int
    delay_mean_s: float | None
    delay_p50_s: float | None
    delay_p99_s: float | None
    delay_max_s: float | None
    jitter_s: float | None


@dataclass(frozen=True)
class ClassSummary:
    """A class of a scheduler, over the measuring window. Throughput counts IP packets."""

    name: str
    offered: int
    dropped: int
    throughput_bit_s: float
    queue_delay_mean_s: float | None
    guaranteed_bit_s: float | None = None
    qos_efficiency: float | None = None


@dataclass(frozen=True)
class LinkSummary:
    """A link with a rate, over the measuring window."""

    name: str
    utilisation: float | None
    offered: int
    dropped: int
    lost: int
    marked: int
    queue_delay_mean_s: float
    queue_delay_p50_s: float
    queue_delay_p95_s: float
    queue_delay_p99_s: float
    queue_mean_packets: float
    queue_max_packets: int
    dropped_full: int = 0
    dropped_early: int = 0
    dropped_policed: int = 0
    dropped_down: int = 0
    classes: tuple[ClassSummary, ...] = ()

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "LinkSummary":
        """Read what the simulator wrote."""
        return cls(**{**data, "classes": tuple(ClassSummary(**one) for one in data.get("classes", ()))})


@dataclass(frozen=True)
class Summary:
    """A run over its measuring window. Goodput counts application bytes, utilisation IP packets."""

    from_s: float
    to_s: float
    goodput_bit_s: float
    utilisation: float | None
    fairness: float | None
    jain: float | None
    stability: float | None
    convergence_s: float | None
    fair_share_s: float | None
    overhead_s_bit: float | None
    loss_rate: float | None
    queue_delay_mean_s: float
    congestion_epochs: int
    synchronisation: float | None
    flows: tuple[FlowSummary, ...]
    crowds: tuple[CrowdSummary, ...]
    streams: tuple[StreamSummary, ...]
    links: tuple[LinkSummary, ...]
    transfers: TransferSummary | None

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Summary":
        """Read what `to_dict` or the simulator wrote."""
        return cls(
            **{
                **data,
                "flows": tuple(FlowSummary.from_dict(flow) for flow in data["flows"]),
                "crowds": tuple(CrowdSummary.from_dict(crowd) for crowd in data.get("crowds", ())),
                "streams": tuple(StreamSummary(**stream) for stream in data.get("streams", ())),
                "links": tuple(LinkSummary.from_dict(link) for link in data["links"]),
                "transfers": _transfers(data["transfers"]),
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries and lists, for JSON."""
        plain: dict[str, Any] = _plain(self)
        return plain


def _plain(value: Any) -> Any:
    # `dataclasses.asdict` copies every number deeply, which takes as long as a short run.
    if isinstance(value, float | int | str | None):
        return value
    if is_dataclass(value):
        return {key: _plain(one) for key, one in vars(value).items()}
    return [_plain(one) for one in value] if isinstance(value, tuple | list) else value


def impact(reference: Summary, changed: Summary, replaced: Sequence[int]) -> float | None:
    """Compute the impact on Standard TCP (Li 2006, equation 9.1) of other flows in place of some of its own.

    Both runs have the same flows but for those numbered `replaced`, which use Standard TCP in `reference` and another algorithm
    in `changed`. The result is what the remaining flows got without the others over what they got with them: above 1 they were
    harmed. `None` where they got nothing beside the others.
    """

    def remaining(summary: Summary) -> float:
        return sum(flow.goodput_bit_s for number, flow in enumerate(summary.flows) if number not in replaced)

    if len(reference.flows) != len(changed.flows):
        raise ValueError(
            f"impact: expected runs of as many flows, found {len(reference.flows)} and {len(changed.flows)}"
        )
    with_others = remaining(changed)
    return _core.impact(remaining(reference), with_others) if with_others > 0 else None

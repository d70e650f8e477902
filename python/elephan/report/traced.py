"""A connection that a QUIC stack logged, in place of the run of a scenario with one flow, for expectations of samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from elephan.api.scenario import Scenario
from elephan.paths.qlog import Qlog, read

# Columns of the samples of a flow, and those of a log that they are, with whether these are bytes of which there are segments.
COLUMNS = {
    "cwnd_segments": ("cwnd_bytes", True),
    "ssthresh_segments": ("ssthresh_bytes", True),
    "pipe_bytes": ("in_flight_bytes", False),
    "srtt_s": ("srtt_s", False),
    "min_rtt_s": ("min_rtt_s", False),
    "pacing_rate_bit_s": ("pacing_rate_bit_s", False),
}


@dataclass(frozen=True)
class Lasted:
    """When a connection was observed, in s from the first update of its metrics."""

    from_s: float
    to_s: float

    @property
    def end_s(self) -> float:
        """The end of the record."""
        return self.to_s


@dataclass(frozen=True)
class Traced:
    """The samples of a logged connection, as those of a flow; times count from the first update of the metrics."""

    scenario: Scenario
    log: Qlog

    @classmethod
    def of(cls, path: Path, scenario: Scenario) -> "Traced":
        """The connection of a file. Raises `ScenarioError` for a damaged one."""
        return cls(scenario, read(path))

    @property
    def summary(self) -> Lasted:
        """When it was observed."""
        time_s = self._time_s()
        return Lasted(0.0, float(time_s[-1]) if len(time_s) else 0.0)

    def _time_s(self) -> np.ndarray:
        time_s = self.log.column("time_s")
        return time_s - time_s[0] if len(time_s) else time_s

    def _segment_bytes(self) -> float:
        """The payload of the packets that carried most; unknown without packets."""
        payloads = np.sort([payload for _, _, payload in self.log.sent.values() if np.isfinite(payload)])
        return float(payloads[np.searchsorted(np.cumsum(payloads), payloads.sum() / 2)]) if len(payloads) else np.nan

    def table(self, name: str, only: Sequence[str] | None = None) -> pa.Table:
        """The samples of the flow; other tables are empty."""
        if name != "flows":
            return pa.table({})
        time_s = self._time_s()
        columns = {"time_s": time_s, "flow": np.zeros(len(time_s), np.uint32)}
        for column, (logged, has_segments) in COLUMNS.items():
            columns[column] = self.log.column(logged) / (self._segment_bytes() if has_segments else 1.0)
        return pa.table({key: values for key, values in columns.items() if only is None or key in only})

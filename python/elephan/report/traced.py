"""A connection that a QUIC stack logged, in place of the run of a scenario with one flow, for expectations of samples."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from elephan.api.scenario import Scenario
from elephan.paths.qlog import Qlog, usual_bytes

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
    end_s: float


class Traced:
    """The samples of a log, as those of the flow of a scenario; times count from the first update of the metrics."""

    def __init__(self, log: Qlog, scenario: Scenario) -> None:
        payloads = np.array([payload for _, _, payload in log.sent.values()])
        # Unknown without packets.
        segment_bytes = usual_bytes(payloads) if np.isfinite(payloads).any() else np.nan
        time_s = log.column("time_s")
        time_s -= time_s[:1]
        last_s = float(time_s[-1]) if len(time_s) else 0.0
        self.scenario = scenario
        self.summary = Lasted(0.0, last_s, last_s)
        self._columns = {"time_s": time_s, "flow": np.zeros(len(time_s), np.uint32)}
        for column, (logged, has_segments) in COLUMNS.items():
            self._columns[column] = log.column(logged) / (segment_bytes if has_segments else 1.0)

    def table(self, name: str, only: Sequence[str] | None = None) -> pa.Table:
        """The samples of the flow; other tables are empty."""
        columns = self._columns if name == "flows" else {}
        return pa.table({key: values for key, values in columns.items() if only is None or key in only})

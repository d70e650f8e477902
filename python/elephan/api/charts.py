"""The charts of a run over time: columns of its samples, with their declared titles and meanings."""

import json
from dataclasses import replace

from elephan import _core
from elephan.api.metrics import Metric, declared


def _sampled(table: str, column: str, like: Metric) -> Metric:
    """A column of the samples, in the unit of a figure of the summary."""
    found = next(one for one in json.loads(_core.declared_columns()) if (one["table"], one["name"]) == (table, column))
    return replace(like, name=found["title"], unit=like.short_unit, column=column, meaning=found["meaning"], source="")


# Of each flow, from `flows`, and of each link, from `queues`: by the name that `elephan plot` knows.
OF_FLOWS = {
    "cwnd": _sampled("flows", "cwnd_segments", declared("FlowSummary", "cwnd_mean_segments")),
    "goodput": _sampled("flows", "goodput_bit_s", declared("FlowSummary", "goodput_bit_s")),
    "srtt": _sampled("flows", "srtt_s", declared("FlowSummary", "srtt_mean_s")),
}
OF_LINKS = {
    "queue": _sampled("queues", "packets", declared("LinkSummary", "queue_max_packets")),
    "utilisation": _sampled("queues", "utilisation", declared("LinkSummary", "utilisation")),
}
CHARTS = OF_FLOWS | OF_LINKS
# Counts of several columns.
DROPS = Metric(
    "drops and losses",
    "packets",
    digits=0,
    meaning="Packets dropped by the queue or lost on the wire since the previous sample.",
)
MARKS = Metric(
    "drops and marks",
    "packets",
    digits=0,
    meaning="Packets dropped by the queue, lost on the wire, or marked, since the previous sample.",
)

"""The measurements of every algorithm and queue discipline, in the form of the documentation's tables."""

import elephan
from elephan.api.metrics import Metric, declared


def _ratio(summary: elephan.Summary) -> float | None:
    """Goodput of the second flow over that of the first."""
    first, second = (flow.goodput_bit_s for flow in summary.flows)
    return second / first if first else None


# For an algorithm, by the experiment and the name of the number in measured.json. The experiments are in measure.py.
MEASURES = {
    ("alone", "utilisation"): declared("Summary", "utilisation", name="Utilisation, alone", unit="%"),
    ("small", "utilisation"): declared("Summary", "utilisation", name="Utilisation with a buffer of 2 %", unit="%"),
    ("lossy", "utilisation"): declared("Summary", "utilisation", name="Utilisation with random loss of 1e-5", unit="%"),
    ("alone", "queueing"): declared("Summary", "queue_delay_mean_s", name="Queueing delay, alone", unit="ms"),
    ("alone", "loss"): declared("Summary", "loss_rate", name="Loss, alone", unit="%"),
    ("two", "fairness"): declared("Summary", "fairness", name="Fairness of two flows"),
    ("two", "fair share"): declared("Summary", "fair_share_s", name="Time to a fair share", unit="s", digits=0),
    ("rtts", "ratio"): Metric(
        "Goodput ratio, long over short path", "160 ms over 40 ms", reading=_ratio, better="higher"
    ),
    ("beside", "reno"): declared(
        "FlowSummary",
        "goodput_bit_s",
        name="Goodput of Standard TCP competing with it",
        digits=0,
        reading=lambda summary: summary.flows[1].goodput_bit_s,
    ),
}
# Of a queue discipline.
QUEUE_MEASURES = {
    "utilisation": declared("Summary", "utilisation", unit="%"),
    "queueing": declared("Summary", "queue_delay_mean_s", digits=2),
    "p99": declared(
        "LinkSummary", "queue_delay_p99_s", digits=1, reading=lambda summary: summary.links[0].queue_delay_p99_s
    ),
    "loss": declared("Summary", "loss_rate", unit="%", digits=3),
    "fairness": declared("Summary", "fairness"),
}

"""The metrics of a run as tables, plots and reports show them: one list for all of them."""

from dataclasses import dataclass

from elephan.summary import Summary


@dataclass(frozen=True)
class Metric:
    """A column of tables: what it is called and counted in there, where a summary has it, and what it means."""

    name: str
    unit: str
    column: str
    factor: float
    digits: int
    meaning: str

    def read(self, summary: Summary) -> float | None:
        """The metric of a run, in its unit; none where it is undefined."""
        return self.scaled(getattr(summary, self.column))

    def scaled(self, value: float | None) -> float | None:
        """A value of its column, in its unit."""
        return None if value is None else value * self.factor


# docs/metrics/ has the definitions and their sources.
METRICS = (
    Metric(
        "goodput",
        "Mbit/s, application bytes",
        "goodput_bit_s",
        1e-6,
        1,
        "Application bytes delivered in order over the measuring window, all flows together.",
    ),
    Metric(
        "utilisation",
        "%, IP packets",
        "utilisation",
        100,
        1,
        "Bytes that the bottleneck served, as a share of what its rate allows; counts IP packets.",
    ),
    Metric("fairness", "least/most", "fairness", 1, 2, "Smallest goodput over largest."),
    Metric(
        "stability",
        "std/mean, 1 s",
        "stability",
        1,
        3,
        "Standard deviation of a flow's goodput over its mean, mean over flows; samples of 1 s.",
    ),
    Metric(
        "convergence",
        "s to 80 %",
        "convergence_s",
        1,
        1,
        "Time from the start of the newest flow until its goodput is within a factor 0.8 of its own average.",
    ),
    Metric(
        "fair share",
        "s to 80 %",
        "fair_share_s",
        1,
        1,
        "Time from the start of the newest flow until its goodput is within a factor 0.8 of an equal share.",
    ),
    Metric(
        "overhead",
        "1e-7/(Mbit/s)",
        "overhead_s_bit",
        1e13,
        2,
        "Retransmitted over transferred bytes, summed over flows, over the aggregate goodput.",
    ),
    Metric(
        "loss",
        "% of packets",
        "loss_rate",
        100,
        4,
        "Packets dropped or lost over packets offered at the bottleneck.",
    ),
    Metric(
        "queueing",
        "ms, mean",
        "queue_delay_mean_s",
        1e3,
        1,
        "Mean time between arrival and start of service at the bottleneck.",
    ),
)

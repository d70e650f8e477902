# %% [markdown]
# # A metric of your own
#
# Elephan's metrics are those of the published evaluations. A question of your own is a function of a run: it has the
# samples as frames and the summary, and returns a number, or `None` where it is undefined.
#
# Here: for how much of the time does a flow have less than half of its fair share? Fairness over the whole window hides
# this, because two flows that take turns are fair on average.

# %%
import polars as pl

import elephan


@elephan.metric(unit="% of time", digits=1, better="lower", within=(0, 100))
def starved(run: elephan.Run) -> float | None:
    """Mean share of the time in which a flow has less than half of an equal share."""
    samples = run.flows.filter(pl.col("time_s") > run.summary.from_s)
    share = pl.col("goodput_bit_s") / pl.col("goodput_bit_s").sum().over("time_s")
    below = samples.select(share < 0.5 / len(run.labels)).to_series().mean()
    return None if below is None else 100 * below


# %% [markdown]
# A bare function will do as well: its name is that of the metric.


# %%
def largest_window(run: elephan.Run) -> float:
    return run.flows["cwnd_segments"].max()


# %% [markdown]
# `metrics` puts them beside ours, with the same intervals: at the end of the table and of the picture.

# %%
comparison = elephan.compare(
    cc=["reno", "htcp", "cubic", "scalable"],
    rate="100 Mbit/s",
    rtt="82 ms",
    flows=3,
    duration="120 s",
    repeat=6,
    metrics=[starved, largest_window],
)
comparison

# %% [markdown]
# `to_polars` has a row for each run, so that the metric of one run can be set against another; `to_pandas` gives the
# same to pandas. Here fairness and starvation of each run: runs of about the same fairness differ.

# %%
frame = comparison.to_polars()
frame.select("cc", "seed", "fairness", "jain", "starved").sort("fairness").head(8)

# %% [markdown]
# With `to_polars("estimates")` each metric of each algorithm is a row with its interval.

# %%
comparison.to_polars("estimates").filter(metric="starved")

# %% [markdown]
# An error in the function names the metric and the run, so that the run can be repeated with its seed.

# %%
from elephan import MetricError


def broken(run: elephan.Run) -> float:
    return run.flows["window"].max()


try:
    elephan.compare(cc=["reno"], repeat=1, duration="30 s", metrics=[broken])
except MetricError as error:
    print(str(error).splitlines()[0])

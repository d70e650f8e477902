# %% [markdown]
# # A sweep with intervals
#
# How does the round-trip time decide between algorithms? A sweep runs a scenario at every point of a grid, several
# times with other seeds. Here the second flow starts at random in the first ten seconds.

# %%
import elephan

scenario = elephan.dumbbell(
    name="rtt",
    rate="100 Mbit/s",
    rtt="82 ms",
    buffer="20% bdp",
    flows=[elephan.flow("reno"), elephan.flow("reno", start={"uniform": ["0 s", "10 s"]})],
    duration="60 s",
    sweep={"path.rtt": ["16 ms", "42 ms", "82 ms", "162 ms"], "flow.cc": ["reno", "htcp", "scalable"], "repeat": 6},
)
scenario

# %% [markdown]
# Runs are stored in a folder as they finish. A sweep that was interrupted goes on where it stopped, and a changed one
# runs only what is new.

# %%
sweep = elephan.sweep(scenario, "results/rtt").run()
sweep

# %% [markdown]
# Every figure is the mean over six runs with its 95 % confidence interval. Intervals of shares end at 0 and 1.

# %%
sweep.plot("fairness")

# %%
sweep.plot("queueing", over="cc", where={"rtt": "82 ms"})

# %%
sweep.plot("fairness", over=["rtt", "cc"])

# %% [markdown]
# With common random numbers, repeat *k* has the same start times for every algorithm. A paired comparison then finds
# differences that the intervals of the two means do not show.

# %%
from elephan.studies.sweeps import paired

paired(sweep.folder, key="cc", first="htcp", second="scalable", metric="fairness")

# %% [markdown]
# The frame has a row for each run, and `sweep.samples("flows")` all samples, as a lazy frame that is read when it is
# needed.

# %%
import polars as pl

last = (
    sweep.samples("flows")
    .filter(pl.col("time_s") > 50)
    .group_by("run")
    .agg(pl.col("srtt_s").mean().alias("late_srtt_s"))
)
sweep.to_polars().join(last.collect(), on="run", maintain_order="left").group_by("cc", "rtt", maintain_order=True).agg(
    pl.col("late_srtt_s").mean(), pl.len().alias("runs")
)

# %% [markdown]
# If the intervals are too wide, `elephan.sweep(..., until="ci(fairness) < 5%", max_repeat=40)` adds repeats where they
# are needed.

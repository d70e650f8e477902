# %% [markdown]
# # First steps
#
# Two H-TCP flows share a transatlantic path: 250 Mbit/s, 82 ms, and a buffer of a fifth of the bandwidth-delay product.
# The second flow starts 17 s after the first.

# %%
import elephan

scenario = elephan.dumbbell(
    name="two flows",
    rate="250 Mbit/s",
    rtt="82 ms",
    buffer="20% bdp",
    flows=[elephan.flow("htcp"), elephan.flow("htcp", start="17 s")],
    duration="120 s",
    seed=1,
)
scenario

# %% [markdown]
# A run simulates it. Its metrics are over the measuring window, which begins here when the last flow starts.

# %%
run = elephan.run(scenario)
run

# %% [markdown]
# `run.plot` draws other quantities, too.

# %%
run.plot("queue")

# %% [markdown]
# All samples are Polars frames, with units in the names of the columns: here the largest window of each flow, and its
# retransmissions.

# %%
import polars as pl

run.flows.group_by("flow", maintain_order=True).agg(
    pl.col("label").first(),
    pl.col("cwnd_segments").max().alias("largest cwnd_segments"),
    pl.col("retransmits").max(),
)

# %% [markdown]
# Any key of the scenario file can be changed. A buffer of one bandwidth-delay product keeps the link full, and delays
# every packet.

# %%
deep = elephan.run(scenario.with_settings({"path.buffer": "100% bdp"}))
for one in (run, deep):
    bottleneck = one.summary.links[0]
    delay_ms = bottleneck.queue_delay_mean_s * 1e3
    print(f"{one.scenario.outline}: {one.summary.utilisation:.1%} used, {delay_ms:.1f} ms of queueing delay")

# %% [markdown]
# `compare` runs several algorithms on one path, five times each with other seeds: the second flow starts at a random
# time.

# %%
comparison = elephan.compare(cc=["reno", "htcp", "cubic", "scalable"], duration="120 s", repeat=5)
comparison

# %% [markdown]
# `run.save("results/two-flows")` and `comparison.save("results/four")` write folders, which `elephan report` makes a
# page of. [The next notebook](own-metric.md) adds a metric of your own.

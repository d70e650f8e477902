# %% [markdown]
# # Theory beside simulation
#
# A response function says which mean window an algorithm has at a given rate of random losses. Here are those of three
# algorithms, and what the simulator's TCP does at the same losses.

# %%
import elephan
from elephan.studies.theory import Model

RTT_S, NAMES, LOSSES = 0.05, ["reno", "hstcp", "scalable"], [1e-2, 3e-3, 1e-3, 3e-4, 1e-4]

scenario = elephan.dumbbell(
    name="response",
    rate="1 Gbit/s",
    rtt="50 ms",
    buffer="100% bdp",
    flows=[elephan.flow("reno")],
    duration="120 s",
    path={"loss": {"name": "random", "probability": 1e-3}},
    measure={"from": "20 s"},
    sweep={"path.loss.probability": LOSSES, "flow.cc": NAMES, "repeat": 5},
)
sweep = elephan.sweep(scenario, "results/response").run()

# %% [markdown]
# `Model` has the closed form of each algorithm (`window`, where losses are periodic) and the mean window where each
# packet is lost independently of the others (`independent`), which is what the scenario does.

# %%
import polars as pl

theory = pl.DataFrame(
    {
        "cc": name,
        "probability": loss,
        "periodic": Model(name).response(loss, RTT_S).window,
        "independent": Model(name).independent(loss, RTT_S),
    }
    for name in NAMES
    for loss in LOSSES
)
simulated = (
    sweep.to_polars("flows")
    .group_by("flow.cc", "path.loss.probability", maintain_order=True)
    .agg(
        pl.col("cwnd_mean_segments").mean().alias("simulated"),
        (pl.col("cwnd_mean_segments").std() / pl.len().sqrt() * 2.776).alias("half of the interval"),
        pl.col("timeouts").mean(),
    )
)
both = theory.join(
    simulated, left_on=["cc", "probability"], right_on=["flow.cc", "path.loss.probability"], maintain_order="left"
)
both.with_columns((pl.col("simulated") / pl.col("independent") - 1).alias("deviation"))

# %% [markdown]
# Theory has no timeouts; at one loss in a hundred packets the simulator has many, and stays below. Lines are theory for
# independent losses, points the simulator's means with their 95 % intervals (Student's t, five runs).

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(7, 4))
for number, name in enumerate(NAMES):
    one, colour = both.filter(cc=name), f"C{number}"
    axes.loglog(one["probability"], one["independent"], color=colour, label=name)
    axes.errorbar(one["probability"], one["simulated"], one["half of the interval"], fmt="o", color=colour, capsize=3)
axes.set(xlabel="loss rate", ylabel="mean window (segments)")
_ = axes.legend()
# %% [markdown]
# The engine `model` integrates the fluid equations of the same scenario file, and its results have the same form. It is
# valid for many flows behind an active queue: here a hundred behind RED. Their slow starts end at other times; then the
# queue swings in both, about as high and as often.

# %%
many = elephan.dumbbell(
    name="many flows",
    rate="1 Gbit/s",
    rtt="50 ms",
    buffer="50% bdp",
    flows=[elephan.flow("scalable", count=100, start={"uniform": ["0 s", "4 s"]})],
    duration="40 s",
    path={"queue": {"name": "red", "min_th": 100, "max_th": 1000, "max_p": 0.1}},
    measure={"from": "20 s"},
)
runs = [elephan.run(many.with_settings({"engine": engine})) for engine in ("sim", "model")]

figure, axes = plt.subplots(figsize=(7, 3.2))
for run in runs:
    bottleneck = run.queues.filter(link="bottleneck")
    axes.plot(bottleneck["time_s"], bottleneck["packets"], label=run.provenance["engine"])
axes.set(xlabel="time (s)", ylabel="queue (packets)")
_ = axes.legend()

# %%
pl.DataFrame(
    {
        "engine": run.provenance["engine"],
        "goodput (Mbit/s)": run.summary.goodput_bit_s / 1e6,
        "mean queue (packets)": run.summary.links[0].queue_mean_packets,
        "loss (%)": 100 * run.summary.loss_rate,
    }
    for run in runs
)

# %% [markdown]
# [Theory](../theory.md) says for which scenarios the equations hold, and where they do not: not for few flows, and not
# for BIC-TCP.

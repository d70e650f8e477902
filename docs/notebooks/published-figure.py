# %% [markdown]
# # A published figure
#
# Elephan repeats the experiments of five publications. Each is a function, and its scenario is a file. This notebook
# repeats figure 4 of Tekala and Szabo (2006): the window of one Scalable TCP flow at 1 Gbit/s and 100 ms grows
# exponentially until it fills the pipe, and then linearly while the queue fills.

# %%
from elephan.studies.reproduce.catalogue import EXPERIMENTS

experiment = EXPERIMENTS["tekala2006/figure-4"]
print(experiment.title)
print("\n".join(f"- {choice}" for choice in experiment.choices))

# %% [markdown]
# These choices are ours, because the publication does not say them. A laboratory carries out the runs, and keeps each
# in a folder.

# %%
from pathlib import Path

from elephan.studies.reproduce.lab import Lab

lab = Lab(Path("results/figure-4"))
report = experiment.function(lab)
print(f"{lab.asked} runs were asked for, and {lab.made} carried out: no run is carried out twice")

# %% [markdown]
# The figure, beside the publication's own equations:

# %%
report.draw()

# %% [markdown]
# What the publication claims became statements with bounds before anything ran. A verdict is computed from the
# intervals at all places.

# %%
for judgement in report.judgements:
    print(f"{judgement.claim.id} {judgement.verdict}: {judgement.claim.sentence}")

# %%
import polars as pl

pl.DataFrame(
    {
        "claim": judgement.claim.id,
        "place": one.name,
        "found": one.found.value,
        "above": one.above,
        "below": one.below,
        "holds": one.holds,
    }
    for judgement in report.judgements
    for findings in judgement.findings.values()
    for one in findings
)

# %% [markdown]
# `elephan reproduce tekala2006/figure-4` does the same, and [the page of the source](../reproduction/tekala2006.md) has
# all of its tables and figures.

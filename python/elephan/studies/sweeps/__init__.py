"""Sweeps: many runs of one scenario, the folder that stores them, and their analysis."""

from elephan.studies.sweeps.dataset import Dataset, SweepError
from elephan.studies.sweeps.loop import Sweep, SweepRun, sweep
from elephan.studies.sweeps.plots import plot
from elephan.studies.sweeps.tables import paired, table

__all__ = ["Dataset", "Sweep", "SweepError", "SweepRun", "paired", "plot", "sweep", "table"]

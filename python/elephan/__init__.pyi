"""Elephan: a laboratory for congestion control on long fat networks.

>>> import elephan
>>> run = elephan.run(elephan.dumbbell(rate="250 Mbit/s", rtt="82 ms", buffer="20% bdp",
...                   flows=[elephan.flow("htcp"), elephan.flow("htcp", start="2 s")], duration="10 s"))
>>> run.summary.utilisation > 0.5
True
"""

from . import cc, gym
from ._core import ScenarioError, __version__
from .api.metrics import Metric, impact
from .api.own import MetricError, metric
from .api.registry import Entry, Parameter, algorithms, linux_algorithms, queues, recoveries, slow_starts, traffic
from .api.run import Run
from .api.scenario import Scenario, dumbbell, flow, load, schema
from .api.summary import (
    CrowdSummary,
    FlowSummary,
    HostSummary,
    LinkSummary,
    StreamSummary,
    Summary,
    TransferSummary,
)
from .engines.run import run, run_many
from .studies.compare import Comparison, compare
from .studies.sweeps import Dataset, Sweep, SweepError, SweepRun, sweep

__all__ = [
    "Comparison",
    "CrowdSummary",
    "Dataset",
    "Entry",
    "FlowSummary",
    "HostSummary",
    "LinkSummary",
    "Metric",
    "MetricError",
    "Parameter",
    "Run",
    "Scenario",
    "ScenarioError",
    "StreamSummary",
    "Summary",
    "Sweep",
    "SweepError",
    "SweepRun",
    "TransferSummary",
    "__version__",
    "algorithms",
    "cc",
    "compare",
    "dumbbell",
    "flow",
    "gym",
    "impact",
    "linux_algorithms",
    "load",
    "metric",
    "queues",
    "recoveries",
    "run",
    "run_many",
    "schema",
    "slow_starts",
    "sweep",
    "traffic",
]

"""Clusters that are started for one sweep, on Slurm, HTCondor or PBS, by dask-jobqueue."""

import re
import shlex
from pathlib import Path
from typing import Any

from elephan._core import ScenarioError
from elephan.studies.sweeps.dataset import SweepError
from elephan.studies.sweeps.schedulers import security

# A run needs little memory: its samples, and a few packets for each packet in flight.
MEMORY = "2GB"

# Options for which dask-jobqueue has a name. All others go into the job script unchanged.
SLURM = {
    "--partition": "queue", "-p": "queue", "--account": "account", "-A": "account", "--time": "walltime", "-t": "walltime",
    "--mem": "memory", "--cpus-per-task": "cores", "-c": "cores",
}  # fmt: skip
PBS = {"-q": "queue", "-A": "account"}
HTCONDOR = {"request_cpus": "cores", "request_memory": "memory", "request_disk": "disk"}


def _options(text: str) -> list[tuple[str, str | None]]:
    """`--time=2:00:00 -p cpu --exclusive` as pairs."""
    words = shlex.split(text)
    pairs: list[tuple[str, str | None]] = []
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if not word.startswith("-") and not equals:
            raise ScenarioError(f"cluster options: expected --NAME=VALUE or -N VALUE, found {word!r}")
        if equals:
            pairs.append((name, value))
        elif words and not words[0].startswith("-"):
            pairs.append((name, words.pop(0)))
        else:
            pairs.append((name, None))
    return pairs


def settings(kind: str, text: str) -> dict[str, Any]:
    """The arguments of dask-jobqueue's cluster `slurm`, `pbs` or `htcondor` for the given options of the batch system."""
    known = {"slurm": SLURM, "pbs": PBS, "htcondor": HTCONDOR}[kind]
    arguments: dict[str, Any] = {"cores": 1, "memory": MEMORY}
    others: list[tuple[str, str | None]] = []
    for name, value in _options(text):
        if name in known and value is not None:
            arguments[known[name]] = int(value) if known[name] == "cores" and value.isdigit() else value
        else:
            others.append((name, value))
    if not isinstance(arguments["cores"], int):
        raise ScenarioError(f"cluster options: expected a number of cores, found {arguments['cores']!r}")
    if kind == "htcondor":
        arguments.setdefault("disk", "1GB")
        arguments["job_extra_directives"] = {name: value or "" for name, value in others}
        return arguments
    resources = [value for name, value in others if kind == "pbs" and name == "-l" and value]
    for resource in resources:
        if resource.startswith("walltime="):
            arguments["walltime"] = resource.removeprefix("walltime=")
        else:
            arguments["resource_spec"] = resource
            if cores := re.search(r"ncpus=(\d+)", resource):
                arguments["cores"] = int(cores[1])
            if memory := re.search(r"mem=(\w+)", resource):
                arguments["memory"] = memory[1]
    join = "=" if kind == "slurm" else " "
    arguments["job_extra_directives"] = [
        name if value is None else f"{name}{join if name.startswith('--') else ' '}{value}"
        for name, value in others
        if not (kind == "pbs" and name == "-l")
    ]
    return arguments


def cluster(kind: str, text: str, logs: Path, tls: Path | None = None) -> Any:
    """A cluster whose workers are batch jobs, with TLS from the files in `tls`. `scale(jobs=N)` requests the jobs."""
    try:
        import dask_jobqueue  # noqa: PLC0415 - the `cluster` extra
    except ImportError as error:
        raise SweepError(
            'dask-jobqueue: expected it for a cluster, found none; pip install "elephan[cluster]"'
        ) from error
    make = {"slurm": "SLURMCluster", "pbs": "PBSCluster", "htcondor": "HTCondorCluster"}[kind]
    more = {} if tls is None else {"security": security(tls.absolute()), "protocol": "tls://"}
    return getattr(dask_jobqueue, make)(**settings(kind, text), processes=1, log_directory=str(logs), **more)

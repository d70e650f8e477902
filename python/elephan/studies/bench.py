"""Measurements of this host, each repeated: memory, disks, TCP and latency between namespaces.

The measurements themselves are in `crates/host`. Here they are repeated in turn, so that a disturbance meets all of them.
Without root, those between namespaces take place in a user namespace, where the system permits that.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

from elephan import _core
from elephan.base.errors import FailedError
from elephan.studies.statistics import LEVEL, Estimate

Request = Mapping[str, Any]
# What an answer has for one repeat: an object, or a list of them, one for each pass.
Answers = list[Any]

MIB = 1 << 20
# Memory that is read and written for a test is so many times the largest cache: a quarter of what would still be found there.
BEYOND_CACHE = 4
# Memory of a thread at least, where the size of a cache is unknown, and at most.
LEAST_MEMORY, MOST_MEMORY = 64 * MIB, 512 * MIB
# A program that measures in a user namespace: the request comes in, the answer goes out.
_CONFINED = "import sys; from elephan import _core; print(_core.measure_host(sys.stdin.read()))"


def measure(request: Request) -> Any:
    """One measurement in this process. Raises `OSError` if the system refuses it, `FailedError` elsewhere than on Linux."""
    if not hasattr(_core, "measure_host"):
        raise FailedError(f"host: expected Linux, found {sys.platform}")
    return json.loads(_core.measure_host(json.dumps(request)))


def _confined(request: Request) -> Any:
    unshare = shutil.which("unshare")
    if unshare is None:
        raise FailedError("unshare: expected it to be installed (util-linux), found none")
    command = [unshare, "--user", "--map-root-user", "--", sys.executable, "-c", _CONFINED]
    done = subprocess.run(command, input=json.dumps(request), capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise FailedError(f"a user namespace: {lines[-1]}")
    return json.loads(done.stdout)


@cache
def namespaces() -> tuple[Callable[[Request], Any] | None, str]:
    """How to measure between namespaces; or none, and the reason."""
    probe = {"what": "ping", "sizes": [8], "count": 1}
    try:
        measure(probe)
    except PermissionError as error:
        direct = error.strerror or str(error)
    except (OSError, FailedError) as error:
        return None, str(getattr(error, "strerror", None) or error)
    else:
        return measure, ""
    try:
        _confined(probe)
    except FailedError as error:
        return None, f"{direct}; {error}"
    return _confined, ""


def in_turn(
    requests: Mapping[str, Request],
    repeats: int,
    *,
    by: Callable[[Request], Any] = measure,
    done: Callable[[], object] = lambda: None,
) -> dict[str, Answers]:
    """The answers to each request, by name: all of them once, then all again. Calls `done` after each."""
    found: dict[str, Answers] = {name: [] for name in requests}
    for _ in range(repeats):
        for name, request in requests.items():
            found[name].append(by(request))
            done()
    return found


def bytes_beyond_cache() -> int:
    """Bytes of memory that no cache of this machine holds, for a thread."""
    found = [LEAST_MEMORY]
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text(encoding="ascii").strip()
        if text.endswith("K") and text[:-1].isdigit():
            found.append(BEYOND_CACHE * 1024 * int(text[:-1]))
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    return min(max(found), MOST_MEMORY, max(LEAST_MEMORY, free // 8))


def clock_ghz() -> float | None:
    """The processor's clock as the kernel tells it, the mean of all cores."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    found = [float(line.partition(":")[2]) / 1e3 for line in lines if line.startswith("cpu MHz")]
    return sum(found) / len(found) if found else None


def measurable_bytes(folder: Path) -> int:
    """Half of what is free where a folder is, in whole MiB: others write there, too."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize // 2 // MIB * MIB


def rates(answers: Sequence[Any]) -> list[float]:
    """What each answer moved, bytes in a second."""
    return [one["bytes"] / one["seconds"] for one in answers]


@dataclass(frozen=True)
class Line:
    """A straight line through points, with the 95 % intervals of its slope and intercept (Student's, of least squares)."""

    slope: Estimate
    intercept: Estimate

    @classmethod
    def of(cls, x: Sequence[float], y: Sequence[float]) -> "Line":
        """The line of least squares. At least three points, and two places."""
        xs, ys = np.array(x, float), np.array(y, float)
        n, centre = len(xs), float(xs.mean())
        spread = float(((xs - centre) ** 2).sum())
        if n < 3 or spread == 0:
            raise ValueError(f"expected three points or more at two places or more, found {n}")
        slope = float(((xs - centre) * (ys - ys.mean())).sum()) / spread
        intercept = float(ys.mean()) - slope * centre
        variance = float(((ys - intercept - slope * xs) ** 2).sum()) / (n - 2)
        quantile = float(stdtrit(n - 2, (1 + LEVEL) / 2))

        def estimate(value: float, error: float) -> Estimate:
            return Estimate(value, value, error, value - quantile * error, value + quantile * error, n, n)

        return cls(
            estimate(slope, (variance / spread) ** 0.5),
            estimate(intercept, (variance * (1 / n + centre**2 / spread)) ** 0.5),
        )


def latency_line(answers: Sequence[Sequence[Mapping[str, Any]]]) -> Line:
    """Time of a request and its response by the size of the request: the shortest of each size and repeat (Li 2006, A.2.2)."""
    points = [(one["size"], one["shortest"]) for answer in answers for one in answer]
    return Line.of([size for size, _ in points], [time for _, time in points])

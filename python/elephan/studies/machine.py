"""What works on this machine, and what to install for the rest."""

import importlib.util
import os
import platform
import shutil
import subprocess
import time
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from elephan import kernel
from elephan.api.scenario import dumbbell, flow
from elephan.base.cores import core_count
from elephan.engines.run import run
from elephan.foreign import build as compiler
from elephan.guest import image
from elephan.kernel import build as objects

TUN = Path("/dev/net/tun")
# A package of each extra of pyproject.toml.
EXTRAS = {
    "cluster": "distributed",
    "compiled": "numba",
    "gym": "gymnasium",
    "sweep": "duckdb",
    "ui": "starlette",
    "xarray": "xarray",
}


@dataclass(frozen=True)
class Check:
    """One part of Elephan: whether it works here, what was found, and otherwise what to do."""

    part: str
    works: bool
    found: str
    remedy: str = ""


def checks() -> list[Check]:
    """Every part, in the order of use. The first is the simulator, without which nothing works."""
    return [_tried(part, check) for part, check in PARTS.items()]


def _tried(part: str, check: Callable[[], tuple[str, str]]) -> Check:
    try:
        found, remedy = check()
    except PermissionError as error:
        # The only files that a check reads, and that may be another user's, are in the cache.
        found, remedy = f"no access to {error.filename}", "access to it, or another cache, by XDG_CACHE_HOME"
    except Exception as error:  # what is broken is a finding, and the other parts are still of interest
        found, remedy = f"{type(error).__name__}: {error}", "a defect: please report it"
    return Check(part, not remedy, found, remedy)


def _simulator() -> tuple[str, str]:
    began = time.perf_counter()
    done = run(dumbbell(rate="10 Mbit/s", rtt="20 ms", flows=[flow("reno")], duration="2 s"))
    if not 0.5 < (done.summary.utilisation or 0.0) <= 1:
        return f"a utilisation of {done.summary.utilisation} on an idle link", "a defect: please report it"
    return f"two seconds of a flow in {(time.perf_counter() - began) * 1e3:.0f} ms", ""


def _size() -> tuple[str, str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{core_count()} cores, {memory / 1e9:.0f} GB of memory", ""


def _extras() -> tuple[str, str]:
    lacking = [extra for extra, package in EXTRAS.items() if importlib.util.find_spec(package) is None]
    there = ", ".join(extra for extra in EXTRAS if extra not in lacking)
    return there or "none", f"pip install 'elephan[{','.join(lacking)}]'" if lacking else ""


def _browser() -> tuple[str, str]:
    try:
        return str(getattr(webbrowser.get(), "name", "found")), ""
    except webbrowser.Error:
        return "none", "a browser; or open the page from another machine, as docs/see.md says"


def _compiler() -> tuple[str, str]:
    try:
        return compiler.compiler(), ""
    except ValueError:
        return "none", "apt-get install gcc"


def _guest() -> tuple[str, str]:
    if (system := f"{platform.system()} on {platform.machine()}") != "Linux on x86_64":
        return system, "Linux on x86_64"
    there = [one.version for one in image.images() if not one.outdated]
    return (
        f"Linux {', '.join(there)}" if there else "no image",
        "" if there else f"elephan kernel build {image.DEFAULT}",
    )


def _namespaces() -> tuple[str, str]:
    if platform.system() != "Linux":
        return platform.system(), "Linux"
    lacking = []
    if os.geteuid() != 0:
        lacking.append("root (sudo)")
    elif subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode != 0:
        lacking.append("the right to make namespaces (--cap-add SYS_ADMIN --cap-add NET_ADMIN in a container)")
    if not os.access(TUN, os.R_OK | os.W_OK):
        lacking.append(f"{TUN} (modprobe tun; --device {TUN} in a container)")
    return f"Linux {platform.release()}", ", ".join(lacking)


def _loading() -> tuple[str, str]:
    if platform.system() != "Linux":
        return platform.system(), "Linux"
    found = "objects of the package" if objects.shipped() else f"clang {objects.clang() or 'none'}"
    return found, "; ".join(kernel.missing())


def _own_files() -> tuple[str, str]:
    return objects.clang() or "no clang", "" if objects.clang() else "apt-get install clang"


def _ns2() -> tuple[str, str]:
    found = shutil.which("ns")
    return found or "none", "" if found else "apt-get install ns2"


PARTS: dict[str, Callable[[], tuple[str, str]]] = {
    "simulator": _simulator,
    "cores and memory": _size,
    "extras": _extras,
    "browser, for elephan ui": _browser,
    "C compiler, for algorithms in C": _compiler,
    "--engine kernel": _guest,
    "--engine linux, emulate": _namespaces,
    "elephan kernel load": _loading,
    "clang, for your own eBPF files": _own_files,
    "ns-2, for reproduce --engine ns2": _ns2,
}

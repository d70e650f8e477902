"""`package.py WHEEL`: install a wheel into an empty environment elsewhere, and run what README.md and docs/index.md show.

Then its optional xarray is installed and tested: an environment that has it has pandas too, which makes other tests slower.

A command that a page names without its arguments is asked for its help. The table that this prints has exit code and time of
each. Loading into the running kernel needs root and BTF, but no clang.
"""

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
BTF = Path("/sys/kernel/btf/vmlinux")
# CAP_SYS_ADMIN, which a container's root lacks.
SYS_ADMIN = 21
# What a page or an SQL query needs beyond the package's own dependencies.
EXTRAS = "sweep,ui"


def commands(text: str) -> list[str]:
    """Every `elephan ...` of a page: in lines of its own, with continued lines joined, and within the text."""
    joined = re.sub(r"\\\n\s*", " ", text)
    found = re.findall(r"^ {4}(elephan .*)$", joined, re.MULTILINE)
    found += [" ".join(one.split()) for one in re.findall(r"`(elephan\s[^`]*)`", joined)]
    return list(dict.fromkeys(re.sub(r"\s+#.*", "", one) for one in found))


def as_run(command: str) -> list[str]:
    """The command line; that of its help, if arguments are left out."""
    words = ["elephan", *[word.strip("\"'") for word in re.findall(r'"[^"]*"|\S+', command)[1:]]]
    name = 3 if words[1] == "path" else 2
    complete = len(words) > name or words[1] in ("packetdrill", "doctor") or words[1].startswith("-")
    return words if complete else [*words[:name], "--help"]


def needs(words: list[str]) -> str:
    """What a command needs that this machine lacks."""
    if words[1:3] != ["kernel", "load"]:
        return ""
    status = Path("/proc/self/status").read_text(encoding="ascii") if BTF.exists() else ""
    found = re.search(r"CapEff:\s*(\w+)", status)
    return "" if found and int(found[1], 16) >> SYS_ADMIN & 1 else "root and BTF"


def called(words: list[str], place: Path, environment: dict[str, str]) -> tuple[int, float, float, str]:
    """Run a command: its exit code, seconds, seconds of the processor, and what it said of an error."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        words, cwd=place, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    after, took_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - began
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.returncode, took_s, cpu_s, done.stderr


def main() -> None:
    """Install and run; exit with 1 if a command failed."""
    wheel = Path(sys.argv[1]).resolve()
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "docs/index.md"))
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        venv.create(place / "env", with_pip=True)
        binaries = place / "env" / "bin"
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))},
            "PATH": f"{binaries}:{os.environ['PATH']}",
            "XDG_CACHE_HOME": str(place / "cache"),
            "CLANG": "not-installed",
            "MPLBACKEND": "agg",
        }
        install = [str(binaries / "pip"), "install", "--quiet", "--disable-pip-version-check", f"{wheel}[{EXTRAS}]"]
        # pip has the cache of this user.
        lines = [("pip install", install, dict(os.environ))]
        lines += [(one, as_run(one), environment) for one in ("elephan --help", *commands(text))]
        blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        lines += [(f"python, {len(one.splitlines())} lines", ["python", "-c", one], environment) for one in blocks]
        lines.append(("pip install xarray", [*install[:-1], f"{wheel}[xarray]", "pytest"], dict(os.environ)))
        tests = ROOT / "python" / "tests"
        pytest = ["python", "-m", "pytest", "--quiet", "--noconftest", "-c", os.devnull, "-p", "no:cacheprovider"]
        lines.append(
            (
                "pytest test_sweep_arrays.py",
                [*pytest, str(tests / "studies/test_sweep_arrays.py")],
                environment | {"PYTHONPATH": str(tests), "PYTHONDONTWRITEBYTECODE": "1"},
            )
        )
        (place / "work").mkdir()
        print(
            f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB\n\n| exit | s | CPU s | command |\n| --- | --- | --- | --- |"
        )
        for shown, words, variables in lines:
            if lack := needs(words):
                print(f"| - | | | {shown}: needs {lack} |")
                continue
            code, took_s, cpu_s, error = called(words, place / "work", variables)
            print(
                f"| {code} | {took_s:.1f} | {cpu_s:.1f} | {shown}{' (its help)' if words[-1] == '--help' else ''} |",
                flush=True,
            )
            if code != 0:
                failed += 1
                print(error, file=sys.stderr)
            elif words[1:3] == ["kernel", "load"]:
                failed += called(["elephan", "kernel", "unload", words[3]], place / "work", variables)[0] != 0
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()

"""Carries out the experiment of each page of docs/coming-from in the other tool and in Elephan, and writes docs/measured/PAGE.

    python scripts/coming_from.py [PAGE...]

Needs ns-2, ns-3 (libns3-dev), iperf3, flent with netperf, and jq. For iperf3 and flent also root, and an idle machine.
A page without a program is left alone.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import elephan

ROOT = Path(__file__).resolve().parent.parent
ELEPHAN = Path(sys.executable).with_name("elephan")
NS3 = (
    "applications",
    "point-to-point",
    "internet",
    "traffic-control",
    "bridge",
    "mobility",
    "network",
    "stats",
    "core",
)
# How the program of a page is run, by the language of its block: its file, and the command.
PROGRAMS = {
    "tcl": ("two.tcl", "ns two.tcl"),
    "cpp": ("two.cc", f"g++ -std=c++17 -O2 two.cc -o two {' '.join(f'-lns3-{one}' for one in NS3)} && ./two"),
    "sh": ("two.sh", f"{ELEPHAN} path emulate two.toml -- sh two.sh"),
}
HEAD = "| | first flow (Mbit/s) | second flow (Mbit/s) | both (Mbit/s) |\n| --- | ---: | ---: | ---: |\n"


def block(text: str, language: str) -> str | None:
    """The first block of a page in a language."""
    found = re.search(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return found[1] if found else None


def row(name: str, goodputs: list[float]) -> str:
    """A line of the table: application bytes of each flow, in Mbit/s."""
    return f"| {name} | " + " | ".join(f"{value:.1f}" for value in [*goodputs, sum(goodputs)]) + " |\n"


def ours(text: str) -> str:
    """The rows of Elephan: the scenario of the page, and each change that the page makes by `--set`."""
    rows = ""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "two.toml"
        file.write_text(block(text, "toml") or "", encoding="utf-8")
        for change in ["", *re.findall(r"^    elephan run two\.toml --set (\S+)", text, re.MULTILINE)]:
            run = elephan.run(elephan.load(file, dict([change.split("=")]) if change else {}))
            goodputs = [flow.goodput_bit_s / 1e6 for flow in run.summary.flows]
            rows += row(f"Elephan, `{change}`" if change else "Elephan", goodputs)
    return rows


def theirs(page: Path, text: str) -> str:
    """The row of the other tool, which prints a line with `Mbit/s` for each flow."""
    language = next((one for one in PROGRAMS if block(text, one)), None)
    if language is None:
        return ""
    file, command = PROGRAMS[language]
    with tempfile.TemporaryDirectory() as folder:
        for name, kind in ((file, language), ("two.toml", "toml")):
            (Path(folder) / name).write_text(block(text, kind) or "", encoding="utf-8")
        printed = subprocess.run(command, shell=True, cwd=folder, check=True, capture_output=True, text=True).stdout
    goodputs = [float(one) for one in re.findall(r"^([\d.]+) Mbit/s$", printed, re.MULTILINE)]
    if len(goodputs) != 2:
        raise SystemExit(f"{page}: expected two lines of Mbit/s, found {printed!r}")
    return row(page.stem, goodputs)


if __name__ == "__main__":
    folder = ROOT / "docs" / "coming-from"
    for page in [Path(one) for one in sys.argv[1:]] or sorted(folder.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if measured := theirs(page, text):
            (ROOT / "docs" / "measured" / page.name).write_text(HEAD + measured + ours(text), encoding="utf-8")

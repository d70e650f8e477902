"""Two flows on the simulator and on a kernel, with ten starts of the second flow: how much of a difference is chance.

`python scripts/engine_starts.py` prints a table in Markdown.
"""

import statistics
import sys
from pathlib import Path

from elephan.api.scenario import Scenario, load
from elephan.studies import side_by_side

SCENARIOS = Path(__file__).parent.parent / "scenarios" / "engines"
# The cells of the suite that were beyond an aim.
CELLS = {"two-20": ("reno", "cubic", "fast"), "two-100": ("cubic", "hstcp-fc", "scalable")}
STARTS = 10
STEP_MS = 4


def starts(scenario: Scenario) -> list[Scenario]:
    """The scenario with its second flow starting up to 36 ms later."""
    first, second = scenario.document["flow"]
    late = [{**second, "start": f"{2000 + STEP_MS * number} ms"} for number in range(STARTS)]
    return [Scenario({**scenario.document, "flow": [first, flow]}).with_settings({}) for flow in late]


def cell(values: list[float]) -> str:
    """The median of values, and their range."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main() -> None:
    """Run all, and print the table."""
    quantities = (side_by_side.GOODPUT, side_by_side.WINDOW, side_by_side.EPOCH, side_by_side.RESENT)
    out = [f"| scenario | engine | {' | '.join(f'{q.name} ({q.unit})' for q in quantities)} |"]
    out.append("| --- " * (2 + len(quantities)) + "|")
    for name, algorithms in CELLS.items():
        for cc in algorithms:
            scenario = load(SCENARIOS / f"{name}.toml", {"flow.cc": cc, "engine": "kernel"})
            made = [*side_by_side.pairs({f"{number}": one for number, one in enumerate(starts(scenario))})]
            for number, engine in enumerate(("simulator", "kernel")):
                values = [[pair.values(q)[number] for pair in made] for q in quantities]
                cells = [cell([value for value in row if value is not None]) for row in values]
                out.append(f"| {name} {cc} | {engine} | {' | '.join(cells)} |")
    sys.stdout.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()

"""Runs for the compiler's profile of a release wheel: every example scenario, and paths with more packets.

`make wheel` runs it, by maturin.
"""

from pathlib import Path

from elephan import dumbbell, load, run

EXAMPLES = Path(__file__).parents[1] / "python/elephan/examples"


def main() -> None:
    """Run them."""
    for example in sorted(EXAMPLES.glob("*.toml")):
        scenario = load(example)
        if "sweep" not in scenario.document:
            run(scenario)
    for cc, count in (("scalable", 1), ("cubic", 10), ("reno", 100)):
        for path in ({}, {"access_rate": "10 Gbit/s"}):
            flows = [{"cc": cc, "count": count}]
            run(dumbbell(rate="1 Gbit/s", rtt="100 ms", flows=flows, duration="10 s", path=path))


if __name__ == "__main__":
    main()

"""The tier of real time: each test five times, and each deviation from the truth judged by its interval, as a published claim is.

A test measures something by the clock of this machine, and hands its deviation and the bound to `deviation`. It asserts by itself
only what no clock decides. The report has a line for each quantity: *within* if the 95 % interval of the five deviations lies
within the bound, *outside* if it lies beyond it, else *undecided*; *disturbed* if it is not within the bound and the host took
processor time or the emulator of links was late. `make realtime` ends with 1 unless each is within its bound or disturbed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from elephan.studies.reproduce.judge import Place, judged

ATTEMPTS = 5
# Of the processors' time; the emulator of links holds one of two processors, its programs the other.
STOLEN_SHARE = 0.1


@dataclass
class Quantity:
    """What one test measures, once an attempt: deviations between two bounds, and what disturbed them."""

    name: str
    low: float | None
    high: float | None
    deviations: list[float] = field(default_factory=list)
    disturbed: set[str] = field(default_factory=set)

    def verdict(self) -> tuple[str, str]:
        """The verdict, and the deviation with its interval."""
        place = Place.sampled(self.name, above=self.low, below=self.high)
        result = judged(place, self.deviations, looks=1, places=1)
        if result.holds:
            return "within", result.found.text
        if self.disturbed:
            return f"disturbed: {'; '.join(sorted(self.disturbed))}", result.found.text
        return "undecided" if result.holds is None else "outside", result.found.text


QUANTITIES: dict[tuple[str, str], Quantity] = {}


def selected(config: pytest.Config) -> bool:
    """Whether this run of pytest is of the tier."""
    return config.getoption("markexpr") == "realtime"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Five attempts at each test of the tier."""
    if selected(metafunc.config) and metafunc.definition.get_closest_marker("realtime"):
        metafunc.fixturenames.append("attempt")
        metafunc.parametrize("attempt", range(1, ATTEMPTS + 1))


def stolen_and_passed() -> tuple[int, int]:
    """Processor time since the start of the machine: taken by the host for others (`steal` in proc(5)), and in all."""
    ticks = [int(word) for word in Path("/proc/stat").read_text(encoding="ascii").split()[1:9]]
    return ticks[7], sum(ticks)


@pytest.fixture
def deviation(request: pytest.FixtureRequest) -> Iterator[Callable[..., None]]:
    """`deviation(name, value, within=0.03)` takes a deviation; `above` and `below` are bounds that are not symmetric.

    `because` has the reasons for which the emulator of links calls its own record invalid.
    """
    test, _, parameters = request.node.nodeid.partition("[")
    varied = "-".join(part for part in parameters.rstrip("]").split("-")[:-1])
    mine: list[Quantity] = []
    before = stolen_and_passed()

    def take(
        name: str,
        value: float,
        *,
        within: float | None = None,
        above: float | None = None,
        below: float | None = None,
        because: tuple[str, ...] | list[str] = (),
    ) -> None:
        low, high = (-within, within) if within is not None else (above, below)
        key = (f"{test.rpartition('/')[2]}[{varied}]" if varied else test.rpartition("/")[2], name)
        quantity = QUANTITIES.setdefault(key, Quantity(name, low, high))
        # A bound that follows the machine's lateness is that of its widest attempt's own.
        quantity.deviations.append(value)
        quantity.disturbed.update(because)
        mine.append(quantity)

    yield take
    stolen, passed = (now - then for now, then in zip(stolen_and_passed(), before, strict=True))
    if stolen > STOLEN_SHARE * passed:
        for quantity in mine:
            quantity.disturbed.add(f"the host took {stolen / passed:.0%} of the processors' time")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The report: a line for each quantity."""
    if QUANTITIES:
        terminalreporter.section("deviations in real time")
    for (test, name), quantity in QUANTITIES.items():
        verdict, shown = quantity.verdict()
        bounds = ", ".join(
            f"{sign} {bound:g}" for sign, bound in ((">", quantity.low), ("<", quantity.high)) if bound is not None
        )
        terminalreporter.write_line(f"{test}: {name}: {shown}, expected {bounds}: {verdict}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails where a quantity left its bound."""
    verdicts = [quantity.verdict()[0] for quantity in QUANTITIES.values()]
    if session.exitstatus == pytest.ExitCode.OK and {"outside", "undecided"} & set(verdicts):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED

"""The tier of real time: each test five times, and each deviation judged by its interval, as a published claim is.

A test measures something by the clock of this machine, and hands its deviation and the bound to `deviation`. It asserts by
itself only what no clock decides. The report has a line for each quantity: *within* if the 95 % interval of the mean of five
deviations lies within the bound, *outside* if it lies beyond it, else *undecided*; *disturbed* if it is not within the bound
and the host took processor time or the emulator of links was late. `make realtime` ends with 1 unless each is within its bound
or disturbed. An attempt that fails hands nothing over, and fewer than five deviations are undecided.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from elephan.studies.judge import Place, judged

ATTEMPTS = 5
# Of the processors' time; the emulator of links holds one of two processors, its programs the other.
STOLEN_SHARE = 0.1
STAT = Path("/proc/stat")


@dataclass
class Quantity:
    """What a test measures, once an attempt: deviations that belong between two bounds, and what disturbed them.

    Equal deviations in all attempts are certain if the quantity is `discrete`: a count, or a count divided by a constant, as
    goodput over a fixed time is. Times differ at each attempt: if they are equal, one measurement was handed over five times,
    and nothing is decided.
    """

    low: float | None
    high: float | None
    discrete: bool = False
    deviations: list[float] = field(default_factory=list)
    disturbed: set[str] = field(default_factory=set)

    def verdict(self) -> tuple[str, str]:
        """The verdict, and the mean deviation with its interval."""
        place = Place("", (), lambda: None, above=self.low, below=self.high)
        same = self.discrete and len(set(self.deviations)) == 1
        finding = judged(place, self.deviations, looks=1, places=1, same=same)
        shown = finding.found.text
        if len(self.deviations) != ATTEMPTS:
            return "undecided", f"{shown} from {len(self.deviations)} of {ATTEMPTS} attempts"
        if finding.holds:
            return "within", shown
        if self.disturbed:
            return "disturbed", f"{shown} ({'; '.join(sorted(self.disturbed))})"
        return "undecided" if finding.holds is None else "outside", shown


# Of a session, by the test with its parameters, and by the quantity's name.
QUANTITIES = pytest.StashKey[dict[tuple[str, str], Quantity]]()


def pytest_configure(config: pytest.Config) -> None:
    """Nothing is measured yet."""
    config.stash[QUANTITIES] = {}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Five attempts at each test of the tier."""
    if metafunc.definition.get_closest_marker("realtime"):
        metafunc.fixturenames.append("attempt")
        metafunc.parametrize("attempt", range(1, ATTEMPTS + 1))


def stolen_and_passed() -> tuple[int, int]:
    """Processor time since the start of the machine: taken by the host for others (`steal` in proc(5)), and in all.

    Zero on systems that do not count it.
    """
    if not STAT.exists():
        return 0, 0
    ticks = [int(word) for word in STAT.read_text(encoding="ascii").split()[1:9]]
    return ticks[7], sum(ticks)


@pytest.fixture
def deviation(request: pytest.FixtureRequest) -> Iterator[Callable[..., None]]:
    """`deviation(name, value, within=0.03)` takes a deviation; `above` and `below` are bounds that are not symmetric.

    A value of None is a measurement that gave no number. `because` has the reasons for which the emulator of links calls its
    own record invalid. `discrete` is that of `Quantity`.
    """
    parameters = [str(value) for name, value in request.node.callspec.params.items() if name != "attempt"]
    test = f"{request.path.name}::{request.node.originalname}" + (f"[{', '.join(parameters)}]" if parameters else "")
    measured: list[Quantity] = []
    before = stolen_and_passed()

    def take(
        name: str,
        value: float | None,
        *,
        within: float | None = None,
        above: float | None = None,
        below: float | None = None,
        because: Iterable[str] = (),
        discrete: bool = False,
    ) -> None:
        low, high = (-within, within) if within is not None else (above, below)
        assert (low, high) != (None, None), f"{name}: expected a bound, found none"
        quantity = request.config.stash[QUANTITIES].setdefault((test, name), Quantity(low, high, discrete))
        assert (low, high) == (quantity.low, quantity.high), f"{name}: expected the same bounds at each attempt"
        quantity.deviations.append(math.nan if value is None else value)
        quantity.disturbed.update(because)
        measured.append(quantity)

    yield take
    stolen, passed = (now - then for now, then in zip(stolen_and_passed(), before, strict=True))
    if stolen > STOLEN_SHARE * passed:
        for quantity in measured:
            quantity.disturbed.add(f"the host took {stolen / passed:.0%} of the processors' time")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The report: a line for each quantity."""
    if config.stash[QUANTITIES]:
        terminalreporter.section("deviations in real time")
    for (test, name), quantity in config.stash[QUANTITIES].items():
        verdict, shown = quantity.verdict()
        bounds = ", ".join(
            f"{sign} {bound:.4g}" for sign, bound in ((">", quantity.low), ("<", quantity.high)) if bound is not None
        )
        terminalreporter.write_line(f"{verdict}: {test}: {name}: expected {bounds}, found {shown}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails unless each quantity is within its bound or disturbed."""
    verdicts = {quantity.verdict()[0] for quantity in session.config.stash[QUANTITIES].values()}
    if session.exitstatus == pytest.ExitCode.OK and verdicts & {"outside", "undecided"}:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED

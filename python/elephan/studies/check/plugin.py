"""A pytest plugin: the expectations of scenario files as tests, and runs on engines for tests that are written in Python.

`pytest scenarios/fair.toml` decides the expectations of a file, a test for each. In a test function, the fixture `elephan_run`
runs a scenario: `elephan_run("fair.toml", {"flow.0.cc": "htcp"})`; with the marker `engines("sim", "kernel")` the test is run
on each of these engines.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from elephan.api.run import Run
    from elephan.api.scenario import Source
    from elephan.studies.check.expectations import Expectation

RUNS = "elephan_runs"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, and the setting that says which files pytest collects by itself."""
    group = parser.getgroup("elephan")
    group.addoption("--elephan-cc", metavar="CC", help="algorithm of the first flow of scenario files with [[expect]]")
    group.addoption(
        "--elephan-engine", metavar="ENGINE", help="engine of scenario files with [[expect]]: sim, kernel, ..."
    )
    parser.addini("elephan_files", "scenario files with [[expect]] that are collected in folders: patterns", "args", [])


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line("markers", "engines(*names): engines of Elephan on which a test with `elephan_run` is run")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "ScenarioFile | None":
    """Collect a scenario file that is named on the command line, or that matches `elephan_files`."""
    if file_path.suffix != ".toml":
        return None
    patterns = parent.config.getini("elephan_files")
    if not parent.session.isinitpath(file_path) and not any(file_path.match(pattern) for pattern in patterns):
        return None
    made: ScenarioFile = ScenarioFile.from_parent(parent, path=file_path)
    return made


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that has the marker on each of its engines."""
    if "elephan_run" in metafunc.fixturenames and (marker := metafunc.definition.get_closest_marker("engines")):
        metafunc.parametrize("elephan_run", marker.args, indirect=True)


@pytest.fixture
def elephan_run(request: pytest.FixtureRequest) -> "Callable[..., Run]":
    """A function that runs a scenario, with other values for some keys, on the engine of the test."""
    from elephan.api.scenario import load
    from elephan.engines.run import run

    engine = getattr(request, "param", None)

    def run_it(scenario: "Source", settings: Mapping[str, str] | None = None) -> "Run":
        return run(load(scenario, {**(settings or {}), **({} if engine is None else {"engine": engine})}))

    return run_it


class ScenarioFile(pytest.File):
    """A scenario file: a test for each of its expectations."""

    def collect(self) -> Iterator[pytest.Item]:
        """The tests."""
        from elephan.api.scenario import load
        from elephan.studies.check.expectations import expectations

        cc, engine = self.config.getoption("--elephan-cc"), self.config.getoption("--elephan-engine")
        settings = ({} if cc is None else {"flow.0.cc": cc}) | ({} if engine is None else {"engine": engine})
        for one in expectations(self.path, load(self.path), settings, large=False):
            yield ExpectationItem.from_parent(self, name=one.says, expectation=one)


class ExpectationItem(pytest.Item):
    """An expectation as a test: it fails unless it holds, and is skipped where it cannot be evaluated."""

    def __init__(self, *, expectation: "Expectation", **keys: Any) -> None:
        super().__init__(**keys)
        self.expectation = expectation

    def runtest(self) -> None:
        """Decide it. Runs are kept in pytest's cache folder, so that other tests find them."""
        from elephan.studies.check.decisions import Decision, Laboratory, decide
        from elephan.studies.check.expectations import engine_of

        # There is none with `-p no:cacheprovider`.
        cache = getattr(self.config, "cache", None)
        folder = Path(RUNS) if cache is None else Path(cache.mkdir(RUNS))
        decided = decide([self.expectation], Laboratory(folder, engine=engine_of(self.expectation)))[0]
        if decided.decision == Decision.NOT_EVALUATED:
            pytest.skip(decided.reason)
        if decided.decision != Decision.HELD:
            raise UnmetError(decided)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The verdict, what was found, and the commands that repeat it."""
        from elephan.studies.check.report import remarks

        if not isinstance(excinfo.value, UnmetError):
            return super().repr_failure(excinfo, style)
        decided = excinfo.value.args[0]
        bound = self.expectation.bound or self.expectation.text
        return "\n".join([f"{self.expectation.name} {decided.decision}: {bound}", *remarks(decided)])

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """File and sentence."""
        return self.path, None, self.expectation.says


class UnmetError(AssertionError):
    """An expectation that failed, or that is undecided."""

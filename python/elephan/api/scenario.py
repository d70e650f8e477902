"""Scenarios: read from a file or made in Python, and checked by the definition that all engines share."""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from elephan import _core
from elephan.api import cellular
from elephan.api.outline import html, outline
from elephan.base.text import listed
from elephan.foreign import names

# Of a scenario file: a trace may be within it.
MOST_BYTES = 100_000_000


class Scenario(_core.Scenario):
    """A validated scenario with all defaults written out.

    `document` has the form of the scenario file; scenarios are equal if their documents are.
    """

    def __eq__(self, other: object) -> bool:
        return self.document == other.document if isinstance(other, Scenario) else NotImplemented

    __hash__ = None  # type: ignore[assignment] # as a document

    def __reduce__(self) -> tuple[Any, ...]:
        return Scenario, (self.document,)

    def __repr__(self) -> str:
        return f"<Scenario {self.name}: {self.outline}>"

    def _repr_html_(self) -> str:
        return html(self.name, self.outline, self.document)

    @property
    def outline(self) -> str:
        """Path, traffic, duration and engine on one line."""
        return outline(self.document)

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return str(self.document["name"])

    @property
    def packet_bytes(self) -> float:
        """The size of the IP packet of a full segment."""
        size = _core.quantity(str(self.document["tcp"].get("packet", "1500 B")))
        assert size is not None
        return size[0]

    @property
    def changes(self) -> Sequence[Mapping[str, Any]]:
        """The changes of its links during a run, in order of time: `at_s`, `link`, and the new values; None for what stays."""
        return self.plan["changes"] if self.document.get("event") else ()

    def to_json(self) -> str:
        """The scenario as JSON."""
        return json.dumps(self.document)

    def expand(self) -> list[tuple["Scenario", dict[str, Any]]]:
        """All points of the scenario's sweep with their settings; the scenario itself if it has no sweep."""
        repeated = "repeat" in self.document.get("sweep", {})
        expanded = []
        for number in range(self.points):
            for repeat in range(self.repeats):
                scenario, settings = self.point(number, repeat)
                more = {"repeat": repeat} if repeated else {}
                expanded.append((Scenario(scenario), {**settings, **more}))
        return expanded

    def with_settings(self, settings: Mapping[str, str], *, large: bool = False) -> "Scenario":
        """The scenario with other values for some keys, such as `{"path.rtt": "162 ms"}`."""
        return checked(self.to_json(), "scenario", settings, as_json=True, large=large)


def checked(text: str, file: str, settings: Mapping[str, str], *, as_json: bool, large: bool) -> Scenario:
    """The scenario of a text. Algorithms from outside that it names are built and registered before it is read."""
    if names.mentioned(text) or any(map(names.mentioned, settings.values())):
        document = json.loads(_core.parse_document(text, file, as_json))
        folder = Path(file).parent if file != "scenario" else Path()
        document, settings = names.provide(document, settings, file, folder.absolute())
        text, as_json = json.dumps(document), True
    return Scenario(_core.load_scenario(text, file, list(settings.items()), as_json, files=True, large=large))


# What a caller can give for a scenario: itself, its file, the name of an example, or its document.
Source: TypeAlias = Scenario | str | os.PathLike[str] | Mapping[str, Any]
EXAMPLES = Path(__file__).parents[1] / "examples"


def examples() -> dict[str, Path]:
    """The scenarios that come with Elephan: their names and files."""
    return {file.stem: file for file in sorted(EXAMPLES.glob("*.toml"))}


def _found(path: Path) -> Path:
    """The file of a path, or else of an example with this name. Raises `ScenarioError` for the name of neither."""
    if len(path.parts) != 1 or path.suffix or path.is_file():
        return path
    known = examples()
    if path.name not in known:
        raise _core.ScenarioError(
            f"{path}: expected a scenario file, or an example: {_core.one_of(list(known), path.name)}; found neither"
        )
    return known[path.name]


def _drawn(path: Path, text: str) -> dict[str, str]:
    """The trace that an example of this text names, if it is one that is drawn and not stored, as a setting."""
    if cellular.FILE not in text or path.resolve().parent != EXAMPLES.resolve():
        return {}
    return {"path.trace": f'{{ source = "{cellular.FILE}", loop = true, opportunities = {cellular.opportunities()} }}'}


def copy_examples(folder: Path) -> None:
    """Copy the examples, with what they need, into a new folder."""
    folder.mkdir(parents=True)
    (folder / cellular.FILE).write_text(cellular.text(), encoding="utf-8")
    # This comes last: where the package is read-only, so is the copy.
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)


def load(source: Source, settings: Mapping[str, str] | None = None, *, large: bool = False) -> Scenario:
    """Read a scenario file (TOML, or JSON by its suffix) or an example by its name, with other values for some keys.

    `source` may also be a document in the form of the file, or a scenario. One that needs more events, rows or memory than
    the limits allow is refused unless `large` is set. Raises `ScenarioError` for an invalid one, and `OSError` for a file
    that cannot be read.
    """
    if isinstance(source, Scenario):
        return source.with_settings(settings, large=large) if settings else source
    if isinstance(source, Mapping):
        text = json.dumps(dict(source), default=_plain)
        return checked(text, "scenario", settings or {}, as_json=True, large=large)
    if not isinstance(source, str | os.PathLike):
        expected = "a file, the name of an example, a document or a Scenario"
        raise _core.ScenarioError(f"scenario: expected {expected}, found {source!r}")
    path = _found(Path(source))
    # A device may have no end.
    with path.open("rb") as file:
        read = file.read(MOST_BYTES + 1)
    # In a locale without UTF-8, Python has surrogates for the bytes of a name.
    name = os.fsencode(path).decode(errors="backslashreplace")
    if len(read) > MOST_BYTES:
        raise _core.ScenarioError(f"{name}: expected a scenario of at most {MOST_BYTES} bytes, found more")
    try:
        text = read.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _core.ScenarioError(f"{name}: expected UTF-8 text, found other bytes") from error
    settings = {**_drawn(path, text), **(settings or {})}
    return checked(text, name, settings, as_json=path.suffix == ".json", large=large)


def _plain(value: Any) -> Any:
    """A value of a document as JSON has it: a number of NumPy, or a path. Raises `ScenarioError` for anything else."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise _core.ScenarioError(f"scenario: expected numbers, texts, lists and tables, found {value!r}")


def flow(cc: str | Mapping[str, Any], **keys: Any) -> dict[str, Any]:
    """Make a flow with congestion control `cc`: a name, or a table with `name` and its parameters.

    `keys` are those of a `[[flow]]` of the scenario file: `start="17 s"`, `count=10`, `size="2 GB"`, `rtt="162 ms"`,
    `slow_start="limited"`, `tcp={"recovery": "newreno"}`, ...
    """
    return {"cc": cc, **keys}


def dumbbell(
    *,
    rate: str,
    rtt: str,
    flows: Sequence[Mapping[str, Any]] | Mapping[str, Any],
    duration: str,
    buffer: str = "100% bdp",
    seed: int = 1,
    name: str = "run",
    path: Mapping[str, Any] | None = None,
    large: bool = False,
    **keys: Any,
) -> Scenario:
    """Make a scenario of one bottleneck between all senders and all receivers.

    `rate` counts IP packets; `rtt` is without queueing; `buffer` is a share of the bandwidth-delay product, packets or bytes.
    `path` has further keys of the file's `[path]` (`loss`, `queue`, `reverse`, ...), `keys` further tables of the file (`tcp`,
    `measure`, `trace`, `sweep`); `large` is as for `load`. Raises `ScenarioError` if the scenario is invalid.
    """
    document = {
        "name": name,
        "duration": duration,
        "seed": seed,
        "path": {"rate": rate, "rtt": rtt, "buffer": buffer, **(path or {})},
        "flow": listed(flows),
        **keys,
    }
    return load(document, large=large)


def schema() -> dict[str, Any]:
    """The JSON Schema of the scenario file."""
    result: dict[str, Any] = json.loads(_core.schema())
    return result

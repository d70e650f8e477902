"""`elephan new`: create an algorithm, a queue discipline, a metric or a published experiment in a checkout.

Each is made from a template in the folder of its kind. Templates are compiled, tested and linted like the other files there, so
the created files pass the same checks.
"""

import keyword
import re
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from elephan._core import ScenarioError
from elephan.base import folders
from elephan.cli.options import command_line
from elephan.cli.output import out

app = command_line(group=True)

CC, NET, METRICS = Path("crates/cc/src"), Path("crates/net/src"), Path("crates/metrics/src")
REPRODUCE = Path("python/elephan/studies/reproduce")
NAME, NUMBERED = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*"), re.compile(r"[a-z][a-z0-9]*([-.][a-z0-9]+)*")
# The keywords of Rust; those of Python are in `keyword`.
RUST = (
    "abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen if impl in "
    "let loop macro match mod move mut override priv pub ref return self static struct super trait true try type typeof unsafe "
    "unsized use virtual where while yield"
)


@dataclass(frozen=True)
class Name:
    """A new name as a scenario writes it (`hstcp-fc`), as a module (`hstcp_fc`), and as a type (`HstcpFc`)."""

    text: str
    module: str
    type: str

    @classmethod
    def of(cls, text: str, pattern: re.Pattern[str] = NAME) -> "Name":
        """Raises `ScenarioError` if it is not an identifier."""
        if not pattern.fullmatch(text) or text in RUST.split() or keyword.iskeyword(text):
            raise ScenarioError(f"elephan new: expected a name such as hybla or hstcp-fc, found {text!r}")
        return cls(text, re.sub("[-.]", "_", text), "".join(word.capitalize() for word in text.split("-")))


class Checkout:
    """The files of a checkout with their planned content. Nothing is written before all of it is known."""

    def __init__(self) -> None:
        here = Path.cwd()
        found = [folder for folder in (here, *here.parents) if (folder / CC / "registry.rs").is_file()]
        if not found:
            raise ScenarioError(f"elephan new: expected a checkout of Elephan ({CC}/registry.rs), found none at {here}")
        self.root = found[0]
        self.texts: dict[Path, str] = {}

    def read(self, file: Path) -> str:
        """The planned content of a file."""
        return self.texts[file] if file in self.texts else (self.root / file).read_text(encoding="utf-8")

    def create(self, file: Path, text: str) -> None:
        """Add a new file. Raises `ScenarioError` if it exists."""
        if (self.root / file).exists():
            raise ScenarioError(f"elephan new: expected no {file}, found one")
        self.texts[file] = text

    def insert(self, file: Path, line: str, before: str, behind: str = "") -> None:
        """Insert a text before the first `before` that follows `behind`. Raises `ScenarioError` if there is none."""
        text = self.read(file)
        place = text.find(before, text.find(behind) + len(behind)) if behind in text else -1
        if place < 0:
            raise ScenarioError(f"{file}: expected {(behind + before).strip()!r}, found it not")
        # An anchor can begin with the end of the line before it.
        place += before.startswith("\n")
        self.texts[file] = text[:place] + line + text[place:]

    def refuse(self, file: Path, pattern: str, name: str) -> None:
        """Raises `ScenarioError` if a file already has this name."""
        if re.search(pattern, self.read(file)):
            raise ScenarioError(f"elephan new: expected a name that {file} does not have, found {name!r}")

    def declare(self, crate: Path, name: Name) -> None:
        """Insert a module among the others of a crate, in alphabetical order."""
        file = crate / "lib.rs"
        # Test modules have an attribute each, so they are not part of the longest sequence of `mod` lines.
        others = max(re.findall(r"(?:^(?:pub )?mod \w+;\n)+", self.read(file), re.MULTILINE), key=len)
        line = f"pub mod {name.module};\n" if others.startswith("pub") else f"mod {name.module};\n"
        lines = sorted([*others.splitlines(keepends=True), line], key=lambda one: one.rpartition(" ")[2].rstrip(";\n"))
        self.texts[file] = self.read(file).replace(others, "".join(lines))

    def write(self) -> None:
        """Write all files, or none."""
        with ExitStack() as stack:
            for file, text in self.texts.items():
                stack.enter_context(folders.new_file(self.root / file)).write_text(text, encoding="utf-8")
        for file in self.texts:
            out.message(str(file))


def code(template: str, name: Name) -> str:
    """A template in Rust or Python, with this name instead of its own."""
    return template.replace("Template", name.type).replace("template", name.module)


def prose(template: str, name: Name) -> str:
    """A template of a page, with this name instead of its own."""
    heading = name.text.replace("-", " ").capitalize()
    return template.replace("Template", heading).replace("template", name.text)


def entry(crate: Path, registry: Path, macro: str, line: str, name: Name, page: Path) -> None:
    """A Rust file, its line in a registry, and its page."""
    checkout = Checkout()
    checkout.refuse(registry, rf'"{name.text}"|\b{name.type}\b', name.text)
    checkout.create(crate / f"{name.module}.rs", code(checkout.read(crate / "template.rs"), name))
    checkout.insert(registry, line, before="\n}\n", behind=f"\n{macro}! {{")
    checkout.declare(crate, name)
    checkout.create(page / f"{name.text}.md", prose(checkout.read(page / "template.md"), name))
    checkout.write()


@app.command("cc")
def cc(name: Annotated[str, typer.Argument(help="Name of the algorithm in scenarios, such as hybla.")]) -> None:
    """Lay out a congestion control algorithm, which is Standard TCP at first: its file, its line, its page."""
    new = Name.of(name)
    line = f'    {new.module}::{new.type} {{ "{new.text}", "{new.type}", "Author Year"; }}\n'
    entry(CC, CC / "registry.rs", "registry", line, new, Path("docs/algorithms"))
    out.message(f"next: the rule in {CC}/{new.module}.rs; `cargo test -p elephan-cc`; `make measured ONLY={new.text}`")


@app.command("queue")
def queue(name: Annotated[str, typer.Argument(help="Name of the discipline in scenarios, such as blue.")]) -> None:
    """Lay out a queue discipline, which drops from a fixed length on at first: its file, its line, its page."""
    new = Name.of(name)
    line = f'    {new.module}::{new.type} {{ "{new.text}", "{new.type}", "Author Year", judges {new.type}State }}\n'
    entry(NET, NET / "queue.rs", "disciplines", line, new, Path("docs/queues"))
    out.message(
        f"next: the rule in {NET}/{new.module}.rs; `cargo test -p elephan-net`; `make measured ONLY={new.text}`"
    )


@app.command("metric")
def metric(name: Annotated[str, typer.Argument(help="Name of the metric in tables, such as spread.")]) -> None:
    """Lay out a metric of a run, of the flows' goodputs at first: its line, its formula with a test, its page."""
    new, checkout = Name.of(name), Checkout()
    title = new.text.replace("-", " ")
    summary, formula = METRICS / "summary.rs", METRICS / "formula.rs"
    checkout.refuse(summary, rf'\b{new.module}: |"{title}"', name)
    checkout.refuse(formula, rf"\bfn {new.module}\b", name)
    line = (
        f"        /// {title.capitalize()} of the flows' goodputs.\n"
        f'        {new.module}: Option<f64>, "1", "{title}" ["Author Year, equation 1"] => Higher "1" 1.0 3;\n'
    )
    # The metrics of the run come before those of its flows.
    flows = re.search(r"^ *///.*\n *flows: Vec<FlowSummary>", checkout.read(summary), re.MULTILINE)
    checkout.insert(
        summary, line, before=flows[0] if flows else "flows: Vec<FlowSummary>", behind="pub struct Summary {"
    )
    value = f"            {new.module}: finite(formula::{new.module}(&goodputs)),\n"
    checkout.insert(METRICS / "collector.rs", value, before="            flows,\n", behind="let summary = Summary {")
    function, _, test = code(checkout.read(METRICS / "template.rs"), new).partition("#[cfg(test)]\n")
    test = test.partition("use super::*;\n\n")[2].rpartition("}")[0] + "\n"
    checkout.insert(formula, function.partition("\n\n")[2], before="#[cfg(test)]\n")
    checkout.insert(formula, test, before="    proptest! {\n")
    page = Path("docs/metrics")
    checkout.create(page / f"{new.text}.md", prose(checkout.read(page / "template.md"), new))
    checkout.write()
    out.message(
        f"next: the rule in {formula}; `cargo test -p elephan-metrics`; `make declared measured ONLY={new.text}`"
    )


@app.command("experiment")
def experiment(
    name: Annotated[str, typer.Argument(help="Source and table or figure, such as kelly2003/table-4.")],
) -> None:
    """Lay out a published experiment: its function in the file of its source, and its scenario; a new source too."""
    source, _, what = name.partition("/")
    new, own, checkout = Name.of(what, NUMBERED), Name.of(source), Checkout()
    module, scenarios = REPRODUCE / f"{own.module}.py", REPRODUCE / "scenarios" / source
    if (checkout.root / REPRODUCE / own.module).is_dir():
        raise ScenarioError(f"elephan new: expected a source in one file, found the folder {REPRODUCE / own.module}")
    template = checkout.read(REPRODUCE / "template.py").replace("template", source)
    template = template.replace("def name(", f"def {new.module}(").replace("/name", f"/{what}")
    if (checkout.root / module).is_file():
        checkout.refuse(module, rf'"{name}"|\bdef {new.module}\b', name)
        text = checkout.read(module)
        for package in ("elephan.studies.judge", "elephan.studies.reproduce.lab"):
            text = _with_imports(text, template, package, module)
        checkout.texts[module] = text + "\n\n" + template[template.index("@experiment") :]
    else:
        checkout.create(module, template)
        lab = REPRODUCE / "lab.py"
        checkout.insert(
            lab, f'    "{source}": "What it is about (Author Year)",\n', before="}\n", behind="\nSOURCES = {\n"
        )
        for file in ("figures.csv", "claims.csv"):
            head = checkout.read(REPRODUCE / "scenarios" / "kelly2003" / file).partition("\n")[0]
            checkout.create(scenarios / file, head + "\n")
        checkout.create(
            scenarios / "README.md", checkout.read(scenarios.parent / "template.md").replace("template", source)
        )
    scenario = (
        checkout.read(scenarios.parent / "template.toml").replace("template", source).replace("-name", f"-{what}")
    )
    checkout.create(scenarios / f"{what}.toml", scenario)
    checkout.write()
    out.message(f"next: the printed numbers in {scenarios}/figures.csv; `elephan reproduce {name} --quick`")


def _with_imports(text: str, template: str, package: str, module: Path) -> str:
    """The text of a module with the names that a template imports from a package, beside those that it imports itself."""
    line = re.compile(rf"^from {re.escape(package)} import (\([^)]*\)|[^(\n]*)$", re.MULTILINE)
    needed, present = line.search(template), line.search(text)
    if needed is None or present is None:
        raise ScenarioError(f"{module}: expected one import from {package}, found none")
    names = {name for found in (needed[1], present[1]) for name in re.findall(r"\w+", found)}
    # Constants, classes, functions: the order in which the linter wants them.
    listed = sorted(names, key=lambda name: (name.islower(), not name.isupper() and not name.islower(), name))
    return text.replace(present[0], f"from {package} import ({', '.join(listed)})")

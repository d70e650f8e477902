"""The command line. Each command is a module of this package, which is imported when the command is called."""

import os
import re
import shlex
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from elephan import _core
from elephan.base.errors import FailedError
from elephan.base.text import Terminal, accept_any_letter
from elephan.cli import signals

# No command multiplies large matrices. The threads of NumPy's OpenBLAS would take a tenth of a second of CPU to start.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

BAD_INPUT, FAILED = 2, 1
# What was expected and found where the system could not open a file.
OTHERWISE = {
    FileNotFoundError: ("a file", "none"),
    IsADirectoryError: ("a file", "a folder"),
    NotADirectoryError: ("a folder", "a file"),
}
# Subcommands inherit it.
HELP = {"help_option_names": ["-h", "--help"]}
# The options of `elephan sweep FILE` are those of the command below it.
OF_GROUPS: Any = {"context_settings": {**HELP, "ignore_unknown_options": True}, "no_args_is_help": True}

# Every command and its help, in groups, in the order of use.
GROUPS = {
    "Run and compare": {
        "run": "Run a scenario file, print the results, and write a results folder.",
        "compare": "Compare algorithms on one path: a table with 95 % confidence intervals, and plots; or two engines.",
        "sweep": "Run all points of a scenario's sweep; its results: sweep table, paired, query.",
        "check": "Decide the expectations of scenario files: held, failed, undecided or not evaluated.",
    },
    "Look at results": {
        "plot": "Draw one picture of results: a quantity over time, a distribution, a map, a metric of a sweep.",
        "report": "Write the results of a run, a comparison, a sweep, a reproduction or a path as one file.",
        "ui": "Open a local web page: start runs, watch and change them live, view results. Needs the extra `ui`.",
    },
    "Real paths, theory, publications": {
        "path": "Measure a real path and use it: path probe, host, recommend, transfer, watch, fit, emulate.",
        "model": "Evaluate theory: response functions, recovery, fairness, stability; rank algorithms.",
        "reproduce": "Reproduce published experiments, and compare the results with the published numbers and claims.",
    },
    "Kernels": {
        "kernel": "Load the published algorithms into the running Linux kernel; build kernels that run as a process.",
        "packetdrill": "Run packetdrill scripts on the simulator's TCP, or on that of a kernel in virtual time.",
    },
    "Look up, check and add": {
        "doctor": "Show what works on this machine, and what to install for the rest.",
        "scenario": "Check, show and list scenario files, or print their JSON Schema.",
        "cc": "List and describe congestion control algorithms and slow starts.",
        "queue": "List and describe queue disciplines.",
        "cite": "Print the BibTeX entry of this version of Elephan, for results.",
        "new": "Create the files of a new algorithm, queue discipline, metric or published experiment, in a checkout.",
    },
}
# The commands below `sweep` and `path`. Each is a module of its own, as those above are.
BELOW = {
    "sweep": {
        "run": "Run all points of a scenario's sweep that its folder does not have yet.",
        "table": "Show a sweep's metrics for each setting, with 95 % confidence intervals over repeats.",
        "paired": "Compare two settings of a sweep with common random numbers: difference, effect size and p-values.",
        "query": "Query a sweep with SQL; without a query, list its tables and columns. Needs the extra `sweep`.",
    },
    "path": {
        "probe": "Measure the path between two hosts, and write a scenario of it.",
        "host": "Measure what this host can send, and what of it limits that.",
        "recommend": "Rank ways to send so much data over a path, measured (--path) or given (--rate, --rtt).",
        "transfer": "Move memory, a file or a stream of bytes to another host, and watch its TCP.",
        "watch": "Run any program (rsync, scp, iperf3), and record its TCP connections as a transfer is recorded.",
        "fit": "Estimate rate, base delay, buffer and loss of a path from a transfer, and compare with a simulation of it.",
        "emulate": "Connect two namespaces by a scenario's links, without its traffic, for programs of your own.",
    },
}
# Names from before there were groups, and what they are today. They still work.
EARLIER = {name: [group, name] for group, commands in BELOW.items() for name in commands if name != "run"}
EARLIER["compare-engines"] = ["compare", "--engines", "sim,kernel"]
# The extra that installs an optional package.
EXTRAS = {
    "duckdb": "sweep",
    "distributed": "cluster",
    "dask_jobqueue": "cluster",
    "starlette": "ui",
    "uvicorn": "ui",
}


class Commands(TyperGroup):
    """A group that lists commands by name and help, and imports a command when it is called: importing all takes a second."""

    def __init__(self, *, panels: Mapping[str, Mapping[str, str]] = GROUPS, **keys: Any) -> None:
        super().__init__(**keys)
        self.texts = {name: text for commands in panels.values() for name, text in commands.items()}
        for panel, commands in panels.items():
            for name, text in commands.items():
                self.add_command(get_command(_named(name, text, panel)), name)

    def get_params(self, ctx: Any) -> list[Any]:
        """The options. Those of completion, which docs/terminal.md explains, are not in the help."""
        found: list[Any] = super().get_params(ctx)
        for parameter in found:
            parameter.hidden = "completion" in (parameter.name or "")
            parameter.metavar = ""
        return found

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments name, with its options. `elephan sweep FILE` is `elephan sweep run FILE`."""
        if self.name == "sweep" and args[0] not in self.texts:
            args = ["run", *args]
        if args[0] not in self.texts and self.name not in BELOW and args[0] in EARLIER:
            if not ctx.resilient_parsing:
                Terminal(stderr=True).message(f"{args[0]} is now `elephan {' '.join(EARLIER[args[0]])}`")
            args = [*EARLIER[args[0]], *args[1:]]
        name = args[0]
        if name in BELOW and name in self.texts:
            self.add_command(Commands(panels={"Commands": BELOW[name]}, name=name, help=self.texts[name], **OF_GROUPS))
        elif name in self.texts:
            module = "sweep" if self.name == "sweep" and name == "run" else name.replace("-", "_")
            command = get_command(import_module(f"elephan.cli.{module}").app)
            command.name = name
            command.help = command.help or self.texts[name]
            self.add_command(_plain(command))
        return super().resolve_command(ctx, args)


def _named(name: str, text: str, panel: str) -> typer.Typer:
    app = typer.Typer()
    app.command(name, help=text, rich_help_panel=panel)(lambda: None)
    return app


def _plain(command: Any) -> Any:
    """A command, and those below it, whose help shows arguments in capitals and no type of what is on or off."""
    # The first paragraph alone would be filled.
    command.help = re.sub(r"(?<!\n)\n(?!\n)", " ", command.help or "")
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            parameter.metavar = parameter.metavar or parameter.name.upper()
        elif parameter.is_flag:
            parameter.metavar = ""
    # The option of the help is made with the others.
    options = command.get_params

    def get_params(context: Any) -> Any:
        command.get_help_option(context).metavar = ""
        return options(context)

    command.get_params = get_params
    for below in getattr(command, "commands", {}).values():
        _plain(below)
    return command


app = typer.Typer(
    cls=Commands,
    help="A laboratory for congestion control on long fat networks.",
    pretty_exceptions_enable=False,
    context_settings=HELP,
)


def _version(value: bool) -> None:
    if value:
        Terminal().message(f"elephan {_core.__version__}")
        raise typer.Exit


FIRST_SCREEN = """\
Elephan, a laboratory for congestion control on long fat networks

Compare algorithms on a path, with 95 % confidence intervals over repeats:
    elephan compare --rate 1Gbit/s --rtt 50ms --cc cubic,bbr,htcp

Run a scenario file, or an example, and draw what happened:
    elephan run two-flows
    elephan plot cwnd results/two-flows

See what works on this machine, and what to install for the rest:
    elephan doctor

All commands: elephan --help; the options of one: elephan COMMAND --help
"""


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback prints it
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        Terminal().message(FIRST_SCREEN.rstrip())


def parse(line: str) -> None:
    """Check a command line that a page shows: the command, its options and their values exist. It is not carried out.

    Raises `ScenarioError`. Comments, and what a shell would do with the output, are no part of it.
    """
    of_shell = r"  #.*| [|>] .*"
    words = shlex.split(re.sub(of_shell, "", line), comments=True)
    if words[:1] != ["elephan"]:
        raise _core.ScenarioError(f"expected a command that begins with elephan, found {line!r}")
    command: Any = get_command(app)
    context, words = None, words[1:]
    try:
        while isinstance(command, TyperGroup):
            context = command.make_context("elephan", list(words), parent=context, resilient_parsing=True)
            if not words or (words[0].startswith("-") and command.name != "sweep"):
                return
            _, command, words = command.resolve_command(context, words)
        command.make_context(command.name, list(words), parent=context)
    except typer.Exit:
        return
    except Exception as error:
        told = getattr(error, "format_message", error.__str__)()
        raise _core.ScenarioError(f"expected a command line of this version, found {line!r}: {told}") from error


def _wrong_value(error: Exception) -> str:
    """What typer tells of a value that an option or an argument cannot have, in our words; empty for another error."""
    wrong = re.fullmatch(r"'?(.+?)'? is not (?:a valid (\w+)|in the range (\S+))\.", str(getattr(error, "message", "")))
    parameter: Any = getattr(error, "param", None)
    if wrong is None or parameter is None:
        return ""
    found, kind, limits = wrong.groups()
    expected = {"int": "a whole number", "float": "a number"}.get(kind, f"a {kind}")
    if limits:
        least, most = parameter.type.min, parameter.type.max
        expected = f"at least {least}" if least is not None and float(found) < least else f"at most {most}"
    return f"{parameter.opts[-1]}: expected {expected}, found {found.removesuffix('.0')!r}"


def _lacks(error: ImportError) -> str:
    """What is not installed, or not built in a checkout, and how to get it. Any other error of an import is raised."""
    # A part of a checkout that is not built, or a library that the system cannot load: it may not fit into memory.
    if (not error.name and not error.path) or str(error.path).endswith(".so"):
        return str(error)
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        raise error
    return f"{package}: expected it to be installed, found none; `pip install 'elephan[{EXTRAS[package]}]'`"


def _with_tables(text: str) -> str:
    """Errors whose keys of flows, which count from 0, also say which `[[flow]]` of the file they are in, from 1 on."""
    of_flow = r"^((?:[^:\n]+: )?flow\.(\d+)(?:\.[\w.]+)?)(?=: )"
    return re.sub(of_flow, lambda key: f"{key[1]} (flow table {int(key[2]) + 1})", text, flags=re.MULTILINE)


def main() -> None:
    """Run the command line. Each error gives one clear line, and never a traceback."""
    signals.heed()
    accept_any_letter()
    err = Terminal(stderr=True)
    try:
        code = app(standalone_mode=False)
    except typer.Exit as stop:
        code = stop.exit_code
    except (typer.Abort, KeyboardInterrupt):
        code = FAILED
    except (_core.ScenarioError, FileExistsError) as error:
        err.message(_with_tables(str(error)))
        code = BAD_INPUT
    except FailedError as error:
        err.message(str(error))
        code = FAILED
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        expected, found = OTHERWISE[type(error)]
        err.message(f"{error.filename}: expected {expected}, found {found}" if error.filename else str(error))
        code = BAD_INPUT
    except OSError as error:
        text = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
        err.message("; ".join([text, *getattr(error, "__notes__", [])]))
        code = FAILED
    except ImportError as error:
        err.message(_lacks(error))
        code = FAILED
    except MemoryError:
        err.message("elephan: expected more memory, found none left")
        code = FAILED
    except Exception as error:
        # Errors of typer itself: unknown options, values out of range. A group without a command has shown its help.
        told = getattr(error, "format_message", None)
        if told is not None and told():
            err.message(_wrong_value(error) or f"elephan: {told()}")
        elif told is None and signals.stopped() is None:
            raise
        code = BAD_INPUT
    # Not caught above: typer turns it into an exit code, and a library into an error of its own.
    if (stopped := signals.stopped()) is not None:
        kept = getattr(stopped, "__notes__", ["nothing was written"])
        err.message("; ".join(["interrupted", *kept]))
        code = 128 + stopped.number
    sys.exit(code or 0)

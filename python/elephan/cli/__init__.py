"""The command line. Each command is a module of this package, which is imported when the command is called."""

import os
import sys
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

# Every command and its help.
COMMANDS = {
    "run": "Run a scenario file, print the results, and write a results folder.",
    "compare": "Compare algorithms on one path: a table with 95 % confidence intervals, and plots.",
    "compare-engines": "Run scenarios on the simulator and on a kernel's TCP, and show the differences.",
    "sweep": "Run all points of a scenario's sweep that its folder does not have yet.",
    "table": "Show a sweep's metrics for each setting, with 95 % confidence intervals over repeats.",
    "paired": "Compare two settings of a sweep with common random numbers: difference, effect size and p-values.",
    "query": "Query a sweep with SQL; without a query, list its tables and columns.",
    "recommend": "Rank the algorithms for a path, by experiments and the ordered criteria of Li 2006, Table 2.2.",
    "reproduce": "Reproduce published experiments, and compare the results with the published numbers and claims.",
    "model": "Evaluate theory: response functions, recovery, fairness, stability.",
    "kernel": "Load the published algorithms into the running Linux kernel; build kernels that run as a process.",
    "packetdrill": "Run packetdrill scripts on the simulator's TCP, or on the running kernel's.",
    "plot": "Plot a quantity over time from a results folder.",
    "report": "Write the results of a run, a comparison, a sweep or a reproduction as one file.",
    "ui": "Open a local web page: start runs, watch and change them live, view results.",
    "scenario": "Check scenario files, or print their JSON Schema.",
    "cc": "List and describe congestion control algorithms and slow starts.",
    "queue": "List and describe queue disciplines.",
    "new": "Create the files of a new algorithm, queue discipline, metric or published experiment, in a checkout.",
}
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

    def __init__(self, **keys: Any) -> None:
        super().__init__(**keys)
        for name, text in COMMANDS.items():
            self.add_command(get_command(_named(name, text)), name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments name, with its options."""
        if args and args[0] in COMMANDS:
            command = get_command(import_module(f"elephan.cli.{args[0].replace('-', '_')}").app)
            command.name = args[0]
            command.help = command.help or COMMANDS[args[0]]
            self.add_command(command, args[0])
        return super().resolve_command(ctx, args)


def _named(name: str, text: str) -> typer.Typer:
    app = typer.Typer()
    app.command(name, help=text)(lambda: None)
    return app


app = typer.Typer(
    cls=Commands,
    help="A laboratory for congestion control on long fat networks.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(value: bool) -> None:
    if value:
        Terminal().message(f"elephan {_core.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


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
        err.message(str(error))
        code = BAD_INPUT
    except FailedError as error:
        err.message(str(error))
        code = FAILED
    except FileNotFoundError as error:
        err.message(f"{error.filename}: expected a file, found none")
        code = BAD_INPUT
    except OSError as error:
        text = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
        err.message("; ".join([text, *getattr(error, "__notes__", [])]))
        code = FAILED
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        err.message(f"{package}: expected it to be installed, found none; `pip install 'elephan[{EXTRAS[package]}]'`")
        code = FAILED
    except Exception as error:
        # Errors of typer itself: unknown options, values out of range.
        if hasattr(error, "format_message"):
            err.message(f"elephan: {error.format_message()}")
        elif signals.stopped() is None:
            raise
        code = BAD_INPUT
    # Not caught above: typer turns it into an exit code, and a library into an error of its own.
    if (stopped := signals.stopped()) is not None:
        kept = getattr(stopped, "__notes__", ["nothing was written"])
        err.message("; ".join(["interrupted", *kept]))
        code = 128 + stopped.number
    sys.exit(code or 0)

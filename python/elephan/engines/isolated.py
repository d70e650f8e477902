"""Runs of code from outside: in processes of their own, so that a crash ends its own run and no other, and on trial."""

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from typing import IO, Any

from elephan import _core
from elephan.api.run import Run
from elephan.api.scenario import Scenario
from elephan.base.cores import core_count
from elephan.engines.run import run as simulate
from elephan.engines.sim import Progress, begin
from elephan.foreign import names

# The program of such a process. It finds its modules where this one does.
PROGRAM = "import sys; sys.path[:] = {path!r}; from elephan.engines.isolated import serve; serve()"
# How often a caller that waits for several runs listens to signals, and tells of progress.
LISTENS_S = 0.05
# How long the flow of an algorithm runs on trial, in simulated time.
TRIAL_S = 2.0


def run(
    scenario: Scenario,
    *,
    progress: Progress | None = None,
    captures: dict[str, str] | None = None,
    cancel: _core.Cancel | None = None,
    threads: int = 1,
) -> Run:
    """Run a scenario as `elephan.run` does, in a process of its own.

    Raises what the run raises, and `AlgorithmError` with the signal if the process crashed.
    """
    made: Run = _elsewhere(simulate, scenario, {"captures": captures, "threads": threads}, progress, cancel)
    return made


def _elsewhere(
    function: Callable[..., Any],
    scenario: Scenario,
    keys: Mapping[str, Any],
    progress: Progress | None,
    cancel: _core.Cancel | None = None,
) -> Any:
    """Call a function of a scenario in a process of its own. Raises as `run` does."""
    command = [sys.executable, "-c", PROGRAM.format(path=sys.path)]
    # A session of its own: signals of the terminal are for this process, which then ends the other.
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        # A process that has crashed reads nothing; `_answer` finds that out.
        with suppress(BrokenPipeError):
            pickle.dump((function, scenario, keys), process.stdin)
            process.stdin.flush()
        while isinstance(message := _answer(process.stdout), float):
            if cancel is not None and cancel.is_set():
                raise KeyboardInterrupt("the run was cancelled")
            if progress is not None:
                progress(message)
        if message is None:
            raise _core.AlgorithmError(_crash(scenario, process.wait()))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stdin.close()
    result, raised, cause = message
    if raised is not None:
        raise raised from cause
    return result


def _answer(output: IO[bytes]) -> Any:
    """The next message of a process: a share, or the result, what was raised and its cause; None if it ended before."""
    try:
        return pickle.load(output)
    except (EOFError, pickle.UnpicklingError):
        return None


def _crash(scenario: Scenario, code: int) -> str:
    """The message about a process that ended with this code before it had a result."""
    who = ", ".join(names.named(scenario.document)) or scenario.name
    return f"{who}: expected a run to its end, found {names.ended(code)} in its process"


def run_many(
    scenarios: Sequence[Scenario], threads: int = 0, progress: Progress | None = None, *, isolate: bool = True
) -> list[Run | Exception]:
    """Run scenarios, each in a process of its own if `isolate`, `threads` (0: as many as there are cores) at a time.

    On engines other than the simulator they run in sequence. A run that fails gives its error, and the others go on.
    """
    call = run if isolate else simulate
    if any(scenario.document["engine"] != "sim" for scenario in scenarios):
        threads = 1
    shares = [0.0] * len(scenarios)
    cancel = _core.Cancel()

    def one(number: int) -> Run | Exception:
        def told(share: float) -> None:
            shares[number] = share
            if cancel.is_set():
                raise KeyboardInterrupt("the run was cancelled")

        try:
            return call(scenarios[number], progress=told)
        except Exception as error:
            return error

    with ThreadPoolExecutor(threads or core_count()) as pool:
        try:
            left = futures = [pool.submit(one, number) for number in range(len(scenarios))]
            while left:
                left = list(wait(left, LISTENS_S).not_done)
                if progress is not None:
                    progress(sum(shares) / len(shares))
        except BaseException:
            cancel.set()
            pool.shutdown(cancel_futures=True)
            raise
        return [future.result() for future in futures]


def try_out(scenarios: Iterable[Scenario], progress: Progress | None = None) -> None:
    """Try each algorithm from outside: the first scenario with it runs until its first flow has been there for a while.

    What fails here fails in the whole run as well. Compiled code runs in a process of its own. Raises as `run` does.
    """
    tried: set[str] = set()
    for scenario in scenarios:
        new = {*names.used(scenario.document)} - tried
        if not new or scenario.document["engine"] != "sim":
            continue
        tried |= new
        starts_s: dict[str, float] = {}
        for (name, _), start_s in zip(scenario.congestion_controls, scenario.plan["starts_s"], strict=False):
            if name in new:
                starts_s.setdefault(name, start_s or 0.0)
        until_s = TRIAL_S + max(starts_s.values(), default=0.0)
        if all(name.startswith(names.PYTHON) for name in new):
            begin(scenario, until_s=until_s, progress=progress)
        else:
            _elsewhere(begin, scenario, {"until_s": until_s}, progress)


def serve() -> None:
    """Carry out the call that standard input asks for, and tell its progress and its result on standard output."""
    # What foreign code prints must not be in between.
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    asked: IO[bytes] = sys.stdin.buffer
    function, scenario, keys = pickle.load(asked)
    threading.Thread(target=_end_with, args=(asked,), daemon=True).start()

    def tell(message: Any) -> None:
        pickle.dump(message, output)
        output.flush()

    try:
        names.provide_all(scenario.to_json())
        message: Any = function(scenario, progress=tell, **keys), None, None
    # A panic of the extension module is not an `Exception`.
    except BaseException as error:
        message = None, _sent(error), error.__cause__ and _sent(error.__cause__)
    tell(message)


def _end_with(asked: IO[bytes]) -> None:
    """End this process with the one that asked, whatever ends that."""
    asked.read()
    os._exit(1)


def _sent(error: BaseException) -> BaseException:
    """An error that can be sent: itself, or its text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error

"""Runs in processes of their own: code from outside that crashes ends its own run, and no other."""

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from typing import IO, Any

from elephan import _core
from elephan.api.run import Run
from elephan.api.scenario import Scenario
from elephan.base.cores import core_count
from elephan.engines.run import run as simulate
from elephan.engines.sim import Progress
from elephan.foreign import names

# The program of such a process. It finds its modules where this one does.
PROGRAM = "import sys; sys.path[:] = {path!r}; from elephan.engines.isolated import serve; serve()"
# How often a caller that waits for several runs listens to signals, and tells of progress.
LISTENS_S = 0.05


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
    command = [sys.executable, "-c", PROGRAM.format(path=sys.path)]
    # A session of its own: signals of the terminal are for this process, which then ends the other.
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        # A process that has crashed reads nothing; `_answer` finds that out.
        with suppress(BrokenPipeError):
            pickle.dump((scenario, captures, threads), process.stdin)
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
    if isinstance(message, Run):
        return message
    raised, cause = message
    raise raised from cause


def _answer(output: IO[bytes]) -> Any:
    """The next message of a process: a share, the results, or what was raised; None if the process ended before."""
    try:
        return pickle.load(output)
    except (EOFError, pickle.UnpicklingError):
        return None


def _crash(scenario: Scenario, code: int) -> str:
    """The message about a process that ended with this code before it had a result."""
    who = ", ".join(names.named(scenario.document)) or scenario.name
    return f"{who}: expected a run to its end, found {names.ended(code)} in its process"


def run_many(
    scenarios: Sequence[Scenario], threads: int = 0, progress: Progress | None = None
) -> list[Run | Exception]:
    """Run scenarios, each in a process of its own, `threads` (0: as many as there are cores) at a time.

    On engines other than the simulator they run in sequence. A run that fails gives its error, and the others go on.
    """
    if any(scenario.document["engine"] != "sim" for scenario in scenarios):
        threads = 1
    shares = [0.0] * len(scenarios)
    cancel = _core.Cancel()

    def one(number: int) -> Run | Exception:
        def told(share: float) -> None:
            shares[number] = share

        try:
            return run(scenarios[number], progress=told, cancel=cancel)
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


def serve() -> None:
    """Carry out the run that standard input asks for, and tell its progress and its result on standard output."""
    # What foreign code prints must not be in between.
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    asked: IO[bytes] = sys.stdin.buffer
    scenario, captures, threads = pickle.load(asked)
    threading.Thread(target=_end_with, args=(asked,), daemon=True).start()

    def tell(message: Any) -> None:
        pickle.dump(message, output)
        output.flush()

    try:
        names.provide_all(scenario.to_json())
        message: Any = simulate(scenario, progress=tell, captures=captures, threads=threads)
    # A panic of the extension module is not an `Exception`.
    except BaseException as error:
        message = _sent(error), error.__cause__ and _sent(error.__cause__)
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

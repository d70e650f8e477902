"""Where runs are executed: on threads of this process, or on the workers of a Dask cluster.

Both take batches, and return them as they finish. They do not depend on what a batch contains.
"""

import ssl
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elephan import _core
from elephan.base.cores import core_count
from elephan.studies.sweeps import worker
from elephan.studies.sweeps.dataset import SweepError
from elephan.studies.sweeps.worker import Batch, VersionMismatchError, code_version, compute

if TYPE_CHECKING:
    from distributed import Client, Security

# The identity and the canonical JSON of each run.
Runs = Sequence[tuple[str, str]]
# The members of a cluster; each has a certificate.
ROLES = ("client", "scheduler", "worker")
# How long a client waits for a scheduler, and for the first worker of a cluster that was just requested.
CONNECT_S = 20
# How long a client waits for a finished result when a sweep is stopped.
TAKE_S = 0.5


class Local:
    """Threads of this process. The simulator releases the interpreter lock, so they use all cores."""

    def __init__(self, workers: int = 0, *, isolate: bool = False) -> None:
        self._isolate = isolate
        self._workers = workers or core_count()
        self._pool = ThreadPoolExecutor(self._workers, "elephan")
        self._cancel = _core.Cancel()
        self._futures: dict[int, Future[Batch]] = {}

    def workers(self) -> int:
        """The number of threads."""
        return self._workers

    def submit(self, number: int, runs: Runs) -> None:
        """Put a batch into the queue of the threads."""
        self._futures[number] = self._pool.submit(compute, runs, code_version(), self._cancel, isolate=self._isolate)

    def finished(self) -> list[tuple[int, Batch | Exception]]:
        """Wait for a thread. Ctrl-C interrupts the wait."""
        done, _ = wait(self._futures.values(), return_when=FIRST_COMPLETED)
        return [(number, _outcome(future)) for number, future in self._futures.items() if future in done]

    def forget(self, number: int) -> None:
        """Release a batch."""
        del self._futures[number]

    def close(self, *, at_once: bool) -> list[tuple[int, Batch]]:
        """End the threads."""
        if at_once:
            self._cancel.set()
        self._pool.shutdown(wait=True, cancel_futures=True)
        return [
            (number, future.result())
            for number, future in self._futures.items()
            if not future.cancelled() and future.exception() is None
        ]


def _outcome(future: Future[Batch]) -> Batch | Exception:
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, Exception):
        return error
    raise error


class Dask:
    """The workers of a Dask cluster, each with the same version of Elephan as this process."""

    def __init__(self, client: "Client", *, close_client: bool, isolate: bool = False) -> None:
        from distributed import as_completed  # noqa: PLC0415 - the `cluster` extra

        self._client = client
        self._isolate = isolate
        self._close_client = close_client
        self._as_completed = as_completed(loop=client.loop)
        self._futures: dict[int, Any] = {}
        self._counted = (-1.0, 1)
        self._name = str(client.scheduler.address) if client.scheduler else "the scheduler"
        self._check_versions()

    def _check_versions(self) -> None:
        """Refuse workers with other code before anything is run. `compute` checks those that join later."""
        own = code_version()
        try:
            found = self._client.run(worker.code_version, on_error="return")
        except Exception as error:
            raise SweepError(f"{self._name}: expected workers that answer, found: {error}") from error
        for address, version in found.items():
            if isinstance(version, BaseException):
                raise SweepError(f"worker {address}: expected Elephan {own}, found none ({version}); install it there")
            if version != own:
                raise SweepError(
                    f"worker {address}: expected Elephan {own}, as the client has, found {version}; nothing was run there"
                )

    def workers(self) -> int:
        """The number of the workers' threads. It changes as workers join and leave."""
        then, count = self._counted
        if time.monotonic() - then > 1:
            workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
            count = max(1, sum(one["nthreads"] for one in workers))
            self._counted = (time.monotonic(), count)
        return count

    def submit(self, number: int, runs: Runs) -> None:
        """Send a batch to the scheduler."""
        # The key is unique, so that the scheduler never answers with a stored result.
        key = f"elephan-{runs[0][0]}-{number}-{time.time_ns()}"
        future = self._client.submit(compute, runs, code_version(), isolate=self._isolate, key=key, pure=False)
        self._futures[number] = future
        self._as_completed.add(future)

    def finished(self) -> list[tuple[int, Batch | Exception]]:
        """Wait for a batch. Raises `SweepError` if the scheduler is gone."""
        outcomes: list[tuple[int, Batch | Exception]] = []
        done = set(self._as_completed.next_batch(block=True))
        for number, future in self._futures.items():
            if future not in done:
                continue
            try:
                outcomes.append((number, future.result()))
            except (OSError, CancelledError, TimeoutError) as error:
                # A run cannot cause any of these: errors of runs are stored in their batch.
                raise SweepError(f"{self._name}: the connection was lost") from error
            except Exception as error:
                outcomes.append((number, error))
        return outcomes

    def forget(self, number: int) -> None:
        """Release a batch: the scheduler need not keep a result that was received."""
        self._futures.pop(number).release()

    def close(self, *, at_once: bool) -> list[tuple[int, Batch]]:
        """Cancel what has not finished, and leave the cluster as it was."""
        rest: list[tuple[int, Batch]] = []
        if at_once and self._client.status == "running":
            finished = {number: future for number, future in self._futures.items() if future.status == "finished"}
            self._client.cancel([future for number, future in self._futures.items() if number not in finished])
            with suppress(Exception):  # the connection itself may have failed
                rest = [(number, future.result(timeout=TAKE_S)) for number, future in finished.items()]
        self._futures.clear()
        if self._close_client:
            self._client.close()
        return rest


def fatal(error: Exception) -> bool:
    """Whether an error was not caused by a run, so that other runs would fail with it too."""
    return isinstance(error, VersionMismatchError | ImportError | AttributeError | SweepError)


def security(folder: Path) -> "Security":
    """TLS for a cluster, from the files `ca.pem`, `cert.pem` and `key.pem` of a folder.

    Only holders of a certificate from that authority can take part. Raises `ScenarioError` if a file is missing.
    """
    from distributed import Security  # noqa: PLC0415 - the `cluster` extra

    ca, cert, key = (folder / name for name in ("ca.pem", "cert.pem", "key.pem"))
    for file in (ca, cert, key):
        if not file.is_file():
            raise _core.ScenarioError(f"--tls: expected a file {file}, found none")
    own = {f"tls_{who}_{what}": str(file) for who in ROLES for what, file in (("cert", cert), ("key", key))}
    return Security(tls_ca_file=str(ca), require_encryption=True, **own)


def connect(address: str, tls: Path | None = None) -> "Client":
    """A client of a Dask scheduler, with TLS from the files in `tls`. Raises `SweepError` if no scheduler answers."""
    try:
        from distributed import Client  # noqa: PLC0415 - the `cluster` extra
    except ImportError as error:
        raise SweepError('dask: expected it for a cluster, found none; pip install "elephan[cluster]"') from error
    if tls is not None and not address.startswith("tls://"):
        raise _core.ScenarioError(f"--tls: expected a scheduler at tls://host:port, found {address}")
    try:
        more = {} if tls is None else {"security": security(tls)}
        return Client(address, timeout=CONNECT_S, set_as_default=False, **more)
    except _core.ScenarioError:
        raise
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        # OpenSSL's message about a certificate is in the cause.
        reason = next((str(one) for one in _causes(error) if isinstance(one, ssl.SSLError)), str(error))
        raise SweepError(f"{address}: expected a Dask scheduler, found none ({reason})") from error


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def scheduler(where: "str | Client | None", workers: int = 0, *, isolate: bool = False) -> Local | Dask:
    """A scheduler: threads of this process if `where` is None, otherwise a Dask cluster by its address or client.

    With `isolate` each run has a process of its own.
    """
    if where is None:
        return Local(workers, isolate=isolate)
    if not isinstance(where, str):
        return Dask(where, close_client=False, isolate=isolate)
    client = connect(where)
    try:
        return Dask(client, close_client=True, isolate=isolate)
    except BaseException:
        client.close()
        raise

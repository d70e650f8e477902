"""Sweeps on a Dask cluster: its scheduler and worker in this process, or, for `make slow`, as processes of this machine.

Processes that have to find each other do so within limits of time, so they are not for the gate.
"""

import gc
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from command_line import call
from distributed import Client
from sweep_scenarios import SMALL, STOPPED, assert_same, file_of, small

import elephan
from elephan.cli import options
from elephan.studies.reproduce.lab import Lab
from elephan.studies.sweeps import batches, cluster, schedulers

# Long enough for other events during a run.
LONG = SMALL.replace("3 s", "120 s").replace("repeat = 2", "repeat = 8")


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of this test, ended by its process id."""
    one = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield one
    finally:
        one.kill()
        one.wait()


TLS = [("ca-file", "ca"), ("cert", "cert"), ("key", "key")]
Cluster = tuple[str, subprocess.Popen[bytes], list[subprocess.Popen[bytes]]]


@contextmanager
def cluster_of(place: Path, count: int, *more: str, tls: Path | None = None) -> Iterator[Cluster]:
    """The address of a scheduler, its process, and the processes of its workers."""
    file = place / "scheduler.json"
    options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
    if tls is not None:
        certificates = [f"--tls-{what}={tls / name}.pem" for what, name in TLS]
        options, more = [*options, "--protocol", "tls", *certificates], (*more, *certificates)
    with ExitStack() as stack:
        scheduler = stack.enter_context(process("-m", "distributed.cli.dask_scheduler", *options))
        options = ["--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory", str(place), *more]
        command = ["-m", "distributed.cli.dask_worker", "--scheduler-file", str(file), *options]
        workers = [stack.enter_context(process(*command)) for _ in range(count)]
        while not (file.exists() and file.read_text()):
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        with schedulers.connect(address, tls) as client:
            client.wait_for_workers(count)
        yield address, scheduler, workers


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test ends by the time of a connection.

    A client that could not connect is collected here: during the start of another, distributed waits for itself.
    """
    monkeypatch.setattr(schedulers, "CONNECT_S", 1e6)
    yield
    gc.collect()


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with cluster_of(tmp_path_factory.mktemp("dask"), 2) as (address, _, _):
        yield address


@pytest.fixture
def client() -> Iterator[Client]:
    """A client whose scheduler and worker are threads of this process."""
    with Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None, set_as_default=False
    ) as client:
        yield client


@pytest.mark.parametrize("where", ["client", pytest.param("dask", marks=pytest.mark.slow)])
def test_a_cluster_gives_what_this_machine_gives(where: str, request: pytest.FixtureRequest, tmp_path: Path):
    scheduler = request.getfixturevalue(where)
    sweep = elephan.sweep(small(), tmp_path / "far", scheduler=scheduler).run()
    assert (sweep.done, sweep.reused, sweep.failed) == (12, 0, 0)
    # The client of a caller stays open.
    assert where == "dask" or scheduler.status == "running"
    elephan.sweep(small(), tmp_path / "here").run()
    assert_same(tmp_path / "here", tmp_path / "far")
    # Runs that were done on the cluster are known here.
    assert elephan.sweep(small(), tmp_path / "far").run().reused == 12


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(batches, "BATCH_S", 0.05)
    path = file_of(tmp_path, LONG)
    with cluster_of(tmp_path, 2) as (address, _, workers):
        sweep = elephan.sweep(path, tmp_path / "far", scheduler=address)
        for number, _ in enumerate(sweep):
            if number == 5:
                workers[0].send_signal(signal.SIGKILL)
        assert workers[0].wait() == -signal.SIGKILL
    assert (sweep.done, sweep.failed) == (48, 0)
    elephan.sweep(path, tmp_path / "here").run()
    assert_same(tmp_path / "here", tmp_path / "far")


@pytest.mark.slow
def test_a_client_that_is_killed_goes_on_where_it_was(dask: str, tmp_path: Path):
    path, out = file_of(tmp_path, LONG), tmp_path / "out"
    script = STOPPED.replace("{number}", str(int(signal.SIGKILL)))
    with process("-c", script, "sweep", str(path), "--out", str(out), "--scheduler", dask) as client:
        assert client.wait() == -signal.SIGKILL
    known = elephan.Dataset(out).index().height
    assert 0 < known < 48
    sweep = elephan.sweep(path, out, scheduler=dask).run()
    assert (sweep.done, sweep.reused, sweep.failed) == (48, known, 0)
    assert elephan.Dataset(out).index()["run"].n_unique() == 48


# Workers load this module: one of its runs ends the process of its worker.
DEADLY = """
import os
from elephan.studies.sweeps import worker
from elephan.engines.run import run as good
def simulate(scenario, **keys):
    path, flow = scenario.document["path"], scenario.document["flow"]
    if path["rtt"] == "20 ms" and flow[0]["cc"] == "htcp" and scenario.document["seed"] == 2:
        os._exit(1)
    return good(scenario, **keys)
worker.simulate = simulate
"""


@pytest.mark.slow
def test_a_run_that_kills_its_workers_is_the_only_one_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Dask gives up a task that lost its workers. Runs of the same batch are then submitted alone."""
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")
    preload = tmp_path / "deadly.py"
    preload.write_text(DEADLY)
    with cluster_of(tmp_path, 3, "--preload", str(preload)) as (address, _, workers):
        sweep = elephan.sweep(small(), tmp_path / "out", scheduler=address).run()
        assert sum(one.poll() is not None for one in workers) in (1, 2)
    assert (sweep.done, sweep.failed) == (12, 1)
    bad = sweep.to_polars().filter(status="failed")
    assert bad.select("point", "repeat").rows() == [(4, 1)]
    assert bad["error"][0].startswith("KilledWorker")


@pytest.mark.slow
def test_workers_with_other_code_are_refused(dask: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(schedulers, "code_version", lambda: "0.0.0+other")
    message = (
        r"^worker tcp://127\.0\.0\.1:\d+: expected Elephan 0\.0\.0\+other, as the client has, found 0\.\d+\.\d+\+\w+"
    )
    with pytest.raises(elephan.SweepError, match=message):
        elephan.sweep(small(), tmp_path / "out", scheduler=dask).run()
    # A worker that joins during the sweep is checked by the run that it gets.
    monkeypatch.setattr(schedulers.Dask, "_check_versions", lambda _: None)
    with pytest.raises(
        elephan.SweepError, match=r"^point \d: expected Elephan 0\.0\.0\+other, as the client has, found 0"
    ):
        elephan.sweep(small(), tmp_path / "out", scheduler=dask).run()


@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(schedulers, "CONNECT_S", 0.5)
    with pytest.raises(elephan.SweepError, match=r"tcp://127\.0\.0\.1:9: expected a Dask scheduler, found none"):
        elephan.sweep(small(), tmp_path / "out", scheduler="tcp://127.0.0.1:9").run()


@pytest.mark.slow
def test_a_scheduler_that_goes_away_keeps_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(batches, "BATCH_S", 0.05)
    path = file_of(tmp_path, LONG)
    before: set[str] = set()

    def run(address: str, scheduler: "subprocess.Popen[bytes]") -> None:
        for number, one in enumerate(elephan.sweep(path, tmp_path / "out", scheduler=address)):
            before.add(one.run)
            if number == 5:
                scheduler.kill()

    message = "the connection was lost"
    with cluster_of(tmp_path, 2) as (address, scheduler, _), pytest.raises(elephan.SweepError, match=message):
        run(address, scheduler)
    known = set(elephan.Dataset(tmp_path / "out").index()["run"])
    assert before <= known
    assert len(known) < 48


def test_the_slurm_job_is_what_was_asked_for(tmp_path: Path):
    options = "--partition=cpu --time=2:00:00 --mem=4GB -c 8 --constraint='haswell&ssd' --exclusive"
    with cluster.cluster("slurm", options, tmp_path / "jobs") as made:
        script = made.job_script()
    for line in (
        "#SBATCH -p cpu",
        "#SBATCH -t 2:00:00",
        "#SBATCH --cpus-per-task=8",
        "#SBATCH --mem=4G",
        "#SBATCH --constraint=haswell&ssd",
        "#SBATCH --exclusive",
    ):
        assert line in script.splitlines(), script
    assert f"{sys.executable} -m distributed.cli.dask_worker tcp://" in script
    assert "--nthreads 8" in script


def test_the_jobs_of_pbs_and_htcondor_too(tmp_path: Path):
    with cluster.cluster("pbs", "-q cpu -A physics -l walltime=1:00:00 -l select=1:ncpus=4:mem=8gb", tmp_path) as made:
        script = made.job_script()
    for line in ("#PBS -q cpu", "#PBS -A physics", "#PBS -l select=1:ncpus=4:mem=8gb", "#PBS -l walltime=1:00:00"):
        assert line in script.splitlines(), script
    assert "--nthreads 4" in script
    with cluster.cluster("htcondor", "request_cpus=4 request_memory=3GB accounting_group=physics", tmp_path) as made:
        script = made.job_script()
    assert "accounting_group = physics" in script
    assert "RequestCpus = MY.DaskWorkerCores" in script


@pytest.mark.parametrize("options", ["cpu", "--cpus-per-task=many"])
def test_options_that_are_none_are_refused(options: str, tmp_path: Path):
    with pytest.raises(elephan.ScenarioError, match="cluster options: expected"):
        cluster.cluster("slurm", options, tmp_path)


def certificates(folder: Path) -> Path:
    """A certificate authority of our own and a certificate from it, made as SECURITY.md describes."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    folder.mkdir()
    text = (Path(__file__).parents[3] / "SECURITY.md").read_text()
    commands = [line.strip() for line in text.splitlines() if line.startswith("    openssl ")]
    assert len(commands) == 3
    for command in commands:
        subprocess.run(command, shell=True, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.slow
def test_with_tls_only_those_with_a_certificate_take_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, good, other = file_of(tmp_path, SMALL), certificates(tmp_path / "tls"), certificates(tmp_path / "other")
    with cluster_of(tmp_path, 1, tls=good) as (address, _, _):
        assert address.startswith("tls://")
        ran = call("sweep", path, "--out", tmp_path / "far", "--scheduler", address, "--tls", good)
        assert ran.returncode == 0, ran.stderr
        assert "12 new" in ran.stdout
        assert "warning" not in ran.stderr
        for folder, told in ((other, "certificate verify failed"), (None, "TLS expects")):
            with pytest.raises(elephan.SweepError, match=f"^{address}: expected a Dask scheduler.*{told}") as error:
                schedulers.connect(address, folder)
            assert "\n" not in str(error.value)
            del error
            gc.collect()
        ran = call("sweep", path, "--out", tmp_path / "no", "--scheduler", address, "--tls", other)
        assert ran.returncode == 1
        assert len(ran.stderr.strip().splitlines()) == 1, ran.stderr
        assert not (tmp_path / "no" / "index.parquet").exists()
        monkeypatch.setattr(schedulers, "CONNECT_S", 0.5)
        with pytest.raises(elephan.SweepError, match="expected a Dask scheduler, found none"):
            schedulers.connect(address.replace("tls", "tcp"))
    elephan.sweep(small(), tmp_path / "here").run()
    assert_same(tmp_path / "here", tmp_path / "far")


def test_what_is_no_tls_is_refused_in_a_line(tmp_path: Path):
    path, folder = file_of(tmp_path, SMALL), tmp_path / "tls"
    folder.mkdir()
    for more, told in (
        (["--scheduler", "tcp://127.0.0.1:9", "--tls", str(folder)], "expected a scheduler at tls://host:port"),
        (["--scheduler", "tls://127.0.0.1:9", "--tls", str(folder)], f"--tls: expected a file {folder}/ca.pem"),
        (["--tls", str(folder)], "--tls: expected a cluster with it, found none"),
    ):
        ran = call("sweep", path, "--out", tmp_path / "out", *more)
        assert ran.returncode == 2, ran.stderr
        (line,) = ran.stderr.strip().splitlines()
        assert told in line


@pytest.mark.parametrize(
    ("address", "is_open"),
    [
        ("tcp://10.0.0.1:8786", True),
        ("cluster:8786", True),
        ("tcp://[2001:db8::1]:8786", True),
        ("tcp://127.0.0.1:8786", False),
        ("127.0.0.1:8786", False),
        ("tcp://localhost:8786", False),
        ("tcp://[::1]:8786", False),
        ("tls://10.0.0.1:8786", False),
    ],
)
def test_an_open_scheduler_is_warned_of(address: str, is_open: bool, capsys: pytest.CaptureFixture[str]):
    options.check_tls(None, scheduler=address)
    assert ("run code as you" in capsys.readouterr().err) is is_open


def test_the_jobs_of_a_batch_system_have_the_certificates(tmp_path: Path):
    tls = certificates(tmp_path / "tls")
    with cluster.cluster("slurm", "--partition=cpu", tmp_path / "jobs", tls) as made:
        assert made.scheduler_address.startswith("tls://")
        script = made.job_script()
    assert f"--tls-ca-file {tls}/ca.pem" in script
    assert f"--tls-key {tls}/key.pem" in script


def test_published_experiments_run_on_the_workers_of_a_cluster(client: Client, tmp_path: Path):
    scenario, _ = small().expand()[0]
    run = Lab(tmp_path / "runs", executor=client.get_executor()).run([scenario])[0]
    assert run.summary == elephan.run(scenario).summary
    assert run.flows.equals(elephan.run(scenario).flows)

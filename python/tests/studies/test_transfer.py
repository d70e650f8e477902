"""Transfers between processes on loopback: the commands, what is recorded, pipes, kills at any moment, a full disk."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from command_line import ELEPHAN, INTERRUPTED, call

from elephan import ScenarioError, kernel
from elephan.api.run import Run
from elephan.api.scenario import dumbbell, flow
from elephan.cli import transfer as command
from elephan.engines.emulate import FAR, Links, links
from elephan.paths import transfer

LINE = re.compile(r"port (\d+), token (\S+)")
BLOCK = 4 << 20
# No test ends by the patience of a sender or a receiver.
PATIENCE_S = 1e6
PATIENT = ("--patience", PATIENCE_S)


@dataclass
class Server:
    """A receiver that runs."""

    process: subprocess.Popen[str]
    port: str
    token: str
    before: tuple[str, ...] = ()

    def send(
        self, *arguments: object, wait: bool = True, stdin: Any = None, program: tuple[object, ...] = (ELEPHAN,)
    ) -> subprocess.Popen[str]:
        """Start a sender; by default wait for its end."""
        words = [*self.before, *program, "path", "transfer", "send", *arguments, "--port", self.port, *PATIENT]
        process = subprocess.Popen(
            list(map(str, words)),
            env={**os.environ, "ELEPHAN_TOKEN": self.token},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if wait:
            process.wait()
        return process


@contextmanager
def server(*arguments: object, over: Links | None = None, into: Any = None) -> Iterator[Server]:
    """A receiver, on loopback or at the far end of links, whose sender then is at the near one, perhaps into a file."""
    far, near, address = (over.far, over.near, FAR) if over is not None else ((), (), "127.0.0.1")
    words = [*far, ELEPHAN, "path", "transfer", "receive", *arguments, "--port", 0, "--address", address, *PATIENT]
    process = subprocess.Popen(list(map(str, words)), stdout=into or subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        says = process.stdout if into is None else process.stderr
        assert says is not None
        found = LINE.search(says.readline())
        assert found, process.communicate()
        yield Server(process, found[1], found[2], near)
    finally:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str]) -> str:
    """What a program wrote, which has ended well."""
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out + err


def make_file(path: Path, blocks: int, seed: int) -> bytes:
    """A file that is not as long as whole blocks."""
    data = random.Random(seed).randbytes(blocks * BLOCK + 4321)
    path.write_bytes(data)
    return data


def test_memory_is_recorded_as_a_run(tmp_path: Path) -> None:
    with server() as receiver:
        folder = tmp_path / "out"
        text = said(receiver.send("127.0.0.1", "--memory", "60MB", "--streams", "3", "--out", folder))
    assert re.search(r"^60 MB in [\d.]+ s, [\d,]+ Mbit/s", text)
    run = Run.load(folder)
    assert run.provenance["engine"] == "transfer"
    assert run.labels == ("stream 1", "stream 2", "stream 3")
    assert 60e6 <= run.transfers["bytes"].sum() < 62e6
    assert run.flows["flow"].n_unique() == 3
    assert run.flows["min_rtt_s"].max() > 0
    for words in (("plot", "cwnd", folder), ("report", folder, "--format", "md")):
        done = call(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert "none: a transfer between two hosts" in next(folder.glob("report*.md")).read_text()


@pytest.mark.realtime
def test_streams_keep_to_their_pace(tmp_path: Path, deviation: Callable[..., None]) -> None:
    """Three streams at the pace, 180 Mbit/s; TLS adds less than a percent."""
    with server() as receiver:
        out = ("--out", tmp_path / "out")
        said(receiver.send("127.0.0.1", "--memory", "60MB", "--streams", "3", "--pace", "60Mbit/s", *out))
    run = Run.load(tmp_path / "out")
    deviation("goodput", run.summary.goodput_bit_s / 180e6 - 1, above=140 / 180 - 1, below=182 / 180 - 1)
    deviation("longest of the shortest round-trip times, s", run.flows["min_rtt_s"].max(), below=0.1)


def test_a_file_arrives_and_the_receiver_ends(tmp_path: Path) -> None:
    data = make_file(tmp_path / "file", 3, 1)
    (tmp_path / "to").mkdir()
    with server(tmp_path / "to", "--once") as receiver:
        text = said(receiver.send(tmp_path / "file", "127.0.0.1", "--plain"))
        assert re.match(r"12\.59 MB in [\d.]+ s, [\d,]+ Mbit/s\nBLAKE3 [0-9a-f]{64}\n", text)
        assert receiver.process.wait() == 0
    assert (tmp_path / "to/file").read_bytes() == data
    with server(tmp_path / "to") as receiver:
        assert "the receiver had the file" in said(receiver.send(tmp_path / "file", "127.0.0.1"))


@pytest.mark.parametrize("plain", [[], ["--plain"]])
def test_a_folder_goes_through_tar(plain: list[str], tmp_path: Path) -> None:
    tree, to = tmp_path / "tree", tmp_path / "to"
    (tree / "deep/empty").mkdir(parents=True)
    to.mkdir()
    files = {f"deep/{name}": make_file(tree / "deep" / str(name), name, name) for name in range(4)}
    (tree / "link").symlink_to("deep/3")
    untar = subprocess.Popen(["tar", "xf", "-", "-C", to], stdin=subprocess.PIPE)
    with server("-", into=untar.stdin) as receiver:
        assert untar.stdin is not None
        untar.stdin.close()
        tar = subprocess.Popen(["tar", "cf", "-", "-C", tmp_path, "tree"], stdout=subprocess.PIPE)
        text = said(receiver.send("-", "127.0.0.1", "--streams", "3", *plain, stdin=tar.stdout))
        assert "BLAKE3 " in text
        # It ends by itself.
        assert receiver.process.wait() == 0
        assert receiver.process.stderr is not None
        assert ": complete: 25." in receiver.process.stderr.read()
        assert (tar.wait(), untar.wait()) == (0, 0)
    assert {name: (to / "tree" / name).read_bytes() for name in files} == files
    assert (to / "tree/link").readlink() == Path("deep/3")
    assert (to / "tree/deep/empty").is_dir()


def test_a_pipe_that_is_interrupted_ends_both_sides() -> None:
    out, into = os.pipe()
    with os.fdopen(out, "rb") as written, server("-", into=into) as receiver:
        os.close(into)
        sender = receiver.send("-", "127.0.0.1", wait=False, stdin=subprocess.PIPE)
        assert sender.stdin is not None
        sender.stdin.write("x" * (2 * BLOCK))
        sender.stdin.flush()
        written.read(BLOCK)
        # It waits for more of its standard input.
        sender.send_signal(signal.SIGINT)
        assert sender.wait() == 130
        assert sender.stderr is not None
        assert sender.stderr.read().endswith("interrupted; standard input cannot be resumed\n")
        assert receiver.process.wait() == 1
        assert receiver.process.stderr is not None
        assert receiver.process.stderr.read().endswith("peer: expected the session to go on, found it closed\n")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_kills_of_either_side_lose_nothing(seed: int, tmp_path: Path) -> None:
    """Each attempt is killed at a random moment, sometimes the sender and sometimes the receiver, until one succeeds."""
    source = random.Random(seed)
    data = make_file(tmp_path / "file", 20, seed)
    (tmp_path / "to").mkdir()
    kills = 0
    # Slow enough that a kill meets it somewhere: 84 MB at 2 streams of 4 MB/s.
    arguments = (tmp_path / "file", "127.0.0.1", "--streams", 2, "--pace", "32Mbit/s", *(["--plain"] * (seed % 2)))
    for _ in range(6):
        with server(tmp_path / "to") as receiver:
            sender = receiver.send(*arguments, wait=False)
            time.sleep(source.uniform(0.3, 2.5))
            victim = source.choice([sender, receiver.process])
            ended = sender.poll() is not None
            victim.kill()
            sender.wait()
            sender.communicate()
            kills += not ended
        # Whatever has its name is whole.
        assert not (tmp_path / "to/file").exists() or (tmp_path / "to/file").read_bytes() == data, f"seed {seed}"
    with server(tmp_path / "to") as receiver:
        said(receiver.send(tmp_path / "file", "127.0.0.1"))
    assert kills > 0
    assert (tmp_path / "to/file").read_bytes() == data, f"seed {seed}"
    assert [path.name for path in (tmp_path / "to").iterdir()] == ["file"]


# The first report of what has arrived sends the signal.
HEARD = """
from elephan.cli import main, transfer

shown = transfer._Shown.__call__
def heard(self, total, stored, *more):
    shown(self, total, stored, *more)
    if total is not None and stored > 0:
        begun.put(None)
transfer._Shown.__call__ = heard
main()
"""


def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    # A terabyte, of which the disk has nothing: it does not arrive before the signal does.
    (tmp_path / "file").touch()
    os.truncate(tmp_path / "file", 1 << 40)
    (tmp_path / "to").mkdir()
    with server(tmp_path / "to") as receiver:
        program = (sys.executable, "-c", INTERRUPTED + HEARD)
        sender = receiver.send(tmp_path / "file", "127.0.0.1", "--pace", "40Mbit/s", program=program)
        _, err = sender.communicate()
        assert sender.returncode == 130
        assert err.endswith("interrupted; the receiver keeps what has arrived; run the same command again to go on\n")
        receiver.process.send_signal(signal.SIGINT)
        _, err = receiver.process.communicate()
        assert "the sender's next attempt goes on with it" in err


def test_a_full_disk_is_one_line_and_the_next_attempt_goes_on(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a small file system")
    (tmp_path / "file").write_bytes(random.Random(4).randbytes(6 * BLOCK))
    to = tmp_path / "to"
    to.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={4 * BLOCK}", "tmpfs", str(to)]
    if (done := subprocess.run(mount, capture_output=True, text=True, check=False)).returncode:
        pytest.skip(done.stderr.strip())
    try:
        with server(to) as receiver:
            sender = receiver.send(tmp_path / "file", "127.0.0.1", "--streams", "1")
            out, err = sender.communicate()
            assert sender.returncode == 1
            assert out == ""
            # Lines of progress may come before it.
            assert "No space left on device" in err.splitlines()[-1]
            assert "Traceback" not in err
            subprocess.run(["mount", "-o", f"remount,size={16 * BLOCK}", to], check=True)
            text = said(receiver.send(tmp_path / "file", "127.0.0.1"))
        sent = re.match(r"([\d.]+) MB", text)
        assert sent
        assert float(sent[1]) < 6 * BLOCK / 1e6 - 4
        assert (to / "file").read_bytes() == (tmp_path / "file").read_bytes()
    finally:
        subprocess.run(["umount", to], check=True)


def resident_kb(process: subprocess.Popen[str]) -> int:
    """The largest memory of a process so far."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
    assert found
    return int(found[1])


def test_memory_use_does_not_depend_on_the_size(tmp_path: Path) -> None:
    most = {}
    block = random.Random(6).randbytes(BLOCK)
    for blocks in (10, 60):
        path = tmp_path / f"file{blocks}"
        with path.open("wb") as file:
            for _ in range(blocks):
                file.write(block)
        to = tmp_path / f"to{blocks}"
        to.mkdir()
        with server(to) as receiver:
            said(receiver.send(path, "127.0.0.1", "--streams", "2"))
            most[blocks] = resident_kb(receiver.process)
        path.unlink()
    # Six times the data, which are 200 MB more; buffers of 2 streams are 24 MiB.
    assert most[60] < most[10] + 30_000, most


def test_what_a_server_or_a_kernel_has_not_is_one_line(tmp_path: Path) -> None:
    with server() as receiver:
        for arguments, line in (
            (
                ("127.0.0.1", "--memory", "1MB", "--cc", "none"),
                '--cc: expected a name that the kernel has, found "none"',
            ),
            ((tmp_path / "none", "127.0.0.1"), "none: No such file or directory"),
            ((tmp_path, "127.0.0.1"), "expected a file, found a folder; `tar cf - "),
            ((__file__, "127.0.0.1"), "expected memory, because it was started without a folder; found a file"),
        ):
            words = (
                "path",
                "transfer",
                "send",
                *arguments,
                "--port",
                receiver.port,
                "--token",
                receiver.token,
                *PATIENT,
            )
            done = call(*map(str, words))
            assert done.returncode in (1, 2)
            assert line in done.stderr
            assert done.stderr.count("\n") == 1, done.stderr


def test_python_gets_the_run_and_its_path() -> None:
    path = dumbbell(rate="100 Mbit/s", rtt="20 ms", flows=[flow("cubic")], duration="5 s")
    seen = []
    with server() as receiver:
        sent = transfer.send(
            "127.0.0.1",
            receiver.token,
            port=int(receiver.port),
            memory=50_000_000,
            pace_bit_s=400e6,
            streams=1,
            cc="reno",
            patience_s=PATIENCE_S,
            scenario=path,
            progress=lambda *now: seen.append(now),
        )
    assert sent.bytes == 50_000_000
    assert sent.run.scenario.document["path"]["rtt"] == "20 ms"
    assert sent.run.scenario.document["flow"][0]["cc"] == "reno"
    assert seen[-1][1] <= seen[-1][0] == 50_000_000
    with pytest.raises(ScenarioError, match="--load: expected a name"):
        transfer.send("127.0.0.1", receiver.token, memory=1, load=True)


@pytest.mark.realtime
@pytest.mark.usefixtures("root")
def test_a_lossy_path_is_recorded_as_it_is(tmp_path: Path, deviation: Callable[..., None]) -> None:
    """Over links that are known: the shortest round-trip time is theirs, and no more arrives than they carry."""
    path = dumbbell(
        rate="40 Mbit/s",
        rtt="30 ms",
        flows=[flow("cubic")],
        duration="60 s",
        path={"loss": {"name": "random", "probability": 0.002}},
    )
    data = make_file(tmp_path / "file", 4, 5)
    (tmp_path / "to").mkdir()
    with links(path) as emulated, server(tmp_path / "to", over=emulated) as receiver:
        out = tmp_path / "out"
        said(receiver.send(tmp_path / "file", FAR, "--cc", "cubic", "--streams", "2", "--out", out))
    assert (tmp_path / "to/file").read_bytes() == data
    run = Run.load(out)
    rtt_s = run.flows["min_rtt_s"].min()
    because = emulated.quality["invalid_because"]
    deviation("shortest round-trip time", rtt_s / 0.030 - 1, above=0, below=0.1, because=because)
    deviation("goodput beside the links' rate", run.summary.goodput_bit_s / 40e6 - 1, below=0, because=because)
    assert run.flows["retransmits"].max() > 0
    assert run.scenario.document["path"]["rtt"] == transfer.time_text(rtt_s)


def test_a_receiver_that_stops_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = command._Shown.__call__
    with server() as receiver:

        def stop(self: command._Shown, total: int | None, *more: Any) -> None:
            shown(self, total, *more)
            if total is not None:
                receiver.process.send_signal(signal.SIGSTOP)

        monkeypatch.setattr(command._Shown, "__call__", stop)
        words = ("--memory", "1000TB", "--pace", "10Mbit/s", "--patience", "1", "--port", receiver.port)
        done = call("path", "transfer", "send", "127.0.0.1", *words, "--token", receiver.token)
        receiver.process.send_signal(signal.SIGCONT)
    assert (done.stdout, done.returncode) == ("", 1)
    assert done.stderr.endswith("peer: expected an answer within 1 s, found none\n")


@pytest.mark.slow
@pytest.mark.usefixtures("machine")
def test_an_algorithm_of_elephan_is_loaded_for_a_transfer(tmp_path: Path) -> None:
    with server() as receiver:
        out = tmp_path / "out"
        said(receiver.send("127.0.0.1", "--memory", "100MB", "--cc", "htcp", "--load", "--out", out))
    assert Run.load(out).scenario.document["flow"][0]["cc"] == "htcp"
    # `el_PROCESS_NUMBER`: what is left is of processes that still run, such as another test's.
    loaded = [found[1] for name in kernel.available() if (found := re.fullmatch(r"el_(\d+)_\d+", name))]
    assert [pid for pid in loaded if not Path("/proc", pid).exists()] == []

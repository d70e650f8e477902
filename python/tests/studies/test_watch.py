"""`elephan path watch`: what passes through to a program, and what is recorded of its connections."""

import ctypes
import math
import os
import pty
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import ELEPHAN, call

from elephan import _core
from elephan.api.run import Run
from elephan.api.scenario import flow
from elephan.paths import transfer, watch
from elephan.paths.series import observe_results

# Sends parts of so many bytes, 50 ms apart, to each address, of which all but the first get a tenth, and waits for their ends.
SENDER = """
import socket, sys, time
port, size, *hosts = sys.argv[1:]
ends = [socket.create_connection((host, int(port))) for host in hosts]
for _ in range(12):
    for number, end in enumerate(ends):
        end.sendall(bytes(int(size) // (1 if number == 0 else 10)))
    time.sleep(0.05)
print("sent", flush=True)
for end in ends:
    end.shutdown(socket.SHUT_WR)
    while end.recv(1 << 16):
        pass
"""
PARTS = 12
# Reads what it is sent over a connection, reports its length, and waits for a signal.
RECEIVER = """
import signal, socket
with socket.create_server(("127.0.0.1", 0)) as listener:
    print(listener.getsockname()[1], flush=True)
    end, _ = listener.accept()
    print(len(end.recv(10_000, socket.MSG_WAITALL)), flush=True)
    signal.pause()
"""
# Waits for SIGTERM, and then tells how often SIGINT came.
COUNTER = """
import signal, sys
sent = []
signal.signal(signal.SIGINT, lambda number, _: [sent.append(number), print("interrupted", flush=True)])
signal.signal(signal.SIGTERM, lambda number, _: sys.exit(10 + len(sent)))
print("ready", flush=True)
while True:
    signal.pause()
"""
# Makes its input the terminal of a session, and becomes a command in its foreground.
IN_TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY)
os.execv(sys.argv[1], sys.argv[1:])
"""
IN_PYTHON = "import sys; from elephan.paths.watch import watch; sys.exit(watch(sys.argv[1:]).code)"
GET_SUBREAPER, SET_SUBREAPER = 37, 36


@contextmanager
def sink(address: str, answer: bytes = b"") -> Iterator[int]:
    """A server at a port that reads each connection to its end, and then sends an answer."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as listener:

        def serve(end: socket.socket) -> None:
            with end:
                while end.recv(1 << 16):
                    pass
                end.sendall(answer)

        def accept() -> None:
            # Until the listener is closed.
            while True:
                try:
                    end, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(end,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def watched(*words: object, **more: object) -> subprocess.CompletedProcess[str]:
    command = [str(ELEPHAN), "path", "watch", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)  # type: ignore[call-overload]


@contextmanager
def running(*command: str | Path, **more: object) -> Iterator[subprocess.Popen[str]]:
    """A program with pipes, which ends with the test."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **{**pipes, **more}) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


@pytest.mark.parametrize(
    ("command", "code", "found"), [("no-such-program", 127, "none"), ("/", 126, "Permission denied")]
)
def test_a_program_that_cannot_be_started_has_the_exit_code_of_a_shell(command: str, code: int, found: str) -> None:
    done = call("path", "watch", "--", command)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr == f"{command}: expected a program, found {found}\n"


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -9 $$", 137), ("true", 0)])
def test_without_a_connection_nothing_is_written_and_the_exit_code_is_the_programs(
    tmp_path: Path, script: str, code: int
) -> None:
    done = call("path", "watch", "--out", tmp_path / "run", "--", "sh", "-c", script)
    assert (done.returncode, done.stderr) == (code, "sh: no TCP connection was seen; nothing was written\n")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_exists_and_a_wrong_interval_are_refused_before_the_program_starts(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").touch()
    for options, expected in (
        (("--out", "run"), "run: expected a new folder"),
        (("--interval", "1us"), "0.001 s or more"),
    ):
        done = call("path", "watch", *options, "--", "touch", "started", cwd=tmp_path)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert expected in done.stderr
    assert not (tmp_path / "started").exists()


def test_a_kernel_without_sock_diag_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fails(*_: object) -> None:
        raise OSError("TCP's sockets: expected a kernel with sock_diag, found: another")

    monkeypatch.setattr(_core, "watch_programs", fails)
    done = call("path", "watch", "--", "touch", "started", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "TCP's sockets: expected a kernel with sock_diag, found: another\n")
    assert not (tmp_path / "started").exists()


def test_input_outputs_and_ignored_signals_are_the_programs_own() -> None:
    done = watched("--", "sh", "-c", "cat; echo also >&2; exit 3", input="text\n")
    assert (done.returncode, done.stdout) == (3, "text\n")
    assert done.stderr == "also\nsh: no TCP connection was seen\n"
    # Python ignores SIGPIPE; a program has its default action.
    assert watched("--", "sh", "-c", "kill -PIPE $$").returncode == 128 + signal.SIGPIPE
    assert watched("--", "grep", "SigBlk", "/proc/self/status").stdout == f"SigBlk:\t{0:016x}\n"
    # What ignores a signal (`nohup`) starts programs that do.
    started = (ELEPHAN, "path", "watch", "--", "sh", "-c", "kill -HUP $$; exit 3")
    ignoring = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *started]
    assert subprocess.run(ignoring, capture_output=True, check=False).returncode == 3


@pytest.mark.parametrize("command", [(ELEPHAN, "path", "watch", "--"), (sys.executable, "-c", IN_PYTHON)])
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP])
def test_signals_are_sent_on_and_the_programs_exit_code_counts(
    sent: signal.Signals, command: tuple[str | Path, ...]
) -> None:
    script = f"trap 'exit 5' {sent.name.removeprefix('SIG')}; echo ready; while :; do sleep 0.05; done"
    # There are threads before, to which the kernel may give the signal; there is no terminal, which may have sent it.
    threads = {**os.environ, "OPENBLAS_NUM_THREADS": "4"}
    with running(*command, "sh", "-c", script, env=threads, start_new_session=True) as process:
        assert line(process) == "ready"
        process.send_signal(sent)
        _, err = process.communicate()
    assert (process.returncode, err) == (5, "sh: no TCP connection was seen\n" if command[0] == ELEPHAN else "")


def test_a_program_gets_what_the_terminal_sends_once() -> None:
    ours, its = pty.openpty()
    command = [sys.executable, "-c", IN_TERMINAL, ELEPHAN, "path", "watch", "--", sys.executable, "-c", COUNTER]
    with running(*command, stdin=its) as process:
        os.close(its)
        assert line(process) == "ready"
        os.write(ours, b"\x03")
        assert line(process) == "interrupted"
        process.terminate()
        process.communicate()
    os.close(ours)
    assert process.returncode == 11


def test_signals_are_sent_on_until_the_program_is_over_also_where_the_watch_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(_: float, start: Callable[[], None], __: Callable[[], bool]) -> None:
        start()
        signal.raise_signal(signal.SIGTERM)
        raise OSError("it failed")

    before = [signal.getsignal(number) for number in watch.FORWARDED]
    monkeypatch.setattr(_core, "watch_programs", fails)
    with pytest.raises(OSError, match="it failed"):
        watch.watch(["sleep", "infinity"])
    assert [signal.getsignal(number) for number in watch.FORWARDED] == before


@pytest.mark.parametrize("before", [0, 1])
def test_a_program_that_cannot_be_started_leaves_the_process_as_it_was(before: int) -> None:
    control, is_subreaper = ctypes.CDLL(None).prctl, ctypes.c_int()
    control(SET_SUBREAPER, before, 0, 0, 0)
    try:
        with pytest.raises(watch.NotStartedError):
            watch.watch(["no-such-program"])
        control(GET_SUBREAPER, ctypes.byref(is_subreaper), 0, 0, 0)
    finally:
        control(SET_SUBREAPER, 0, 0, 0, 0)
    assert is_subreaper.value == before


@pytest.mark.parametrize("interval_s", [0.0, -1.0, 9e-4, math.nan])
def test_an_interval_that_is_too_short_is_refused_before_the_program_starts(tmp_path: Path, interval_s: float) -> None:
    with pytest.raises(_core.ScenarioError, match=f"interval_s: expected 0.001 s or more, found {interval_s:g}"):
        watch.watch(["touch", str(tmp_path / "started")], interval_s=interval_s)
    assert not list(tmp_path.iterdir())


def test_a_recording_without_data_has_a_scenario() -> None:
    tables = {"duration_s": 3.0, "interval_s": 0.1, "packet_bytes": 1500, "fastest_bit_s": 0.0, "min_rtt_s": 1e-6}
    assert transfer.described(tables, [flow("reno")], None, "transfer").document["path"]["rate"] == "1 bit/s"


def test_an_error_in_the_recording_leaves_the_programs_exit_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def runs(_: float, start: Callable[[], None], is_over: Callable[[], bool]) -> dict[str, object]:
        start()
        while not is_over():
            pass
        tables = {"labels": []}
        return {"tables": tables, "flows": [], "connections": 1, "without_info": 0, "foreign": 0}

    def fails(*_: object) -> None:
        raise _core.ScenarioError("scenario: expected another")

    monkeypatch.setattr(_core, "watch_programs", runs)
    monkeypatch.setattr(watch, "recorded", fails)
    done = call("path", "watch", "--out", tmp_path / "run", "--", "sh", "-c", "exit 7")
    assert (done.returncode, done.stderr) == (7, "sh: nothing was recorded: scenario: expected another\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("label", "peer"),
    [
        ("10.0.0.2:873 (40000)", "10.0.0.2"),
        ("[2001:db8::1]:873 (40000)", "[2001:db8::1]"),
        ("stream 1", ""),
        ("reno", ""),
    ],
)
def test_the_label_of_a_connection_has_its_peer(label: str, peer: str) -> None:
    assert watch.peer(label) == peer


@pytest.mark.realtime
@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("before", [(), ("sh", "-c", '"$@" & wait', "sh"), ("sh", "-c", '("$@" &); sleep 1.5', "sh")])
def test_all_bytes_of_a_program_and_of_those_that_it_starts_are_counted(
    tmp_path: Path, address: str, before: tuple[str, ...]
) -> None:
    with sink(address, answer=bytes(5000)) as port:
        command = [*before, sys.executable, "-c", SENDER, port, 100_000, address]
        done = watched("--interval", "20ms", "--out", tmp_path / "run", "--", *command)
    assert (done.returncode, done.stdout) == (0, "sent\n"), done.stderr
    assert f"{tmp_path / 'run'}" in done.stderr
    run = Run.load(tmp_path / "run")
    assert len(run.labels) == 1
    assert f":{port} (" in run.labels[0]
    # The kernel counts a SYN and a FIN as a byte each.
    assert 0 <= run.transfers["bytes"].sum() - PARTS * 100_000 <= 2
    counted = run.summary.flows[0]
    assert counted.sent_bytes - counted.retransmitted_bytes == PARTS * 100_000
    row = next(row for row in done.stderr.splitlines() if f":{port} (" in row)
    assert row.split()[3:5] == ["1.200", "0.005"]


@pytest.mark.realtime
def test_what_a_program_receives_is_recorded(tmp_path: Path) -> None:
    with (
        running(ELEPHAN, "path", "watch", "--out", tmp_path / "run", "--", sys.executable, "-c", RECEIVER) as process,
        socket.create_connection(("127.0.0.1", int(line(process)))) as end,
    ):
        for _ in range(10):
            end.sendall(bytes(1000))
            time.sleep(0.05)
        assert line(process) == "10000"
        process.terminate()
        _, err = process.communicate()
    assert process.returncode == 128 + signal.SIGTERM, err
    run = Run.load(tmp_path / "run")
    rate = _core.quantity(run.scenario.document["path"]["rate"])
    assert rate is not None
    # 10 kB in half a second.
    assert 10e3 < rate[0] < 250e3


@pytest.mark.realtime
def test_a_path_is_estimated_from_the_connections_to_the_host_that_got_most(tmp_path: Path) -> None:
    with sink("0.0.0.0") as port:
        command = [sys.executable, "-c", SENDER, port, 100_000, "127.0.0.1", "127.0.0.2"]
        assert watched("--interval", "20ms", "--out", tmp_path / "run", "--", *command).returncode == 0
    assert len(Run.load(tmp_path / "run").labels) == 2
    delivered = observe_results(tmp_path / "run").delivered_bytes[-1]
    assert 0.8 * PARTS * 100_000 < delivered < 1.08 * PARTS * 100_000


@pytest.mark.realtime
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small file system")
def test_a_signal_loses_nothing_and_a_full_disk_is_one_line(tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", full], check=True)
    try:
        for folder in (tmp_path / "run", full / "run"):
            with sink("127.0.0.1") as port:
                script = SENDER.replace('print("sent", flush=True)', 'print("sent", flush=True); time.sleep(60)')
                command = [sys.executable, "-c", script, str(port), "9", "127.0.0.1"]
                with running(ELEPHAN, "path", "watch", "--out", folder, "--", *command) as process:
                    assert line(process) == "sent"
                    process.send_signal(signal.SIGTERM)
                    _, err = process.communicate()
            if folder.parent == full:
                assert process.returncode == 1
                assert "No space left on device" in err.splitlines()[-1]
                assert not list(full.iterdir())
            else:
                assert process.returncode == 128 + signal.SIGTERM
                assert 0 <= Run.load(folder).transfers["bytes"].sum() - 9 * PARTS <= 2
            assert err.count("\n") == 5, err
    finally:
        subprocess.run(["umount", full], check=True)


@pytest.mark.realtime
def test_other_programs_of_the_same_process_are_not_watched() -> None:
    with sink("127.0.0.1") as port:
        command = [sys.executable, "-c", SENDER, str(port), "1000", "127.0.0.1"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
            done = watch.watch(["sleep", "0.3"], interval_s=0.02)
            assert (other.poll(), done.code, done.run, done.connections) == (None, 0, None, 0)

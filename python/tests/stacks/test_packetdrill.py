"""Scripts of packetdrill: our own on the simulator and on a guest kernel, and what the command says."""

import os
import re
import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from elephan import _core
from elephan.cli.packetdrill import app
from elephan.engines import packetdrill
from elephan.kernel import KernelError

SCRIPTS = sorted((Path(__file__).parents[3] / "python/elephan/examples/packetdrill").glob("*.pkt"))

OPENING = """
0   socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0  bind(3, ..., ...) = 0
+0  listen(3, 1) = 0
+0  < S 0:0(0) win 65535 <mss 1000>
+0  > S. 0:0(0) ack 1 <mss 1460>
+.1 < . 1:1(0) ack 1 win 65535
+0  accept(3, ..., ...) = 4
"""


def named(path):
    return path.stem


@pytest.fixture
def script(tmp_path):
    def write(text, opening=OPENING):
        path = tmp_path / "script.pkt"
        path.write_text(opening + text)
        return path

    return write


def differs(path, stack):
    return f"// elephan: {stack} differs:" in path.read_text()


@pytest.mark.parametrize("path", SCRIPTS, ids=named)
def test_the_simulator_does_what_our_scripts_expect(path):
    report = packetdrill.run(path)
    expected = "skipped" if differs(path, "simulator") else "passed"
    assert report.outcome == expected, report


@pytest.fixture
def kernel(request):
    request.getfixturevalue("guest")
    return packetdrill.kernel()


@pytest.mark.slow
@pytest.mark.parametrize("path", SCRIPTS, ids=named)
def test_a_guest_kernel_does_what_our_scripts_expect(path, kernel):
    expected = "skipped" if differs(path, "kernel") else "passed"
    report = packetdrill.run(path, guest=kernel)
    assert report.outcome == expected, report


@pytest.mark.slow
def test_a_guest_kernel_repeats_numbers_and_times(script, kernel):
    lines = "+0 write(4, ..., 3000) = 3000\n+0 > P. 1:3001(3000) ack 1\n+.8 > . 1:1001(1000) ack 9 <TS val 1 ecr 2>\n"
    first, again = (packetdrill.run(script(lines, opening=STAMPED), guest=kernel) for _ in range(2))
    assert "TS val" in first.seen
    assert first == again


# A guest's clock moves by a nanosecond where it is read, and by a microsecond with a system call that fails.
EXACT = "--tolerance_usecs=1\n--tolerance_percent=0\n"
STAMPED = (
    OPENING.replace("<mss 1000>", "<mss 1000,TS val 2 ecr 0>")
    .replace("<mss 1460>", "<mss 1460,TS val 1 ecr 2>")
    .replace("win 65535\n+0  accept", "win 65535 <TS val 3 ecr 1>\n+0  accept")
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "lines",
    [
        # A call that blocks returns with the data that it waits for, and the window opens at once.
        "+0...0.15 read(4, ..., 1000) = 500\n+.15 < . 1:501(500) ack 1 win 65535\n+0 > . 1:1(0) ack 501\n",
        "+0 poll([{fd=4, events=POLLIN|POLLOUT, revents=POLLOUT}], 1, 1000) = 1\n",
        "+0...0.15 poll([{fd=4, events=POLLIN, revents=POLLIN}], 1, 1000) = 1\n+.15 < . 1:501(500) ack 1 win 65535\n",
        "+0...0.02 poll([{fd=4, events=POLLIN, revents=0}], 1, 20) = 0\n",
        # Linux's tcp_enter_quickack_mode: the first segments are acknowledged at once.
        "+.3 < P. 1:201(200) ack 1 win 65535\n+0 > . 1:1(0) ack 201\n",
    ],
    ids=["read", "ready", "poll", "idle", "quick"],
)
def test_times_of_a_guest_kernel_are_exact(script, kernel, lines):
    report = packetdrill.run(script(lines, opening=EXACT + OPENING), guest=kernel)
    assert report.outcome == "passed", report


@pytest.mark.slow
def test_a_guest_kernel_knows_every_key_that_is_its_own(script, kernel):
    opening = "`sysctl -q net.core.rmem_max=4000000 net.ipv4.tcp_nothing=1`\n" + OPENING
    report = packetdrill.run(script("", opening=opening), guest=kernel)
    assert (report.outcome, list(report.ignored)) == ("passed", ["net.ipv4.tcp_nothing=1"])


@pytest.mark.slow
def test_an_interrupted_script_leaves_no_guest(script, kernel):
    endless = script("+4000000 `true`\n+4000000 `true`\n")
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 1)
    try:
        with pytest.raises(KeyboardInterrupt):
            packetdrill.run(endless, guest=kernel)
    finally:
        signal.signal(signal.SIGALRM, before)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@pytest.mark.slow
def test_what_the_caller_s_code_raises_ends_the_guest(script, kernel):
    report = packetdrill.run(script("+0 %{ raise OSError('no') }%\n"), guest=kernel)
    assert (report.outcome, report.seen.split(";")[0]) == ("failed", "OSError: no")


def test_without_an_image_the_command_that_builds_one_is_named(script, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(packetdrill.image, "missing_files", list)
    result = CliRunner().invoke(app, [str(script("")), "--engine", "kernel", "--set", "kernel.version=6.12"])
    assert isinstance(result.exception, KernelError)
    assert "`elephan kernel build linux-source-6.12` builds it" in str(result.exception)


def test_a_script_names_its_source():
    for path in SCRIPTS:
        first = path.read_text().splitlines()[0]
        assert re.match(r"// RFC \d+|// .*\(.*\b(\d{4}|Linux)\b", first), path


def test_a_line_that_does_not_hold_is_shown_with_what_was_seen(script):
    report = packetdrill.run(script("+0 write(4, ..., 1000) = 1000\n+0 > P. 1:1001(1000) ack 2\n"))
    assert (report.outcome, report.line) == ("failed", 10)
    assert report.expected == "P. 1:1001(1000) ack 2 at 0.100000 s"
    assert report.seen.startswith("P. 1:1001(1000) ack 1 win")
    assert report.seen.endswith("(differs: ack)")


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("+.1 > . 1:1(0) ack 1", "nothing until"),
        ("+0 read(4, ..., 1000) = 10", "the call blocks"),
        ("+0 write(4, ..., 1000) = 10", "= 1000"),
        ("+0 %{ assert tcpi_snd_cwnd == 11 }%", "tcpi_snd_cwnd = 10"),
        ("+0 %{ 1 / 0 }%", "ZeroDivisionError"),
    ],
)
def test_what_fails_is_named(script, line, seen):
    report = packetdrill.run(script(line))
    assert report.outcome == "failed"
    assert seen in report.seen


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("+0 `reboot`", "`reboot`"),
        ("+0 write(4, ..., 1000, 0x8000000) = 1000", "write with 0x8000000"),
        ("+0 `sysctl -q kernel.hostname=other`", "kernel.hostname=other"),
        ("+0 %{ assert tcpi_nothing == 1 }%", "tcpi_nothing"),
        ("+0 < icmp unreachable [1:1001(1000)]", "icmp packets"),
        ("+0 epoll_create(1) = 5", "epoll_create"),
        ("+0 poll([{fd=4, events=POLLIN, revents=0}], 1, 20) = 0", "poll"),
        ("+0 setsockopt(4, SOL_TCP, TCP_CORK, [1], 4) = 0", "setsockopt TCP_CORK"),
    ],
)
def test_what_has_no_counterpart_skips_a_script_by_its_name(script, line, reason):
    report = packetdrill.run(script(line))
    assert (report.outcome, report.reason) == ("skipped", reason)


@pytest.mark.parametrize(
    "lines",
    [
        "+0 write(4, NULL, 1000) = -1 EFAULT (Bad address)\n+.1 < . 1:501(500) ack 1 win 65535\n"
        "+0 read(4, NULL, 1000) = -1 EFAULT\n+0 read(4, ..., 1000) = 500\n",
        "+0 write(4, ..., 700) = 700\n+0 > P. 1:701(700) ack 1\n+0 ioctl(4, SIOCOUTQ, [700]) = 0\n"
        "+.1 < . 1:501(500) ack 701 win 65535\n"
        "+0 ioctl(4, SIOCINQ, [500]) = 0\n+0 ioctl(4, SIOCOUTQ, [0]) = 0\n",
        "+0 setsockopt(4, SOL_IP, IP_TOS, [4], 4) = 0\n+0 %{ assert tcpi_options == 0, tcpi_options }%\n",
        "+1 %{ assert 999 <= tcpi_last_data_recv <= 1001, tcpi_last_data_recv }%\n+0 < . 1:501(500) ack 1 win 65535\n"
        "+0 %{ assert tcpi_last_data_recv <= 1, tcpi_last_data_recv; \\\n}%\n",
        # A call may return off by a share of the time that it blocks.
        "+0...1.1 read(4, ..., 1000) = 500\n+1 < . 1:501(500) ack 1 win 65535\n",
    ],
    ids=["nowhere", "queues", "tos", "heard", "tolerance"],
)
@pytest.mark.parametrize("stack", ["simulator", pytest.param("guest", marks=pytest.mark.slow)])
def test_calls_and_variables_are_those_of_linux(script, request, stack, lines):
    guest = request.getfixturevalue("kernel") if stack == "guest" else None
    report = packetdrill.run(script(lines), guest=guest)
    assert report.outcome == "passed", report


def test_a_key_that_no_stack_knows_is_reported_and_left_out(script):
    report = packetdrill.run(
        script("+0 write(4, ..., 1000) = 1000\n", "`sysctl -q net.ipv4.tcp_nothing=1`\n" + OPENING)
    )
    assert (report.outcome, list(report.ignored)) == ("passed", ["net.ipv4.tcp_nothing=1"])
    shown = CliRunner().invoke(app, [report.file]).stdout
    assert "without net.ipv4.tcp_nothing=1, which this TCP does not know" in shown


def test_code_sees_the_names_that_it_defined(script):
    report = packetdrill.run(
        script("+0 %{ before = tcpi_snd_cwnd }%\n+0 %{ assert before == 10 and TCP_CA_Open == 0 }%\n")
    )
    assert report.outcome == "passed"


def test_settings_come_from_sysctl_comments_and_the_caller(script):
    check = "+0 %{{ assert tcpi_snd_cwnd == {} }}%\n"
    route = "`ip route change 192.0.2.0/24 dev tun0 initcwnd 4`\n"
    assert packetdrill.run(script(check.format(4), opening=route + OPENING)).outcome == "passed"
    told = route + "// elephan: tcp.initial_window=5\n"
    assert packetdrill.run(script(check.format(5), opening=told + OPENING)).outcome == "passed"
    path = script(check.format(6), opening=told + OPENING)
    assert packetdrill.run(path, {"tcp.initial_window": "6"}).outcome == "passed"


def test_files_of_commands_are_read_beside_the_script(script, tmp_path):
    (tmp_path / "defaults.sh").write_text('# a comment\nsysctl -q net.ipv4.tcp_rmem="4096 540000 $((15*1024*1024))"\n')
    opening = "`./defaults.sh`\n" + OPENING.replace("<mss 1000>", "<mss 1000,wscale 2>").replace(
        "<mss 1460>", "<mss 1460,wscale 8>"
    )
    assert packetdrill.run(script("", opening=opening)).outcome == "passed"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0 socket(... = 3", 'line 1: expected "," or ")", found "="'),
        ("0 > Q 0:0(0)", "line 1: expected flags"),
        ("0 > S 0:5(0)", "line 1: expected 0:0(0), whose numbers agree, found 0:5(0)"),
        ("* < . 1:1(0) ack 1 win 1", "line 1: expected a time"),
        ("\n+0 `ls", "line 2: expected `, found the end of the script"),
        ("// elephan: tcp.nothing=1\n" + OPENING, "tcp.nothing"),
        ("// elephan: other words\n", "line 1: expected KEY=VALUE"),
    ],
)
def test_a_wrong_script_is_refused_with_its_line(script, text, says):
    with pytest.raises(_core.ScenarioError) as raised:
        packetdrill.run(script(text, opening=""))
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_the_command_reports_each_script_and_fails_if_one_fails(script, tmp_path):
    script("+0 > . 1:1(0) ack 2")
    (tmp_path / "good.pkt").write_text(OPENING)
    result = CliRunner().invoke(app, [str(tmp_path)])
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0].startswith("passed  ")
    assert "    expected . 1:1(0) ack 2 at 0.100000 s" in result.stdout
    assert result.stdout.splitlines()[-1] == "1 passed, 1 failed"
    assert CliRunner().invoke(app, [str(tmp_path / "good.pkt")]).exit_code == 0


def test_scripts_that_come_with_elephan_are_known_by_their_names_unless_a_folder_has_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["handshake-active", "slow-start"])
    assert [Path(line.split()[1]).name for line in result.stdout.splitlines()[:-1]] == [
        "handshake-active.pkt",
        "slow-start.pkt",
    ]
    (tmp_path / "slow-start").mkdir()
    (tmp_path / "slow-start" / "mine.pkt").write_text(OPENING)
    result = CliRunner().invoke(app, ["slow-start"])
    assert result.stdout.splitlines() == ["passed  slow-start/mine.pkt", "1 passed"]


def test_the_command_goes_on_after_a_script_that_it_cannot_read(script, tmp_path):
    script("+0 nonsense", opening="")
    (tmp_path / "good.pkt").write_text(OPENING)
    (tmp_path / "binary.pkt").write_bytes(b"\xff\xfe")
    result = CliRunner().invoke(app, [str(tmp_path)])
    assert result.exit_code == 2
    assert result.stdout.splitlines()[-1] == "1 passed, 2 unreadable"


def test_a_wrong_setting_is_refused_once(script):
    result = CliRunner().invoke(app, [str(script("")), "--set", "rack=true"])
    assert isinstance(result.exception, _core.ScenarioError)
    assert (
        str(result.exception)
        == "--set: rack: expected a key of tcp, such as tcp.rack, or cc, or slow_start, found true"
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--engine", "linux"], "--engine: expected one of sim, kernel, found 'linux'"),
        (["--set", "kernel.version=6.12"], "--set: kernel.version: expected a key of tcp"),
    ],
)
def test_a_wrong_engine_or_version_is_refused(script, words, says):
    result = CliRunner().invoke(app, [str(script("")), *words])
    assert isinstance(result.exception, _core.ScenarioError)
    assert str(result.exception).startswith(says)

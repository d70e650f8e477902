"""The running kernel: loading algorithms, runs on its TCP, and that nothing is left behind in any case."""

import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from elephan import _core, kernel
from elephan.api.scenario import dumbbell, flow
from elephan.engines import linux
from elephan.engines.run import run as simulate
from elephan.kernel import build, libbpf
from elephan.kernel import names as names_of
from elephan.studies import iperf3

# What a link of 20 Mbit/s carries of a flow: 1448 of 1500 bytes.
CARRIED_BIT_S = 20e6 * 1448 / 1500
COMMAND = [sys.executable, "-c", "from elephan.cli import main; main()"]


def path(cc="reno", duration="3 s", **keys):
    settings = {"rate": "20 Mbit/s", "rtt": "20 ms", "buffer": "100% bdp", "tcp": {"rto_min": "200 ms"}}
    return dumbbell(**{**settings, "duration": duration, "flows": [flow(cc)], "engine": "linux", **keys})


def disturbed(run):
    """Why the emulator of links calls its own record of a run invalid."""
    return run.provenance["quality"]["invalid_because"]


def names():
    return Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()


def namespaces():
    found = set()
    for link in Path("/proc").glob("[0-9]*/task/[0-9]*/ns/net"):
        try:
            found.add(link.readlink().name)
        except OSError:
            continue
    return found


def devices():
    return sorted(entry.name for entry in Path("/sys/class/net").iterdir())


# ---- Without root ----


def test_settings_are_checked_before_the_kernel_is_asked():
    with pytest.raises(_core.ScenarioError, match="expected a number from 0 to 1, found 2"):
        kernel.load("scalable", {"a": 2})
    with pytest.raises(_core.ScenarioError, match="expected one of the parameters a, b, lwnd, rounding, form, found"):
        kernel.load("scalable", {"alpha": 1})
    with pytest.raises(_core.ScenarioError, match="expected one of reno, hstcp"):
        kernel.load("no such algorithm")


def test_what_a_kernel_cannot_do_is_refused():
    with pytest.raises(_core.ScenarioError, match=r"flow.slow_start: expected \"standard\""):
        linux.run(path(flows=[flow("reno", slow_start="limited")]))
    with pytest.raises(_core.ScenarioError, match=r"tcp.initial_ssthresh: expected none"):
        linux.run(path(tcp={"initial_ssthresh": 20}))
    with pytest.raises(_core.ScenarioError, match=r"web.tcp: expected one stack"):
        linux.run(path(web=[{"users": 3, "start": "1 s", "tcp": {"timestamps": False}}]))


def test_a_name_selects_a_file_of_kernel_or_one_of_linux():
    there = ["reno", "cubic", "bbr", "htcp", "veno"]

    def named(*controls):
        guest = names_of.Registered()
        return names_of.of_flows(controls, there, guest.name_of), guest.loads

    ours = [(name, "{}") for name in ("scalable", "kernel:scalable", "kernel:reno", "htcp", "hstcp-fc")]
    assert named(*ours) == (["el_scalable", "el_scalable", "el_reno", "el_htcp", "el_hstcp_fc"], [])
    own = [(name, "{}") for name in ("reno", "sack", "cubic", "linux:cubic", "bbr", "linux:bbr", "linux:htcp")]
    assert named(*own) == (["reno", "reno", "cubic", "cubic", "bbr", "bbr", "htcp"], [])

    # Linux's own where the kernel has it, and ours where it lacks it or the scenario sets parameters.
    sensitive = json.dumps({"beta": 2})
    both = [("veno", "{}"), ("yeah", "{}"), ("kernel:veno", "{}"), ("compound", "{}"), ("veno", sensitive)]
    assert named(*both)[0] == ["veno", "el_yeah", "el_veno", "el_compound", "el_0_veno"]

    faster, other = json.dumps({"a": 0.02}), json.dumps({"beta": 0.7})
    names, loads = named(("scalable", faster), ("reno", other), ("kernel:scalable", faster), ("scalable", "{}"))
    assert names == ["el_0_scalable", "el_1_reno", "el_0_scalable", "el_scalable"]
    assert [load[:2] for load in loads] == [("scalable", "el_0_scalable"), ("reno", "el_1_reno")]
    assert loads[0][2] == _core.kernel_values("scalable", faster)

    for control in [("linux:nv", "{}"), ("vegas", "{}"), ("cubic", json.dumps({"c": 0.5}))]:
        with pytest.raises(_core.ScenarioError, match="own, reno, cubic, bbr, htcp, veno, without parameters, found"):
            named(control)


@pytest.mark.parametrize("flows", [[flow("reno"), flow("bic")], [flow("reno", size="1 MB")]])
def test_iperf3_stands_for_endless_flows_of_one_algorithm_only(monkeypatch, flows):
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/iperf3")
    with pytest.raises(_core.ScenarioError, match="expected endless flows of one algorithm"):
        iperf3.check(path(flows=flows))


def test_an_iperf3_that_did_not_end_is_told_in_one_line(monkeypatch):
    """The log exists from the start on, and is empty until the end."""
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/iperf3")

    def run(scenario, sender_commands=(), **_):
        for command in sender_commands:
            Path(command[command.index("--logfile") + 1]).touch()
        return simulate(scenario.with_settings({"engine": "sim"}))

    monkeypatch.setattr(linux, "run", run)
    with pytest.raises(kernel.KernelError, match="iperf3: it did not end"):
        iperf3.check(path())


def test_without_iperf3_there_is_one_clear_line(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(kernel.KernelError, match="iperf3: expected it to be installed"):
        iperf3.check(path())


def test_without_root_there_is_one_clear_line(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(kernel.KernelError, match="expected root"):
        kernel.load("scalable")
    with pytest.raises(kernel.KernelError, match="expected root"):
        linux.run(path())


def test_without_btf_there_is_one_clear_line(monkeypatch, tmp_path):
    from elephan.kernel import loader

    monkeypatch.setattr(loader, "BTF", tmp_path / "vmlinux")
    with pytest.raises(kernel.KernelError, match="expected a kernel with BTF"):
        kernel.load("scalable")


# ---- With root, BTF, clang and libbpf ----


@pytest.mark.slow
@pytest.mark.usefixtures("machine")
def test_every_algorithm_loads_is_chosen_by_a_socket_and_goes_while_it_is_in_use():
    before = names()
    for name, algorithm in kernel.algorithms().items():
        assert kernel.load(name) == algorithm.registered
        try:
            with socket.socket() as used:
                used.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.registered.encode())
                assert [entry.users for entry in kernel.loaded() if entry.registered == algorithm.registered] == [1]
                with pytest.raises(kernel.KernelError, match="expected it not to be loaded"):
                    kernel.load(name)
                kernel.unload(name)
                assert algorithm.registered not in names()
                chosen = used.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
                assert chosen.rstrip(b"\0").decode() == algorithm.registered
        finally:
            if algorithm.registered in names():
                kernel.unload(name)
        with pytest.raises(kernel.KernelError, match="expected it to be loaded"):
            kernel.unload(name)
    assert names() == before


@pytest.mark.slow
@pytest.mark.usefixtures("machine")
def test_what_the_verifier_refuses_is_told_with_its_words(monkeypatch, tmp_path):
    text = _core.kernel_sources()
    # A read beyond the socket's private state.
    broken = text["reno.bpf.c"].replace(
        "PRIVATE(tp)->waiting = 0;", "tp->inet_conn.icsk_ca_priv[13 + (tp->snd_cwnd & 7)] = 0;"
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(_core, "kernel_sources", lambda: {**text, "reno.bpf.c": broken})
    monkeypatch.setattr(build, "FLAGS", (*build.FLAGS, "-Wno-array-bounds"))
    with pytest.raises(kernel.KernelError, match=r"(?s)reno: the kernel refused the program.*tcp_sock"):
        kernel.load("reno")
    assert "el_reno" not in names()


@pytest.mark.realtime
@pytest.mark.usefixtures("machine")
def test_a_file_of_the_user_is_loaded_for_a_run(tmp_path, deviation):
    text, before = _core.kernel_sources()["scalable.bpf.c"], names()
    (tmp_path / "mine.bpf.c").write_text(text.replace('"el_scalable"', '"mine"'))
    run = simulate(path({"name": f"bpf:{tmp_path}/mine.bpf.c", "a": 0.02}, duration="2 s"))
    assert run.labels == ("bpf:mine.bpf.c",)
    deviation("goodput, bit/s", run.summary.goodput_bit_s, above=5e6, because=disturbed(run), discrete=True)
    assert names() == before
    (tmp_path / "mine.bpf.c").write_text(text.replace('.name = "el_scalable",', ""))
    with pytest.raises(kernel.KernelError, match=r'expected a struct_ops with a \.name = "\.\.\."'):
        simulate(path(f"bpf:{tmp_path}/mine.bpf.c", duration="2 s"))


@pytest.mark.slow
@pytest.mark.usefixtures("machine")
def test_the_kernel_has_the_values_of_the_parameters():
    """The maps of constants that loading adds: one with parameters, whose rows agree with the registry."""
    array = 2  # BPF_MAP_TYPE_ARRAY

    def tables():
        return {number: value for number, name, value in libbpf.maps(array) if name == libbpf.PARAMETERS[:15]}

    for name, algorithm in kernel.algorithms().items():
        settings = {"a": 0.02, "b": 0.25} if name == "scalable" else {}
        before = set(tables())
        kernel.load(name, settings)
        try:
            (value,) = (value for number, value in tables().items() if number not in before)
        finally:
            kernel.unload(name)
        values = _core.kernel_values(name, json.dumps(settings))
        rows = [libbpf.ROW.unpack_from(value, at) for at in range(0, len(values) * libbpf.ROW.size, libbpf.ROW.size)]
        assert [found for _, _, found in rows] == values, algorithm
        if name == "scalable":
            assert {text.rstrip(b"\0"): found / 2**bits for text, bits, found in rows[:2]} == {
                b"a": pytest.approx(0.02),
                b"b": 0.25,
            }


@pytest.mark.realtime
@pytest.mark.usefixtures("machine")
def test_parameters_reach_the_kernel(deviation):
    """Scalable with b = 1/2 instead of 1/8 reduces its window more, and so carries less with a small buffer."""
    keys = {"buffer": "10% bdp", "duration": "8 s", "measure": {"from": "2 s"}}
    gentle, harsh = (linux.run(path({"name": "scalable", "b": b}, **keys)) for b in (0.125, 0.5))
    larger, smaller = (run.summary.flows[0].cwnd_mean_segments for run in (gentle, harsh))
    deviation("window with b = 1/2", smaller / larger - 1, below=0, because=disturbed(gentle) + disturbed(harsh))


@pytest.mark.realtime
@pytest.mark.usefixtures("machine")
def test_a_run_has_the_results_of_a_simulation_and_the_kernels_own_columns(tmp_path, deviation):
    run = linux.run(path("htcp", duration="4 s", measure={"from": "1 s"}))
    quality, because = run.provenance["quality"], disturbed(run)
    goodput = run.summary.goodput_bit_s / CARRIED_BIT_S - 1
    deviation("goodput", goodput, above=15e6 / CARRIED_BIT_S - 1, below=0, because=because, discrete=True)
    deviation("packets that the link dropped", run.summary.links[0].dropped, above=0, because=because, discrete=True)
    deviation("packets", quality["packets"], above=1000, because=because, discrete=True)
    assert quality["valid"] == (not because)
    assert quality["device_drops"] == 0 or not quality["valid"]
    simulated = path("htcp", engine="sim").document
    assert simulated["path"] == run.scenario.document["path"]
    frame = run.flows
    assert {"cwnd_segments", "srtt_s", "goodput_bit_s", "pacing_rate_bit_s", "rwnd_limited_s"} <= set(frame.columns)
    # 20 ms of path, and at most 20 ms of queue. A pause of the machine lengthens some samples, but not half of them.
    deviation("median round-trip time, s", frame["srtt_s"].median(), above=0.02, below=0.045, because=because)
    run.save(tmp_path / "run")
    again = type(run).load(tmp_path / "run")
    assert again.provenance["engine"] == "linux"
    assert again.flows.equals(frame)


@pytest.mark.realtime
@pytest.mark.usefixtures("machine")
def test_flows_with_round_trips_and_transfers_of_their_own(deviation):
    flows = [flow("reno"), flow("reno", rtt="60 ms"), flow("reno", size="100 kB", transfers=3, start="1 s")]
    run = linux.run(path(flows=flows, duration="6 s", rate="50 Mbit/s"))
    for number, rtt_s in enumerate((0.020, 0.060)):
        above_s = run.flows.filter(run.flows["flow"] == number)["min_rtt_s"].min() - rtt_s
        name = f"shortest round-trip time of flow {number}, s"
        deviation(name, above_s, above=0, below=0.005, because=disturbed(run))
    transfers = run.transfers
    assert transfers.height == 3
    assert (transfers["end_s"] > transfers["start_s"]).all()


@pytest.mark.slow
@pytest.mark.usefixtures("machine")
def test_connections_have_segments_of_their_own_size():
    """In flight are segments of 3948 bytes of the last flow, and of 1448 of the other, after a SYN."""
    flows = [flow("reno", size="100 kB", transfers=1, tcp=stack) for stack in ({}, {"packet": "4000 B"})]
    run = linux.run(path(flows=flows, rate="100 Mbit/s", rtt="100 ms", duration="2 s", trace={"interval": "5 ms"}))
    for number, mss in enumerate((1448, 3948)):
        pipes = [pipe for pipe in run.flows.filter(run.flows["flow"] == number)["pipe_bytes"] if pipe > 1000]
        assert pipes
        assert {pipe % mss for pipe in pipes} == {0}


@pytest.mark.slow
@pytest.mark.usefixtures("machine")
def test_a_run_of_all_kinds_of_traffic_closes_its_files():
    users = {"users": 20, "think": {"exponential": "500 ms"}, "size": {"exponential": "10 kB"}}
    arrivals = {"cc": "reno", "per_second": 30, "size": {"exponential": "20 kB"}}
    scenario = path(duration="2 s", rate="50 Mbit/s", web=[users], arrivals=[arrivals], cbr=[{"rate": "1 Mbit/s"}])
    files = len(list(Path("/proc/self/fd").iterdir()))
    run = linux.run(scenario)
    assert len(list(Path("/proc/self/fd").iterdir())) == files
    # A stream has the number after those of the crowds.
    assert set(run.streams["flow"]) == {3}


@pytest.mark.realtime
@pytest.mark.usefixtures("machine")
def test_datagrams_cross_the_link_evenly_and_are_timed(deviation):
    """10 Mbit/s of datagrams with 10 ms one-way delay: all arrive, and none is early by more than the emulator's resolution."""
    stream = {"rate": "10 Mbit/s"}
    run = linux.run(path(flows=[], cbr=[stream], duration="3 s", measure={"from": "500 ms"}))
    stream, because = run.summary.streams[0], disturbed(run)
    # 1500 bytes each: 833.3 in a second.
    deviation("sent", stream.sent / (2.5 * 833.3) - 1, within=0.02, because=because, discrete=True)
    # None, in any attempt.
    deviation("lost", stream.lost, below=0.5, because=because, discrete=True)
    # 10 ms, and 0.6 ms of service. A packet that ends the emulator's sleep is assumed to have arrived in the middle of the
    # 60 us that waking can take. If the kernel wakes it at once, the packet is up to 30 us too early.
    deviation("mean delay, s", stream.delay_mean_s - 0.0106, above=-30e-6, below=0.020, because=because)
    deviation("received", run.streams["received"].to_list()[-1], above=2000, because=because, discrete=True)


@pytest.mark.realtime
@pytest.mark.usefixtures("machine")
def test_iperf3_finds_on_the_same_link_what_our_traffic_does(deviation):
    if shutil.which("iperf3") is None:
        pytest.skip("iperf3: expected it to be installed (apt-get install iperf3), found none")
    scenario = path("scalable", duration="6 s", measure={"from": "2 s"})
    check = iperf3.check(scenario)
    because, utilisation = disturbed(check.own) + disturbed(check.links), check.links.summary.utilisation
    beside_ours = check.goodput_bit_s / check.own.summary.goodput_bit_s - 1
    deviation("goodput of iperf3 beside ours", beside_ours, within=0.15, because=because)
    # The reported traffic crossed the link of the scenario.
    beside_iperf3 = utilisation * CARRIED_BIT_S / check.goodput_bit_s - 1
    deviation("goodput of the link beside that of iperf3", beside_iperf3, within=0.15, because=because)
    deviation("utilisation", utilisation, above=0.7, because=because, discrete=True)


@pytest.mark.realtime
@pytest.mark.usefixtures("machine")
def test_engines_side_by_side(tmp_path, deviation):
    from elephan.studies import side_by_side as engines

    scenario = path("scalable", duration="6 s", measure={"from": "2 s"}, engine="sim")
    pair = next(engines.pairs({"short": scenario}, engine="linux"))
    pair.write_into(tmp_path)
    pair.draw(tmp_path)
    assert (tmp_path / "sim" / "flows.parquet").exists()
    assert len(list(tmp_path.glob("linux*/run.json"))) == len(pair.kernel)
    assert (tmp_path / "cwnd.png").stat().st_size > 1000
    goodput = engines.QUANTITIES[0]
    sim, there = pair.values(goodput)
    assert pair.apart(goodput) == pytest.approx(sim / there - 1)
    because = [reason for run in pair.counted for reason in disturbed(run)]
    deviation("goodput of the simulator", sim / there - 1, within=0.2, because=because, discrete=True)
    assert engines.table([pair]).to_markdown().count("\n") == 3


@pytest.mark.slow
@pytest.mark.usefixtures("machine")
def test_nothing_is_left_when_a_run_is_killed_at_any_moment(tmp_path):
    """Kills runs while they set up, run and clean up. Everything that belongs to a run disappears with its process."""
    (tmp_path / "scenario.toml").write_text(
        'duration = "1500 ms"\nengine = "linux"\n[path]\nrate = "20 Mbit/s"\nrtt = "20 ms"\n'
        '[[flow]]\ncc = "scalable"\n[[flow]]\ncc = "bic"\n'
    )
    draw = random.Random(20)
    before = names(), namespaces(), devices()
    moments = sorted(draw.uniform(0.3, 4.5) for _ in range(8))
    for number, moment in enumerate(moments):
        how = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)[number % 3]
        out = tmp_path / f"out{number}"
        arguments = ["run", str(tmp_path / "scenario.toml"), "--out", str(out)]
        running = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            running.wait(timeout=moment)
        except subprocess.TimeoutExpired:
            running.send_signal(how)
            running.wait()
        # The kernel removes namespaces in the background.
        while (names(), devices()) != (before[0], before[2]) or namespaces() - before[1]:
            time.sleep(0.05)
        if out.exists():
            assert (out / "summary.json").exists()
    assert not [entry for entry in kernel.loaded() if re.fullmatch(r"el_\d+_\d+", entry.registered)]


@pytest.mark.slow
@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_commands_of_a_run_end_with_it_however_it_ends(how):
    """The processes hold the namespace in which they run."""
    words = ["sleep", f"1{os.getpid()}.{int(how)}"]
    program = (
        "from elephan.engines import linux; from elephan.api.scenario import dumbbell, flow\n"
        f"linux.run(dumbbell(rate='20 Mbit/s', rtt='20 ms', buffer='100% bdp', tcp={{'rto_min': '200 ms'}}, duration='60 s',"
        f" flows=[flow('reno')], engine='linux'), listener_commands=[{words}], sender_commands=[{words}])"
    )

    def running():
        found = 0
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                found += entry.read_bytes() == "\0".join([*words, ""]).encode()
            except OSError:
                continue
        return found

    before = namespaces()
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    while running() < 2:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(how)
    process.wait()
    while running() or namespaces() - before:
        time.sleep(0.05)


def test_a_damaged_object_in_the_cache_is_compiled_anew(tmp_path, monkeypatch):
    compiler, count = tmp_path / "clang", tmp_path / "count"
    compiler.write_text(f'#!/bin/sh\necho once >> {count}\nfor out; do :; done\nhead -c 5000 /bin/sh > "$out"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CLANG", str(compiler))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "SHIPPED", tmp_path / "none")
    good = build.compiled("scalable.bpf.c")
    (kept,) = build.cache().glob("*/*.bpf.o")
    whole = kept.read_bytes()
    for damaged in (whole[:2000], b"", whole[:-1], good, whole.replace(b"ELF", b"elf")):
        kept.write_bytes(damaged)
        assert build.compiled("scalable.bpf.c") == good
        assert kept.read_bytes() == whole
    assert build.compiled("scalable.bpf.c") == good
    assert count.read_text().count("once") == 6


def test_objects_of_the_package_need_no_compiler_unless_the_sources_are_others(tmp_path, monkeypatch):
    monkeypatch.setenv("CLANG", "no such compiler")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "SHIPPED", tmp_path)
    (tmp_path / "scalable.bpf.o").write_bytes(b"object")
    (tmp_path / build.KEY).write_text(build.key())
    assert build.compiled("scalable.bpf.c") == b"object"
    others = {name: text + "\n" * (name == "elephan.h") for name, text in _core.kernel_sources().items()}
    monkeypatch.setattr(_core, "kernel_sources", lambda: others)
    with pytest.raises(kernel.KernelError, match="clang: expected it to be installed"):
        build.compiled("scalable.bpf.c")

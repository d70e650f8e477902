"""Algorithms from outside: names, registration, shared objects, eBPF files and Python, and what is wrong with them."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from own import CLASSES, MINE, scenario
from typer.testing import CliRunner

import elephan
from elephan.cli import app
from elephan.foreign import names
from elephan.studies.sweeps.worker import VersionMismatchError, code_version, compute, identity
from elephan.studies.theory import Model

KERNEL = Path(__file__).parents[3] / "kernel"

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

# Standard TCP in the form of the kernel's selftests.
SELFTEST = """
#include "bpf_tracing_net.h"
#include <bpf/bpf_tracing.h>

char _license[] SEC("license") = "GPL";
#define max(a, b) ((a) > (b) ? (a) : (b))
static bool before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}
extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, __u32 w, __u32 acked) __ksym;

SEC("struct_ops")
void BPF_PROG(mine_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (before(tp->snd_nxt, ack) || !tcp_is_cwnd_limited(sk))
		return;
	if (tp->snd_cwnd < tp->snd_ssthresh)
		acked = tcp_slow_start(tp, acked);
	if (acked)
		tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

SEC("struct_ops")
__u32 BPF_PROG(mine_ssthresh, struct sock *sk)
{
	return max(tcp_sk(sk)->snd_cwnd >> 1U, 2U);
}

SEC("struct_ops")
__u32 BPF_PROG(mine_undo_cwnd, struct sock *sk)
{
	return tcp_sk(sk)->snd_cwnd;
}

SEC(".struct_ops")
struct tcp_congestion_ops mine = {
	.ssthresh	= (void *)mine_ssthresh,
	.cong_avoid	= (void *)mine_cong_avoid,
	.undo_cwnd	= (void *)mine_undo_cwnd,
	.name		= "bpf_mine",
};
"""
EXAMPLES = Path(__file__).parents[3] / "python/elephan/examples" / "own"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with an algorithm in C and some in Python; the cache is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.c").write_text(MINE)
    (tmp_path / "mine.py").write_text(CLASSES)
    return tmp_path


def windows(run: elephan.Run) -> list[float]:
    return run.columns["flows"]["cwnd_segments"].tolist()


def refused(*cc: object, **keys: object) -> str:
    with pytest.raises(elephan.ScenarioError) as error:
        scenario(*cc, **keys)
    return str(error.value)


def built(text: str, name: str) -> Path:
    """A shared object of the user's own."""
    from elephan.foreign import build

    source = Path(f"{name}.c")
    source.write_text(text)
    command = ["cc", "-shared", "-fPIC", f"-I{build.INCLUDE}", str(source), "-o", f"{name}.so"]
    subprocess.run(command, check=True)
    return Path(f"{name}.so")


def test_a_c_file_runs_as_scalable_does_and_its_parameters_can_be_set(folder: Path):
    made = scenario("lib:./mine.c")
    assert made.document["flow"][0]["cc"] == f"lib:{folder}/mine.c"
    run = elephan.run(made)
    assert run.labels == ("lib:mine.c",)
    ours = elephan.run(scenario("scalable"))
    assert run.summary.goodput_bit_s == pytest.approx(ours.summary.goodput_bit_s, rel=0.05)
    faster = elephan.run(scenario({"name": "lib:./mine.c", "a": 0.1}))
    assert windows(faster) != windows(run)
    text = "flow.0.cc.a: expected a number from 0 to 1, found 2"
    assert text in refused({"name": "lib:./mine.c", "a": 2})
    assert 'flow.0.cc.b: expected one of the parameters a, found "b"' in refused({"name": "lib:./mine.c", "b": 2})


def test_an_object_can_be_replaced_while_the_process_lives():
    built(MINE, "other")
    before = elephan.run(scenario("lib:./other.so"))
    built(MINE.replace("* 0.875", "* 0.5"), "other")
    after = elephan.run(scenario("lib:./other.so"))
    assert windows(after) != windows(before)
    built(MINE, "other")
    assert windows(elephan.run(scenario("lib:./other.so"))) == windows(before)


def test_paths_start_from_the_scenarios_file_and_those_of_settings_from_the_current_folder(folder: Path):
    inner = folder / "inner"
    inner.mkdir()
    shutil.copy("mine.c", inner)
    text = 'duration = "5 s"\npath = { rate = "5 Mbit/s", rtt = "20 ms" }\n'
    text += 'flow = [{ cc = "lib:mine.c" }, { cc = { name = "python:mine:Aimd" } }]\n'
    (inner / "x.toml").write_text(text)
    shutil.copy("mine.py", inner)
    loaded = elephan.load(inner / "x.toml").document["flow"]
    assert loaded[0]["cc"] == f"lib:{inner}/mine.c"
    assert loaded[1]["cc"] == f"python:{inner}/mine.py:Aimd"
    settings = {"flow.0.cc": "lib:mine.c", "sweep": '{ "flow.1.cc" = ["htcp", { name = "lib:./mine.c", a = 0.5 }] }'}
    loaded = elephan.load(inner / "x.toml", settings)
    assert loaded.document["flow"][0]["cc"] == f"lib:{folder}/mine.c"
    points = [point.document["flow"][1]["cc"] for point, _ in loaded.expand()]
    assert points == ["htcp", {"name": f"lib:{folder}/mine.c", "a": 0.5}]
    changed = loaded.with_settings({"flow.1.cc.name": "lib:./mine.c"})
    assert changed.document["flow"][1]["cc"] == f"lib:{folder}/mine.c"


def test_what_has_no_model_is_told_as_that():
    with pytest.raises(elephan.ScenarioError, match=r'cc: expected one of reno, .*, found "lib:\./mine\.c"'):
        Model("lib:./mine.c")


def test_texts_that_are_no_algorithm_stay():
    made = scenario("reno", name="lib:./mine.c").document
    assert made["name"] == "lib:./mine.c"


def test_what_is_no_algorithm_is_told_by_key(folder: Path):
    assert refused("htcp", "lib:./none.so") == f"scenario: flow.1.cc: expected a file, found none at {folder}/none.so"
    (folder / "bad.c").write_text('#include "elephan-cc.h"\nint f(void) {\n\treturn missing;\n}\n')
    assert f"scenario: flow.0.cc: {folder}/bad.c:3: 'missing' undeclared" in refused("lib:./bad.c")
    assert not list((folder / "cache").rglob("bad.so"))
    built("int x;", "empty")
    expected = "expected the symbol elephan_cc (elephan-cc.h), found an object without it"
    assert refused("lib:./empty.so") == f"scenario: flow.0.cc: {folder}/empty.so: {expected}"
    for statement, found in (("abort()", "SIGABRT"), ("_exit(3)", "exit code 3")):
        constructor = f"__attribute__((constructor)) static void begin(void) {{ {statement}; }}\n"
        built(f"#include <stdlib.h>\n#include <unistd.h>\n{constructor}", "ends")
        expected = f"expected an object that opens, found {found} in its constructor"
        assert refused("lib:./ends.so") == f"scenario: flow.0.cc: {folder}/ends.so: {expected}"
    built(MINE.replace("ELEPHAN_CC_ABI,", "99,"), "newer")
    assert "ABI 1" in refused("lib:./newer.so")
    assert "expected a file, found none" in refused({"name": "bpf:./none.bpf.c"})
    (folder / "odd.bpf.c").write_text("int x;\n")
    assert 'expected "#define ALGORITHM NAME"' in refused("bpf:./odd.bpf.c")
    text = refused("lib:./none.so", "python:none:None")
    assert [line.split(": ")[1] for line in text.splitlines()] == ["flow.0.cc", "flow.1.cc"]


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("0.0 / (ack->growth - ack->growth)", "cwnd: expected 1 to 2^31 segments, found NaN"),
        ("0.5", "cwnd: expected 1 to 2^31 segments, found 0.5"),
        ("1e10", "cwnd: expected 1 to 2^31 segments, found 10000000000"),
    ],
)
def test_a_window_out_of_range_ends_the_run(what: str, text: str):
    body = f"if (ack->now_ns > 3000000000ull) {{ window->cwnd = {what}; return; }}"
    Path("wrong.c").write_text(MINE.replace("window->cwnd += window", f"{body}\n\twindow->cwnd += window", 1))
    with pytest.raises(elephan.cc.AlgorithmError, match=r"flow 2 \(lib:.*/wrong.c\) at 2.0") as error:
        elephan.run(scenario("reno", "lib:./wrong.c"))
    assert text in str(error.value)


def test_an_ebpf_file_runs_as_the_kernels_arithmetic():
    run = elephan.run(scenario(f"bpf:{KERNEL}/htcp.bpf.c"))
    assert run.labels == ("bpf:htcp.bpf.c",)
    assert run.flows.drop("label").equals(elephan.run(scenario("kernel:htcp")).flows.drop("label"))
    assert "a number from 0 to" in refused({"name": f"bpf:{KERNEL}/scalable.bpf.c", "a": -1})


def test_an_ebpf_file_in_the_form_of_the_selftests_runs(folder: Path):
    (folder / "mine.bpf.c").write_text(SELFTEST)
    run, ours = (elephan.run(scenario(cc, duration="60 s")) for cc in ("bpf:./mine.bpf.c", "reno"))
    assert run.summary.goodput_bit_s == pytest.approx(ours.summary.goodput_bit_s, rel=0.03)
    (folder / "mine.bpf.c").write_text(SELFTEST.replace("acked = tcp_slow_start", "acked = bpf_made_up"))
    assert f"{folder}/mine.bpf.c:22: " in refused("bpf:./mine.bpf.c")


def test_a_map_of_an_ebpf_file_has_nothing_of_a_socket(folder: Path):
    """As in the selftests' bpf_dctcp.c, which reads what another program may have stored."""
    sections = ("uint(type, BPF_MAP_TYPE_SK_STORAGE)", "type(key, int)", "type(value, int)")
    kept = "\n".join(["struct {", *(f"__{section};" for section in sections), '} kept SEC(".maps");', ""])
    asks = "\tif (bpf_sk_storage_get(&kept, tp, NULL, 0))\n\t\treturn;\n\tif (before("
    text = SELFTEST.replace("extern", f"{kept}extern", 1).replace("\tif (before(", asks)
    (folder / "mine.bpf.c").write_text(text)
    run, ours = (elephan.run(scenario(cc)) for cc in ("bpf:./mine.bpf.c", "reno"))
    assert run.summary.goodput_bit_s == pytest.approx(ours.summary.goodput_bit_s, rel=0.05)
    (folder / "mine.bpf.c").write_text(text.replace("NULL, 0)", "NULL, 1)"))
    assert "bpf_sk_storage_get() that stores a value is not supported" in refused("bpf:./mine.bpf.c")


def test_a_class_is_asked_once_a_round_trip():
    run = elephan.run(scenario("python:mine:Aimd", {"name": "python:mine:Aimd", "gain": 5}))
    assert run.labels == ("python:mine.py:Aimd",) * 2
    assert run.summary.utilisation > 0.7
    slow, fast = (flow.goodput_bit_s for flow in run.summary.flows)
    assert fast > 1.3 * slow
    again = elephan.run(scenario("python:mine:Aimd", {"name": "python:mine:Aimd", "gain": 5}))
    assert windows(again) == windows(run)


def test_what_a_class_raises_is_the_cause_of_the_runs_error():
    with pytest.raises(
        elephan.cc.AlgorithmError, match=r"flow 1 .* at 2.0.*on_report raised ZeroDivisionError: div"
    ) as error:
        elephan.run(scenario("python:mine:Falls", "reno"))
    assert isinstance(error.value.__cause__, ZeroDivisionError)
    line = 1 + next(number for number, text in enumerate(CLASSES.splitlines()) if "1 / 0" in text)
    assert str(error.value).endswith(f"division by zero (mine.py, line {line})")
    with pytest.raises(elephan.ScenarioError, match="TypeError: expected a Decision or None, found 7"):
        elephan.run(scenario("python:mine:Answers"))
    with pytest.raises(elephan.ScenarioError, match="cwnd: expected 1 to 2\\^31 segments, found NaN"):
        elephan.run(scenario("python:mine:Wide"))


def test_each_algorithm_is_tried_before_any_other_runs(folder: Path):
    path = {"rate": "20 Mbit/s", "rtt": "40 ms", "duration": "6 s", "repeat": 2, "start_within": "1 s"}
    shares: list[float] = []
    with pytest.raises(
        elephan.cc.AlgorithmError, match=r"on_report raised TypeError: expected a Decision or None, found 7"
    ):
        elephan.compare(cc=["reno", "python:mine:Answers"], progress=shares.append, **path)
    assert sum(shares) == 0
    # One that begins later is tried then; of a sweep whichever point has it.
    late = scenario("reno", {"name": "python:mine:Answers"}, duration="6 s").document
    late["flow"][1]["start"] = "4 s"
    late["sweep"] = {"flow.1.cc": ["htcp", "python:mine:Answers"]}
    swept = elephan.sweep(late, folder / "swept")
    with pytest.raises(elephan.cc.AlgorithmError, match=r"at 4\..*found 7"):
        swept.run()
    assert "0 of 2 runs done" in repr(elephan.sweep(late, folder / "swept"))
    assert "2 of 2 runs done, 1 failed" in repr(elephan.sweep(late, folder / "swept", isolate=True).run())


def test_runs_beside_an_algorithm_that_fails_later_are_kept(folder: Path):
    path = {"rate": "20 Mbit/s", "rtt": "40 ms", "duration": "6 s", "start_within": "1 s"}
    names = ["reno", "python:mine:Falls", "python:mine:Aimd"]
    compared = elephan.compare(cc=names, repeat=2, **path)
    assert list(compared.runs) == names[::2]
    (errors,) = compared.failed.values()
    assert [error.partition(" raised ")[2].partition(" (")[0] for error in errors] == [
        "ZeroDivisionError: division by zero"
    ] * 2
    assert "failed: python:mine:Falls" in repr(compared)
    alone = elephan.compare(cc="reno", repeat=2, **path)
    assert alone.values["reno"] == compared.values["reno"]
    with pytest.raises(elephan.cc.AlgorithmError, match=r"at 2\.0.*ZeroDivisionError"):
        elephan.compare(cc="python:mine:Falls", repeat=1, **path)
    swept = scenario("reno", duration="3 s").document | {"sweep": {"flow.cc": names[:2]}}
    (error,) = filter(None, elephan.sweep(swept, folder / "swept").run().to_polars()["error"])
    assert "Falls.on_report raised ZeroDivisionError" in error


# Errors with one text, whose deletion lets other threads run.
FAIL_AT_ONCE = """
import threading, time
import elephan

class SlowError(Exception):
    def __del__(self):
        time.sleep(0.02)

class Falls(elephan.cc.Controller):
    def on_report(self, report):
        raise SlowError("late")

if __name__ == "__main__":
    own = {"name": "own", "rate": "20 Mbit/s", "rtt": "40 ms", "duration": "1 s"}
    one = elephan.dumbbell(flows=[elephan.flow("python:mine:Falls")], **own)

    def fail():
        for _ in range(20):
            try:
                elephan.run(one)
            except elephan.cc.AlgorithmError:
                pass

    threads = [threading.Thread(target=fail) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("ended")
"""


def test_runs_that_fail_at_once_do_not_wait_for_each_other(folder: Path):
    (folder / "mine.py").write_text(FAIL_AT_ONCE)
    done = subprocess.run([sys.executable, "mine.py"], check=False, capture_output=True, text=True, timeout=300)
    assert done.stdout == "ended\n", done.stderr


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("event.rtt_mean_s", "AttributeError: Report has no 'rtt_mean_s'; did you mean 'rtt_s'?"),
        ("event.losses", "AttributeError: Report has no 'losses'; did you mean 'lost_segments'?"),
        (
            "event.rate",
            "AttributeError: Report has no 'rate'; did you mean 'delivery_rate_bit_s' or 'pacing_rate_bit_s'?",
        ),
        ("event.ecn", "AttributeError: Report has no 'ecn'; it has cwnd_segments, delivered_segments, "),
        ("self.gian", "AttributeError: Mine has no 'gian'; did you mean 'gain'?"),
        ("None.x", "AttributeError: 'NoneType' object has no attribute 'x'"),
        ("Decision(cwnd=1)", "TypeError: Decision has no 'cwnd'; did you mean 'cwnd_segments'?"),
    ],
)
def test_a_wrong_attribute_says_what_may_be_meant(folder: Path, wrong: str, told: str):
    text = (
        f"from elephan.cc import *\nclass Mine(Controller):\n\tgain = 1\n\tdef on_report(self, event):\n\t\t{wrong}\n"
    )
    (folder / "wrong.py").write_text(text)
    with pytest.raises(elephan.cc.AlgorithmError) as error:
        elephan.run(scenario("python:wrong:Mine"))
    assert f": python:wrong.py:Mine.on_report raised {told}" in str(error.value)
    assert str(error.value).endswith(" (wrong.py, line 5)")


def test_the_page_has_every_field_of_the_classes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(KERNEL.parent / "scripts" / "docs")
    page = import_module("pages").fields_of_classes()
    classes = (elephan.cc.Report, elephan.cc.Loss, elephan.cc.Decision)
    listed = [re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE) for part in page.split("**`")[1:]]
    assert [sorted(part) for part in listed] == [[key for key in dir(one) if key[0] != "_"] for one in classes]
    assert "| `rtt_s` | `float \\| None` | s | Mean of the round-trip times" in page
    assert "| `state` | `str` |  | State of the sender" in page


def test_the_example_keeps_its_queue():
    run = elephan.run(scenario(f"python:{EXAMPLES}/delay.py:Delay", duration="30 s", measure={"from": "10 s"}))
    assert run.summary.loss_rate == 0
    assert 0.002 < run.summary.queue_delay_mean_s < 0.007


def test_a_class_that_cannot_be_had_is_told(folder: Path):
    assert "expected a subclass of elephan.cc.Controller called None" in refused("python:mine:None")
    assert "expected a module that can be imported, found no_such_module" in refused("python:no_such_module:Mine")
    assert "expected python:MODULE:CLASS" in refused("python:mine")
    (folder / "broken.py").write_text("x = 1\ny = 1 / 0\n")
    assert f"{folder}/broken.py:2: expected a module that can be imported, found ZeroDivisionError" in refused(
        "python:broken:Mine"
    )
    (folder / "ends.py").write_text("raise SystemExit(3)\n")
    assert "expected a module that can be imported, found SystemExit: 3" in refused("python:ends:Mine")


@pytest.mark.parametrize("name", ["python:mine:Aimd", "python:installed.mine:Aimd"])
def test_a_file_that_was_edited_is_imported_again(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    monkeypatch.syspath_prepend(folder / "site")
    (folder / "site" / "installed").mkdir(parents=True)
    files = [folder / "mine.py", folder / "site" / "installed" / "mine.py"]
    shutil.copy(*files)
    before = elephan.run(scenario(name))
    for file in files:
        file.write_text(CLASSES.replace("+ self.gain", "+ 10 * self.gain"))
    assert windows(elephan.run(scenario(name))) != windows(before)


def test_results_are_shown_where_their_algorithm_is_not_registered(folder: Path):
    change = {"at": "1 s", "link": "bottleneck", "rate": "10 Mbit/s"}
    elephan.run(scenario("lib:./mine.c", duration="2 s", event=[change])).save(folder / "run")
    work = "import elephan; from elephan.api import tables; from elephan.api.pictures.marks import marks; "
    work += (
        "run = elephan.Run.load('run'); print(run.scenario.changes, [t.title for t in tables.of_run(run)], marks(run))"
    )
    shown = subprocess.run([sys.executable, "-c", work], capture_output=True, text=True, check=True).stdout
    assert "'at_s': 1.0" in shown
    assert "What holds when" in shown
    assert "10 Mbit/s" in shown


def test_a_compiled_class_does_what_the_same_in_c_does(folder: Path):
    example = (EXAMPLES / "compiled.py").read_text()
    (folder / "fast.py").write_text(example)
    assert windows(elephan.run(scenario("python:fast:Scalable"))) == windows(elephan.run(scenario("lib:./mine.c")))
    wrong = {
        "ack.growth()": "what numba can compile, found: ",
        "ack.grow": "growth, or another of",
        "ack.x": "one of a, seed, cwnd, ",
    }
    for number, (text, expected) in enumerate(wrong.items()):
        (folder / f"odd{number}.py").write_text(example.replace("ack.growth", text))
        assert f"Scalable.on_ack: expected {expected}" in refused(f"python:odd{number}:Scalable")


def test_a_compiled_class_has_rates_if_it_asks_for_them(folder: Path):
    example = (EXAMPLES / "compiled.py").read_text()
    text = example.replace("window.cwnd += ack.growth", "window.cwnd = 20 if ack.rate.interval_ns > 0 else 5")
    for name, flags, window in (("with_rates", 2, 20), ("without", 0, 5)):
        (folder / f"{name}.py").write_text(text.replace("    source", f"    flags = {flags}\n    source"))
        assert windows(elephan.run(scenario(f"python:{name}:Scalable")))[-1] == window


def test_the_structures_of_compiled_classes_are_those_of_the_header(folder: Path):
    from elephan.foreign import build, compiled

    members = [("window", one) for one in compiled.WINDOW.names] + [("ack", one) for one in compiled.ACK.names]
    members += [("rate", one) for one in compiled.RATE.names]
    lines = [f'printf("%zu ", offsetof(struct elephan_cc_{kind}, {name}));' for kind, name in members]
    headers = "".join(f"#include {name}\n" for name in ("<stddef.h>", "<stdio.h>", '"elephan-cc.h"'))
    text = f"{headers}int main(void) {{ {''.join(lines)} return 0; }}\n"
    (folder / "offsets.c").write_text(text)
    subprocess.run(["cc", f"-I{build.INCLUDE}", "offsets.c", "-o", "offsets"], check=True)
    found = subprocess.run(["./offsets"], check=True, capture_output=True, text=True).stdout
    kinds = {"window": compiled.WINDOW, "ack": compiled.ACK, "rate": compiled.RATE}
    assert [int(one) for one in found.split()] == [kinds[kind].fields[name][1] for kind, name in members]


def test_the_key_of_a_stored_run_has_the_digest_of_the_algorithm(folder: Path):
    def key() -> str:
        text = scenario("lib:./mine.c").canonical(0, 0)
        return identity(text, code_version())

    before = key()
    assert key() == before
    (folder / "mine.c").write_text(MINE.replace("* 0.875", "* 0.5"))
    assert key() != before
    (folder / "mine.c").write_text(MINE)
    assert key() == before


def test_files_that_a_class_reads_are_part_of_it(folder: Path):
    (folder / "mine.py").write_text(CLASSES + '\n    files = ("gain.txt",)\n')
    assert f"Wide.files: expected a file, found none at {folder}/gain.txt" in refused("python:mine:Wide")

    def key(text: str) -> str:
        (folder / "gain.txt").write_text(text)
        return identity(scenario("python:mine:Wide").canonical(0, 0), code_version())

    keys = [key(text) for text in ("1", "2", "1")]
    assert keys[0] == keys[2] != keys[1]


def test_a_worker_registers_what_a_scenario_names():
    text = scenario("lib:./mine.c", "python:mine:Aimd").canonical(0, 0)
    code = code_version()
    work = "import json, sys; from elephan.studies.sweeps.worker import compute; "
    work += "print(compute([tuple(json.loads(sys.argv[1]))], sys.argv[2]).rows[0]['status'])"

    def worker(key: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", work, json.dumps([key, text]), code]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)

    assert worker(identity(text, code)).stdout == "ok\n"
    assert "VersionMismatchError: expected the algorithms that the client has" in worker("0" * 32).stderr
    with pytest.raises(VersionMismatchError):
        compute([("0" * 32, text)], code)


def test_names_of_linux_mean_the_kernels_own_on_a_kernel(folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder / "tcp_mine.c").write_text("int x;\n")
    assert "expected a module that calls" in refused("linux:./tcp_mine.c", engine="kernel")
    monkeypatch.setattr(names, "register", pytest.fail)
    monkeypatch.setattr(names, "kernel_has", lambda name: name in ("brand_new", "bbr"))
    scenario("linux:bbr", engine="kernel")
    scenario("linux:bbr", "linux:brand_new", engine="linux")
    assert 'found "linux:older"' in refused("linux:older", engine="linux")


def test_linux_without_a_source_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch):
    from elephan.foreign import modules

    monkeypatch.setattr(modules, "module", lambda _: None)
    text = "imported source of Linux (apt-get install linux-source-6.1; elephan cc import PATH)"
    assert text in refused("linux:yeah")
    assert text in refused("linux:tahoe")


def test_documents_of_others_can_name_none():
    def lines(cc: str, engine: str) -> list[str]:
        return [*names.refused({"flow": [{"cc": "htcp"}, {"cc": {"name": cc}}]}, engine=engine)]

    for name in ("lib:./mine.c", "bpf:/a.bpf.c", "python:os:system", "linux:bbr", "linux:./tcp_mine.c"):
        found = lines(name, "sim")
        expected = f'flow.1.cc: expected an algorithm of Elephan on this page, found "{name}"; use the command line'
        assert found == [expected]
    assert lines("linux:bbr", "kernel") == []
    assert lines("linux:./tcp_mine.c", "kernel") != []


def test_the_command_shows_parameters_and_the_folder_of_the_header():
    def called(*words: str) -> str:
        done = CliRunner().invoke(app, ["cc", *words])
        return str(done.exception) if done.exception else done.output

    assert "Increase for each segment." in called("show", "lib:./mine.c")
    assert "Additive increase" in called("show", "python:mine:Aimd")
    assert "cc: expected a file" in called("show", "lib:./none.so")
    assert Path(called("include").strip(), "elephan-cc.h").is_file()


def test_a_comparison_names_files_without_their_folders():
    found = elephan.compare(
        cc=["reno", "lib:./mine.c"], rate="5 Mbit/s", rtt="20 ms", flows=1, duration="5 s", repeat=1
    )
    assert [row[0] for row in found.table().rows] == ["reno", "lib:mine.c"]

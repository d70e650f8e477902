"""Wrong input to every command: exit code 2, and a line that names what was typed.

`pytest --snapshot-update` writes the lines of new cases, and those that were changed on purpose, to `__snapshots__`.
"""

import os
import subprocess
import sys
from itertools import chain
from pathlib import Path
from unittest import mock

import pytest
from command_line import shown, typed

from elephan import cli
from elephan.cli import BELOW, GROUPS

LINES = [
    "run none.toml",
    "run /dev/zero",
    "run folder.toml",
    "run ok.toml --seed x",
    "run ok.toml --threads -1",
    "run ok.toml --sed 3",
    "run ok.toml --out ok.toml",
    "run ok.toml --out ok.toml/x",
    "compare --cc ,",
    "compare --cc renoo",
    "run ok.toml --columns goodputt",
    "path recommend --size 1TB",
    "path recommend --size 1TB --rate 1Gbit/s",
    "path recommend --size 1TB --rate x --rtt 1ms",
    "path recommend --size 1TB --rate 1Gbit/s --rtt 120",
    "path recommend --size 1TB --rate 1Gbit/s --rtt 120ms --buffer 500",
    "path recommend --size 1TB --rate 1Gbit/s --rtt 120ms --loss 2",
    "path recommend --size 1TB --rate 1Gbit/s --rtt 120ms --cc ,",
    "path recommend --size 1TB --rate 1Gbit/s --rtt 120ms --cc renoo",
    "path recommend --path ok.toml --size 1TB --rate 1Gbit/s",
    "path recommend --path path.toml --size 1TB",
    "path recommend --path ok.toml --size 7",
    "path recommend --path ok.toml --size '7 s'",
    "path recommend --path ok.toml",
    "path recommend --path ok.toml --size 1GB --streams 0",
    "path recommend --path ok.toml --size 1GB --streams x",
    "path recommend --path ok.toml --size 1GB --cc renoo",
    "model rank --cc reno,bbr",
    "model rank --cc ,",
    "model rank --rate x",
    "model rank --rate 10Gbit/s --rtt 150ms",
    "model rank --rtt 120",
    "model rank --buffer 500",
    "model rank --duration 600",
    "model rank --weight fairness",
    "model rank --columns scor",
    "compare --columns goodputt",
    "compare --rtt 5",
    "compare none.toml",
    "compare none.toml --engines sim,kernel",
    "compare ok.toml --engines sim",
    "compare ok.toml --engines kernel,sim",
    "compare ok.toml --engines sim,kernel --against cubic",
    "compare ok.toml --engines sim,kernel --repeat 2",
    "compare ok.toml ok.toml",
    "compare ok.toml --flows 3",
    "compare ok.toml --set path.rates=1Gbit/s",
    "compare --cc mine=renoo",
    "sweep ok.toml --until x",
    "check ok.toml",
    "check empty",
    "check ok.toml --budget soon",
    "check ok.toml --engine sin",
    "check ok.toml --against empty",
    "sweep table none",
    "sweep table empty",
    "sweep table ok.toml",
    "sweep paired empty --between cc=a,b",
    "sweep query ok.toml",
    "path probe client host",
    "path host --rate x --rtt 1ms",
    "path host --rate 10Gbit/s",
    "path host --rate '0 bit/s' --rtt 1ms",
    "path host --rate 1Gbit/s --rtt 1Gbit/s",
    "path transfer send ok.toml localhost",
    "path transfer send localhost --token el1_x",
    "path transfer send ok.toml localhost --token el1_x",
    "path transfer send localhost --token el1_x --memory '10 packets'",
    "path transfer send localhost --token el1_x --memory 1MB --pace fast",
    "path transfer send localhost --token el1_x --memory 1MB --pace 7bit/s",
    "path watch --interval 0s true",
    "path watch --out ok.toml true",
    "path fit none --out f",
    "path emulate none.toml",
    "model fairness --cc renoo",
    "model response",
    "model response --cc renoo --loss 1e-5",
    "model response --cc , --loss 1e-5",
    "model response --loss -1",
    "model response --loss 1e-5,2",
    "model response --loss nan",
    "model response --loss x",
    "model response --loss 1e-5 --rtt 100",
    "model response --loss 1e-5 --rtt 0ms",
    "model response --rate 1000",
    "model response --rate 1kbit/s",
    "model recovery --window 0",
    "model recovery --window inf",
    "model recovery --rate 1Gbit",
    "model fairness --loss 0",
    "model fairness --rtt 1",
    "model utilisation --beta 2",
    "model utilisation --buffer -1",
    "model stability --buffer 0",
    "model stability --a -1",
    "model stability --b 2",
    "model stability --queue red",
    "model plot response --figure li-7",
    "model plot response --cc vegas --points 0",
    "model plot response --most 5",
    "model plot response --out none/x.png",
    "model agreement --flows 1 --rtts 10ms,20ms",
    "model agreement --rtts 5",
    "model recovery --window 9 --rate 1Gbit/s",
    "model plot response --out x.xyz",
    "reproduce kelly",
    "kernel load renoo",
    "kernel build none",
    "packetdrill empty",
    "packetdrill slow-strat",
    "packetdrill none.pkt",
    "plot cwnd empty",
    "report empty",
    "ui --results ok.toml",
    "scenario check folder.toml",
    "scenario chek ok.toml",
    "cc show renoo",
    "queue show redd",
    "new",
    "doctor --format text",
    "cite warp",
    "runn",
    "run ok.toml --set path.rtt",
    "run ok.toml --set path.rtt=5",
    "scenario check ok.toml --set path.rtt=5",
    "run ok.toml --set flow.0.cc=warp",
    "run ok.toml --set flow.0.cwnd=5",
    "run ok.toml --trace all",
    "run ok.toml --pcap x",
    "run ok.toml --colour",
    "compare --cc warp",
    "compare --rate fast",
    "compare --against renoo",
    "compare --cc reno --duration 20s",
    "compare --duration 20",
    "cc show warp",
    "queue show warp",
    "run ok.toml --set \"path.queue={ name = 'red', min_th = 9, max_th = 5 }\"",
    "plot cwnd nowhere",
    "run ok.toml --set measure.interval=1ps",
    "sweep ok.toml --set sweep.repeat=10000000",
    "compare --rate '900 Tbit/s' --rtt '1 us'",
    "scenario check celular",
    "run ok.toml --engine model --threads 2",
    "queue list --format markdown",
    "cc",
]


def test_every_command_has_a_case():
    names = {
        *chain(*GROUPS.values()),
        *(f"{group} {name}" for group in BELOW for name in BELOW[group] if name != "run"),
    }
    assert [name for name in names if not any(line.startswith(name) for line in LINES)] == []


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("table none", "sweep table none"),
        ("host --rate x", "path host --rate x"),
        ("compare-engines none.toml", "compare --engines sim,kernel none.toml"),
    ],
)
def test_a_name_from_before_there_were_groups_works_and_names_the_one_of_today(before: str, now: str):
    old, new = typed(before), typed(now)
    line, _, rest = old.stderr.partition("\n")
    name, _, words = before.partition(" ")
    assert line == f"{name} is now `elephan {now.removesuffix(words).strip()}`"
    assert (old.returncode, old.stdout, rest) == (new.returncode, new.stdout, new.stderr)


@pytest.mark.parametrize("line", LINES)
def test_wrong_input_is_named_with_exit_code_2(line: str, tmp_path: Path, monkeypatch, snapshot):
    for name in ("empty", "folder.toml"):
        (tmp_path / name).mkdir()
    (tmp_path / "ok.toml").write_text(
        'duration = "3 s"\npath = { rate = "10 Mbit/s", rtt = "20 ms" }\nflow = [{ cc = "reno" }]\n'
    )
    monkeypatch.delenv("ELEPHAN_TOKEN", raising=False)
    done = typed(line, tmp_path)
    assert done.returncode == 2
    assert shown(done.stderr, tmp_path) == snapshot
    assert not list(tmp_path.glob("results/*"))


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (MemoryError(), "elephan: expected more memory, found none left"),
        (ImportError("a.so: failed to map segment", name="a", path="/a.so"), "a.so: failed to map segment"),
    ],
)
def test_a_lack_of_memory_is_one_line(error: Exception, line: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cli, "app", mock.Mock(side_effect=error))
    done = typed("run two-flows")
    assert (done.returncode, done.stderr) == (1, f"{line}\n")


def test_a_locale_without_utf_8_is_none_of_a_files_name(tmp_path: Path):
    (tmp_path / "ü.toml").write_text('duration = "1"\n')
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-c", "from elephan.cli import main; main()", "run", "ü.toml"]
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, **plain}, capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr.decode().startswith(r"\xfc.toml: duration: expected")

"""Wrong input to every command: exit code 2, and a line that names what was typed."""

import shlex
from pathlib import Path

import pytest

from elephan import cli
from elephan.cli import COMMANDS, signals

CASES = {
    "run none.toml": "none.toml: expected a file, found none",
    "run folder.toml": "folder.toml: expected a file, found a folder",
    "run ok.toml --seed x": "--seed: expected a whole number, found 'x'",
    "run ok.toml --threads -1": "--threads: expected at least 0, found '-1'",
    "run ok.toml --sed 3": "No such option: --sed (Possible options: --seed, --set)",
    "run ok.toml --out ok.toml": "ok.toml: expected a new folder, or one of results",
    "run ok.toml --out ok.toml/x": "ok.toml: expected a folder, found a file",
    "compare --cc ,": "--cc: expected algorithms separated by commas, found ','",
    "compare --cc renoo": "--cc: expected reno",
    "run ok.toml --columns goodputt": "--columns: expected goodput",
    "recommend --path path.toml --size 1TB --columns score": "--columns: expected none with --path, found 'score'",
    "recommend --path path.toml --size 1TB --repeat 3": "--repeat: expected none with --path, found 3",
    "recommend --streams 4": "--streams: expected --path with it, found none",
    "recommend --columns scor": "--columns: expected score",
    "compare --columns goodputt": "--columns: expected goodput",
    "compare --rtt 5": '--rtt: expected a time such as "82 ms", found "5"',
    "compare-engines none.toml": "none.toml: expected a file, found none",
    "sweep ok.toml --until x": '--until: expected a condition such as "ci(fairness) < 5%", found "x"',
    "table none": "none: expected the folder of a sweep with sweep.json, found none",
    "table empty": "empty: expected the folder of a sweep with sweep.json, found none",
    "table ok.toml": "ok.toml: expected the folder of a sweep with sweep.json, found none",
    "paired empty --between cc=a,b": "empty: expected the folder of a sweep with sweep.json, found none",
    "query ok.toml": "ok.toml: expected the folder of a sweep with sweep.json, found none",
    "probe client host": "--token: expected the token that the server printed",
    "host --rate x --rtt 1ms": 'expected a rate above zero such as 500Mbit/s, found "x"',
    "recommend --rate x": '--rate: expected a rate such as "250 Mbit/s", found "x"',
    "transfer send ok.toml localhost": "--token: expected the token that the receiver printed",
    "fit none --out f": "none: expected a file, found none",
    "emulate none.toml": "none.toml: expected a file, found none",
    "model fairness --cc renoo": "--cc: expected reno",
    "model response": "--loss: expected this or --rate, found neither",
    "model recovery --window 9 --rate 1Gbit/s": "--window: expected this or --rate, found both",
    "model plot response --out x.xyz": "--out: expected a name that ends in one of",
    "reproduce kelly": "such as kelly2003",
    "kernel load renoo": "kernel: expected reno",
    "kernel build none": "none: expected a kernel's tree",
    "packetdrill empty": "empty: expected scripts (*.pkt) in this folder, found none",
    "packetdrill slow-strat": "slow-strat: expected a script, a folder, or a script that comes with Elephan: slow-start",
    "packetdrill none.pkt": "none.pkt: expected a file, found none",
    "plot cwnd empty": "empty: expected",
    "report empty": "empty: expected the results of a run",
    "ui --results ok.toml": "--results: expected a folder, found the file ok.toml",
    "scenario check folder.toml": "folder.toml: expected a file, found a folder",
    "scenario chek ok.toml": "No such command 'chek'. Did you mean 'check'",
    "cc show renoo": "cc: expected reno",
    "queue show redd": "queue: expected",
    "new": "",
    "doctor --format text": "--format: expected one of table, csv, json, md, latex, found 'text'",
    "runn": "No such command 'runn'. Did you mean 'run'?",
}


def test_every_command_has_a_case():
    assert {line.split()[0] for line in CASES} >= COMMANDS.keys()


@pytest.mark.parametrize("line", CASES)
def test_wrong_input_is_named_with_exit_code_2(line: str, tmp_path: Path, monkeypatch, capsys):
    for name in ("empty", "folder.toml"):
        (tmp_path / name).mkdir()
    (tmp_path / "ok.toml").write_text(
        'duration = "3 s"\npath = { rate = "10 Mbit/s", rtt = "20 ms" }\nflow = [{ cc = "reno" }]\n'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(signals, "heed", lambda: None)
    monkeypatch.delenv("ELEPHAN_TOKEN", raising=False)
    monkeypatch.setattr("sys.argv", ["elephan", *shlex.split(line)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 2
    assert CASES[line] in capsys.readouterr().err
    assert not list(tmp_path.glob("results/*"))

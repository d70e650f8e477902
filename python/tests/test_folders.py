"""Only Elephan's own files are touched: what is replaced, what is refused, and what is removed."""

import fcntl
import json
import multiprocessing
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from command_line import call, typed
from kills import any_step, killed_at
from sweep_scenarios import SMALL, file_of, small

import elephan
from elephan.api.run import Run
from elephan.base import folders
from elephan.base.text import file_names
from elephan.studies import lab
from elephan.studies.reproduce.lab import Lab

ONE = """
duration = "1 s"
path = { rate = "10 Mbit/s", rtt = "20 ms", buffer = "20 packets" }
flow = [{ cc = "reno" }]
"""


def refused(done: subprocess.CompletedProcess[str], *found: str, code: int = 2) -> None:
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    for text in found:
        assert text in done.stderr


def tree(folder: Path) -> dict[str, bytes | str]:
    """Everything below a folder, with its content."""
    return {
        path.relative_to(folder).as_posix(): path.readlink().as_posix() if path.is_symlink() else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def temporary(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(".elephan-*") if path.name != folders.LOCK]


@pytest.fixture(scope="module")
def made() -> Run:
    return elephan.run(elephan.dumbbell(rate="10 Mbit/s", rtt="20 ms", flows=[elephan.flow("reno")], duration="1 s"))


@pytest.fixture
def one(tmp_path: Path) -> Path:
    path = tmp_path / "one.toml"
    path.write_text(ONE)
    return path


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    return file_of(tmp_path, SMALL)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder of the user."""
    place = tmp_path / "project"
    (place / "thesis" / "sub").mkdir(parents=True)
    (place / "flows").mkdir()
    (place / "thesis" / "sub" / "draft.tmp").write_text("chapter 1")
    (place / "flows" / "part-000001.parquet").write_text("mine")
    (place / "notes.txt").write_text("mine")
    return place


# Sweeps.


@pytest.mark.parametrize("out", [".", "thesis", "notes.txt"])
def test_a_sweep_refuses_what_is_not_its_own(out: str, project: Path, grid: Path):
    before = tree(project)
    found = {".": "found flows", "thesis": "found sub", "notes.txt": "found a file"}[out]
    refused(call("sweep", grid, "--out", out, cwd=project), out, "expected an empty folder or that of a sweep", found)
    assert tree(project) == before


def test_a_sweep_refuses_results_of_a_run(made: Run, grid: Path, tmp_path: Path):
    made.save(tmp_path / "out")
    refused(call("sweep", grid, "--out", tmp_path / "out"), "found flows.parquet")


def test_a_sweep_takes_an_empty_folder_and_its_own(tmp_path: Path):
    out = tmp_path / "out"
    out.mkdir()
    elephan.sweep(small(), out).run()
    mine = out / "thesis" / "draft.tmp"
    mine.parent.mkdir()
    for path in (mine, out / "notes.tmp", out / "flows" / "part-abc.parquet", out / "flows" / ".elephan-notes"):
        path.write_text("mine")
    sweep = elephan.sweep(small(), out).run()
    assert (sweep.done, sweep.reused) == (12, 12)
    for path in (mine, out / "notes.tmp", out / "flows" / "part-abc.parquet", out / "flows" / ".elephan-notes"):
        assert path.read_text() == "mine"


def test_a_document_of_another_kind_is_none_of_a_sweep(tmp_path: Path, grid: Path):
    out = tmp_path / "out"
    out.mkdir()
    for text, found in (
        ("[]", "found a list"),
        ("{", "expected JSON, found"),
        ("{}", "expected name as a sweep writes it"),
    ):
        (out / "sweep.json").write_text(text)
        refused(call("sweep", grid, "--out", out), "sweep.json", found)
        between = ["--between", "flow.cc=reno,htcp"]
        for command in (
            ["sweep", "table", out],
            ["sweep", "query", out],
            ["sweep", "paired", out, *between],
            ["report", out],
        ):
            done = call(*command)
            assert done.returncode in (1, 2)
            assert "Traceback" not in done.stderr
            assert len(done.stderr.strip().splitlines()) == 1
            assert "sweep.json" in done.stderr
    assert [path.name for path in out.iterdir()] == ["sweep.json"]


@pytest.mark.parametrize("name", ["../../escaped", "/tmp/escaped", "..", ".", "a/b", "x" * 5000, "ø" * 300, "\\u0000"])
def test_a_name_never_leads_out_of_the_results(name: str, tmp_path: Path):
    place = tmp_path / "a" / "b"
    place.mkdir(parents=True)
    for command, text in (("run", ONE), ("sweep", SMALL.replace('name = "small"', ""))):
        (place / "s.toml").write_text(f'name = "{name}"\n{text}')
        done = call(command, "s.toml", cwd=place)
        assert done.returncode in (0, 2), done.stderr
        assert "Traceback" not in done.stderr
        assert {path.name for path in place.iterdir()} <= {"s.toml", "results"}
        assert [path.name for path in tmp_path.iterdir()] == ["a"]
        for path in (place / "results").glob("*"):
            folders.shutil.rmtree(path)


def test_links_with_like_names_have_files_of_their_own():
    assert file_names(["a b", "a-b", "a/b"]) == {"a b": "a-b", "a-b": "a-b-2", "a/b": "a-b-3"}


# Results of runs.


def test_force_replaces_results(made: Run, tmp_path: Path):
    out = tmp_path / "out"
    made.save(out)
    before = (out / "run.json").stat().st_ino
    with pytest.raises(FileExistsError, match=r"found one with results; --force replaces it"):
        made.save(out)
    assert (out / "run.json").stat().st_ino == before
    made.save(out, force=True)
    assert (out / "run.json").stat().st_ino != before
    assert Run.load(out).summary == made.summary
    assert not temporary(tmp_path)


def test_everything_that_commands_write_is_known(one: Path, tmp_path: Path):
    out = tmp_path / "out"
    assert call("run", one, "--out", out, "--trace", "events", "--pcap", "bottleneck").returncode == 0
    for what in ("cwnd", "goodput", "srtt", "queue"):
        assert call("plot", what, out).returncode == 0
    for kind in ("html", "md", "png", "svg", "pdf"):
        assert call("report", out, "--format", kind).returncode == 0
    done = call("run", one, "--out", out, "--force")
    assert done.returncode == 0, done.stderr
    assert not (out / "events.parquet").exists()
    both = tmp_path / "both"
    for more in ("", "--force"):
        done = typed(f"compare --cc reno,htcp --duration 30s --repeat 1 --rate 5Mbit/s --out {both} {more}")
        assert done.returncode == 0, done.stderr
        assert call("report", both).returncode == 0
    assert not temporary(tmp_path)


@pytest.mark.parametrize("name", ["notes.txt", "sub/notes.txt", "mine.parquet", "sub/run.json", "link"])
def test_force_never_loses_a_file_of_others(name: str, made: Run, tmp_path: Path):
    out = tmp_path / "out"
    made.save(out)
    path = out / name
    path.parent.mkdir(exist_ok=True)
    path.symlink_to("/etc") if name == "link" else path.write_text("mine")
    before = tree(out)
    with pytest.raises(FileExistsError, match=f"found {name.partition('/')[0]} in it, which Elephan did not write"):
        made.save(out, force=True)
    assert tree(out) == before
    assert not temporary(tmp_path)


def test_force_replaces_nothing_else(
    made: Run, one: Path, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    made.save(tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "dangling").symlink_to("nowhere")
    elephan.sweep(small(), tmp_path / "sweep").run()
    made.save(tmp_path / "damaged")
    (tmp_path / "damaged" / "run.json").write_text("{}")
    made.save(tmp_path / "home" / "results")
    monkeypatch.setenv("HOME", str(tmp_path / "home" / "results"))
    before = tree(tmp_path)
    for out, found in {
        tmp_path / "project": "found flows in it",
        tmp_path / "project" / "notes.txt": "found a file",
        tmp_path / "link": "found a symbolic link",
        tmp_path / "dangling": "found a symbolic link",
        tmp_path / "sweep": "found the folder of a sweep, which is never replaced",
        tmp_path / "damaged": "run.json: expected scenario as a run writes it",
        tmp_path / "home": "found a folder that contains the home directory",
        tmp_path / "home" / "results": "found the home directory",
        Path("/"): "found a folder that contains the current directory",
        tmp_path / "real" / "flows.parquet" / "x": "flows.parquet: expected a folder, found a file",
    }.items():
        for force in ([], ["--force"]):
            done = call("run", one, "--out", out, *force)
            assert done.returncode in (1, 2)
            assert len(done.stderr.strip().splitlines()) == 1, done.stderr
            assert found in done.stderr
    for here, out in (
        (tmp_path / "real", "."),
        (tmp_path / "real", "../real"),
        (tmp_path / "project" / "thesis", ".."),
    ):
        refused(call("run", one, "--out", out, "--force", cwd=here), "the current directory")
    refused(call("run", one, "--out", ".", cwd=project), "the current directory")
    assert tree(tmp_path) == before
    assert not temporary(tmp_path)


def test_an_empty_folder_is_as_good_as_none(made: Run, tmp_path: Path):
    (tmp_path / "out").mkdir()
    made.save(tmp_path / "out")
    assert Run.load(tmp_path / "out").summary == made.summary


def test_nothing_was_written_is_said_where_it_is_true(made: Run, tmp_path: Path):
    made.save(tmp_path / "out")
    before = tree(tmp_path)

    def work() -> None:
        with folders.new_folder(tmp_path / "out", force=True) as place:
            (place / "half").write_text("half")
            raise OSError(28, "full")

    with pytest.raises(OSError, match="full") as caught:
        work()
    assert caught.value.__notes__ == [f"nothing was written to {tmp_path / 'out'}"]
    assert tree(tmp_path) == before


def test_the_old_results_stay_until_the_new_are_whole(made: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A kill at any of the steps in which the new folder replaces the old one."""
    out = tmp_path / "out"
    steps = 0
    for stop in range(1, 40):
        made.save(out, force=out.exists())
        (out / "cwnd.png").write_text("old")
        steps = killed_at(stop, lambda: made.save(out, force=True), monkeypatch)
        left = temporary(tmp_path)
        whole = [path for path in (out, *(p / name for p in left for name in ("old", "new"))) if path.exists()]
        assert any(Run.load(path) for path in whole if (path / "summary.json").exists()), stop
        # The next command that writes beside it repairs it.
        made.save(tmp_path / "other", force=True)
        assert Run.load(out).summary == made.summary
        assert not temporary(tmp_path)
        if steps < stop:
            break
    else:
        raise AssertionError("it never ended")
    assert steps > 8


def _shows(name: str, path: object) -> bool:
    """Whether a disk operation gives a file its name or takes it away, beside what is temporary."""
    return name == "rename" or (name in ("unlink", "rmdir") and ".elephan-" not in str(path))


# All of them take a quarter of a minute.
kills = pytest.mark.parametrize("counts", [_shows, pytest.param(any_step, marks=pytest.mark.slow)])


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run of a sweep is written at once, as a part."""
    monkeypatch.setattr("elephan.studies.sweeps.loop.FLUSH_S", 0.0)
    monkeypatch.setattr("elephan.studies.sweeps.batches.BATCH_S", 0.0)


@kills
@pytest.mark.usefixtures("at_once")
def test_a_sweep_that_is_killed_at_any_step_goes_on(
    counts: Callable[[str, object], bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """What the index has before a kill is reused, and the whole sweep is the same."""
    text = SMALL.replace('"flow.cc" = ["reno", "htcp"]\nrepeat = 2\n', "")
    (tmp_path / "three.toml").write_text(text)
    scenario = elephan.load(tmp_path / "three.toml")
    assert elephan.sweep(scenario, tmp_path / "whole", workers=1).run().done == 3
    summaries = elephan.Dataset(tmp_path / "whole").index(long=True).sort("run")["summary"]
    reused: set[int] = set()
    for stop in range(1, 400):
        out = tmp_path / str(stop)
        steps = killed_at(stop, lambda out=out: elephan.sweep(scenario, out, workers=1).run(), monkeypatch, counts)
        known = 0
        if (out / "sweep.json").exists():
            data = elephan.Dataset(out)
            assert data.losses() == []
            known = data.index().height
        sweep = elephan.sweep(scenario, out, workers=1).run()
        assert (sweep.done, sweep.reused, sweep.failed, sweep.losses) == (3, known, 0, []), stop
        again = elephan.Dataset(out)
        assert again.index(long=True).sort("run")["summary"].equals(summaries)
        assert again.losses() == []
        assert not temporary(out)
        reused.add(known)
        if steps < stop:
            break
    else:
        raise AssertionError("it never ended")
    assert reused == {0, 1, 2, 3}


@kills
def test_a_reproduction_that_is_killed_at_any_step_goes_on(
    counts: Callable[[str, object], bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """What its store has is whole, and is not run again."""
    monkeypatch.setattr(lab, "core_count", lambda: 1)
    keys = {"rate": "10 Mbit/s", "rtt": "20 ms", "flows": [elephan.flow("reno")], "duration": "1 s"}
    scenarios = [elephan.dumbbell(**keys, seed=seed) for seed in (1, 2)]
    whole = [run.summary for run in Lab(tmp_path / "whole").run(scenarios)]
    reused: set[int] = set()
    for stop in range(1, 400):
        store = tmp_path / str(stop)
        steps = killed_at(stop, lambda store=store: Lab(store).run(scenarios), monkeypatch, counts)
        known = [path for path in store.glob("*") if not path.name.startswith(".")]
        assert all(Run.load(path).summary in whole for path in known), stop
        again = Lab(store)
        assert [run.summary for run in again.run(scenarios)] == whole
        # A run that was whole and had no name yet may get it now.
        assert again.made <= 2 - len(known)
        # As the next command that writes there does.
        folders.clear(store)
        assert not temporary(store)
        reused.add(2 - again.made)
        if steps < stop:
            break
    else:
        raise AssertionError("it never ended")
    assert reused == {0, 1, 2}


# Concurrent writers.


def test_two_runs_of_one_folder_at_once(made: Run, tmp_path: Path):
    out = tmp_path / "out"
    with folders.new_folder(out) as place:
        made.write_into(place)
        with pytest.raises(
            FileExistsError, match=rf"expected no other command that writes there, found process {os.getpid()}"
        ):
            made.save(out)
        with pytest.raises(FileExistsError, match="expected no other command"):
            made.save(out, force=True)
        # Other commands may write beside it.
        made.save(tmp_path / "other")
    assert Run.load(out).summary == made.summary
    assert not temporary(tmp_path)


def test_one_of_many_that_begin_at_once_wins(tmp_path: Path):
    out, won, lost = tmp_path / "out", [], []
    barrier, refused_all = threading.Barrier(8), threading.Event()

    def work(number: int) -> None:
        barrier.wait()
        try:
            with folders.new_folder(out) as place:
                (place / "run.json").write_text(str(number))
                refused_all.wait()
            won.append(number)
        except FileExistsError as error:
            lost.append(str(error))
            if len(lost) == 7:
                refused_all.set()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert len(lost) == 7
    assert (out / "run.json").read_text() == str(won[0])
    assert not temporary(tmp_path)


def left_over(folder: Path, target: str, **record: object) -> Path:
    """The leftovers of a killed command."""
    own = folder / ".elephan-0123456789abcdef"
    (own / "new").mkdir(parents=True)
    (own / "new" / "flows.parquet").write_text("half")
    told = {"elephan": "0", "host": folders.socket.gethostname(), "pid": 1, "target": target, **record}
    (own / "lock").write_text(json.dumps(told))
    return own


def test_what_a_killed_command_left_within_results_is_no_obstacle(made: Run, tmp_path: Path):
    """A table or a plot is written into existing complete results."""
    made.save(tmp_path / "out")
    left_over(tmp_path / "out", "table.md")
    made.save(tmp_path / "out", force=True)
    left_over(tmp_path / "out", "table.md")
    own = tmp_path / "out" / ".elephan-0123456789abcdef"
    with (own / "lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(FileExistsError, match=f"found {own.name} in it"):
            made.save(tmp_path / "out", force=True)


def test_what_is_in_use_is_not(made: Run, tmp_path: Path):
    own = left_over(tmp_path, "going-on")
    with (own / "lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        made.save(tmp_path / "out")
        assert (own / "new" / "flows.parquet").read_text() == "half"
        with pytest.raises(FileExistsError, match="found process 1 on"):
            made.save(tmp_path / "going-on")


def test_what_another_machine_left_is_not_before_it_is_old(made: Run, tmp_path: Path):
    own = left_over(tmp_path, "gone", host="another")
    made.save(tmp_path / "out")
    assert own.exists()
    old = time.time() - folders.FOREIGN_S - 60
    os.utime(own / "lock", (old, old))
    made.save(tmp_path / "out", force=True)
    assert not own.exists()


def test_what_only_looks_like_ours_stays(made: Run, tmp_path: Path):
    for name in (".elephan-mine", ".elephan-0123456789ABCDEF", ".elephan-0123456789abcdef0"):
        (tmp_path / name).mkdir()
    own = tmp_path / ".elephan-0123456789abcdef"
    (own / "new").mkdir(parents=True)
    (own / "new" / "draft").write_text("mine")
    (tmp_path / ".elephan-0123456789abcde0").write_text("mine")
    escaping = left_over(tmp_path / "sub", "../out")
    (tmp_path / ".elephan-0123456789abcde1").symlink_to(left_over(tmp_path / "sub2", "x"))
    before = tree(tmp_path)
    made.save(tmp_path / "out")
    made.save(tmp_path / "sub" / "out")
    after = {name: data for name, data in tree(tmp_path).items() if "out/" not in name}
    assert after == before
    assert escaping.exists()


def test_a_pipe_in_place_of_a_lock_blocks_nobody(made: Run, tmp_path: Path):
    own = tmp_path / ".elephan-0123456789abcdef"
    own.mkdir()
    os.mkfifo(own / "lock")
    made.save(tmp_path / "out")
    assert own.exists()


def test_two_sweeps_of_one_folder_at_once(tmp_path: Path):
    first = iter(elephan.sweep(small(), tmp_path / "out", workers=1))
    next(first)
    refused(call("sweep", file_of(tmp_path, SMALL), "--out", tmp_path / "out"), "expected no other sweep", code=1)
    first.close()


# Damaged results.


@pytest.mark.parametrize(("table", "picture"), [("flows", "cwnd"), ("queues", "queue-window")])
def test_damaged_samples_of_a_run_are_one_line(made: Run, tmp_path: Path, table: str, picture: str):
    made.save(tmp_path / "out")
    (tmp_path / "out" / f"{table}.parquet").write_bytes(b"PAR1")
    refused(call("plot", picture, tmp_path / "out"), "out: expected whole results, found damaged ones")
    refused(call("report", tmp_path / "out"), "out: expected whole results, found damaged ones")


def test_a_damaged_report_of_an_experiment_is_one_line(tmp_path: Path):
    place = tmp_path / "quick" / "ltcp2003" / "section-2.json"
    place.parent.mkdir(parents=True)
    for text in ("[]", "{", "{}"):
        place.write_text(text)
        done = call("reproduce", "page", "--out", tmp_path, "--page", tmp_path / "page.md")
        assert done.returncode in (1, 2)
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert not (tmp_path / "page.md").exists()
    assert not (tmp_path / "page").exists()


# Missing files of a sweep.


@pytest.fixture
def swept(tmp_path: Path, at_once: None) -> Path:  # noqa: ARG001 - it is needed, not used
    """A sweep of several parts."""
    elephan.sweep(small(), tmp_path / "out", workers=1).run()
    assert len(list((tmp_path / "out" / "flows").iterdir())) > 3
    return tmp_path / "out"


@pytest.mark.parametrize("how", ["removed", "cut", "emptied", "overwritten"])
def test_samples_that_are_gone_are_noticed_and_made_again(how: str, swept: Path, tmp_path: Path):
    whole = elephan.Dataset(swept).samples("flows")
    path = whole[1]
    data, size = path.read_bytes(), path.stat().st_size
    points = elephan.Dataset(swept).points_of(path)
    if how == "removed":
        path.unlink()
    else:
        path.write_bytes({"cut": data[:-9], "emptied": b"", "overwritten": b"x" * size}[how])
    if how != "overwritten":
        found = "none" if how == "removed" else str(path.stat().st_size)
        line = f"{path}: expected {size} bytes, found {found}: the flows of {points} are missing; repeat the sweep to run them"
        for command in (["table", swept], ["query", swept, "select count(*) from runs"], ["report", swept]):
            done = call(*command)
            assert done.returncode == 0, done.stderr
            assert line in (done.stderr if command[0] != "report" else (swept / "report.html").read_text())
        done = call("sweep", "query", swept, "select count(*) from flows")
        refused(done, line)
        assert call("sweep", "query", swept, "select count(*) from queues").returncode == 0
        assert call("sweep", "query", swept).returncode == 0
    done = call("sweep", file_of(tmp_path, SMALL), "--out", swept)
    assert done.returncode == 0, done.stderr
    assert f"the flows of {points} are missing; their runs are repeated" in done.stderr
    assert "0 failed" in done.stdout
    assert " 0 new" not in done.stdout
    flows = pl.concat(
        [
            pl.read_parquet(one).with_columns(pl.col("run").cast(pl.String))
            for one in elephan.Dataset(swept).samples("flows")
        ]
    )
    assert set(flows["run"]) == set(elephan.Dataset(swept).index()["run"])
    assert flows.group_by("run").len()["len"].n_unique() == 1
    done = call("sweep", file_of(tmp_path, SMALL), "--out", swept)
    assert "0 new, 12 reused" in done.stdout
    assert done.stderr == ""


def test_all_samples_gone(swept: Path):
    for path in (swept / "flows").iterdir():
        path.unlink()
    sweep = elephan.sweep(small(), swept)
    runs = list(sweep)
    assert (len(runs), sweep.reused) == (12, 0)
    again = elephan.sweep(small(), swept).run()
    assert (again.reused, again.losses) == (12, [])


@pytest.mark.parametrize(
    ("name", "how", "said"),
    [
        ("index.parquet", "removed", "the runs in it are missing; repeat the sweep to run them"),
        ("index.parquet", "cut", "index.parquet: expected Parquet, found what cannot be read"),
        ("superseded.parquet", "removed", "superseded.parquet: expected it, found none"),
        # It has no run of this table.
        ("superseded.parquet", "cut", ""),
    ],
)
def test_an_index_that_is_gone_is_noticed(name: str, how: str, said: str, swept: Path):
    changed = small(path__buffer='"21 packets"')
    elephan.sweep(changed, swept).run()
    path = swept / name
    path.unlink() if how == "removed" else path.write_bytes(path.read_bytes()[:50])
    done = call("sweep", "table", swept, "--metric", "goodput")
    assert said in done.stderr
    assert done.stderr.count(str(path)) == bool(said)
    assert bool(said) == bool(done.stderr)
    sweep = elephan.sweep(changed, swept).run()
    assert (sweep.done, sweep.reused) == (12, 12 if name == "superseded.parquet" else 0)
    assert [loss.path for loss in sweep.losses] == [path]
    back = elephan.sweep(small(), swept).run()
    assert back.reused == (0 if name == "superseded.parquet" else 12)
    assert elephan.sweep(changed, swept).run().reused == 12


@pytest.mark.usefixtures("at_once")
def test_a_part_of_the_index_that_is_gone_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    out = tmp_path / "out"
    monkeypatch.setattr("elephan.studies.sweeps.writer.Writer.finish", lambda _: None)
    elephan.sweep(small(), out, workers=1).run()
    parts = sorted((out / "index").iterdir())
    assert len(parts) > 3
    parts[1].unlink()
    assert f"{parts[1]}: expected it, found none" in call("sweep", "table", out, "--metric", "goodput").stderr
    monkeypatch.undo()
    sweep = elephan.sweep(small(), out).run()
    assert [loss.path for loss in sweep.losses] == [parts[1]]
    assert 0 < sweep.reused < 12
    assert elephan.sweep(small(), out).run().losses == []


def test_a_folder_without_a_record_still_works(swept: Path):
    """A folder as earlier versions wrote it."""
    import pyarrow.parquet as pq

    path = swept / "index.parquet"
    pq.write_table(pq.read_table(path).replace_schema_metadata({}), path)
    document = json.loads((swept / "sweep.json").read_text())
    del document["files"], document["elephan"]
    (swept / "sweep.json").write_text(json.dumps(document))
    assert elephan.Dataset(swept).losses() == []
    sweep = elephan.sweep(small(), swept).run()
    assert (sweep.done, sweep.reused, sweep.losses) == (12, 12, [])
    # From now on, the files that exist are recorded.
    next((swept / "flows").iterdir()).unlink()
    assert len(elephan.Dataset(swept).losses()) == 1


def test_reproductions_at_once_are_kept_apart(tmp_path: Path):
    with folders.only_writer(tmp_path, "reproduction"):
        refused(call("reproduce", "kelly2003/table-1", "--out", tmp_path), "expected no other reproduction")


def test_no_process_is_needed_to_tell_what_is_left(tmp_path: Path):
    """A child that is killed while it writes leaves files that the next one removes."""

    context = multiprocessing.get_context("fork")
    writing = context.Event()

    def work() -> None:
        with folders.new_folder(tmp_path / "out"):
            writing.set()
            signal.pause()

    process = context.Process(target=work)
    process.start()
    writing.wait()
    process.kill()
    process.join()
    assert temporary(tmp_path)
    with folders.new_folder(tmp_path / "out"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_error_of_a_full_disk_names_the_file(tmp_path: Path):
    path = tmp_path / "picture.png"
    with pytest.raises(OSError, match=r"No space left on device: .*picture\.png"), folders.new_file(path):
        raise OSError(28, "No space left on device")
    assert not path.exists()

"""`elephan report` of a measured path: estimates, ways to send, and a transfer beside its prediction."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import elephan
from elephan.cli import app
from elephan.paths import fit, predict
from elephan.report.read import read
from elephan.report.write import write


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path that was fitted to a run, with a recommendation."""
    place = tmp_path_factory.mktemp("made")
    flows = [elephan.flow("cubic")]
    tcp = {"profile": "linux-6"}
    made = elephan.dumbbell(rate="20 Mbit/s", rtt="30 ms", buffer="50 packets", flows=flows, duration="12 s", tcp=tcp)
    elephan.run(made).save(place / "run")
    done = CliRunner().invoke(app, ["path", "fit", str(place / "run"), "--out", str(place / "path"), "--draws", "2"])
    assert done.exit_code == 0, done.output
    arguments = ["--size", "10MB", "--cc", "cubic", "--streams", "1", "--draws", "2", "--out", str(place / "path")]
    done = CliRunner().invoke(app, ["path", "recommend", "--path", str(place / "path" / "path.toml"), *arguments])
    assert done.exit_code == 0, done.output
    return place / "path"


def test_the_page_has_estimates_ways_and_what_was_measured(folder: Path, tmp_path: Path) -> None:
    content = read(folder)
    assert content.kind == "path"
    titles = [table.title for table in content.tables]
    assert titles == ["Path of run, with 95 % intervals", "Measured and predicted", "Ways to send"]
    assert [tile.name for tile in content.tiles][:3] == ["rate", "base rtt", "buffer"]
    (group,) = content.groups
    assert [line.name for line in group.charts[0].lines] == [
        "predicted, cubic",
        "lowest draw",
        "highest draw",
        "measured",
    ]
    for kind in ("html", "md", "pdf", "png"):
        write(content, tmp_path / f"report.{kind}", kind)
        assert (tmp_path / f"report.{kind}").stat().st_size > 1000
    data = json.loads(content.to_json())
    assert data["command"].startswith("elephan path transfer send")


def test_a_transfer_counts_before_the_fitted_series(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "path"
    shutil.copytree(folder, place)
    flows = [elephan.flow("cubic", size="10 MB")]
    tcp = {"profile": "linux-6"}
    slow = elephan.dumbbell(rate="8 Mbit/s", rtt="30 ms", buffer="50 packets", flows=flows, duration="12 s", tcp=tcp)
    elephan.run(slow).save(place / "transfer")
    content = read(place)
    tiles = {tile.name: tile.value for tile in content.tiles}
    assert tiles["time to finish, predicted"].startswith("4.")
    assert tiles["time to finish, measured"].startswith("10.")
    said = next(note for note in content.notes if note.startswith("goodput:"))
    # Less than half the rate is noticed as soon as the queue is full, and not later.
    found = re.search(r"first leaves the band at ([0-9.]+) s", said)
    assert found
    assert float(found[1]) < 2
    assert "below it" in said
    assert any("mean of its second half" in note for note in content.notes)


def test_a_path_without_prediction_has_its_estimates(folder: Path, tmp_path: Path) -> None:
    for name in ("path.toml", "path.json"):
        shutil.copy(folder / name, tmp_path / name)
    content = read(tmp_path)
    assert len(content.tables) == 1
    assert content.groups == []


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("path.json", "{", "expected JSON|expected estimates"),
        ("path.json", '{"form": "x"}', "path.json"),
        ("prediction.json", "{}", "expected a prediction"),
        ("recommendation.json", "{}", "expected whole results, found damaged ones"),
        (fit.MEASURED, '{"time_s": [1]}', "expected whole results, found damaged ones"),
    ],
)
def test_damaged_folders_give_one_line(name: str, text: str, message: str, folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "path"
    shutil.copytree(folder, place)
    (place / name).write_text(text)
    with pytest.raises(elephan.ScenarioError, match=message) as caught:
        read(place)
    assert "\n" not in str(caught.value)


def test_a_prediction_goes_on_with_the_means_of_its_second_half() -> None:
    band = predict.Band([0.0, 1.0, 2.0, 4.0], [0.0, 0.0, 1.0, None], [1.0, 2.0, 3.0, 5.0])
    made = predict.Prediction(
        cc="reno", streams=1, time_s=[1.0, 2.0, 3.0, 4.0], goodput_bit_s=band, rtt_s=band, window_bytes=band, draws=2
    )
    longer, note = predict.extended(made, 8.0)
    assert longer.time_s[-1] >= 8.0
    assert np.all(np.diff(longer.time_s) > 0)
    assert (longer.goodput_bit_s.middle[-1], longer.goodput_bit_s.low[-1], longer.goodput_bit_s.high[-1]) == (3, 1, 4)
    assert "4 s" in note
    assert predict.extended(made, 4.0) == (made, "")

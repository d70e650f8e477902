import json

import pytest
from command_line import call
from typer.testing import CliRunner

from elephan import ScenarioError
from elephan.cli import app
from elephan.studies.theory import FIGURES, MODELLED, Model, plot_response, simulated_windows


def printed(*arguments):
    result = CliRunner().invoke(app, ["model", *arguments, "--format", "json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_independent_losses_leave_another_window_than_a_sawtooth():
    reno, bic, fast = printed("response", "--cc", "reno,bic,fast", "--loss", "1e-3", "--rtt", "50 ms")
    # 1.31/sqrt(p) instead of sqrt(1.5/p) (Ott, Kemperman and Mathis 1996).
    assert reno["mean window, independent losses"] == pytest.approx(1.31 / 1e-3**0.5, rel=0.05)
    # The simulator gives 70.9 segments.
    assert bic["mean window of the sawtooth"] == pytest.approx(43, rel=0.01)
    assert bic["mean window, independent losses"] == pytest.approx(70.9, rel=0.05)
    assert fast["mean window, independent losses"] is None
    assert Model("reno").independent(1e-7, 0.05) is None


def test_response_of_scalable_is_kellys():
    (row,) = printed("response", "--cc", "scalable", "--loss", "1e-5", "--rtt", "100ms")
    assert row["mean window as published"] == pytest.approx(8000)
    (row,) = printed("response", "--cc", "scalable", "--loss", "1e-5", "--rtt", "100ms", "--set", "a=0.02")
    assert row["mean window as published"] == pytest.approx(16000)


def test_a_throughput_and_its_loss_rate():
    (row,) = printed("response", "--cc", "reno", "--rate", "1 Gbit/s", "--rtt", "200 ms")
    # Kelly, Table 1: 5.4e-9 for 1 Gbit/s at 200 ms.
    assert row["loss rate"] == pytest.approx(5.4e-9, rel=1e-3)
    assert row["rate Mbit/s"] == pytest.approx(1000)


def test_recovery_of_standard_tcp_is_half_a_window():
    rows = printed("recovery", "--window", "1000", "--rtt", "200ms")
    assert [row["cc"] for row in rows] == list(MODELLED)
    assert rows[0]["recovery round trips"] == pytest.approx(500)


def test_stability_and_utilisation():
    rows = printed("stability", "--buffer", "99,101")
    assert [row["a = 0.01"] for row in rows] == ["stable", "not assured"]
    (row,) = printed("utilisation", "--beta", "0.5", "--buffer", "0,1")
    assert (row["buffer 0"], row["buffer 1"]) == (0.75, 1.0)


def test_mistakes_are_named():
    with pytest.raises(ScenarioError, match=r"cc\.a: expected a number from 0 to 1, found 7"):
        Model({"name": "scalable", "a": 7})
    with pytest.raises(ScenarioError, match="loss: expected a share between 0 and 1, found 2"):
        Model("reno").response(2, 0.1)


def test_simulated_points_lie_on_the_curves():
    figure = FIGURES["li-9.1-mbng"]
    found = simulated_windows(["reno", "scalable"], [1e-3, 1e-4], figure, most_s=20)
    for name, windows in zip(["reno", "scalable"], found, strict=True):
        for p, window in zip([1e-3, 1e-4], windows, strict=True):
            assert window == pytest.approx(Model(name).response(p, 0.0062).window, rel=0.12), (name, p)


def test_a_figure_is_drawn(tmp_path):
    plot_response(FIGURES["kelly-3"], ["reno", "scalable"], 0).savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_a_figure_of_two_parts_is_two_pictures(tmp_path):
    arguments = ["model", "plot", "response", "--figure", "li-9.1", "--points", "0", "--cc", "reno"]
    result = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "nine.png")])
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["nine-datatag.png", "nine-mbng.png"]


def test_the_windows_of_rfc_3649s_table_stand_beside_those_of_its_line():
    text = " ".join(call("model", "response", "--cc", "hstcp", "--loss", "1e-2,1e-5,1e-7").stdout.split())
    assert "1,776" in text
    assert "rounded constants: 1,795 at 1e-05, 83,981 at 1e-07" in text
    assert "RFC 3649" not in call("model", "response", "--cc", "scalable", "--loss", "1e-5").stdout

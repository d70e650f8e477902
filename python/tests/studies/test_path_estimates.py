"""`path.json` and `path.toml`: written, read again, and refused if damaged."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elephan
from elephan.api.scenario import load
from elephan.paths import estimates, scenario
from elephan.paths.estimates import Estimates, Host, Value, absent


def made(**keys: object) -> Estimates:
    return Estimates(
        **{
            "made_by": "fit",
            "source": "trace.pcap",
            "rate_bit_s": Value(unit="bit/s", value=1e8, low=9.9e7, high=1.01e8, method="delivery at saturation"),
            "base_rtt_s": Value(unit="s", value=0.0401, low=0.0400, high=0.0402, method="minimum"),
            **keys,
        }
    )


def test_everything_is_written_and_read_again(tmp_path: Path) -> None:
    found = made(
        buffer_bytes=Value(unit="B", value=250_000, low=240_000, high=260_000),
        loss=Value(unit="1", value=1e-4, low=5e-5, high=2e-4, cost_bytes=10**9),
        jitter_s=Value(unit="s", value=1e-3),
        mtu_bytes=Value(unit="B", value=9000),
        cross_bit_s=Value(unit="bit/s", value=1e7),
        reordered=Value(unit="1", value=0.0, low=0.0, high=1e-5),
        goodput_bit_s={"cubic": Value(unit="bit/s", value=9e7)},
        hosts=[Host(role="sender", name="here", costs={"data": "3.6 us"}, facts={"cpus": 2})],
        notes=["one\nnote"],
    )
    ran = scenario.write(tmp_path, found)
    assert estimates.read(tmp_path) == found
    path = load(tmp_path / "path.toml").document
    assert path == ran.document
    assert (path["path"]["rate"], path["path"]["rtt"], path["path"]["buffer"]) == ("100 Mbit/s", "40.1 ms", "250 kB")
    assert path["path"]["loss"] == {"name": "random", "probability": 1e-4}
    assert path["path"]["vary"] == {"name": "jitter", "max": "1 ms"}
    assert path["tcp"]["packet"] == "9000 B"
    assert path["host"]["data"] == "3.6 us"
    text = (tmp_path / "path.toml").read_text()
    for part in ("100 Mbit/s (99 Mbit/s to 101 Mbit/s)", "40.1 ms (40 ms to 40.2 ms)", "reordered: 0 (", r"one\nnote"):
        assert part in text


def test_a_path_runs(tmp_path: Path) -> None:
    ran = elephan.run(scenario.write(tmp_path, made(), duration="2 s"))
    assert ran.summary.goodput_bit_s > 0


def test_a_bound_is_written_as_a_bound(tmp_path: Path) -> None:
    found = made(
        buffer_bytes=absent("B", "the queue never filled", low=50_000),
        loss=absent("1", "too few packets", high=1e-3),
    )
    path = scenario.write(tmp_path, found).document["path"]
    # The path holds 501 kB, so that a buffer of 50 kB would be a small one.
    assert path["buffer"] == "100% bdp"
    assert "loss" not in path
    text = (tmp_path / "path.toml").read_text()
    assert "# at least 50 kB: the queue never filled; not measured: assumed\nbuffer" in text
    large = made(buffer_bytes=absent("B", "the queue never filled", low=600_000))
    assert scenario.write(tmp_path, large).document["path"]["buffer"] == "600 kB"
    assert "loss: at most 0.001: too few packets" in text


def test_a_path_shorter_than_a_packet_has_room_for_one(tmp_path: Path) -> None:
    found = made(
        rate_bit_s=Value(unit="bit/s", value=1e9),
        base_rtt_s=Value(unit="s", value=1e-5),
        mtu_bytes=Value(unit="B", value=9000),
    )
    assert scenario.write(tmp_path, found).document["path"]["buffer"] == "9 kB"
    assert "not measured: assumed\nbuffer" in (tmp_path / "path.toml").read_text()


def test_no_scenario_without_a_rate(tmp_path: Path) -> None:
    with pytest.raises(elephan.ScenarioError, match=r"rate_bit_s: expected a value .* found none: no data"):
        scenario.write(tmp_path, made(rate_bit_s=absent("bit/s", "no data")))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate_bit_s": {"unit": "bit/s", "value": -1}}, "finite numbers from 0 on"),
        ({"rate_bit_s": {"unit": "bit/s", "value": 2, "low": 3, "high": 4}}, "low <= value <= high"),
        ({"rate_bit_s": {"unit": "bit/s"}}, "a value, or `absent`"),
        ({"rate_bit_s": 7}, "Expected `object`"),
        ({"form": "another"}, "found 'another' 1"),
        ({"version": 99}, "found 'elephan path' 99"),
    ],
)
def test_damaged_estimates_give_one_line(change: dict[str, object], message: str, tmp_path: Path) -> None:
    path = tmp_path / "path.json"
    path.write_text(json.dumps({**made().to_dict(), **change}))
    with pytest.raises(elephan.ScenarioError) as caught:
        estimates.read(tmp_path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path}: expected")


@settings(deadline=None, max_examples=50)
@given(
    rate=st.floats(1e4, 1e12), rtt=st.floats(1e-5, 10), buffer=st.none() | st.floats(1, 1e9), loss=st.floats(0, 0.5),
    burst=st.none() | st.floats(0, 1e8), cross=st.floats(0, 1e6), jitter=st.floats(0, 1e-3), source=st.text(max_size=20),
)  # fmt: skip
def test_any_estimates_make_a_scenario(
    tmp_path_factory: pytest.TempPathFactory,
    rate: float,
    rtt: float,
    buffer: float | None,
    loss: float,
    burst: float | None,
    cross: float,
    jitter: float,
    source: str,
) -> None:
    folder = tmp_path_factory.mktemp("path")
    found = made(
        source=source.encode(errors="ignore").decode(),
        rate_bit_s=Value(unit="bit/s", value=rate),
        base_rtt_s=Value(unit="s", value=rtt),
        buffer_bytes=absent("B", "not tried") if buffer is None else Value(unit="B", value=buffer),
        loss=Value(unit="1", value=loss),
        cross_bit_s=Value(unit="bit/s", value=cross),
        links_bit_s=Value(unit="bit/s", value=2 * rate),
        burst_bytes=None if burst is None else Value(unit="B", value=burst),
        jitter_s=Value(unit="s", value=jitter),
    )
    scenario.write(folder, found, duration="10 ms")
    assert estimates.read(folder) == found

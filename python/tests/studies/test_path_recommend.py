"""`elephan path recommend --path`: ways to send over a measured path, with the uncertainty of the measurement."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

import elephan
from elephan.cli import app
from elephan.engines.run import run_many
from elephan.paths import predict, scenario
from elephan.paths.estimates import Estimates, Value, absent, read
from elephan.paths.given import of_values, read_path
from elephan.paths.recommend import ORDER, USUAL_CC, Case, Effort, Trials, effort, recommend
from elephan.paths.ways import Way, by_rounds, of_run, ways


def path(folder: Path, **keys: Any) -> Path:
    """A measured path of 20 Mbit/s and 40 ms."""
    found = Estimates(
        made_by="fit",
        source="here",
        rate_bit_s=Value(unit="bit/s", value=20e6, low=19.5e6, high=20.5e6),
        base_rtt_s=Value(unit="s", value=0.04, low=0.039, high=0.041),
        buffer_bytes=keys.pop("buffer_bytes", Value(unit="B", value=60_000, low=55_000, high=65_000)),
        loss=Value(unit="1", value=0.0, low=0.0, high=1e-5),
        **keys,
    )
    scenario.write(folder, found)
    return folder / scenario.FILE


@pytest.fixture
def found(tmp_path: Path) -> Estimates:
    """What is known of that path."""
    return read_path(path(tmp_path))[0]


def test_the_intervals_count_where_the_file_has_the_measured_values(tmp_path: Path) -> None:
    file = path(tmp_path)
    found, _ = read_path(file)
    assert found.rate_bit_s.low == 19.5e6
    assert found.loss is not None
    assert found.loss.high == 1e-5
    file.write_text(file.read_text().replace("20 Mbit/s", "30 Mbit/s", 2).replace('rate = "20', 'rate = "30'))
    found, _ = read_path(file)
    assert (found.rate_bit_s.value, found.rate_bit_s.low) == (30e6, None)
    assert found.base_rtt_s.low == 0.039
    assert "path.toml has other values than path.json, which count as exact: rate_bit_s" in found.notes
    file = path(tmp_path, buffer_bytes=Value(unit="B", low=7_000, absent="never full"))
    found, _ = read_path(file)
    assert found.buffer_bytes is not None
    assert found.buffer_bytes.low == 7_000
    assert found.notes == []
    (tmp_path / "path.json").unlink()
    found, _ = read_path(file)
    assert found.base_rtt_s.low is None
    assert "there is no path.json" in found.notes[0]


def policed(folder: Path) -> Path:
    """A path whose links carry 100 Mbit/s, and which polices them to 20 Mbit/s."""
    links = Value(unit="bit/s", value=100e6, low=99e6, high=101e6)
    burst = Value(unit="B", value=30_000, low=29_000, high=31_000)
    return path(folder, buffer_bytes=absent("B", "policed"), links_bit_s=links, burst_bytes=burst)


def test_a_policer_is_in_the_scenario_and_its_intervals_count(tmp_path: Path) -> None:
    file = policed(tmp_path)
    document = elephan.load(file).document["path"]
    policer = {"rate": "20 Mbit/s", "burst": "30 kB", "exceed": "drop"}
    assert (document["rate"], document["police"]) == ("100 Mbit/s", [policer])
    found, _ = read_path(file)
    assert found == msgspec.structs.replace(read(tmp_path), mtu_bytes=found.mtu_bytes)
    file.write_text(file.read_text().replace("30000 B", "60000 B"))
    found, _ = read_path(file)
    assert found.burst_bytes == Value(unit="B", value=60_000, method="from path.toml")
    assert (found.rate_bit_s.low, found.links_bit_s.low) == (19.5e6, 99e6)
    # Without the policer, or with one of another kind, the path is that of its links.
    for other in ("", ', exceed = "cs1"'):
        lines = [line for line in file.read_text().splitlines() if other or not line.startswith("police")]
        (tmp_path / "other.toml").write_text("\n".join(lines).replace('"60000 B" }', f'"60000 B"{other} }}'))
        found, _ = read_path(tmp_path / "other.toml")
        assert (found.rate_bit_s.value, found.burst_bytes, found.links_bit_s) == (100e6, None, None)


def test_a_policed_path_carries_what_the_policer_passes(tmp_path: Path) -> None:
    advice = recommend(read_path(policed(tmp_path))[0], 20e6, [Way("cubic", 1), Way("cubic", 1, paced=True)], draws=2)
    assert 0.5 < advice.ways[0].goodput_bit_s / 20e6 < 1
    assert max(one.retransmitted for one in advice.ways) > 0
    assert "20 Mbit/s" in (tmp_path / "path.toml").read_text()


def test_a_transfer_that_is_simulated_whole_ends_when_a_run_of_it_ends(found: Estimates) -> None:
    advice = recommend(found, 10e6, [Way("cubic", 1)], draws=1)
    assert not advice.is_extrapolated
    assert advice.ways[0].finish_s.low is None
    flow = elephan.flow({"name": "cubic", "form": "linux"}, slow_start="hystart", size="10 MB")
    tcp = {"profile": "linux-6"}
    run = elephan.run(
        elephan.dumbbell(rate="20 Mbit/s", rtt="40 ms", buffer="60 kB", flows=[flow], duration="20 s", tcp=tcp)
    )
    assert run.transfers["end_s"][0] == pytest.approx(advice.ways[0].finish_s.value, abs=0.15)


def test_a_long_transfer_takes_what_its_steady_state_gives(found: Estimates) -> None:
    advice = recommend(found, 1e11, ways(["reno", "cubic"], [1, 4]), draws=4)
    assert advice.is_extrapolated
    assert any("extrapolated" in note for note in advice.notes)
    for one in advice.ways:
        assert one.finish_s.value is not None
        assert one.finish_s.low is not None
        assert one.finish_s.high is not None
        # Payload is 1448 of 1500 bytes of what the path carries; the draws move the rate by 2.5 %.
        least = 1e11 * 8 / 20e6 * 1500 / 1448
        assert one.finish_s.low < one.finish_s.value < one.finish_s.high
        assert least * 0.96 < one.finish_s.value < least * 1.4
        assert 0 <= (one.others_lose or 0) <= 1
        assert one.buffer_bytes > 100e3
    best = advice.ways[0]
    assert (best.finish_s.value or 0) <= 1.05 * min(one.finish_s.value or 0 for one in advice.ways)
    # More streams take more from others.
    lose = {one.way.streams: one.others_lose for one in advice.ways if one.way.cc == "cubic" and not one.way.paced}
    assert (lose[4] or 0) > (lose[1] or 0)


def test_losses_on_the_wire_ask_for_more_than_one_stream_of_standard_tcp(found: Estimates) -> None:
    loss = Value(unit="1", value=2e-3, low=1.9e-3, high=2.1e-3)
    found = msgspec.structs.replace(found, loss=loss)
    advice = recommend(found, 1e10, ways(["reno"], [1, 8]), draws=2)
    assert advice.ways[0].way.streams == 8
    times = {one.way.streams: one.finish_s.value for one in advice.ways}
    # One stream gets what Mathis et al. 1997 say, eight of them up to eight times as much.
    assert (times[1] or 0) > 2 * (times[8] or 0)


def test_algorithms_of_ours_are_loaded(found: Estimates) -> None:
    advice = recommend(found, 1e7, [Way("scalable", 2, paced=True)], draws=1)
    command = advice.command("far")
    assert command == 'elephan path transfer send FILE far --cc scalable --load --streams 2 --pace "20 Mbit/s"'


def test_the_same_seed_gives_the_same_advice(found: Estimates) -> None:
    one, two = (recommend(found, 1e8, ways(["cubic"], [1]), draws=3) for _ in range(2))
    assert one == two


def test_the_effort_grows_with_what_is_asked(found: Estimates) -> None:
    def asked(size_bytes: float, count: int, draws: int) -> Effort:
        return effort(found, size_bytes, [Way("bbr", streams) for streams in range(1, count + 1)], draws)

    some = asked(1e12, 4, 5)
    assert asked(1e12, 8, 5).core_s > some.core_s > asked(1e12, 4, 2).core_s
    assert asked(1e5, 4, 5).duration_s < some.duration_s


def test_the_progress_is_of_as_many_simulations_as_were_announced(found: Estimates) -> None:
    shares: list[float] = []
    candidates = ways(["reno", "cubic"], [1])
    recommend(found, 1e5, candidates, draws=2, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert effort(found, 1e5, candidates, 2).simulations == 4 + 4 * 2 + 1


LONG = of_values(10e9, 0.15, "20% bdp")


def test_ways_whose_epochs_last_longer_than_a_simulation_go_by_round_trips() -> None:
    plan = effort(LONG, 1e14, ways(USUAL_CC, [1, 8]), 5)
    assert {way.cc for way in plan.in_rounds} == {"reno", "cubic", "htcp", "scalable"}
    assert not any(way.paced for way in plan.ways)
    # A minute of a core, and a transfer that is simulated whole has no rounds.
    assert plan.core_s < 80
    assert not effort(of_values(1e9, 0.1, "20% bdp"), 1e8, ways(USUAL_CC, [1]), 5).in_rounds
    # Where something else than the bottleneck counts, the rounds know nothing of it.
    for keys in ({"jitter_s": Value(unit="s", value=0.01)}, {"cross_bit_s": Value(unit="bit/s", value=1e9)}):
        assert not effort(msgspec.structs.replace(LONG, **keys), 1e14, ways(["reno"], [1]), 5).in_rounds


@pytest.mark.parametrize("cc", ["reno", "cubic", "htcp"])
@pytest.mark.parametrize("loss", [0.0, 1e-4])
def test_round_trips_tell_what_simulations_tell(cc: str, loss: float) -> None:
    path, way, size = of_values(50e6, 0.04, "20% bdp", loss), Way(cc, 2), 1e9
    seeds = range(1, 6)
    runs = run_many([way.plan.scenario(path, 200.0, seed) for seed in seeds])
    simulated = [of_run(run, way, size).finish_s for run in runs]
    rounds = [by_rounds(path, way, size, seed).finish_s for seed in range(1, 21)]
    assert sum(rounds) / 20 == pytest.approx(sum(simulated) / 5, rel=0.03)


@pytest.mark.parametrize("cc", ["htcp", "hstcp", "scalable"])
def test_round_trips_leave_others_what_simulations_leave_them(cc: str) -> None:
    way, size = Way(cc, 1), 5e9
    # Two flows are a matter of chance: the mean of several paths.
    cases = [Case(way, of_values(200e6, 0.05 + 0.0005 * n, "20% bdp"), seed=n + 1, beside=True) for n in range(5)]
    parts = []
    for in_rounds in (frozenset(), frozenset([way])):
        trials = Trials(Effort([way], in_rounds, 1, 200.0, 0.0), size, None).make(cases)
        parts.append(sum(one.others_bit_s / (one.others_bit_s + one.goodput_bit_s) for one in trials) / len(trials))
    assert parts[1] == pytest.approx(parts[0], abs=0.05)


@pytest.mark.parametrize("cc", ["htcp", "hstcp", "scalable"])
def test_round_trips_in_queues_of_their_own_are_fair(cc: str) -> None:
    path, way, size = of_values(200e6, 0.05, "20% bdp"), Way(cc, 1), 5e9
    fair = by_rounds(path, way, size, others=True, fair=True)
    assert fair.others_bit_s / (fair.others_bit_s + fair.goodput_bit_s) == pytest.approx(0.5, abs=0.03)


def test_an_answer_for_a_transfer_of_hours() -> None:
    path = of_values(1e9, 0.15, "20% bdp")
    advice = recommend(path, 1e12, ways(["reno", "cubic", "hstcp"], [1]), draws=2, planned=True)
    one = {judged.way: judged for judged in advice.ways}
    assert all(judged.is_in_rounds for judged in advice.ways)
    assert not advice.is_extrapolated
    # An epoch of Standard TCP takes 20 min, and uses 87 % of the link.
    full_s = 1e12 * 8 / 1e9 * 1500 / 1448
    assert full_s < one[Way("cubic", 1)].finish_s.value < 1.03 * full_s
    assert one[Way("reno", 1)].finish_s.value == pytest.approx(full_s / 0.87, rel=0.03)
    assert one[Way("hstcp", 1)].others_lose > 0.6 > one[Way("cubic", 1)].others_lose
    assert advice.ways[0].way == Way("cubic", 1)
    assert {queue.queue for queue in advice.bottlenecks} == {"droptail", "drr"}
    best = advice.bottlenecks[0]
    assert best.used > 0.9
    assert best.buffer < 1


def test_losses_of_the_path_decide_over_long_distances() -> None:
    lossy = recommend(of_values(10e9, 0.15, "20% bdp", 1e-6), 1e14, ways(["reno", "hstcp"], [1]), draws=1)
    times = {judged.way.cc: judged.finish_s.value for judged in lossy.ways}
    # Mathis et al. 1997: 1.3 kB * 8 / 150 ms / sqrt(1e-6) is a hundredth of the rate.
    assert times["reno"] > 50 * 1e14 * 8 / 10e9
    assert times["hstcp"] < 0.15 * times["reno"]
    assert lossy.is_extrapolated


def test_the_command_takes_values_in_place_of_a_file(tmp_path: Path) -> None:
    arguments = ["path", "recommend", "--rate", "1Gbit/s", "--rtt", "150ms", "--size", "1TB", "--cc", "reno,cubic"]
    done = CliRunner().invoke(app, [*arguments, "--streams", "1", "--draws", "1", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    for part in (
        ORDER[:40],
        "best: cubic, 1 stream",
        "socket buffers: ",
        "bottleneck: ",
        "2 ways round trip by round trip",
    ):
        assert part in " ".join(done.output.split())
    assert {one.name for one in (tmp_path / "out").iterdir()} == {
        "path.toml",
        "path.json",
        "prediction.json",
        "recommendation.json",
    }
    assert CliRunner().invoke(app, ["report", str(tmp_path / "out")]).exit_code == 0


def test_the_command(tmp_path: Path) -> None:
    file = path(tmp_path)
    arguments = [
        "path",
        "recommend",
        "--path",
        str(file),
        *["--size", "1GB", "--cc", "reno,bbr", "--streams", "1", "--draws", "2"],
    ]
    done = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "simulations of" in done.output
    assert "elephan path transfer send FILE HOST --cc" in done.output
    assert predict.read(tmp_path).size_bytes == 1e9
    stored = json.loads((tmp_path / "recommendation.json").read_text())
    assert {way["cc"] for way in stored["ways"]} == {"reno", "bbr"}
    other = tmp_path / "other"
    done = CliRunner().invoke(app, [*arguments, "--out", str(other), "--format", "json"])
    assert json.loads(done.output)["command"] == stored["command"]
    assert {one.name for one in other.iterdir()} == {"path.toml", "path.json", "prediction.json", "recommendation.json"}
    done = CliRunner().invoke(app, [*arguments, "--out", str(other)])
    assert isinstance(done.exception, FileExistsError)
    assert CliRunner().invoke(app, [*arguments, "--out", str(other), "--force"]).exit_code == 0


def test_the_table_of_elephan_host_counts_and_is_not_that_of_others(tmp_path: Path) -> None:
    file = path(tmp_path)
    free = recommend(read_path(file)[0], 10e6, [Way("cubic", 1)], draws=1)
    assert free.path.hosts == []
    # What `cat host/host.toml >> path/path.toml` leaves: 2 ms for a packet and 2 ms for an ACK, fewer than 500 packets/s.
    file.write_text(file.read_text() + '\n[host]\ndata = "2 ms"\nack = "2 ms"\nmax_backlog = 256\n')
    slow = recommend(read_path(file)[0], 10e6, [Way("cubic", 1)], draws=1)
    assert free.ways[0].finish_s.value is not None
    assert slow.ways[0].finish_s.value is not None
    assert free.ways[0].finish_s.value < 5
    assert slow.ways[0].finish_s.value > 10e6 / 1448 / 500
    # A sender that is held back by its host leaves most of the path to others, whose hosts are not this one.
    assert free.ways[0].others_lose is not None
    assert slow.ways[0].others_lose is not None
    assert slow.ways[0].others_lose < free.ways[0].others_lose
    # Without the table there is no host again.
    assert read_path(path(tmp_path))[0].hosts == []

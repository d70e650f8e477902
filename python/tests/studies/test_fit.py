"""`elephan path fit`: the paths of our own simulations come back, from captures anywhere, logs of `ss`, and results."""

import json
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import elephan
from elephan import _core
from elephan.cli.fit import app
from elephan.paths import capture, fit, predict, series
from elephan.paths.estimates import Estimates, Value, read
from elephan.paths.infer import _full_at, infer

LINKS = ("sender", "receiver")


def simulate(
    folder: Path, *, rate: float, rtt: float, buffer: int, loss: float = 0.0, cc: str = "cubic", duration: float = 20.0,
    flow: dict[str, Any] | None = None, tcp: dict[str, Any] | None = None, link: dict[str, Any] | None = None, seed: int = 3,
) -> dict[str, list[Path]]:  # fmt: skip
    """Captures at the sender and at the receiver of a path of `rate` Mbit/s and `rtt` ms with a buffer of so many packets."""
    wire = {"loss": {"name": "random", "probability": loss}} if loss else {}
    wire |= {"buffer": f"{buffer} packets", **(link or {})}
    document = {
        "duration": f"{duration} s",
        "seed": seed,
        "link": [
            {"name": "sender", "from": "a", "to": "r", "delay": "0 s"},
            {"name": "path", "from": "r", "to": "q", "rate": f"{rate} Mbit/s", "delay": f"{rtt / 2} ms", **wire},
            {"name": "receiver", "from": "q", "to": "b", "delay": "0 s"},
        ],
        "flow": [{"cc": cc, "from": "a", "to": "b", **(flow or {})}],
        "tcp": tcp or {},
        "trace": {"pcap": [name for end in LINKS for name in (end, f"{end}.reverse")]},
    }
    scenario = _core.load_scenario(json.dumps(document), "scenario", [], True, large=True)
    files = {name: folder / f"{name}.pcap" for name in document["trace"]["pcap"]}
    _core.run_many([scenario], 0, None, files)
    return {end: [files[end], files[f"{end}.reverse"]] for end in LINKS}


def near(value: Value | None, truth: float, share: float = 0.05, least: float = 0.0) -> None:
    assert value is not None
    assert value.value is not None, value
    assert value.low is not None
    assert value.high is not None
    assert value.low <= value.value <= value.high
    assert abs(value.value - truth) <= max(share * truth, least), (value, truth)


def bound(value: Value | None) -> float:
    """The lower bound of what has no value."""
    assert value is not None
    assert value.value is None, value
    return value.low or 0


PATHS = [
    {"rate": 10, "rtt": 10, "buffer": 16, "cc": "cubic"},
    {"rate": 10, "rtt": 200, "buffer": 166, "cc": "reno", "duration": 60},
    {"rate": 50, "rtt": 40, "buffer": 166, "cc": "htcp", "loss": 1e-5},
    {"rate": 100, "rtt": 40, "buffer": 166, "cc": "cubic", "loss": 1e-4, "duration": 40},
    {"rate": 100, "rtt": 100, "buffer": 166, "cc": "scalable", "duration": 30},
    {"rate": 200, "rtt": 20, "buffer": 666, "cc": "bic", "duration": 10},
    {"rate": 100, "rtt": 30, "buffer": 250, "cc": "bbr"},
    {"rate": 50, "rtt": 30, "buffer": 125, "cc": "bbr", "loss": 1e-4},
    # Less than a bandwidth-delay product, so that the probes of BBR fill it.
    {"rate": 50, "rtt": 20, "buffer": 60, "cc": "bbr", "loss": 1e-3},
    {"rate": 10, "rtt": 50, "buffer": 80, "cc": "cubic", "loss": 1e-3, "duration": 60},
    {"rate": 1000, "rtt": 20, "buffer": 1666, "cc": "cubic", "duration": 6},
    {"rate": 100, "rtt": 50, "buffer": 400, "cc": "cubic", "tcp": {"profile": "linux-6"}},
    {"rate": 20, "rtt": 60, "buffer": 100, "cc": "reno", "tcp": {"delayed_ack": {"segments": 4}}, "duration": 40},
]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path['cc']}-{path['rate']}-{path['rtt']}")
def test_a_path_comes_back_from_captures_at_either_end(path: dict[str, Any], tmp_path: Path) -> None:
    captures = simulate(tmp_path, **path)
    for end in LINKS:
        found = infer(capture.observe(captures[end]))
        near(found.rate_bit_s, path["rate"] * 1e6)
        near(found.base_rtt_s, path["rtt"] * 1e-3)
        # A buffer of a few packets is known to one of them.
        near(found.buffer_bytes, path["buffer"] * 1500, least=1600)
        assert found.loss is not None
        assert (found.loss.low or 0) <= path.get("loss", 0.0) <= (found.loss.high or 1)


def test_a_path_comes_back_from_the_samples_of_a_run(tmp_path: Path) -> None:
    for number, (rate, rtt, buffer, cc) in enumerate(
        ((50, 40, 166, "cubic"), (100, 30, 250, "bbr"), (10, 100, 83, "reno"))
    ):
        ran = elephan.run(
            elephan.dumbbell(
                rate=f"{rate} Mbit/s",
                rtt=f"{rtt} ms",
                buffer=f"{buffer} packets",
                flows=[elephan.flow(cc)],
                duration="40 s",
            )
        )
        found = infer(series.observe_results(ran.save(tmp_path / str(number))))
        near(found.rate_bit_s, rate * 1e6)
        near(found.base_rtt_s, rtt * 1e-3)
        near(found.buffer_bytes, buffer * 1500)


def test_streams_are_taken_together(tmp_path: Path) -> None:
    captures = simulate(tmp_path, rate=50, rtt=40, buffer=160, duration=20, flow={"count": 4})
    # Each has an address of its own in a capture of the simulator, so only one of them is the transfer; not so in results.
    assert capture.observe(captures["sender"]).streams == 1
    flows = [elephan.flow("cubic", count=4)]
    ran = elephan.run(
        elephan.dumbbell(rate="50 Mbit/s", rtt="40 ms", buffer="160 packets", flows=flows, duration="20 s")
    )
    seen = series.observe_results(ran.save(tmp_path / "run"))
    assert seen.streams == 4
    found = infer(seen)
    near(found.rate_bit_s, 50e6)
    near(found.base_rtt_s, 0.040, 0.1)


def test_a_buffer_that_was_never_filled_has_only_a_lower_bound(tmp_path: Path) -> None:
    # Half a path of losses, and a window that saturates it for some time.
    captures = simulate(tmp_path, rate=100, rtt=50, buffer=10_000, cc="cubic", loss=1e-4, duration=20)
    found = infer(capture.observe(captures["sender"]))
    near(found.rate_bit_s, 100e6)
    assert 0 < bound(found.buffer_bytes) < 10_000 * 1500
    assert "never full" in found.buffer_bytes.absent


@pytest.mark.parametrize(
    ("flow", "tcp", "why"),
    [
        ({"cc": "reno"}, {"receive_buffer": "100 kB"}, "the receive window was the limit"),
        ({"cc": {"name": "reno"}, "size": "40 kB", "transfers": 200}, {}, "the sender sent less"),
        ({"cc": "reno"}, {"initial_ssthresh": 20}, "the sender sent less"),
    ],
)
def test_a_path_that_was_never_saturated_has_no_rate(
    flow: dict[str, Any], tcp: dict[str, Any], why: str, tmp_path: Path
) -> None:
    captures = simulate(tmp_path, rate=100, rtt=50, buffer=400, duration=6, flow=flow, tcp=tcp)
    found = infer(capture.observe(captures["sender"]))
    assert 0 < bound(found.rate_bit_s) < 60e6
    assert why in found.rate_bit_s.absent
    near(found.base_rtt_s, 0.05, 0.02)
    bound(found.buffer_bytes)


def test_a_policer_and_a_managed_queue_are_told_from_a_full_one(tmp_path: Path) -> None:
    policer = {"police": [{"rate": "20 Mbit/s", "burst": "60 kB", "exceed": "drop"}]}
    captures = simulate(tmp_path, rate=200, rtt=20, buffer=2000, duration=20, cc="scalable", link=policer)
    found = infer(capture.observe(captures["sender"]))
    assert 15e6 < bound(found.rate_bit_s) < 30e6
    red = {"queue": {"name": "red", "min_th": 20, "max_th": 300, "max_p": 0.02}}
    captures = simulate(tmp_path, rate=50, rtt=40, buffer=4000, duration=40, link=red)
    found = infer(capture.observe(captures["sender"]))
    near(found.rate_bit_s, 50e6)
    bound(found.buffer_bytes)


# Captures of other programs, made of our own: the same packets, in other files.


def packets(path: Path) -> Iterator[tuple[int, bytes, int]]:
    """Time in ns, captured bytes and whole length of each packet of a capture of the simulator."""
    content = path.read_bytes()
    at = 24
    while at < len(content):
        s, ns, kept, whole = struct.unpack_from("<IIII", content, at)
        yield s * 10**9 + ns, content[at + 16 : at + 16 + kept], whole
        at += 16 + kept


def classic(
    order: str, magic: int, units: int, link: int, head: bytes
) -> Callable[[list[tuple[int, bytes, int]]], bytes]:
    def made(rows: list[tuple[int, bytes, int]]) -> bytes:
        parts = [struct.pack(f"{order}IHHIIII", magic, 2, 4, 0, 0, 262144, link)]
        for ns, data, whole in rows:
            part = ns % 10**9 * units // 10**9
            parts += [struct.pack(f"{order}IIII", ns // 10**9, part, len(head + data), len(head) + whole), head, data]
        return b"".join(parts)

    return made


def next_generation(order: str, resolution: int) -> Callable[[list[tuple[int, bytes, int]]], bytes]:
    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        return struct.pack(f"{order}II", kind, len(body) + 12) + body + struct.pack(f"{order}I", len(body) + 12)

    def made(rows: list[tuple[int, bytes, int]]) -> bytes:
        option = struct.pack(f"{order}HHB3xHH", 9, 1, resolution, 0, 0)
        parts = [
            block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1)),
            block(1, struct.pack(f"{order}HHI", 101, 0, 0) + option),
        ]
        for ns, data, whole in rows:
            stamp = ns * 10**resolution // 10**9
            parts.append(
                block(6, struct.pack(f"{order}IIIII", 0, stamp >> 32, stamp & 0xFFFFFFFF, len(data), whole) + data)
            )
        return b"".join(parts)

    return made


ETHERNET = bytes(12) + b"\x08\x00"
VLAN = bytes(12) + b"\x81\x00\x00\x05\x08\x00"
COOKED, COOKED_2 = bytes(14) + b"\x08\x00", b"\x08\x00" + bytes(18)
FORMS = {
    "micro": classic("<", 0xA1B2C3D4, 10**6, 101, b""),
    "big-endian": classic(">", 0xA1B23C4D, 10**9, 101, b""),
    "ethernet": classic("<", 0xA1B2C3D4, 10**6, 1, ETHERNET),
    "vlan": classic("<", 0xA1B2C3D4, 10**6, 1, VLAN),
    "any": classic("<", 0xA1B2C3D4, 10**6, 113, COOKED),
    "any-2": classic("<", 0xA1B2C3D4, 10**6, 276, COOKED_2),
    "loopback": classic("<", 0xA1B2C3D4, 10**6, 0, b"\2\0\0\0"),
    "pcapng": next_generation("<", 6),
    "pcapng-nano": next_generation(">", 9),
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return simulate(tmp_path_factory.mktemp("plain"), rate=10, rtt=20, buffer=40, duration=8)["sender"]


def merged(paths: list[Path]) -> list[tuple[int, bytes, int]]:
    return sorted((row for path in paths for row in packets(path)), key=lambda row: row[0])


@pytest.mark.parametrize("form", FORMS)
def test_any_form_of_capture_tells_the_same(form: str, plain: list[Path], tmp_path: Path) -> None:
    (tmp_path / "one.pcap").write_bytes(FORMS[form](merged(plain)))
    (seen,) = _core.read_captures([tmp_path / "one.pcap"])
    (truth,) = _core.read_captures([*plain])
    for key in ("data_offset", "data_payload", "data_bytes", "data_again", "ack_delivered", "ack_flight", "ack_window"):
        assert np.array_equal(seen[key], truth[key]), key
    assert np.abs(seen["data_time_ns"] - truth["data_time_ns"]).max() <= 1000
    near(infer(capture.observe([tmp_path / "one.pcap"])).rate_bit_s, 10e6)


def ipv6(data: bytes, whole: int) -> tuple[bytes, int]:
    """A packet of IPv4 as one of IPv6."""
    ends = bytes(12) + data[12:16] + bytes(12) + data[16:20]
    return struct.pack(">IHBB", 6 << 28, whole - 20, 6, 64) + ends + data[20:], whole + 20


def test_ipv6_has_its_larger_headers(plain: list[Path], tmp_path: Path) -> None:
    rows = [(ns, *ipv6(data, whole)) for ns, data, whole in merged(plain)]
    (tmp_path / "six.pcap").write_bytes(FORMS["micro"](rows))
    found = infer(capture.observe([tmp_path / "six.pcap"]))
    near(found.rate_bit_s, 10e6 * 1520 / 1500, 0.01)
    assert found.mtu_bytes is not None
    assert found.mtu_bytes.value == 1520


def test_super_segments_are_counted_as_packets(plain: list[Path], tmp_path: Path) -> None:
    """Two segments that follow each other at once as one, as a network card gets them."""
    rows: list[tuple[int, bytes, int]] = []
    for ns, data, whole in merged(plain):
        last = rows[-1] if rows else (0, b"", 0)
        is_next = whole == 1500 and last[2] == 1500 and ns - last[0] < 2000 and data[:2] == last[1][:2]
        seqs = [int.from_bytes(one[24:28]) for one in (data, last[1])] if is_next else [0, 0]
        if is_next and (seqs[0] - seqs[1]) % 2**32 == 1448:
            both = 1500 + 1448
            rows[-1] = (last[0], last[1][:2] + struct.pack(">H", both) + last[1][4:], both)
        else:
            rows.append((ns, data, whole))
    assert any(whole > 1500 for _, _, whole in rows)
    (tmp_path / "tso.pcap").write_bytes(FORMS["ethernet"](rows))
    found = infer(capture.observe([tmp_path / "tso.pcap"]))
    near(found.rate_bit_s, 10e6)
    near(found.base_rtt_s, 0.02)
    near(found.buffer_bytes, 40 * 1500)
    assert found.mtu_bytes is not None
    assert found.mtu_bytes.value == 1500


def test_a_capture_that_was_killed_counts_to_its_last_packet(plain: list[Path], tmp_path: Path) -> None:
    content = FORMS["micro"](merged(plain))
    (tmp_path / "cut.pcap").write_bytes(content[:-30])
    found = infer(capture.observe([tmp_path / "cut.pcap"]))
    near(found.rate_bit_s, 10e6)
    assert "the capture ends within a packet" in found.notes


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected a capture or the text of `ss -ti`|expected a connection"),
        (b"\xd4\xc3\xb2\xa1", "expected a capture"),
        (FORMS["micro"]([]), "expected packets of TCP, found none among 0"),
        (FORMS["micro"]([(0, bytes(40), 40)]), "expected packets of TCP, found none among 1"),
        (classic("<", 0xA1B2C3D4, 10**6, 147, b"")([(0, bytes(40), 40)]), "found link type 147"),
        (b"PK\x03\x04" + bytes(100), "expected a connection"),
        (b"\x00\xff\xfe", "found other bytes"),
        (b"ESTAB 0 0 1.2.3.4:1 1.2.3.5:2\n cubic rtt:1/1 cwnd:10\n", "line 2: expected a line with the time"),
    ],
)
def test_other_files_are_refused_in_a_line(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(content)
    with pytest.raises(elephan.ScenarioError, match=message) as caught:
        fit.observe([path])
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_headers_that_were_cut_name_the_remedy(plain: list[Path], tmp_path: Path) -> None:
    (tmp_path / "short.pcap").write_bytes(FORMS["micro"]([(ns, data[:40], whole) for ns, data, whole in merged(plain)]))
    with pytest.raises(elephan.ScenarioError, match="a snapshot length of 128"):
        fit.observe([tmp_path / "short.pcap"])


def test_one_direction_is_not_enough(plain: list[Path]) -> None:
    with pytest.raises(elephan.ScenarioError, match="give the captures of both directions"):
        fit.observe(plain[:1])


def outcome(path: Path) -> str:
    """What is said of a file: a rate, or why there is none. Nothing else may be raised."""
    try:
        return infer(fit.observe([path])).rate_bit_s.text
    except elephan.ScenarioError as error:
        return str(error)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_captures_give_a_line_or_a_path(data: st.DataObject, plain: list[Path], tmp_path: Path) -> None:
    form = data.draw(st.sampled_from(["micro", "pcapng", "ethernet"]))
    content = bytearray(FORMS[form](merged(plain)[:400]))
    for _ in range(data.draw(st.integers(1, 20))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "damaged.pcap"
    path.write_bytes(bytes(content))
    assert "\n" not in outcome(path)


def test_waiting_while_nothing_arrives_is_no_rate(plain: list[Path]) -> None:
    """As the times of a damaged capture may show it."""
    seen = fit.observe(plain)
    delivered = np.minimum(seen.delivered_bytes, np.quantile(seen.delivered_bytes, 0.1))
    found = infer(replace(seen, delivered_bytes=delivered))
    assert found.rate_bit_s.value is None
    assert "never saturated" in found.rate_bit_s.absent


def test_an_empty_queue_is_not_full(plain: list[Path]) -> None:
    """If round trips are shorter than the serialisation, as a damaged capture may show them, all waits are negative."""
    waits_s = np.linspace(-0.05, -0.001, 1000)
    lost = np.where(waits_s > -0.0011, 1, 0)
    seen = replace(fit.observe(plain), sent=np.ones(1000), lost=lost)
    assert _full_at(seen, waits_s, waits_s[lost > 0], packet_s=0.001) is None
    assert _full_at(seen, waits_s + 0.051, waits_s[lost > 0] + 0.051, packet_s=0.001) == pytest.approx(0.05)


# Logs of `ss`.

# A second of `ss -tin` of iproute2 6.1 on a link of 50 Mbit/s, as it prints it.
SS = Path(__file__).parent / "data" / "ss.txt"


def test_a_log_of_ss(tmp_path: Path) -> None:
    seen = fit.observe([SS])
    assert seen.cc == "bbr"
    assert seen.packet_bytes == 1500
    found = infer(seen)
    near(found.rate_bit_s, 50e6)
    (tmp_path / "iso.txt").write_text(SS.read_text().replace("1795411644.", "2026-11-23T05:27:24."))
    assert len(fit.observe([tmp_path / "iso.txt"]).time_s) == len(seen.time_s)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_logs_give_a_line_or_a_path(data: st.DataObject, tmp_path: Path) -> None:
    content = bytearray(SS.read_bytes())
    for _ in range(data.draw(st.integers(1, 40))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "damaged.txt"
    path.write_bytes(bytes(content))
    assert "\n" not in outcome(path)


# The command, and predictions.


def test_the_command(plain: list[Path], tmp_path: Path) -> None:
    arguments = [*map(str, plain), "--out", str(tmp_path / "path"), "--cc", "cubic", "--draws", "2"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "Path of sender.pcap and 1 more" in done.output
    # What it will take comes before it starts: of reading, and of the simulations.
    size = sum(path.stat().st_size for path in plain)
    assert done.stderr.startswith(f"reading {size * 1e-6:.3g} MB, about ")
    assert re.search(r"\n2 simulations of [\d.]+ s each, about [\d.]+ s of a core\n", done.stderr)
    assert "goodput:" in done.output
    folder = tmp_path / "path"
    assert {path.name for path in folder.iterdir()} == {
        "path.toml", "path.json", "prediction.json", "measured.json", "overlay.png"
    }  # fmt: skip
    near(read(folder).rate_bit_s, 10e6)
    assert predict.read(folder).cc == "cubic"
    ran = elephan.run(elephan.load(folder / "path.toml", {"duration": "5 s"}))
    assert ran.summary.goodput_bit_s == pytest.approx(9.6e6, rel=0.1)
    again = CliRunner().invoke(app, arguments)
    assert isinstance(again.exception, FileExistsError)
    assert CliRunner().invoke(app, [*arguments, "--force"]).exit_code == 0


def test_the_same_path_and_algorithm_hardly_part(tmp_path: Path) -> None:
    flows = [elephan.flow("reno")]
    made = elephan.dumbbell(
        rate="20 Mbit/s", rtt="40 ms", buffer="60 packets", flows=flows, duration="30 s", tcp={"profile": "linux-6"}
    )
    found = fit.fit([elephan.run(made).save(tmp_path / "run")])
    assert not found.is_guessed
    for part in found.partings:
        assert part.measured == pytest.approx(part.predicted, rel=0.1), part.text
        assert part.from_s is None, part.text


def test_what_parts_is_named_with_its_time() -> None:
    times = np.arange(0.0, 20.0, 0.1)
    flat = predict.Band.of([np.full(200, 1e7), np.full(200, 1.1e7)])
    made = predict.Prediction(
        cc="reno", streams=1, time_s=[*times], goodput_bit_s=flat, rtt_s=flat, window_bytes=flat, draws=2
    )
    low = np.where(times < 8, 1e7, 5e6)
    goodput, rtt, window = predict.partings(
        made, {"time_s": times, "goodput_bit_s": low, "rtt_s": np.full(200, 1e7), "window_bytes": 3 * low}
    )
    assert goodput.from_s == pytest.approx(8.0)
    assert goodput.share == pytest.approx(-0.5, abs=0.05)
    assert rtt.from_s is None
    assert window.from_s == 0.0
    assert "50 % below" in goodput.text


@settings(max_examples=50)
@given(value=st.floats(1e-6, 1e12), down=st.floats(0, 1), up=st.floats(0, 3), seed=st.integers(0, 1000))
def test_draws_stay_near_their_intervals(value: float, down: float, up: float, seed: int) -> None:
    rate = Value(unit="bit/s", value=value, low=value * (1 - down), high=value * (1 + up))
    found = Estimates(made_by="fit", source="x", rate_bit_s=rate, base_rtt_s=Value(unit="s", value=0.1))
    drawn = predict.draws(found, 20, seed)
    assert drawn[0] == found
    for one in drawn:
        assert one.rate_bit_s.value is not None
        assert value * max(1 - 1.3 * down, 0) <= one.rate_bit_s.value <= value * (1 + 1.3 * up)
        assert one.base_rtt_s.value == 0.1


@pytest.mark.realtime
@pytest.mark.usefixtures("machine")
def test_a_path_comes_back_from_the_kernel_of_this_machine(tmp_path: Path, deviation: Callable[..., None]) -> None:
    """The running kernel's TCP over emulated links."""
    flows = [elephan.flow("cubic")]
    path = elephan.dumbbell(
        rate="20 Mbit/s", rtt="40 ms", buffer="100 packets", flows=flows, duration="10 s", engine="linux"
    )
    ran = elephan.run(path)
    estimates = infer(series.observe_results(ran.save(tmp_path / "run")))
    for name, estimate, truth, share in (
        ("rate", estimates.rate_bit_s, 20e6, 0.05),
        ("base round-trip time", estimates.base_rtt_s, 0.04, 0.05),
        # Samples ten times a second miss some of the longest queue.
        ("buffer", estimates.buffer_bytes, 100 * 1500, 0.15),
    ):
        value = estimate and estimate.value
        relative = None if value is None else value / truth - 1
        deviation(name, relative, within=share, because=ran.provenance["quality"]["invalid_because"])

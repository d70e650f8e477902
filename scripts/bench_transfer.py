"""Measure the speed of transfers over loopback, beside programs that do a part of the same: iperf3, openssl, cp and dd.

`python scripts/bench_transfer.py` prints two tables in Markdown: medians, where the programs of a table run in turn. Files are
written into a temporary folder below `--folder`, whose disk is the one that is measured.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from elephan.base.table import Table, text_heads

ELEPHAN = Path(sys.executable).with_name("elephan")
HERE = "127.0.0.1"
PORT = 5298
MEMORY = 8_000_000_000
FILE = 1_000_000_000
SECONDS = 4


def output(*words: object) -> str:
    """What a program writes."""
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{words[0]}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def iperf3(streams: int) -> float:
    """Goodput of iperf3, bit/s."""
    with subprocess.Popen(["iperf3", "-s", "-1", "-p", str(PORT)], stdout=subprocess.DEVNULL):
        time.sleep(0.5)
        told = json.loads(output("iperf3", "-c", HERE, "-p", PORT, "-t", SECONDS, "-P", streams, "-J"))
    return float(told["end"]["sum_received"]["bits_per_second"])


@contextmanager
def receiver(*arguments: object) -> Any:
    """A receiver for one transfer."""
    words = [ELEPHAN, "transfer", "receive", *arguments, "--port", PORT, "--address", HERE, "--once"]
    with subprocess.Popen([*map(str, words)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"token (\S+)", process.stdout.readline())
        assert found
        os.environ["ELEPHAN_TOKEN"] = found[1]
        yield
        process.communicate()


def transfer(*arguments: object) -> float:
    """Goodput of a transfer, bit/s, from its first data until the receiver has everything in place."""
    told = output(ELEPHAN, "transfer", "send", *arguments, "--port", PORT)
    found = re.search(r"([\d,]+) Mbit/s", told)
    assert found
    return float(found[1].replace(",", "")) * 1e6


def memory(streams: int, *options: str) -> float:
    """Goodput of memory to memory, bit/s."""
    with receiver():
        return transfer(HERE, "--memory", f"{MEMORY}B", "--streams", streams, *options)


def openssl(cipher: str) -> float:
    """Speed of a cipher on one core with records of 16 kB, bit/s."""
    told = output("openssl", "speed", "-seconds", 2, "-bytes", 16384, "-evp", cipher)
    return float(told.split()[-1].removesuffix("k")) * 8e3


def timed(work: Callable[[], object]) -> float:
    """The rate at which `work` handles the file, bit/s."""
    started = time.perf_counter()
    work()
    return FILE * 8 / (time.perf_counter() - started)


def disk(folder: Path, kind: str) -> float:
    """The rate at which a file is copied and is on the disk, bit/s."""
    source, target = folder / "source", folder / "to"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    os.sync()
    match kind:
        case "cp":
            return timed(
                lambda: output("sh", "-c", f"cp --reflink=never {source} {target}/source && sync {target}/source")
            )
        case "dd":
            return timed(lambda: output("dd", f"if={source}", f"of={target}/source", "bs=4M", "conv=fdatasync"))
        case _:
            options = ["--plain"] if kind == "plain" else []
            with receiver(target):
                return transfer(source, HERE, *options)


def in_turn(of: dict[str, Callable[[], float]], repeats: int) -> dict[str, float]:
    """The median of each, where they run one after the other in each round."""
    rounds = [{name: work() for name, work in of.items()} for _ in range(repeats)]
    return {name: statistics.median(one[name] for one in rounds) for name in of}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", default=".")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    found: dict[str, float] = {}
    for streams in (1, 2):
        found |= in_turn(
            {
                f"iperf3, {streams}": lambda streams=streams: iperf3(streams),
                f"plain, {streams}": lambda streams=streams: memory(streams, "--plain"),
                f"encrypted, {streams}": lambda streams=streams: memory(streams),
            },
            arguments.repeats,
        )
    aes, chacha = openssl("aes-256-gcm"), openssl("chacha20-poly1305")

    def gbit(value: float) -> str:
        return f"{value / 1e9:.1f}"

    rows = []
    for name, what in (("iperf3", "iperf3"), ("plain", "--memory --plain"), ("encrypted", "--memory")):
        one, two = found[f"{name}, 1"], found[f"{name}, 2"]
        shares = [f"{one / found['iperf3, 1']:.2f}", f"{two / found['iperf3, 2']:.2f}"]
        rows.append([what, gbit(one), shares[0], gbit(two), shares[1]])
    rows.append(["openssl speed -evp aes-256-gcm, one core", gbit(aes), "", "", ""])
    rows.append(["openssl speed -evp chacha20-poly1305, one core", gbit(chacha), "", "", ""])
    heads = ("memory to memory", "1 stream, Gbit/s", "of iperf3", "2 streams, Gbit/s", "of iperf3")
    print(Table("", text_heads(*heads), rows).to_markdown())
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        with (folder / "source").open("wb") as file:
            for _ in range(FILE // 1_000_000):
                file.write(os.urandom(1_000_000))
        kinds = {
            "cp": "cp, then sync FILE",
            "dd": "dd bs=4M conv=fdatasync",
            "plain": "--plain",
            "tls": "encrypted",
        }
        rates = in_turn({kind: lambda kind=kind: disk(folder, kind) for kind in kinds}, arguments.repeats)
    rows = [[text, gbit(rates[kind]), f"{rates[kind] / rates['cp']:.2f}"] for kind, text in kinds.items()]
    print()
    print(Table("", text_heads("file to file, 1 GB, on the disk", "Gbit/s", "of cp"), rows).to_markdown())


if __name__ == "__main__":
    main()

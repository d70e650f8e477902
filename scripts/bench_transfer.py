"""Measure the speed of transfers from memory over loopback, beside programs that do a part of the same: iperf3 and openssl.

`python scripts/bench_transfer.py` prints a table in Markdown: medians, where the programs run in turn.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
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
def receiver() -> Any:
    """A receiver for one transfer."""
    words = [ELEPHAN, "path", "transfer", "receive", "--port", PORT, "--address", HERE, "--once"]
    with subprocess.Popen([*map(str, words)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"token (\S+)", process.stdout.readline())
        assert found
        os.environ["ELEPHAN_TOKEN"] = found[1]
        yield
        process.communicate()


def memory(streams: int, *options: str) -> float:
    """Goodput of memory to memory, bit/s, from its first data until the receiver has all."""
    words = [HERE, "--memory", f"{MEMORY}B", "--streams", streams, *options]
    with receiver():
        told = output(ELEPHAN, "path", "transfer", "send", *words, "--port", PORT)
    found = re.search(r"([\d,]+) Mbit/s", told)
    assert found
    return float(found[1].replace(",", "")) * 1e6


def openssl(cipher: str) -> float:
    """Speed of a cipher on one core with records of 16 kB, bit/s."""
    told = output("openssl", "speed", "-seconds", 2, "-bytes", 16384, "-evp", cipher)
    return float(told.split()[-1].removesuffix("k")) * 8e3


def in_turn(of: dict[str, Callable[[], float]], repeats: int) -> dict[str, float]:
    """The median of each, where they run one after the other in each round."""
    rounds = [{name: work() for name, work in of.items()} for _ in range(repeats)]
    return {name: statistics.median(one[name] for one in rounds) for name in of}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
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


if __name__ == "__main__":
    main()

"""The trace of the example `cellular`: a mobile network's, drawn when it is used. Nothing in it was measured.

It is the model of Sprout (Winstein, Sivaraman, Balakrishnan, NSDI 2013, section 3.1). Opportunities to deliver a packet are a
Poisson process. Its rate moves as Brownian motion between 0 and 1000 packets/s; at 0 it stays for a while, an outage.

It is the same everywhere: of `random`, only `random()` gives the same numbers in every version of Python, and no time is so
near to a whole millisecond that the last digits of a C library's logarithm or cosine matter.
"""

import math
import random

# The file that `cellular.toml` names.
FILE = "cellular.down"
SEED = 255
# Length of the trace, s.
LENGTH_S = 30
# Time between changes of the rate, s: Sprout's.
TICK_S = 0.02
# How far the rate moves in a second, packets/s: Sprout's.
NOISE = 200.0
# How many outages end in a second of them: Sprout's.
ESCAPE = 1.0
# The highest rate, packets/s: Sprout's.
HIGHEST = 1000.0


def opportunities() -> list[int]:
    """The times of the trace, ms; the last is its end."""
    uniform = random.Random(SEED).random
    normal: list[float] = []
    rate, millis = 400.0, []
    for tick in range(round(LENGTH_S / TICK_S)):
        if rate > 0 or uniform() < 1 - math.exp(-ESCAPE * TICK_S):
            if not normal:
                # Box and Muller's transform gives two.
                angle, radius = 2 * math.pi * uniform(), math.sqrt(-2 * math.log(1 - uniform()))
                normal = [radius * math.sin(angle), radius * math.cos(angle)]
            rate += normal.pop() * NOISE * math.sqrt(TICK_S)
            rate = min(max(rate, 0.0), 2 * HIGHEST - rate)
        at = start = tick * TICK_S
        while rate > 0:
            at -= math.log(1 - uniform()) / rate
            if at >= start + TICK_S:
                break
            millis.append(math.ceil(at * 1e3))
    return [*millis, LENGTH_S * 1000]


def text() -> str:
    """The trace as a file of mahimahi."""
    return "".join(f"{ms}\n" for ms in opportunities())

"""Write the traces of the examples: a mobile network's, in mahimahi's format, and a low satellite's, as CSV.

Both are drawn from models, with a fixed seed: nothing in them was measured.

The mobile network is the model of Sprout (Winstein, Sivaraman, Balakrishnan, NSDI 2013, section 3.1). Opportunities to
deliver a packet are a Poisson process. Its rate moves as Brownian motion between 0 and 1000 packets/s; at 0 it stays for a
while, an outage.

The satellite network changes its routes every 15 s, as Starlink does (Mohan et al., WWW 2024). Then the delay jumps, the rate
is another, and nothing is sent for a moment. Between, the delay drifts as the satellite moves. The ranges are our own choice.
"""

import math
import random
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "python/elephan/examples"

MOBILE_S = 30
"""Length of the mobile network's trace."""
TICK_S = 0.02
"""Time between changes of its rate: Sprout's."""
NOISE = 200.0
"""How far its rate moves in a second, packets/s: Sprout's."""
ESCAPE = 1.0
"""How many outages end in a second of them: Sprout's."""
HIGHEST = 1000.0
"""Its highest rate, packets/s: Sprout's."""

SLOTS = 8
"""Number of routes in the satellite network's trace."""
SLOT_S = 15.0
"""How long each lasts."""
STEP_S = 0.5
"""Time between its rows."""


def mobile(seed: int) -> str:
    """Give the time of every opportunity in ms, one in a line."""
    draw = random.Random(seed)
    rate, millis = 400.0, []
    for tick in range(round(MOBILE_S / TICK_S)):
        if rate > 0 or draw.random() < 1 - math.exp(-ESCAPE * TICK_S):
            rate += draw.gauss(0.0, NOISE * math.sqrt(TICK_S))
            rate = min(max(rate, 0.0), 2 * HIGHEST - rate)
        start = tick * TICK_S
        at = start
        while rate > 0:
            at += draw.expovariate(rate)
            if at >= start + TICK_S:
                break
            millis.append(math.ceil(at * 1e3))
    # The last opportunity is the end of the trace.
    return "".join(f"{ms}\n" for ms in [*millis, MOBILE_S * 1000])


def satellite(seed: int) -> str:
    """Give rate, delay and losses over time."""
    draw = random.Random(seed)
    lines = ["time (s),rate (Mbit/s),delay (ms),loss (%)"]
    for slot in range(SLOTS):
        begin = slot * SLOT_S
        rate, delay, drift = draw.uniform(60, 180), draw.uniform(16, 32), draw.uniform(-0.3, 0.3)
        outage = draw.uniform(0.03, 0.12)
        lines.append(f"{begin:g},0,{delay:.2f},0")
        for step in range(round(SLOT_S / STEP_S)):
            since = step * STEP_S
            # Just before the next change the satellite is low over the horizon.
            loss = 0.2 if since >= SLOT_S - 1 else 0
            now = rate * draw.uniform(0.9, 1.1)
            lines.append(f"{begin + max(since, outage):.6g},{now:.1f},{delay + drift * since:.2f},{loss}")
    return "\n".join([*lines, f"{SLOTS * SLOT_S:g},0,,", ""])


def main() -> None:
    """Write both."""
    for name, text in (("cellular.down", mobile(255)), ("satellite.csv", satellite(1))):
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

"""Trains the policy of `learned.py` by CMA-ES, on all cores: `python train.py`, after `pip install "elephan[gym]" cma`."""

import argparse
import multiprocessing
import os
import time
from functools import partial
from pathlib import Path

import cma
import learned
import numpy as np

import elephan
from elephan import gym


def scenario(random):
    """A path of 10 to 100 Mbit/s and 20 to 200 ms, for 20 s; one of two has random losses, too."""
    losses = {"loss": {"name": "random", "probability": 10 ** random.uniform(-5, -3)}} if random.random() < 0.5 else {}
    return elephan.dumbbell(
        rate=f"{10 ** random.uniform(1, 2):.3f} Mbit/s",
        rtt=f"{10 ** random.uniform(1.3, 2.3):.3f} ms",
        buffer=f"{random.uniform(10, 100):.1f}% bdp",
        path=losses,
        duration="20 s",
        seed=int(random.integers(2**32)),
        flows=[elephan.flow(gym.AGENT)],
    )


def reward(report, decision):
    """The utility of Remy, less the share of segments that were lost."""
    lost = report.lost_segments / max(report.lost_segments + report.delivered_segments, 1)
    return gym.utility(report, decision) - 10 * lost


ENVIRONMENT = gym.Environment(scenario, reward=reward)


def episodes(weights, seeds):
    """The mean reward of a step in the episodes of these seeds, and the number of steps."""
    rewards, steps = [], 0
    for seed in seeds:
        observation, _ = ENVIRONMENT.reset(seed=seed)
        total, count, truncated = 0.0, 0, False
        while not truncated:
            observation, one, _, truncated, _ = ENVIRONMENT.step([learned.act(weights, observation)])
            total, count = total + one, count + 1
        rewards.append(total / count)
        steps += count
    return float(np.mean(rewards)), steps


def main():
    """Train, and write the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generations", type=int, default=60)
    parser.add_argument("--episodes", type=int, default=8, help="Episodes of each candidate in a generation.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=learned.WEIGHTS)
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    search = cma.CMAEvolutionStrategy(np.zeros(learned.SIZE), 0.5, {"seed": options.seed, "verbose": -9})
    started, steps = time.perf_counter(), 0
    with multiprocessing.get_context("spawn").Pool(len(os.sched_getaffinity(0))) as pool:
        for generation in range(options.generations):
            candidates = search.ask()
            # The same paths for all candidates of a generation.
            seeds = random.integers(2**31, size=options.episodes).tolist()
            outcomes = pool.map(partial(episodes, seeds=seeds), candidates, chunksize=1)
            search.tell(candidates, [-mean for mean, _ in outcomes])
            steps += sum(count for _, count in outcomes)
            spent = time.perf_counter() - started
            best = max(mean for mean, _ in outcomes)
            speed = f"{steps} steps in {spent:.0f} s, {steps / spent:.0f} steps/s"
            print(f"generation {generation + 1}: best reward {best:.3f}; {speed}", flush=True)
    np.savetxt(options.out, search.result.xfavorite, fmt="%.6g")


if __name__ == "__main__":
    main()

"""A policy that was trained by `train.py`: a small neural network, whose weights are in `learned.csv`."""

from pathlib import Path

import numpy as np

from elephan.gym import FEATURES, Policy

HIDDEN = 4
# The number of weights: two layers, with a bias for each neuron.
SIZE = (len(FEATURES) + 1) * HIDDEN + HIDDEN + 1
WEIGHTS = Path(__file__).with_suffix(".csv")


def act(weights, observation):
    """The action of a network with these weights."""
    first, second = np.split(weights, [(len(FEATURES) + 1) * HIDDEN])
    hidden = np.tanh(first.reshape(HIDDEN, -1) @ np.append(observation, 1))
    return float(np.tanh(second @ np.append(hidden, 1)))


class Learned(Policy):
    """A network that was trained by CMA-ES."""

    source = "docs/train.md"
    files = (WEIGHTS.name,)

    def __init__(self):
        self.weights = np.loadtxt(WEIGHTS)

    def act(self, observation):
        return act(self.weights, observation)

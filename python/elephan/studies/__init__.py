"""Studies of many runs: comparisons, sweeps, recommendations, theory and simulation, published experiments."""

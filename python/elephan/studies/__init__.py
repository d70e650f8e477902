"""Many runs, and what they say: comparisons, sweeps, recommendations, theory beside simulation, published experiments."""

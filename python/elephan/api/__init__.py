"""A scenario, a run, and what can be read of them."""

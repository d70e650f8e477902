"""Measures a path: asks `elephan path probe server` at its far end for tests in turn, and estimates from what was seen.

The two ends, and what they agree on, are in `crates/probe`. `session` asks for tests and keeps what was seen; `budget` divides
what they may cost. Each test has a module: `mtu`, `delays`, `trains`, `curve`, `policer`, `buffer`, `loss`, `tcp`. `measure`
carries them out in order, as each needs what earlier ones found.
"""

"""The published experiments, repeated and compared with the published results.

An experiment is a function that runs scenarios of `scenarios/SOURCE` in a `Lab`. It reports rows (a published number beside
ours) and checks (tests of a published claim). Verdicts are computed, never written by hand.
"""

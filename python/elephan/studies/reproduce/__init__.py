"""The published experiments, run again and compared with the published results.

An experiment is a function that runs scenarios of `scenarios/SOURCE` in a `Lab` and reports rows (a published number
beside ours) and checks (a published claim, tested). Verdicts are computed, never written down.
"""

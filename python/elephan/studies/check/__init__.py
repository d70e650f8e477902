"""Expectations of runs, as scenario files have them in `[[expect]]`: read, decided and reported."""

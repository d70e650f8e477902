"""Scenarios, runs, and access to their data."""

"""Imports every experiment, which registers it."""

from importlib import import_module

from elephan.studies.reproduce.lab import EXPERIMENTS, SOURCES

__all__ = ["EXPERIMENTS"]

for _name in sorted([*SOURCES, "sensitivity"]):
    import_module(f"elephan.studies.reproduce.{_name.replace('-', '_')}")

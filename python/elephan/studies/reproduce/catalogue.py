"""Imports every experiment, which registers it."""

from importlib import import_module

from elephan.studies.reproduce.lab import EXPERIMENTS

__all__ = ["EXPERIMENTS"]

MODULES: tuple[str, ...] = ("kelly2003",)

for _name in MODULES:
    import_module(f"elephan.studies.reproduce.{_name}")

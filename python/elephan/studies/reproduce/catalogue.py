"""Imports every experiment, which registers it: the module of each source, or all modules of its folder."""

from importlib import import_module
from pkgutil import iter_modules

from elephan.studies.reproduce.lab import EXPERIMENTS, SOURCES

__all__ = ["EXPERIMENTS"]

for _source in SOURCES:
    _module = import_module(f"elephan.studies.reproduce.{_source}")
    for _part in iter_modules(getattr(_module, "__path__", ())):
        import_module(f"{_module.__name__}.{_part.name}")
import_module("elephan.studies.reproduce.sensitivity")

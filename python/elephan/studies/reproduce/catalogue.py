"""Imports every experiment, which registers it."""

from importlib import import_module

from elephan.studies.reproduce.lab import EXPERIMENTS

__all__ = ["EXPERIMENTS"]

MODULES: tuple[str, ...] = (
    "kelly2003",
    "li2006.chapter5",
    "li2006.chapter6",
    "li2006.chapter8_2",
    "li2006.chapter8_3_1",
    "li2006.chapter8_3_2",
    "li2006.chapter8_tables",
    "li2006.chapter9_1",
    "li2006.chapter9_2",
    "li2006.chapter9_3",
    "tekala2006",
    "nabeshima2004",
    "ltcp2003",
    "sensitivity",
)

for _name in MODULES:
    import_module(f"elephan.studies.reproduce.{_name}")

"""Li 2006: transport protocols over high performance networks. One module for each part; importing this registers them all."""

from elephan.studies.reproduce.li2006 import (
    chapter5,
    chapter6,
    chapter8_2,
    chapter8_3_1,
    chapter8_3_2,
    chapter8_tables,
    chapter9_1,
    chapter9_2,
    chapter9_3,
)

__all__ = [
    "chapter5",
    "chapter6",
    "chapter8_2",
    "chapter8_3_1",
    "chapter8_3_2",
    "chapter8_tables",
    "chapter9_1",
    "chapter9_2",
    "chapter9_3",
]

"""Every experiment: importing this registers them all."""

from elephan.studies.reproduce import kelly2003, li2006, ltcp2003, nabeshima2004, sensitivity, tekala2006
from elephan.studies.reproduce.lab import EXPERIMENTS

__all__ = ["EXPERIMENTS", "kelly2003", "li2006", "ltcp2003", "nabeshima2004", "sensitivity", "tekala2006"]

"""Congestion control in Python: `cc = "python:module:Class"`.

A subclass of `Controller` is called once a round trip. A class that `compiled` decorates becomes machine code, and is called
at every ACK.
"""

from elephan._core import AlgorithmError, Decision, Loss, Report
from elephan.foreign.compiled import compiled
from elephan.foreign.controller import Controller, Parameter

__all__ = ["AlgorithmError", "Controller", "Decision", "Loss", "Parameter", "Report", "compiled"]

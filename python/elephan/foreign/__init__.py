"""Congestion control from outside: Linux's modules, eBPF files, shared objects and Python, behind one C interface."""

"""Kernels that run as a process, in virtual time: their images, and what runs in them."""

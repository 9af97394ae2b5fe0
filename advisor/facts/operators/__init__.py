"""Kernels by type: time, shapes, cores, patterns, compilation."""

"""Operator types: what the kernels of one type tell, an aspect a module."""

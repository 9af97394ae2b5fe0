"""The benchmark's generator of true-format profiles, for tests."""

from benchmarks.large_profiles import AICPU, CONVERSIONS, LAYER, Kernel, Workload, real_size, write

__all__ = ["AICPU", "CONVERSIONS", "LAYER", "Kernel", "Workload", "real_size", "write"]

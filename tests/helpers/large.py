"""The benchmark's generator of true-format profiles, for tests."""

from benchmarks.large_profiles import write
from benchmarks.large_workload import AICPU, CONVERSIONS, LAYER, Kernel, Workload, real_size

__all__ = ["AICPU", "CONVERSIONS", "LAYER", "Kernel", "Workload", "real_size", "write"]

"""A simulator of distributed training that writes profiles in the true formats, with faults whose answer is known.

`simulate(Scenario(...))` computes the course of every kernel and collective; `write_profile(run, folder)` writes what
the profiler would have written. Used to measure accuracy (`benchmarks/accuracy.py`), scale and savings.
"""

from benchmarks.simulator.physics import Simulation, simulate
from benchmarks.simulator.scenario import Fault, Scenario, Truth, random_scenario, truths
from benchmarks.simulator.writers import write_profile

__all__ = [
    "Fault",
    "Scenario",
    "Simulation",
    "Truth",
    "random_scenario",
    "simulate",
    "truths",
    "write_profile",
]

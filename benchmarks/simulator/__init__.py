"""A simulator of distributed training that writes profiles in the true formats, with faults whose answer is known.

`simulate(Scenario(...))` computes the course of every kernel and collective; `write_profile(run, folder)` writes what
the profiler would have written. Used to measure accuracy (`benchmarks/accuracy.py`), scale and savings.
"""

from benchmarks.simulator.drawing import random_scenario
from benchmarks.simulator.physics import Simulation, simulate
from benchmarks.simulator.scenario import Fault, Scenario
from benchmarks.simulator.truth import Truth, truths
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

"""The benchmark's generator of true-format profiles, for tests."""

from __future__ import annotations

import sys
from importlib import util
from pathlib import Path

_PATH = Path(__file__).parents[2] / "benchmarks" / "large_profiles.py"
_SPEC = util.spec_from_file_location("large_profiles", _PATH)
assert _SPEC is not None and _SPEC.loader is not None
_MODULE = util.module_from_spec(_SPEC)
sys.modules["large_profiles"] = _MODULE
_SPEC.loader.exec_module(_MODULE)

Workload, Kernel, write = _MODULE.Workload, _MODULE.Kernel, _MODULE.write
LAYER, CONVERSIONS, AICPU = _MODULE.LAYER, _MODULE.CONVERSIONS, _MODULE.AICPU

"""Names of compiled kernels: an operator's type and, behind it, what tells its binaries apart."""

from __future__ import annotations

import re
from functools import lru_cache

_WORDS = (
    r"_(?:\w+_)?high_(?:performance|precision)|(?:_(?:ND|NZ|FRACTAL_NZ|FRACTAL_Z|NCHW|NHWC|NC1HWC0))+_\w*(?:true|false)"
)
"""How the inputs' formats, or what it was compiled for, begin."""
_COMPILED = re.compile(rf"([A-Z][A-Za-z0-9]*)(?:{_WORDS})\w*")
_BINARY = re.compile(r"(?:_[0-9a-f]{32}(?:_.*)?|_[0-9]{5,})(?:_mix_ai[cv])?$")
"""A hash of the inputs, or the number of the tiling, behind any name."""


@lru_cache(maxsize=4096)
def type_of_binary(name: str) -> str:
    """The operator's type of a kernel that is called by its binary, as graphs call what they launch: of
    `RmsNorm_normal_all_bf16_high_performance_2`, `MatMulV2_ND_ND_FP16_FP16_false_true_all_98513` and
    `Cast_…32 hexadecimal digits…_210000000` these are RmsNorm, MatMulV2 and Cast. Other names stay as they are."""
    if "_" not in name:
        return name
    named = _COMPILED.fullmatch(name)
    return named.group(1) if named else _BINARY.sub("", name) or name

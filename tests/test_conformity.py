"""What is read back is checked against the declared types before anything uses it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from advisor.conformity import require


@dataclass(frozen=True)
class Inner:
    name: str
    share: float | None = None


@dataclass(frozen=True)
class Outer:
    inner: Inner
    names: tuple[str, ...]
    pair: tuple[str, int]
    table: Mapping[str, float]
    anything: Any = None


def test_what_fits_is_let_through() -> None:
    """Whole numbers stand for floats, None only where it is declared."""
    require(Outer(Inner("a", 1), ("b",), ("c", 2), {"d": 0.5}, [object()]), Outer)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (Outer(Inner(["a"]), (), ("c", 2), {}), "x.inner.name"),  # type: ignore[arg-type]
        (Outer(Inner("a", "1"), (), ("c", 2), {}), "x.inner.share"),  # type: ignore[arg-type]
        (Outer(Inner("a"), ("b", None), ("c", 2), {}), "x.names"),  # type: ignore[arg-type]
        (Outer(Inner("a"), (), ("c",), {}), "x.pair"),  # type: ignore[arg-type]
        (Outer(Inner("a"), (), ("c", True), {}), "x.pair"),
        (Outer(Inner("a"), (), ("c", 2), {"d": "e"}), "x.table.d"),  # type: ignore[dict-item]
        (Outer("inner", (), ("c", 2), {}), "x.inner"),  # type: ignore[arg-type]
    ],
)
def test_what_does_not_fit_is_told_with_its_place(value: Outer, place: str) -> None:
    """A wrong type at any depth is an error that says where."""
    with pytest.raises(TypeError, match=place.replace(".", r"\.")):
        require(value, Outer, "x")

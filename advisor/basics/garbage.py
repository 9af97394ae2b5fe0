"""How often Python searches for garbage that reference counts do not find."""

from __future__ import annotations

import gc


def collect_seldom() -> None:
    """Makes the search for cyclic garbage rare: there is next to none, and millions of objects to search."""
    gc.set_threshold(200_000, 20, 100)

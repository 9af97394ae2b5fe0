"""How often Python searches for garbage that reference counts do not find."""

from __future__ import annotations

import atexit
import gc


def collect_seldom() -> None:
    """Makes the search for cyclic garbage rare: there is next to none, and millions of objects to search."""
    gc.set_threshold(200_000, 20, 100)


def end_quickly() -> None:
    """Spares the end of this process the search among all that is still alive: the system takes it back as a whole.
    That search takes a quarter of a second where tables were read."""
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)

"""How often Python searches for garbage that reference counts do not find, and memory is handed back to the system."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

KEPT_BYTES = 64_000_000
"""Memory that a worker keeps for the next block instead of handing it back."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""What glibc's mallopt calls these."""


def collect_seldom() -> None:
    """Makes the search for cyclic garbage rare: there is next to none, and millions of objects to search."""
    gc.set_threshold(200_000, 20, 100)


@contextmanager
def search_later() -> Iterator[None]:
    """No search while a rank is read: what is read lives until it is reduced, and each search would look at all of it
    and find nothing, for a twentieth of the time."""
    searched = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searched:
            gc.enable()


def spare_lasting() -> None:
    """Spares what is alive, modules and rules above all, every later search: it lives as long as this process."""
    gc.freeze()


def keep_memory() -> None:
    """Makes the C library keep what was freed, up to a limit: block after block of a file needs arrays of the same few
    megabytes, and fetching them from the system each time, page by page, takes a tenth of a worker's time."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, KEPT_BYTES)
        mallopt(_MMAP_THRESHOLD, KEPT_BYTES // 2)


def end_quickly() -> None:
    """Spares the end of this process the search among all that is still alive: the system takes it back as a whole.
    That search takes a quarter of a second where tables were read."""
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)

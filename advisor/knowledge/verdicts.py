"""The words for conclusions (`knowledge_base/verdicts.yaml`)."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from advisor.basics.resources import resource
from advisor.yamlfiles.document import read_document

LAUNCHES_LATE = "host-dispatch-bound"
"""The verdict of a host that launches more slowly than its device computes."""
PIPELINE_SLOW = "data-processing-bottleneck"
"""The verdict of data operations that make batches more slowly than the loop asks for them."""


class VerdictWord(Struct, frozen=True):
    """A verdict of the contract: its direction and the kinds of subject it is about."""

    word: str
    direction: str
    subjects: tuple[str, ...]
    also: tuple[str, ...] = ()
    """Directions that single rules of it may have instead, where the lost time lies there."""
    of_run: bool = False
    """Findings about a rank are told of the run, with its ranks, as the contract knows them."""
    points: bool = False
    """It only says where to look: without time that may be won back, nothing is known to be wrong."""
    waits: bool = False
    """What it costs the device waits, whatever its direction: nothing of it is computed."""
    loads: bool = False
    """Batches come late: until they do not, what else is mended only lengthens the wait for them."""
    loops: bool = False
    """The loop's own thread loses it, beside which workers load: batches come no sooner for it."""


def is_of_loading(verdict: str) -> bool:
    """Whether such a cause makes batches come late."""
    word = verdict_words().get(verdict)
    return word is not None and word.loads


def frees(verdict: str, holder: str) -> bool:
    """Whether mending such a cause makes keep up what takes back other gains: `loading` or `launching`."""
    return is_of_loading(verdict) if holder == "loading" else verdict == LAUNCHES_LATE


def is_of_the_loop(verdict: str) -> bool:
    """Whether the loop's own thread loses what such a cause costs, beside the workers that load."""
    word = verdict_words().get(verdict)
    return word is not None and word.loops


def only_waits(verdict: str) -> bool:
    """Whether nothing of what such a cause costs is computed, whatever its direction."""
    word = verdict_words().get(verdict)
    return word is not None and word.waits


@lru_cache(maxsize=1)
def verdict_words() -> dict[str, VerdictWord]:
    """The built-in verdicts by word."""
    data = read_document(resource("knowledge_base", "verdicts.yaml")).data
    return {
        word: VerdictWord(
            word,
            entry["direction"],
            tuple(entry["subjects"]),
            tuple(entry.get("also", ())),
            entry.get("of_run", False),
            entry.get("points", False),
            entry.get("waits", False),
            entry.get("loads", False),
            entry.get("loops", False),
        )
        for word, entry in data.items()
    }

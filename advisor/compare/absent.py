"""Facts that are not there because there is nothing of their kind."""

from __future__ import annotations

from advisor.compare.facts import FactTable
from advisor.knowledge.comparison import settings


def is_none(name: str, here: FactTable, there: FactTable) -> bool:
    """Whether the fact is 0 `here`, where no subject has it: what would have shown it was measured on both sides."""
    witness = settings().none_beside.get(name)
    if witness is None or here.of(name):
        return False
    return all(table.number(witness) is not None for table in (here, there))

"""What memory files tell of the largest allocation."""

from types import SimpleNamespace
from typing import cast

import pandas as pd
import pytest

from advisor.facts.device.memory import _largest
from advisor.sources.base import Rank


@pytest.mark.parametrize(("name", "told"), [("aten::_foreach_add", "aten::_foreach_add"), (None, "")])
def test_an_allocation_without_a_name_is_nobodys(name: str | None, told: str) -> None:
    """A text that a database lacks is no operator called nan."""
    frame = pd.DataFrame({"name": pd.array([name, "aten::add"], dtype="string"), "size_bytes": [3e6, 1e6]})
    rank = SimpleNamespace(has=lambda table: True, read=lambda table, columns: frame)
    assert _largest(cast(Rank, rank)) == (told, 3e6)

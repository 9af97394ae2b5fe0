"""One launch of a kernel, as msprof writes it, and what is said of it."""

from __future__ import annotations

from pathlib import Path

from advisor.model import Finding
from advisor.pipeline import Options, advise
from advisor.ruleset.files.loader import load_rules


def said_of_launch(folder: Path, heading: str, row: str) -> Finding:
    """The finding about the kernel of this one row of op_summary (COMP087)."""
    output = folder / "PROF_000001_A" / "mindstudio_profiler_output"
    output.mkdir(parents=True)
    (output / "op_summary_20260101000000.csv").write_text(f"{heading}\n{row}\n", encoding="utf-8")
    (finding,) = (f for f in advise([folder], load_rules(), Options()).findings if f.rule == "COMP087")
    return finding

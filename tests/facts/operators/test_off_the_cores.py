"""Which data types put an operator on the AI CPU: those that its calls on a core do not have."""

from pathlib import Path

import pytest

from advisor.model import Subject
from advisor.pipeline import Options, measure

_HEAD = (
    "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),"
    "Input Shapes,Input Data Types,Output Shapes,Output Data Types"
)


def replacement(folder: Path, *calls: tuple[str, str]) -> object:
    """What to use instead of what, of IndexAdd with these (core, type of its data); its index has 64 bits."""
    rows = [_HEAD]
    for step in range(4):
        for number, (core, kind) in enumerate(calls):
            shapes = '"64;8;64"', f"{kind};INT64;{kind}", '"64"', kind
            rows.append(f"{step},k{number},IndexAdd,{core},{1000 * step + 50 * number},40,{','.join(shapes)}")
    (folder / "kernel_details.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    facts = measure([folder], ["operator_type.aicpu_replacement"], Options(jobs=1)).facts
    return facts.value("operator_type.aicpu_replacement", Subject("operator_type", "IndexAdd"))


_CORE, _CPU = "AI_VECTOR_CORE", "AI_CPU"


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        ([(_CORE, "FLOAT"), (_CORE, "FLOAT"), (_CORE, "INT32"), (_CPU, "INT8")], "INT8 → FLOAT"),
        ([(_CORE, "FLOAT"), (_CPU, "DOUBLE")], "DOUBLE → FLOAT"),
        ([(_CORE, "FLOAT"), (_CPU, "FLOAT")], None),
        ([(_CORE, "N/A"), (_CPU, "N/A")], None),
        ([(_CPU, "INT8")], None),
        ([(_CPU, "INT64")], "INT64 → INT32"),
    ],
)
def test_types_that_also_run_on_a_core_are_acquitted(
    tmp_path: Path, calls: list[tuple[str, str]], told: object
) -> None:
    """Nobody is told to convert an index that the cores take as it is."""
    assert replacement(tmp_path, *calls) == told

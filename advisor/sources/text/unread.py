"""Files that profilers write and that nothing can be judged by alone: what they are, and which of their neighbours can.

Asked where nothing of a profile was recognised, so that a reader who has one file learns which other one to bring.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from advisor.sources.folders import list_folder
from advisor.sources.text.textfiles import require_file

_MOST_FOLDERS, _MOST_OPENED, _MOST_TOLD = 64, 16, 3
_BEGINNING = 1 << 16
_KINDS = (
    (
        r"operator_details.*\.csv",
        "holds times of the framework's operators without an order and without steps; not read (kernel_details.csv, "
        "step_trace_time.csv or trace_view.json of the same folder can be judged)",
    ),
    (
        r"(?:hccl|step_trace|ge|runtime_api|acl)_[0-9]+_[0-9]+_[0-9]+\.json",
        "is one layer of an older export's timelines; not read alone (msprof_*.json or task_time_*.json of the same "
        "folder can be judged)",
    ),
    (
        r"output_(?:op_compute_time|timeline_data|data_preprocess)\w*_[0-9]+\.txt",
        "is an intermediate file of an older MindSpore; not read (step_trace_raw_*_detail_time.csv and "
        "aicore_intermediate_*_detail.csv of the same folder can be judged)",
    ),
    (
        r".+\.(?:xlsx?|xlsm|ods)",
        "is a spreadsheet; not read (save the sheet as CSV, or use the file that the profiler wrote)",
    ),
)
_OF_GPU = (b"cudaLaunchKernel", b'"deviceProperties"', b"cudaMemcpy", b"hipLaunchKernel")
OF_GPU = "is the timeline of a GPU; profiles of Ascend NPUs are judged"
"""What is said of the timeline of another device, whoever finds it."""


def why_unread(path: Path) -> str | None:
    """What the file is, where it is known and cannot be judged alone."""
    return _by_name(path) or (_by_content(path) if path.suffix.lower() == ".json" else None)


def unread_files(folders: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """(file, what it is) of the first of each kind in these folders."""
    kinds: dict[str, Path] = {}
    opened = 0
    for path in (path for folder in islice(folders, _MOST_FOLDERS) for path in list_folder(folder).find(r".+")):
        text = _by_name(path)
        if text is None and path.suffix.lower() == ".json" and opened < _MOST_OPENED:
            opened += 1
            text = _by_content(path)
        if text is not None:
            kinds.setdefault(text, path)
    yield from islice(((path, text) for text, path in kinds.items()), _MOST_TOLD)


def _by_name(path: Path) -> str | None:
    return next((text for pattern, text in _KINDS if re.fullmatch(pattern, path.name, re.IGNORECASE)), None)


def _by_content(path: Path) -> str | None:
    try:
        require_file(path)
        with path.open("rb") as stream:
            beginning = stream.read(_BEGINNING)
    except OSError:
        return None
    return OF_GPU if b'"ph"' in beginning and any(word in beginning for word in _OF_GPU) else None

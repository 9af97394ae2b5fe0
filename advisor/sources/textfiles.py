"""Text as people and tools really leave it: encodings, marks, sizes.

UTF-8 is what profilers write; spreadsheets and editors turn it into UTF-16, GBK or UTF-8 with a mark.
"""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import TextIO

_SAMPLE = 1 << 16
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def detect_encoding(sample: bytes, *, whole: bool = False) -> str:
    """Name of the codec for text that begins with `sample`; `whole` says that nothing follows.

    A wrong guess harms labels only: digits and separators are the same in all candidates.
    """
    for mark, codec in _MARKS:
        if sample.startswith(mark):
            return codec
    if len(sample) >= 4:
        if sample[1] == 0 and sample[3] == 0 and sample[0]:
            return "utf-16-le"
        if sample[0] == 0 and sample[2] == 0 and sample[1]:
            return "utf-16-be"
    for codec in ("utf-8", "gb18030"):
        try:
            codecs.getincrementaldecoder(codec)().decode(sample, whole)
        except UnicodeDecodeError:
            continue
        return codec
    return "utf-8"


def open_text(path: Path) -> TextIO:
    """Opens a text file with its line ends kept (as the csv module wants them); undecodable bytes become U+FFFD."""
    with path.open("rb") as stream:
        sample = stream.read(_SAMPLE)
    return path.open(encoding=detect_encoding(sample, whole=len(sample) < _SAMPLE), errors="replace", newline="")


def read_text(path: Path, limit: int | None = None) -> str:
    """The whole text, or about the first `limit` bytes of it."""
    with path.open("rb") as stream:
        data = stream.read() if limit is None else stream.read(limit)
    return data.decode(detect_encoding(data[:_SAMPLE], whole=len(data) <= _SAMPLE), errors="replace")

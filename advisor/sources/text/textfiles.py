"""Text as people and tools really leave it: encodings, marks, sizes.

UTF-8 is what profilers write; spreadsheets and editors turn it into UTF-16, GBK or UTF-8 with a mark.
"""

from __future__ import annotations

import codecs
import stat
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

LARGEST = 2 << 30
"""Bytes that are read at once at most; larger files need a reader that goes by blocks."""
LONGEST_LINE = 1 << 26
"""Characters; no row of a profile comes near it, and a line without end must not fill the memory."""
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


def ends_inside_character(data: bytes) -> bool:
    """Whether UTF-8 text that ends with these bytes was cut within its last character."""
    decoder = codecs.getincrementaldecoder("utf-8")("ignore")
    decoder.decode(data)
    return bool(decoder.getstate()[0])


def is_no_whole_text(first: bytes, size: int) -> bool:
    """Whether a file of this size, whose first bytes show characters of two or four bytes, was cut within one."""
    codec = detect_encoding(first)
    return bool(size % (2 if codec.startswith("utf-16") else 4 if codec.startswith("utf-32") else 1))


class NotAFile(OSError):
    """A pipe, device or socket under a file's name: reading it might never end."""


class TooLarge(ValueError):
    """More than is read at once; the text says of what."""


def require_file(path: Path) -> int:
    """The size in bytes of a regular file. Raises OSError for everything else, before it could block."""
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(path)
    if not stat.S_ISREG(status.st_mode):
        raise NotAFile(path)
    return status.st_size


def why_unreadable(error: OSError) -> str:
    """What to tell about a file that could not be opened or read."""
    if isinstance(error, NotAFile):
        return "is a pipe, device or socket where a file was expected; not read"
    if isinstance(error, FileNotFoundError):
        return "vanished or is a link to nothing; run again once the profiler has finished writing"
    if isinstance(error, PermissionError):
        return "cannot be opened: permission denied; make it readable for this user"
    if isinstance(error, IsADirectoryError):
        return "is a folder where a file was expected"
    return f"cannot be read: {error.strerror or error}"


def lines_of(stream: TextIO) -> Iterator[str]:
    """The lines of a text file, ends kept. Raises TooLarge for a line without end."""
    while line := stream.readline(LONGEST_LINE):
        if len(line) >= LONGEST_LINE:
            raise TooLarge(f"{Path(stream.name).name} has a line of more than {LONGEST_LINE >> 20} million characters")
        yield line


def open_text(path: Path) -> TextIO:
    """Opens a text file with its line ends kept (as the csv module wants them); undecodable bytes become U+FFFD."""
    require_file(path)
    stream = path.open("rb")
    try:
        sample = stream.read(_SAMPLE)
        stream.seek(0)
    except OSError:
        stream.close()
        raise
    encoding = detect_encoding(sample, whole=len(sample) < _SAMPLE)
    return TextIOWrapper(stream, encoding=encoding, errors="replace", newline="")


def read_text(path: Path, limit: int | None = None) -> str:
    """The whole text, or about the first `limit` bytes of it. Raises TooLarge."""
    if require_file(path) > LARGEST and limit is None:
        raise TooLarge(f"{path.name} is larger than {LARGEST >> 30} GiB")
    with path.open("rb") as stream:
        data = stream.read() if limit is None else stream.read(limit)
    return decoded(data)


def decoded(data: bytes) -> str:
    """The text of a file, or of its beginning."""
    return data.decode(detect_encoding(data[:_SAMPLE], whole=len(data) <= _SAMPLE), errors="replace")

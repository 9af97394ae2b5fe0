"""Mutations that know nothing of the format: cuts, flipped bits, encodings, line ends."""

from __future__ import annotations

from pathlib import Path
from random import Random

from benchmarks.mutants.base import LESS, OTHER, SAME, mutation, replace_file

_TEXT = (".csv", ".json", ".txt")
_HUGE = 8_000_000


@mutation("bytes.cut", LESS)
def cut(path: Path, draw: Random) -> str | None:
    data = path.read_bytes()
    if len(data) < 2:
        return None
    at = draw.randrange(1, len(data))
    replace_file(path, data[:at])
    return f"cut after {at} of {len(data)} bytes"


@mutation("bytes.cut_lines", LESS, ".csv", ".txt")
def cut_lines(path: Path, draw: Random) -> str | None:
    lines = path.read_bytes().splitlines(keepends=True)
    if len(lines) < 3:
        return None
    at = draw.randrange(1, len(lines))
    replace_file(path, b"".join(lines[:at]))
    return f"cut after {at} of {len(lines)} lines"


@mutation("bytes.flip", OTHER)
def flip(path: Path, draw: Random) -> str | None:
    data = bytearray(path.read_bytes())
    if not data:
        return None
    count = draw.choice((1, 1, 3, 20))
    for _ in range(count):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    replace_file(path, bytes(data))
    return f"{count} bits flipped"


@mutation("bytes.random_block", OTHER)
def random_block(path: Path, draw: Random) -> str | None:
    data = bytearray(path.read_bytes())
    if not data:
        return None
    at, size = draw.randrange(len(data)), draw.choice((4, 64, 512))
    data[at : at + size] = draw.randbytes(size)
    replace_file(path, bytes(data))
    return f"{size} random bytes at {at}"


@mutation("bytes.hole", LESS)
def hole(path: Path, draw: Random) -> str | None:
    """Zeros where a block never reached the disk."""
    data = bytearray(path.read_bytes())
    if not data:
        return None
    at = draw.randrange(len(data)) // 512 * 512
    size = min(draw.choice((512, 4096)), len(data) - at)
    data[at : at + size] = bytes(size)
    replace_file(path, bytes(data))
    return f"{size} zeros at {at}"


@mutation("bytes.zero_tail", LESS)
def zero_tail(path: Path, draw: Random) -> str | None:
    data = path.read_bytes()
    at = draw.randrange(len(data) + 1)
    replace_file(path, data[:at] + bytes(len(data) - at))
    return f"zeros from {at} to the end"


@mutation("bytes.repeat_block", OTHER)
def repeat_block(path: Path, draw: Random) -> str | None:
    data = path.read_bytes()
    if len(data) < 8:
        return None
    a = draw.randrange(len(data) - 4)
    b = min(len(data), a + draw.choice((16, 512, 4096)))
    replace_file(path, data[:b] + data[a:b] + data[b:])
    return f"bytes {a}..{b} twice"


@mutation("bytes.empty", LESS)
def empty(path: Path, draw: Random) -> str | None:
    replace_file(path, b"")
    return "empty"


@mutation("bytes.blank", LESS)
def blank(path: Path, draw: Random) -> str | None:
    replace_file(path, draw.choice((b"\n", b" \n\t\r\n" * 50, b"\x00" * 4096, b"\xef\xbb\xbf")))
    return "nothing but white space"


@mutation("bytes.random", LESS)
def random_bytes(path: Path, draw: Random) -> str | None:
    replace_file(path, draw.randbytes(draw.choice((1, 7, 512, 20_000))))
    return "random bytes"


@mutation("bytes.huge_line", LESS, *_TEXT)
def huge_line(path: Path, draw: Random) -> str | None:
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    at = draw.randrange(len(lines) + 1)
    filler = draw.choice((b"x", b"1", b"[", b'"', b",", b"{", b"\\", b"\t"))
    replace_file(path, b"".join(lines[:at]) + filler * _HUGE + b"".join(lines[at:]))
    return f"{_HUGE} times {filler!r} before line {at + 1}"


@mutation("bytes.foreign", LESS)
def foreign(path: Path, draw: Random) -> str | None:
    """Another file of the profile under this name."""
    others = sorted(p for p in path.parent.iterdir() if p.is_file() and p.suffix != path.suffix)
    if not others:
        return None
    other = draw.choice(others)
    replace_file(path, other.read_bytes())
    return f"holds {other.name}"


@mutation("bytes.utf16", SAME, ".csv", ".json")
def utf16(path: Path, draw: Random) -> str | None:
    codec = draw.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"))
    replace_file(path, path.read_bytes().decode().encode(codec))
    return codec


@mutation("bytes.gbk", SAME, ".csv")
def gbk(path: Path, draw: Random) -> str | None:
    text = path.read_bytes().decode()
    replace_file(path, (text.rstrip("\r\n") + "\n").encode("gb18030"))
    return "GB 18030"


@mutation("bytes.crlf", SAME, *_TEXT)
def crlf(path: Path, draw: Random) -> str | None:
    end = draw.choice((b"\r\n", b"\n", b"\r"))
    replace_file(path, end.join(path.read_bytes().splitlines()) + end)
    return f"lines end in {end!r}"


@mutation("bytes.no_last_end", SAME, *_TEXT)
def no_last_end(path: Path, draw: Random) -> str | None:
    replace_file(path, path.read_bytes().rstrip(b"\r\n"))
    return "no line end at the end"


@mutation("bytes.blank_lines", SAME, ".csv", ".json")
def blank_lines(path: Path, draw: Random) -> str | None:
    lines = path.read_bytes().splitlines(keepends=True)
    if b'"' in b"".join(lines) and path.suffix == ".csv":
        return None
    at = draw.randrange(len(lines)) if len(lines) > 1 else 0
    replace_file(path, b"".join(lines[:at]) + b"\n" * draw.choice((1, 40)) + b"".join(lines[at:]) + b"\n\n")
    return f"blank lines before line {at + 1}"


@mutation("bytes.nul", OTHER, *_TEXT)
def nul(path: Path, draw: Random) -> str | None:
    data = bytearray(path.read_bytes())
    for _ in range(5):
        data.insert(draw.randrange(len(data) + 1), 0)
    replace_file(path, bytes(data))
    return "five NUL characters"

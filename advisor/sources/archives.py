"""Archives (.tar.gz, .tgz, .tar, .zip, or one of them on standard input): unpacked into a temporary folder, as the
work of a stranger. Only plain files and folders leave an archive, only into that folder, and only so many bytes.
"""

from __future__ import annotations

import gzip
import io
import logging
import os
import shutil
import stat
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from msgspec import Struct, field

from advisor.basics.errors import NoVerdict, UsageError
from advisor.model import Problem

log = logging.getLogger("advisor")

STANDARD_INPUT = "-"
_SAID_INPUT = "(standard input)"
MOST_BYTES = 50_000_000_000
"""Of all files of an archive; profiles of many ranks have tens of gigabytes."""
MOST_GROWTH = 200
"""Times the archive's own size; tables and timelines shrink to a thirtieth at best."""
ALWAYS_BYTES = 500_000_000
"""So much may leave any archive, however small."""
SPARE_BYTES = 500_000_000
"""So much must stay free where it is unpacked."""
MOST_ENTRIES = 100_000
_FOLDERS, _FOLDERS_OF_ONE = 1_000, 4
"""No more folders than this and so many for each entry: one name may ask for fifteen, and the next for other ones."""
DEEPEST = 16
_LONGEST_READ = 16_000_000
"""The directory of an archive is shorter."""
_LONGEST_HEADER = 1_000_000
"""Of one entry of a tar archive; names and attributes have a few hundred bytes."""
_HEADERS_BYTES, _HEADER_BYTES = 16_000_000, 2048
"""All headers of a tar archive are shorter than this and so much for each entry: they cost far more time than data."""
_MOST_SHARED = 1_000
"""Attributes that hold for all entries of a tar archive: each of them gets a copy."""
_BLOCK = 1 << 16
_MOST_ZEROS = 1 << 20
"""Zeros in a row behind which a compressed file has ended: what is stored as it is has a header every 64 kB."""
_LONGEST_NAME = 255
_TOLD = 20
"""Entries left out that are told one by one."""
_DAMAGE = (EOFError, OSError, ValueError, tarfile.TarError, zipfile.BadZipFile, zlib.error, NotImplementedError,
           RuntimeError, UnicodeError)  # fmt: skip


class Opened(Struct):
    """Paths to read in place of those that the user named."""

    paths: list[str | Path] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    shown: str = ""


def is_archive(path: str | Path) -> bool:
    """Whether a user who names this means an archive."""
    name = str(path).lower()
    return name == STANDARD_INPUT or (name.endswith((".tar.gz", ".tgz", ".tar", ".zip")) and not Path(path).is_dir())


@contextmanager
def opened(paths: Sequence[str | Path]) -> Iterator[Opened]:
    """The paths with a temporary folder for each archive among them; the folders are gone afterwards.

    Raises UsageError where an archive does not exist, NoVerdict where it cannot be read or is larger than it should be.
    """
    result = Opened(shown=", ".join(_SAID_INPUT if str(path) == STANDARD_INPUT else str(path) for path in paths))
    with ExitStack() as stack:
        for path in paths:
            inside = [] if is_archive(path) else _archives_in(Path(path))
            if not inside and not is_archive(path):
                result.paths.append(path)
                continue
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="advisor-")))
            if inside:
                result.paths.append(_unpack_each(inside, folder, str(path), result.problems))
                continue
            archive = _spooled(folder) if str(path) == STANDARD_INPUT else Path(path).expanduser()
            size = _size_of(archive, _place(str(path)))
            target = _unpack(archive, folder, _place(str(path)), result.problems, _Budget(folder, allowed_bytes(size)))
            result.paths.append(target)
        yield result


def _archives_in(folder: Path) -> list[Path]:
    """The archives in a folder that holds nothing else: each rank was packed by itself."""
    found: list[Path] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if not (is_archive(entry.path) and entry.is_file(follow_symlinks=False)) or len(found) >= MOST_ENTRIES:
                    return []
                found.append(Path(entry.path))
    except (OSError, ValueError):
        return []
    return sorted(found)


def _unpack_each(archives: Sequence[Path], folder: Path, place: str, problems: list[Problem]) -> Path:
    """Unpacks archives that lie side by side, as one: what they hold together is limited as for one of their size."""
    sizes, given, before = dict[Path, int](), 0, len(problems)
    shown_as = {path: f"{place.rstrip('/')}/{path.name}" for path in archives}
    for path, shown in shown_as.items():
        try:
            sizes[path] = _size_of(path, shown)
        except UsageError as error:  # gone since the folder was listed
            problems.append(Problem(shown, error.message))
    budget = _Budget(folder, allowed_bytes(sum(sizes.values())))
    for path in sizes:
        shown = shown_as[path]
        try:
            _unpack(path, folder, shown, problems, budget)
            given += 1
        except _Damaged as error:
            problems.append(Problem(shown, error.message))
    if not given:
        why = "".join(f": {Path(problem.file).name} {problem.problem}" for problem in problems[before : before + 1])
        raise NoVerdict(f"none of its archives can be unpacked{why}", place=place)
    return folder


def _place(shown: str) -> str:
    return _SAID_INPUT if shown == STANDARD_INPUT else shown


def allowed_bytes(size: int) -> int:
    """Bytes that an archive or packed file of this size may hold."""
    return min(max(ALWAYS_BYTES, MOST_GROWTH * size), MOST_BYTES)


def _spooled(folder: Path) -> Path:
    """Standard input as a file."""
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None or sys.stdin.isatty():
        raise UsageError("there is nothing on standard input", hint="ssh node tar cz profile | advisor advise -")
    target, budget = folder / "standard-input", _Budget(folder, MOST_BYTES)
    with target.open("wb") as file:
        while block := stream.read(_BLOCK):
            budget.take(len(block))
            file.write(block)
    return target


def _size_of(archive: Path, place: str) -> int:
    """Bytes of the archive. Raises UsageError where there is none, or nobody may look."""
    try:
        state = archive.stat()
    except FileNotFoundError:
        raise UsageError("no such file", place=place, hint="check the path of the archive") from None
    except OSError as error:
        text = f"cannot be opened: {error.strerror or error}"
        raise UsageError(text, place=place, hint="check the path of the archive, and its links") from None
    if not stat.S_ISREG(state.st_mode):
        raise UsageError("is no file", place=place, hint="name an archive, or `-` for one on standard input")
    return state.st_size


def _unpack(archive: Path, folder: Path, place: str, problems: list[Problem], budget: _Budget) -> Path:
    """Unpacks into a new folder below this one and returns it; what is left out becomes a problem. Archives in the
    archive are unpacked where nothing else is in it, those in them are not."""
    target = _new_folder(folder, archive.name)
    writer = _fill(archive, target, place, problems, budget)
    found = _lifted(target)
    packed = _archives_in(found)
    given = 0
    for path in packed:
        try:
            target = _new_folder(found, path.name)
            _fill(path, target, f"{place}: {path.name}", problems, budget)
            _lifted(target)
            given += 1
        except _Damaged as error:
            problems.append(Problem(f"{place}: {path.name}", error.message))
        path.unlink()
    if packed and not given:
        raise _Damaged("none of its archives can be unpacked", place=place)
    log.info("%s: %d files, %d bytes unpacked", place, writer.files, budget.taken)
    return found


def _lifted(target: Path) -> Path:
    """The only folder of an archive in place of the folder it was unpacked to, else that one: an archive that is named
    like the rank folder it holds makes no rank folder of its own."""
    inside, shell = list(target.iterdir()), target.with_name(f".{target.name[: _LONGEST_NAME - 1]}")
    if len(inside) != 1 or not inside[0].is_dir() or shell.exists():
        return target
    target.rename(shell)
    free = target.with_name(inside[0].name)
    found = (shell / inside[0].name).rename(target if free.exists() else free)
    shell.rmdir()
    return found


def _new_folder(folder: Path, name: str) -> Path:
    stem = name.partition(".")[0] or "archive"
    target, number = folder / stem, 0
    while target.exists():
        number += 1
        target = folder / f"{stem}-unpacked{number if number > 1 else ''}"
    target.mkdir(mode=0o700)
    return target


def _fill(archive: Path, target: Path, place: str, problems: list[Problem], budget: _Budget) -> _Writer:
    writer = _Writer(target, budget)
    try:
        with archive.open("rb") as stream:
            _unpack_stream(stream, writer)
    except _TooMuch as error:
        hint = "if it is no bomb, unpack it yourself and name the folder"
        raise NoVerdict(f"{error}; it was not unpacked", place=place, hint=hint) from None
    except _DAMAGE as error:
        if not writer.files:
            raise _Damaged(f"cannot be unpacked: {error or type(error).__name__}", place=place) from None
        problems.append(Problem(place, f"is damaged or cut off after {writer.files} files; the rest was not read"))
    problems += [Problem(f"{place}: {name}", reason) for name, reason in writer.left_out[:_TOLD]]
    if len(writer.left_out) > _TOLD:
        problems.append(Problem(place, f"{len(writer.left_out) - _TOLD} further entries were left out"))
    return writer


def _unpack_stream(stream: IO[bytes], writer: _Writer) -> None:
    head = stream.read(4)
    stream.seek(0)
    if head[:2] == b"\x1f\x8b":
        with gzip.GzipFile(fileobj=_Unpadded(stream)) as plain:
            _expect_no_more(_unpack_tar(plain, writer))
    elif head == b"PK\x03\x04" or head == b"PK\x05\x06":
        _unpack_zip(stream, writer)
    else:
        _expect_no_more(_Unpadded(_unpack_tar(stream, writer)))


def _expect_no_more(rest: Any) -> None:
    """Reads to the end, where a checksum may stand. Behind the end of an archive zeros fill its last record: anything
    else is entries behind a hole, and more zeros are entries that became a hole, for which EOFError is raised."""
    behind = 0
    while block := rest.read(_BLOCK):
        behind += len(block)
        if block.strip(b"\0") or behind > tarfile.RECORDSIZE:
            raise EOFError


def _unpack_tar(stream: Any, writer: _Writer) -> _Forward:
    """Unpacks up to the archive's own end; returns what is behind it."""
    forward = _Forward(stream, writer.budget)
    with tarfile.open(fileobj=forward, mode="r:") as archive:  # type: ignore[call-overload]
        while (entry := archive.next()) is not None:
            archive.members.clear()  # type: ignore[attr-defined,unused-ignore]
            if len(archive.pax_headers) > _MOST_SHARED:
                raise _TooMuch(_HEADERS_TOO_LARGE)
            if entry.isdir():
                writer.budget.count()
            elif not entry.isreg() or entry.sparse is not None:
                writer.leave_out(entry.name, _kind(entry))
            elif (source := archive.extractfile(entry)) is not None:
                with forward.within_content():
                    writer.write(entry.name, source, counted=True)
    if forward.header != bytes(tarfile.BLOCKSIZE):  # tarfile ends without a word at a damaged header
        raise EOFError
    return forward


def _kind(entry: tarfile.TarInfo) -> str:
    if entry.issym() or entry.islnk():
        return "is a link, which may lead anywhere; it was not unpacked"
    return "is no plain file; it was not unpacked"


def _unpack_zip(stream: IO[bytes], writer: _Writer) -> None:
    with zipfile.ZipFile(_Bounded(stream)) as archive:
        for entry in archive.infolist():
            mode = entry.external_attr >> 16
            if entry.is_dir():
                writer.budget.count()
            elif mode and mode & 0o170000 not in (0, 0o100000):
                writer.leave_out(entry.filename, "is a link or no plain file; it was not unpacked")
            elif entry.flag_bits & 1:
                writer.leave_out(entry.filename, "is encrypted; it was not unpacked")
            elif entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                writer.leave_out(entry.filename, "is packed in an unusual way; it was not unpacked")
            else:
                _unpack_zipped(archive, entry, writer)


def _unpack_zipped(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, writer: _Writer) -> None:
    """Entries of a zip file stand for themselves: a damaged one costs no other."""
    try:
        with archive.open(entry) as source:
            writer.write(entry.filename, source)
    except _TooMuch:
        raise
    except _DAMAGE as error:
        writer.leave_out(entry.filename, f"is damaged: {error or type(error).__name__}")


class _TooMuch(Exception):
    """An archive that holds more than it should."""


_HEADERS_TOO_LARGE = "its headers are larger than those of any profile"


class _Damaged(NoVerdict):
    """An archive of which nothing can be read."""


class _Budget:
    """How many bytes may still be written or skipped."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.limit = limit
        self.room = shutil.disk_usage(folder).free - SPARE_BYTES
        self.taken = self.entries = self.folders = 0

    def count(self) -> None:
        """One entry more, unpacked or left out."""
        self.entries += 1
        if self.entries > MOST_ENTRIES:
            raise _TooMuch(f"it holds more than {MOST_ENTRIES} entries")

    def count_folder(self) -> None:
        """One folder more, made for an entry's name."""
        self.folders += 1
        if self.folders > min(MOST_ENTRIES, _FOLDERS + _FOLDERS_OF_ONE * self.entries):
            raise _TooMuch("it holds more folders than any profile")

    def take(self, count: int) -> None:
        self.taken += count
        if self.taken > self.limit:
            raise _TooMuch(f"it holds more than {self.limit / 1e9:.1f} GB, far more than its own size")
        if self.taken > self.room:
            raise _TooMuch(f"more than the {max(self.room, 0) / 1e9:.1f} GB that are free in {tempfile.gettempdir()}")


class _Writer:
    """Puts entries below one folder, each under the name it claims where that stays inside."""

    def __init__(self, folder: Path, budget: _Budget) -> None:
        self.folder, self.budget = folder, budget
        self.files = 0
        self.left_out: list[tuple[str, str]] = []
        self._made = {folder}

    def leave_out(self, name: str, reason: str) -> None:
        self.budget.count()
        self.left_out.append((name[:_LONGEST_NAME], reason))

    def write(self, name: str, source: IO[bytes], *, counted: bool = False) -> None:
        """Copies one file; `counted` where its bytes are taken from the budget as they are read."""
        parts = _inside(name)
        if parts is None:
            self.leave_out(name, "its name leads out of the archive; it was not unpacked")
            return
        self.budget.count()
        target = self.folder.joinpath(*parts)
        try:
            self._make(target.parent)
            file = target.open("xb")
        except OSError as error:
            reason = "is there twice; the first one is used" if target.is_file() else error.strerror or str(error)
            self.left_out.append((name[:_LONGEST_NAME], reason))
            return
        try:
            with file:
                while block := source.read(_BLOCK):
                    if not counted:
                        self.budget.take(len(block))
                    _write(file, block)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
        self.files += 1

    def _make(self, folder: Path) -> None:
        if folder not in self._made:
            self._make(folder.parent)
            self.budget.count_folder()
            folder.mkdir(mode=0o700, exist_ok=True)
            self._made.add(folder)


def _write(file: IO[bytes], block: bytes) -> None:
    try:
        file.write(block)
    except OSError as error:
        raise _TooMuch(f"the temporary folder cannot hold it: {error.strerror or error}") from None


def _inside(name: str) -> tuple[str, ...] | None:
    """The parts of a name that stays below the folder it is put in; None for any other."""
    path = PurePosixPath(name.replace("\\", "/"))
    parts = [part for part in path.parts if part != "."]
    if path.is_absolute() or not parts or len(parts) > DEEPEST:
        return None
    longest = max(len(part.encode("utf-8", "surrogatepass")) for part in parts)
    if longest > _LONGEST_NAME or any(part == ".." or ":" in part or "\0" in part for part in parts):
        return None
    return tuple(parts)


class _Bounded(io.RawIOBase):
    """A file of which nobody reads much at once: lengths in it are a stranger's."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            size = self._rest()
        if size > _LONGEST_READ:
            raise _TooMuch("its directory is larger than that of any profile")
        return self._stream.read(size)

    def _rest(self) -> int:
        here = self._stream.tell()
        end = self._stream.seek(0, os.SEEK_END)
        self._stream.seek(here)
        return end - here

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True


class _Unpadded(io.RawIOBase):
    """A file that ends where nothing but zeros follow: gzip looks at each of them by itself, and a file with a hole of
    gigabytes behind it would take minutes. Compressed data has no such run, nor has the padding of an archive."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._zeros = stream, 0

    def read(self, size: int | None = -1) -> bytes:
        block = self._stream.read(_BLOCK if size is None or size < 0 else size)
        self._zeros = self._zeros + len(block) if not block.strip(b"\0") else 0
        return block if self._zeros <= _MOST_ZEROS else b""


class _Forward:
    """A stream that only goes forward (and one byte back, as tarfile does), every byte of it taken from a budget."""

    def __init__(self, stream: Any, budget: _Budget) -> None:
        self._stream, self._budget = stream, budget
        self._position, self._last, self._back = 0, b"", False
        self._headers, self._within_content = 0, False
        self.header = b""
        """What was read last as a header."""

    @contextmanager
    def within_content(self) -> Iterator[None]:
        """What is read meanwhile is no header."""
        self._within_content = True
        try:
            yield
        finally:
            self._within_content = False

    def read(self, size: int = -1) -> bytes:
        if not self._within_content:
            self._headers += max(size, 0)
            most = _HEADERS_BYTES + _HEADER_BYTES * self._budget.entries
            if not 0 <= size <= _LONGEST_HEADER or self._headers > most:
                raise _TooMuch(_HEADERS_TOO_LARGE)
        return self._take(size)

    def _take(self, size: int) -> bytes:
        if size <= 0:
            return b""
        first = self._last if self._back else b""
        self._back = False
        block = first + (self._stream.read(size - len(first)) if size > len(first) else b"")
        self._budget.take(len(block) - len(first))
        self._position += len(block)
        self._last = block[-1:] or self._last
        if size == tarfile.BLOCKSIZE:
            self.header = block
        return block

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if offset == self._position - 1 and self._last and not self._back:
            self._position, self._back = offset, True
        elif offset < self._position:
            raise tarfile.ReadError("its headers lead backwards")
        while self._position < offset:
            if not self._take(min(_BLOCK, offset - self._position)):
                break
        return self._position

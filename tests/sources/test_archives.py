"""Archives: judged like the folder they hold, and nothing in one leaves its temporary folder or fills the disk."""

from __future__ import annotations

import gzip
import io
import json
import os
import stat
import struct
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.basics.errors import AdvisorError, NoVerdict
from advisor.cli.main import main
from advisor.sources import archives
from advisor.sources.archives import opened

EXAMPLE = Path(__file__).parents[2] / "examples" / "slow-rank-pipeline"


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """Temporary folders of a test lie where the test can look for what was left."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert not list(folder.iterdir()), "the temporary folder was left behind"


def pack(target: Path, *members: tuple[tarfile.TarInfo | str, bytes]) -> Path:
    """A .tar.gz of these members."""
    with tarfile.open(target, "w:gz") as archive:
        for member, content in members:
            info = tarfile.TarInfo(member) if isinstance(member, str) else member
            if info.isreg():
                info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return target


def example_archive(folder: Path, kind: str) -> Path:
    """The example as an archive of this kind."""
    target = folder / f"run.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(EXAMPLE.rglob("*")):
                archive.write(path, path.relative_to(EXAMPLE.parent))
    else:
        with tarfile.open(target, "w" if kind == "tar" else "w:gz") as archive:
            archive.add(EXAMPLE, EXAMPLE.name)
    return target


def names_in(folder: Path) -> list[str]:
    """Files below a folder."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def unpacked(archive: Path) -> tuple[list[str], list[str]]:
    """The files that came out of an archive, and what was told."""
    with opened([archive]) as result:
        folder = Path(result.paths[0])
        return names_in(folder), [f"{p.file}: {p.problem}" for p in result.problems]


@pytest.mark.parametrize("kind", ["tar.gz", "tgz", "tar", "zip"])
def test_an_archive_is_judged_like_its_folder(tmp_path, capsys, kind):
    """The same report, down to the names of files in the evidence; only the profile's name differs."""
    reports = []
    for name in (EXAMPLE, example_archive(tmp_path, kind)):
        assert main(["advise", str(name), "--format", "json", "-q"]) == 0
        report = json.loads(capsys.readouterr().out)
        report["profile"].pop("path")
        reports.append(json.dumps(report))
    assert reports[0].replace(str(EXAMPLE), "X") == reports[1].replace(str(tmp_path / f"run.{kind}"), "X")


def packed_ranks(folder: Path) -> Path:
    """A folder that holds each rank of the example as an archive of its own, their names written on Windows: every
    second one named like the folder it holds."""
    folder.mkdir()
    for number, rank in enumerate(sorted(EXAMPLE.glob("*_ascend_ms"))):
        name = f"rank{number}.zip" if number % 2 else f"{rank.name}.zip"
        with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(path for path in rank.rglob("*") if path.is_file()):
                entry = zipfile.ZipInfo(path.name)
                entry.filename = str(path.relative_to(EXAMPLE)).replace("/", "\\")
                archive.writestr(entry, path.read_bytes())
    return folder


def verdict(path: Path, capsys) -> tuple[object, ...]:
    assert main(["advise", str(path), "--format", "json", "-q"]) == 0
    report = json.loads(capsys.readouterr().out)
    found = [(f["rule"], f["subject"]["id"], f["severity"]) for f in report["findings"]]
    return report["summary"]["headline"], report["profile"]["ranks"], found, report["problems"]


@pytest.mark.parametrize("inside", ["folder", "zip", "tar"])
def test_ranks_packed_one_by_one_are_one_profile(tmp_path, capsys, inside):
    """A folder of archives, as an upload page leaves it, and the same in an archive, are judged like the ranks."""
    given = packed_ranks(tmp_path / "upload")
    if inside == "zip":
        with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
            for path in sorted(given.iterdir()):
                archive.write(path, path.name)
        given = tmp_path / "all.zip"
    elif inside == "tar":
        with tarfile.open(tmp_path / "all.tar", "w") as archive:
            archive.add(given, "upload")
        given = tmp_path / "all.tar"
    assert verdict(given, capsys) == verdict(EXAMPLE, capsys)


def test_a_damaged_archive_among_others_costs_no_other(tmp_path):
    """It is told by its name; where none can be read there is no verdict."""
    folder = packed_ranks(tmp_path / "upload")
    (folder / "rank1.zip").write_bytes(b"PK\x03\x04 and nothing more")
    with opened([folder]) as result:
        assert [Path(p.file).name for p in result.problems] == ["rank1.zip"]
        assert len(list(Path(result.paths[0]).rglob("step_trace_time.csv"))) == 3
    for path in folder.iterdir():
        path.write_bytes(b"PK\x03\x04")
    with pytest.raises(NoVerdict, match=r"\.zip "), opened([folder]):
        pass


def test_an_archive_that_vanishes_after_it_was_listed_costs_no_other(tmp_path, monkeypatch):
    """Another process may clean up meanwhile: the folder that the user named is still there."""
    folder = packed_ranks(tmp_path / "upload")
    listed = archives._archives_in(folder)
    monkeypatch.setattr(archives, "_archives_in", lambda where: listed if where == folder else [])
    (folder / "rank1.zip").unlink()
    with opened([folder]) as result:
        assert [Path(p.file).name for p in result.problems] == ["rank1.zip"]
        assert len(list(Path(result.paths[0]).rglob("step_trace_time.csv"))) == 3


def test_archives_beside_a_profile_are_not_opened(tmp_path):
    """Beside other files they may be backups of these; a third layer of archives stays packed."""
    folder = packed_ranks(tmp_path / "upload")
    (folder / "kernel_details.csv").write_text("Step Id,Name\n")
    with opened([folder]) as result:
        assert result.paths == [folder]
    within = tmp_path / "deep"
    within.mkdir()
    content = b"x"
    for layer in range(4):
        with zipfile.ZipFile(within / f"{layer}.zip", "w") as archive:
            archive.writestr(f"{layer - 1}.zip" if layer else "a.csv", content)
        content = (within / f"{layer}.zip").read_bytes()
    assert unpacked(within / "1.zip")[0] == ["0/a.csv"]
    assert unpacked(within / "3.zip")[0] == ["2/1.zip"]


def test_bombs_in_archives_are_refused(tmp_path, monkeypatch):
    """All layers, and all archives of a folder, have one limit together, and one number of entries."""
    monkeypatch.setattr(archives, "ALWAYS_BYTES", 1_000_000)
    monkeypatch.setattr(archives, "MOST_GROWTH", 2)
    folder = tmp_path / "upload"
    folder.mkdir()
    for number in range(3):
        with zipfile.ZipFile(folder / f"{number}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.csv", bytes(400_000))
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for path in folder.iterdir():
            archive.write(path, path.name)
    for path in (folder, tmp_path / "all.zip"):
        with pytest.raises(NoVerdict, match="more than"), opened([path]):
            pass
    monkeypatch.setattr(archives, "ALWAYS_BYTES", 10_000_000)
    monkeypatch.setattr(archives, "MOST_ENTRIES", 2)
    with pytest.raises(NoVerdict, match="entries"), opened([tmp_path / "all.zip"]):
        pass


def test_a_spreadsheet_is_refused_with_a_word(tmp_path, capsys):
    """Whoever opened a table in a spreadsheet and saved it there reads what to do."""
    (tmp_path / "kernel_details.xlsx").write_bytes(b"PK\x03\x04 sheet")
    for path in (tmp_path, tmp_path / "kernel_details.xlsx"):
        assert main(["advise", str(path)]) == 3
        assert "save the sheet as CSV" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_standard_input_takes_one(tmp_path, capsys, monkeypatch, kind):
    """`ssh node tar cz profile | advisor advise -`."""
    data = example_archive(tmp_path, kind).read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert main(["advise", "-", "-q"]) == 0
    assert "(standard input)" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command", [["doctor"], ["facts", "-q"], ["explain", "COMM070", "--profile"], ["compare", str(EXAMPLE)]]
)
def test_every_command_takes_one(tmp_path, capsys, command):
    """Wherever a profile may stand, an archive may."""
    assert main([*command, str(example_archive(tmp_path, "tar.gz"))]) == 0
    capsys.readouterr()


OUTSIDE = ["../out", "a/../../out", "/tmp/out-of-archive", "..\\out", "C:\\out", "a/" * 40 + "x", "x" * 300]


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_no_name_leads_out(tmp_path, temporary, kind, name):
    """Paths upwards, absolute ones, drives and endless ones are left out and told; the rest is read."""
    target = tmp_path / f"a.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(target, "w") as archive:
            archive.writestr(name, "out")
            archive.writestr("top/good.csv", "in")
    else:
        pack(target, (name, b"out"), ("top/good.csv", b"in"))
    before = set(tmp_path.rglob("*"))
    files, told = unpacked(target)
    assert files == ["good.csv"] and "leads out" in told[0]
    assert set(tmp_path.rglob("*")) == before and not Path("/tmp/out-of-archive").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_stay_inside(tmp_path, kind):
    """A link out of the archive, then a file written through it: neither is there afterwards."""
    link = tarfile.TarInfo("top/link")
    link.type, link.linkname = kind, str(tmp_path)
    files, told = unpacked(pack(tmp_path / "a.tar.gz", (link, b""), ("top/link/owned", b"x"), ("top/good.csv", b"in")))
    assert "good.csv" in files and not (tmp_path / "owned").exists()
    assert "not unpacked" in told[0]


def test_a_link_in_a_zip_is_left_out(tmp_path):
    """Zip files keep links as files with a mode."""
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        info = zipfile.ZipInfo("top/link")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
        archive.writestr("top/good.csv", "in")
    files, told = unpacked(tmp_path / "a.zip")
    assert files == ["good.csv"] and "link" in told[0]


def test_modes_of_an_archive_do_not_count(tmp_path):
    """No file is executable, set-user-id, or closed to the advisor."""
    info = tarfile.TarInfo("top/a.csv")
    info.mode = 0o6000
    pack(tmp_path / "a.tar.gz", (info, b"in"), ("top/b", b""))
    with opened([tmp_path / "a.tar.gz"]) as result:
        mode = (Path(result.paths[0]) / "a.csv").stat().st_mode
    assert mode & 0o6111 == 0 and mode & 0o400


def test_an_archive_that_is_a_link_to_itself_cannot_be_opened(tmp_path, capsys):
    """What cannot be looked at is wrong usage, not a defect of the advisor."""
    (tmp_path / "run.zip").symlink_to("run.zip")
    assert main(["advise", str(tmp_path / "run.zip"), "-q"]) == 2
    assert "cannot be opened" in capsys.readouterr().err


def test_bombs_are_refused(tmp_path, monkeypatch):
    """Far more than the archive's size: gzip of zeros, zip of zeros, and entries that share one body."""
    monkeypatch.setattr(archives, "ALWAYS_BYTES", 1_000_000)
    zeros = bytes(80_000_000)
    pack(tmp_path / "a.tar.gz", ("top/big.csv", zeros))
    with zipfile.ZipFile(tmp_path / "b.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("big.csv", zeros)
    with gzip.open(tmp_path / "c.tar.gz", "wb") as stream:
        stream.write(zeros)
    for name in ("a.tar.gz", "b.zip"):
        with pytest.raises(NoVerdict, match="more than"), opened([tmp_path / name]):
            pass
    with pytest.raises(NoVerdict), opened([tmp_path / "c.tar.gz"]):
        pass


def test_a_small_archive_that_lies_about_sizes_is_refused(tmp_path):
    """A header of 4 GB, a name of 100 MB, a sparse file of 8 TB: nothing of that size is held in memory or written."""
    for number, (kind, size) in enumerate([(b"x", 4 << 30), (b"L", 100 << 20)]):
        header = bytearray(tarfile.TarInfo("big").tobuf())
        info = tarfile.TarInfo("big")
        info.type, info.size = kind, size
        header = info.tobuf()
        path = tmp_path / f"{number}.tar"
        path.write_bytes(header + bytes(200_000))
        with pytest.raises(NoVerdict, match="header"), opened([path]):
            pass
    sparse = tarfile.TarInfo("top/sparse.csv")
    sparse.type = tarfile.GNUTYPE_SPARSE
    buffer = bytearray(sparse.tobuf(format=tarfile.GNU_FORMAT))
    buffer[483:495] = b"77777777777\0"
    buffer[148:156] = f"{sum(buffer[:148]) + sum(buffer[156:]) + 256:06o}\0 ".encode()
    good = tarfile.TarInfo("top/good.csv")
    good.size = 2
    (tmp_path / "s.tar").write_bytes(bytes(buffer) + good.tobuf() + b"in".ljust(512, b"\0") + bytes(1024))
    files, told = unpacked(tmp_path / "s.tar")
    assert files == ["good.csv"] and "no plain file" in told[0]


def test_a_directory_of_a_zip_larger_than_any_profile_is_refused(tmp_path, monkeypatch):
    """Millions of names would cost gigabytes before the first is looked at."""
    monkeypatch.setattr(archives, "_LONGEST_READ", 10_000)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for number in range(500):
            archive.writestr(f"top/{number}.csv", "")
    with pytest.raises(NoVerdict, match="directory is larger"), opened([tmp_path / "a.zip"]):
        pass


def test_a_hole_behind_an_archive_costs_nothing(tmp_path):
    """A file made gigabytes long in advance: what stands before the zeros is judged at once."""
    archive = example_archive(tmp_path, "tar.gz")
    whole = unpacked(archive)
    with archive.open("r+b") as stream:
        stream.truncate(1 << 31)
    assert unpacked(archive) == whole


@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_too_many_entries_are_refused(tmp_path, monkeypatch, kind):
    """A hundred thousand is more than any profile has; folders count as well."""
    monkeypatch.setattr(archives, "MOST_ENTRIES", 20)
    path = example_archive(tmp_path, kind)
    with pytest.raises(NoVerdict, match="entries"), opened([path]):
        pass


def shared_attributes(count: int, kind: bytes) -> bytes:
    """A header of a tar archive with so many attributes."""
    body = b"".join(b"14 k%07d=1\n" % each for each in range(count))
    info = tarfile.TarInfo("attributes")
    info.type, info.size = kind, len(body)
    return info.tobuf(tarfile.USTAR_FORMAT) + body + bytes(-len(body) % 512)


@pytest.mark.parametrize(
    ("headers", "entries"),
    [([(tarfile.XGLTYPE, 1_000_000)], 1), ([(tarfile.XGLTYPE, 60_000)] * 30, 1), ([(tarfile.XGLTYPE, 60_000)], 100),
     ([(tarfile.XHDTYPE, 60_000)], 30)],
    ids=["one giant", "many", "shared by all", "one for each entry"],
)  # fmt: skip
def test_headers_cost_no_more_than_data(tmp_path, headers, entries):
    """Attributes of a tar archive, each of which costs many times its bytes, fill no memory and take no minutes."""
    target = tmp_path / "headers.tar.gz"
    own = b"".join(shared_attributes(count, kind) for kind, count in headers if kind == tarfile.XHDTYPE)
    with gzip.open(target, "wb", 1) as file:
        for kind, count in headers:
            file.write(shared_attributes(count, kind) if kind == tarfile.XGLTYPE else b"")
        for number in range(entries):
            file.write(own + tarfile.TarInfo(f"file{number}").tobuf(tarfile.USTAR_FORMAT))
        file.write(bytes(1024))
    with pytest.raises(NoVerdict, match="headers are larger"):
        unpacked(target)


def test_a_name_asks_for_no_tree_of_folders(tmp_path):
    """A few thousand names of an archive of kilobytes make no tens of thousands of folders."""
    bomb = pack(tmp_path / "deep.tar.gz", *((f"{number}/a/b/c/d/e/f/g/h/i/j/k/l/m/n", b"") for number in range(5000)))
    with pytest.raises(NoVerdict, match="more folders than any profile"):
        unpacked(bomb)


def test_one_file_of_each_rank_is_no_bomb(tmp_path):
    """A thousand ranks of whose folders somebody packed one table each."""
    name = "node0_{}_20260101000000_ascend_ms/ASCEND_PROFILER_OUTPUT/step_trace_time.csv"
    archive = pack(tmp_path / "steps.tar.gz", *((name.format(number), b"Step\n") for number in range(1000)))
    names, told = unpacked(archive)
    assert len(names) == 1000 and not told


def test_a_full_disk_is_foreseen(tmp_path, monkeypatch):
    """What does not fit is refused before the disk is full."""
    monkeypatch.setattr(archives, "SPARE_BYTES", 1 << 62)
    with pytest.raises(NoVerdict, match="free in"), opened([example_archive(tmp_path, "tar.gz")]):
        pass


def test_encrypted_and_doubled_entries_are_told(tmp_path):
    """The first of two entries of one name counts; a locked one is left out."""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("top/a.csv", "first")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("top/a.csv", "second")
        archive.writestr("top/locked.csv", "x")
    data = path.read_bytes()
    at = data.rfind(b"PK\x01\x02")
    flags = struct.unpack_from("<H", data, at + 8)[0] | 1
    path.write_bytes(data[: at + 8] + struct.pack("<H", flags) + data[at + 10 :])
    with opened([path]) as result:
        assert (Path(result.paths[0]) / "a.csv").read_text() == "first"
        told = " ".join(p.problem for p in result.problems)
    assert "twice" in told and "encrypted" in told


def test_a_cut_archive_gives_what_came_before(tmp_path, capsys):
    """A copy that broke off is judged by what arrived, and the report says so."""
    path = example_archive(tmp_path, "tar.gz")
    path.write_bytes(path.read_bytes()[:20_000])
    files, told = unpacked(path)
    assert files and "cut off" in told[-1]
    main(["advise", str(path), "-q"])
    assert "cut off" in capsys.readouterr().out


SMALL = {}


def small(kind: str) -> bytes:
    """A small archive of this kind, made once."""
    if not SMALL:
        with tempfile.TemporaryDirectory(dir="/tmp" if os.name != "nt" else None) as folder:
            path = pack(Path(folder, "a.tar.gz"), ("top/a.csv", b"x" * 700), ("top/b.csv", b"y" * 1024), ("c/d", b""))
            SMALL["tar.gz"] = path.read_bytes()
            SMALL["tar"] = gzip.decompress(SMALL["tar.gz"])
            with zipfile.ZipFile(Path(folder, "a.zip"), "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("top/a.csv", "x" * 700)
                archive.writestr("top/b.csv", "y" * 1024)
            SMALL["zip"] = Path(folder, "a.zip").read_bytes()
    return SMALL[kind]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(["tar.gz", "tar", "zip"]),
    cut=st.integers(0, 12_000),
    changes=st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=6),
)
def test_any_damage_is_told(tmp_path, temporary, kind, cut, changes):
    """Whatever bytes an archive has: files below its folder, or an error for people; never a traceback, never more."""
    data = bytearray(small(kind)[: cut or None])
    for position, value in changes:
        if data:
            data[position % len(data)] = value
    path = tmp_path / f"a.{kind}"
    path.write_bytes(bytes(data))
    before = {each for each in tmp_path.rglob("*") if temporary not in each.parents}
    try:
        unpacked(path)
    except AdvisorError as error:
        assert isinstance(error, NoVerdict)
    assert {each for each in tmp_path.rglob("*") if temporary not in each.parents} == before


def test_what_is_no_archive_is_told(tmp_path, capsys):
    """Missing, empty, a text file, a folder called like an archive."""
    assert main(["advise", str(tmp_path / "none.zip")]) == 2
    (tmp_path / "empty.tar.gz").write_bytes(b"")
    (tmp_path / "text.zip").write_text("hello")
    for name in ("empty.tar.gz", "text.zip"):
        assert main(["advise", str(tmp_path / name)]) == 3
    (tmp_path / "folder.zip").mkdir()
    assert main(["doctor", str(tmp_path / "folder.zip")]) == 3
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["tar", "tar.gz"])
def test_entries_that_became_a_hole_are_missed(tmp_path, kind):
    """Zeros up to the end of the file look like the end of an archive, but are more than fill its last record."""
    target = tmp_path / f"a.{kind}"
    pack(target, *((f"top/{number}.csv", bytes([49 + number]) * 5000) for number in range(4)))
    data = bytearray(gzip.decompress(target.read_bytes()))
    data[5632:] = bytes(len(data) - 5632)
    target.write_bytes(gzip.compress(data) if kind == "tar.gz" else data)
    files, told = unpacked(target)
    assert files == ["0.csv"] and "the rest was not read" in told[0]


@pytest.mark.parametrize("kind", ["tar", "tar.gz"])
def test_entries_behind_a_hole_are_missed(tmp_path, kind):
    """Zeros where a header stood end an archive for whoever unpacks it; entries behind them are told as not read."""
    target = tmp_path / f"a.{kind}"
    pack(target, ("top/first.csv", b"1" * 512), ("top/second.csv", b"2" * 512))
    data = bytearray(gzip.decompress(target.read_bytes()))
    data[1024:2048] = bytes(1024)  # the header of the second one and its content: two blocks of zeros
    data[2048:2052] = b"more"
    target.write_bytes(gzip.compress(data) if kind == "tar.gz" else data)
    files, told = unpacked(target)
    assert files == ["first.csv"] and "the rest was not read" in told[0]

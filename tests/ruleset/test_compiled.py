"""The cache of rules: the same rules, never stale, never somebody else's, never needed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from advisor.basics.resources import resource
from advisor.ruleset.files import compiled, reading
from advisor.ruleset.files.compiled import MOST_ENTRIES
from advisor.ruleset.files.loader import load_rules

RULE = """
id: ACME001
title: {en: Idle, zh: 空闲}
verdict: acme/idle
direction: scheduling
kind: symptom
for: run
params: {share: {value: SHARE, unit: ratio, origin: made up}}
needs: [step.idle_share]
when: [step.idle_share > $share]
severity: {by: step.idle_share, medium: $share}
message: {en: 'idle {{ step.idle_share }}', zh: '空闲 {{ step.idle_share }}'}
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of entries, in a process that remembers nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(compiled, "MOST_REMEMBERED", 0)
    monkeypatch.setattr(compiled, "_REMEMBERED", type(compiled._REMEMBERED)())
    return tmp_path / "cache" / "advisor" / "rules"


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    folder = tmp_path / "pack"
    folder.mkdir()
    (folder / "ACME001-idle.yaml").write_text(RULE.replace("SHARE", "0.5"), encoding="utf-8")
    return folder


@pytest.fixture
def unreadable(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts how often rules are read from their files."""
    times: list[int] = []
    read = reading.read_rules

    def counted(*given):
        times.append(1)
        return read(*given)

    monkeypatch.setattr(reading, "read_rules", counted)
    return times


def test_kept_rules_are_the_rules(cache: Path) -> None:
    """Every shipped rule, remedy and expression comes back as it was read."""
    fresh, kept = load_rules(), load_rules()
    assert len(list(cache.glob("*.json"))) == 1
    assert fresh.rules == kept.rules and fresh.remedies == kept.remedies
    assert [type(rule.when) for rule in fresh.rules] == [type(rule.when) for rule in kept.rules]


def test_a_second_run_reads_no_rule_file(cache: Path, pack: Path, unreadable: list[int]) -> None:
    """What was read and checked once is not parsed again."""
    for _ in range(3):
        assert load_rules([pack]).by_id["ACME001"].params["share"].value == 0.5
    assert len(unreadable) == 1


def test_a_process_makes_its_rules_once(cache: Path, pack: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that judges profile after profile reads neither files nor entries again, unless a rule changes."""
    monkeypatch.setattr(compiled, "MOST_REMEMBERED", 1)
    first = load_rules([pack]).by_id["ACME001"]
    shutil.rmtree(cache)
    assert load_rules([pack]).by_id["ACME001"] is first and not cache.exists()


@pytest.mark.parametrize("remembered", [0, 1])
def test_a_changed_rule_is_read_again(
    cache: Path, pack: Path, monkeypatch: pytest.MonkeyPatch, remembered: int
) -> None:
    """The same size, the same time of change: the content decides."""
    monkeypatch.setattr(compiled, "MOST_REMEMBERED", remembered)
    load_rules([pack])
    path = pack / "ACME001-idle.yaml"
    before = path.stat()
    path.write_text(RULE.replace("SHARE", "0.7"), encoding="utf-8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert load_rules([pack]).by_id["ACME001"].params["share"].value == 0.7


def test_the_same_rules_elsewhere_are_told_by_their_own_files(cache: Path, pack: Path, tmp_path: Path) -> None:
    """Messages name the file the user has."""
    load_rules([pack])
    other = shutil.copytree(pack, tmp_path / "other")
    assert load_rules([other]).by_id["ACME001"].path.parent == other


@pytest.mark.parametrize("damage", ["cut", "text", "other", "kind", "empty"])
def test_a_damaged_entry_is_read_past(cache: Path, pack: Path, unreadable: list[int], damage: str) -> None:
    """Whatever stands in the cache, the rules are those of the files."""
    load_rules([pack])
    entry = next(cache.glob("*.json"))
    body = entry.read_bytes()
    other = body.replace(b"0.5", b"0.9")
    damaged = {"cut": body[:-20], "text": b"no entry", "other": other, "kind": b"[999]", "empty": b""}
    entry.write_bytes(damaged[damage])
    assert load_rules([pack]).by_id["ACME001"].params["share"].value == 0.5
    assert len(unreadable) == 2


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
@pytest.mark.parametrize("what", ["folder", "entry", "link"])
def test_what_others_may_write_is_not_trusted(cache: Path, pack: Path, unreadable: list[int], what: str) -> None:
    """An entry that somebody else could have put there is none."""
    load_rules([pack])
    entry = next(cache.glob("*.json"))
    if what == "link":
        elsewhere = entry.rename(entry.with_suffix(".kept"))
        entry.symlink_to(elsewhere)
    else:
        (cache if what == "folder" else entry).chmod(0o777)
    assert load_rules([pack]).by_id["ACME001"].params["share"].value == 0.5
    assert len(unreadable) == 2


def test_no_cache_is_no_trouble(pack: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where the folder cannot be made, or its name leads nowhere, rules load as ever; nothing is written elsewhere."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    for named in (str(tmp_path / "file"), "relative", ""):
        monkeypatch.setenv("XDG_CACHE_HOME", named)
        monkeypatch.chdir(tmp_path)
        assert "ACME001" in load_rules([pack]).by_id
    assert {path.name for path in tmp_path.iterdir()} == {"pack", "file"}


def test_old_entries_go(cache: Path, pack: Path) -> None:
    """The cache does not grow with every edit."""
    for number in range(MOST_ENTRIES + 3):
        (pack / "ACME001-idle.yaml").write_text(RULE.replace("SHARE", f"0.{number + 10}"), encoding="utf-8")
        load_rules([pack])
    assert len(list(cache.iterdir())) == MOST_ENTRIES


def test_defects_are_told_in_every_run(cache: Path, pack: Path, unreadable: list[int]) -> None:
    """A broken rule is broken in every run; it is read anew, because somebody is about to mend it."""
    (pack / "ACME002-broken.yaml").write_text("id: ACME002\n", encoding="utf-8")
    told = [load_rules([pack], strict=False).errors for _ in range(2)]
    assert told[0] and told[0] == told[1] and len(unreadable) > 1


def test_an_entry_makes_rules_and_nothing_else(cache: Path) -> None:
    """Only the kinds of objects that rules consist of can be made from an entry."""
    with pytest.raises((LookupError, TypeError)):
        compiled._thaw(["os.system", "true"])
    with pytest.raises((LookupError, TypeError)):
        compiled._thaw([10_000, "true"])
    load_rules()
    text = next(cache.glob("*.json")).read_text(encoding="utf-8")
    assert json.loads(text.partition("\n")[2])[0] == 0 and str(resource("rules")) in text

"""Damages what the advisor keeps and hears beside profiles, and looks whether it stays right.

    python -m benchmarks.surroundings [--count 500] [--first 0] [--seed 0] [--targets cache,trust] [--jobs 2]

Targets: the cache of rules, the list of trusted folders, the memory of `watch`, a profile below a watched folder, and
what an agent sends to `advisor mcp`. Each case is drawn from the seed and its number alone. A damaged cache changes no
rule, a damaged list lets no program run, a damaged memory or profile ends no watcher and loses no other recording, and
a server answers the next question whatever was sent before. Ends with 1 where one of these broke.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.mutants import cells, databases, folders, rawbytes, trees  # noqa: F401  (they register mutations)
from benchmarks.mutants.base import MUTATIONS
from benchmarks.mutants.runs import Outcome, Workers

LIMIT_S = 60.0
_ROOT = Path(__file__).parent.parent
_EXAMPLE = _ROOT / "examples" / "slow-rank-pipeline"
_LAST = 4242
"""Id of the question that a server must still answer."""
_WRONG_USAGE = 2

Case = Callable[[Path, Random], tuple[str | None, list[str]]]
"""case(empty folder, draw) -> what was done (None where it cannot be), and what went wrong."""


@dataclass
class Tally:
    """What a series of cases came to."""

    run: Counter[str] = field(default_factory=Counter)
    skipped: int = 0
    flaws: list[str] = field(default_factory=list)


def _damage(path: Path, draw: Random) -> str | None:
    """One mutation that fits the file."""
    fitting = [
        each for _, each in sorted(MUTATIONS.items())
        if not each.whole and (not each.suffixes or path.suffix in each.suffixes) and not each.name.startswith("race.")
    ]  # fmt: skip
    chosen = draw.choice(fitting)
    done = chosen.apply(path, draw)
    return None if done is None else f"{chosen.name}: {done}"


def _command(*arguments: str) -> tuple[int, str, str]:
    """(exit status, standard output, standard error) of the command line in this process."""
    from advisor.cli.main import main

    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        status = main(list(arguments))
    return status, out.getvalue(), errors.getvalue()


def _ended_well(status: int, errors: str, *allowed: int) -> list[str]:
    wrong = [] if status in allowed else [f"exit {status}: {errors.strip()[-300:]}"]
    return wrong + (["traceback"] if "Traceback" in errors else [])


def cache(folder: Path, draw: Random) -> tuple[str | None, list[str]]:
    """Rules are read past a damaged entry of the cache and stay what their files say."""
    from advisor.ruleset.files.loader import load_rules

    os.environ["XDG_CACHE_HOME"] = str(folder)
    before = repr(load_rules())
    entry = next((folder / "advisor" / "rules").glob("*.json"))
    done = _damage(entry, draw)
    after = repr(load_rules()) if done else before
    return done, [] if after == before else ["other rules"]


def trust(folder: Path, draw: Random) -> tuple[str | None, list[str]]:
    """No program runs from a folder that nobody trusted, whatever became of the list."""
    os.environ["XDG_CONFIG_HOME"] = str(folder / "config")
    for name in ("mine", "project", "算子"):
        (folder / name).mkdir()
        _command("trust", str(folder / name))
    profile = folder / "stranger"
    shutil.copytree(_EXAMPLE, profile)
    (profile / "e.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\n")
    (profile / "advisor.toml").write_text('extractors = ["e.py"]\nignore = ["COMP001"]\n')
    done = _damage(folder / "config" / "advisor" / "trust.json", draw)
    if done is None:
        return None, []
    os.chdir(profile)
    status, _, errors = _command("advise", ".", "-q", "--jobs", "1")
    return done, [*_ended_well(status, errors, 0, _WRONG_USAGE), *(["a program ran"] * (folder / "ran").exists())]


def memory(folder: Path, draw: Random) -> tuple[str | None, list[str]]:
    """A watcher whose memory is damaged goes on or says which file to remove."""
    shutil.copytree(_EXAMPLE, folder / "watched" / "run1")
    kept = folder / "watched" / "advisor-reports"
    _watch(folder / "watched")
    path = draw.choice([kept / "state.json", kept / "runs.jsonl", *kept.glob("run1*.json")])
    done = _damage(path, draw)
    if done is None:
        return None, []
    status, _, errors = _watch(folder / "watched")
    wrong = _ended_well(status, errors, 0, _WRONG_USAGE)
    if status == _WRONG_USAGE and "advisor-reports" not in errors:
        wrong.append(f"the damaged file is not named: {errors.strip()[-200:]}")
    return f"{path.name} {done}", wrong


def watched(folder: Path, draw: Random) -> tuple[str | None, list[str]]:
    """A damaged recording costs itself; the intact one beside it is told."""
    for name in ("run1", "run2"):
        shutil.copytree(_EXAMPLE, folder / "watched" / name)
    files = sorted(path for path in (folder / "watched" / "run1").rglob("*") if path.is_file())
    path = draw.choice(files)
    done = _damage(path, draw)
    if done is None:
        return None, []
    status, out, errors = _watch(folder / "watched")
    wrong = _ended_well(status, errors, 0)
    return f"{path.name} {done}", wrong + ([] if "run2" in out else ["the intact recording is not told"])


def _watch(folder: Path) -> tuple[int, str, str]:
    return _command("watch", str(folder), "--once", "--settled", "0")


def mcp(folder: Path, draw: Random) -> tuple[str | None, list[str]]:
    """A server that was sent damaged messages answers the next one, and ends with its input."""
    shutil.copytree(_EXAMPLE, folder / "root" / "run")
    messages = [json.dumps(each) for each in _conversation()]
    done = []
    for place in sorted(draw.sample(range(2, len(messages)), draw.choice((1, 3, 6)))):
        path = folder / f"message-{place}.json"  # the one before may be a folder by now
        path.write_text(messages[place])
        done.append(f"{place} {_damage(path, draw)}")
        if path.is_file() and path.stat().st_size < 1 << 24:
            with contextlib.suppress(OSError):  # a link to what nobody can read
                messages[place] = path.read_bytes().decode("utf-8", "surrogateescape")
    last = json.dumps({"jsonrpc": "2.0", "id": _LAST, "method": "tools/list"})
    lines = "\n".join([*messages, last]) + "\n"
    command = [sys.executable, "-m", "advisor", "mcp", "--root", str(folder / "root"), "-q"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
    ) as server:  # fmt: skip
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(lines.encode("utf-8", "surrogateescape"))
        server.stdin.flush()
        answered = any(_is_last(line) for line in server.stdout)
        errors = server.communicate()[1].decode(errors="replace")  # what is answered later is read, too
        status = server.returncode
    wrong = _ended_well(status, errors, 0) if answered else [f"no answer, exit {status}: {errors.strip()[-300:]}"]
    return "; ".join(done), wrong


def _is_last(line: bytes) -> bool:
    try:
        answer = json.loads(line)
    except ValueError:
        return False
    return isinstance(answer, dict) and answer.get("id") == _LAST


def _conversation() -> Iterator[dict[str, Any]]:
    """An agent's messages: two to begin with, then questions."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}
    yield {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    yield {"jsonrpc": "2.0", "method": "notifications/initialized"}
    asked: list[tuple[str, dict[str, Any]]] = [
        ("advise", {"path": "run"}), ("facts", {"path": "run", "prefix": "step."}), ("doctor", {"path": "run"}),
        ("explain", {"rule": "COMP010"}), ("rules_search", {"query": "AllReduce"}),
        ("compare", {"before": "run", "after": "run"}),
    ]  # fmt: skip
    for number, (tool, arguments) in enumerate(asked, 10):
        yield {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    yield {"jsonrpc": "2.0", "id": 30, "method": "resources/list"}
    yield {"jsonrpc": "2.0", "id": 31, "method": "resources/read", "params": {"uri": "advisor://reports/x"}}
    yield {"jsonrpc": "2.0", "id": 32, "method": "ping"}


TARGETS: dict[str, Case] = {"cache": cache, "trust": trust, "memory": memory, "watched": watched, "mcp": mcp}


def run_series(
    count: int, folder: Path, *, first: int = 0, seed: int = 0, targets: list[str] | None = None, jobs: int = 2
) -> Tally:
    """Runs the cases of these numbers, each in a process of its own below `folder`."""
    names, tally, workers = targets or list(TARGETS), Tally(), Workers(folder, jobs, LIMIT_S)

    def collect() -> None:
        key, outcome = workers.wait()
        shutil.rmtree(folder / key, ignore_errors=True)
        name = key.partition("-")[0]
        if outcome.exit is None:
            tally.flaws.append(f"{key}: did not end or died (signal {outcome.signal})")
        elif outcome.done is None:
            tally.skipped += 1
            return
        tally.run[name] += 1
        tally.flaws += [f"{key}: {text} [{outcome.done}]" for text in outcome.errors]

    for number in range(first, first + count):
        name = Random(f"{seed}/{number}").choice(names)
        key = f"{name}-{number}"
        while workers.full:
            collect()
        place, draw = folder / key, Random(f"{seed}/{number}/apply")
        place.mkdir()
        workers.start(key, lambda case=TARGETS[name], place=place, draw=draw: _one(case, place, draw))
    while workers.busy:
        collect()
    return tally


def _one(case: Case, folder: Path, draw: Random) -> Outcome:
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        os.environ[name] = str(folder / name.lower())
    done, wrong = case(folder, draw)
    return Outcome(exit=0, done=done, errors=wrong)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--targets", default="", help=f"of {', '.join(TARGETS)}, with commas")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    targets = [name for name in given.targets.split(",") if name]
    with tempfile.TemporaryDirectory(prefix="surroundings-") as folder:
        tally = run_series(
            given.count, Path(folder), first=given.first, seed=given.seed, targets=targets, jobs=given.jobs
        )
    print("\n".join(tally.flaws))
    ran = ", ".join(f"{name} {count}" for name, count in sorted(tally.run.items()))
    print(f"{tally.run.total()} cases ({ran}), {tally.skipped} did not apply, {len(tally.flaws)} flaws")
    return 1 if tally.flaws else 0


if __name__ == "__main__":
    sys.exit(main())

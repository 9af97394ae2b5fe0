"""`advisor watch`: every recording once, when it is finished, whatever else lies in the folder."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from advisor.basics.errors import UsageError
from advisor.cli.main import main
from advisor.watch import alarms
from advisor.watch.captures import find_captures
from advisor.watch.ledger import Ledger
from advisor.watch.settings import Settings
from advisor.watch.watcher import Watcher
from benchmarks.simulator import Scenario, simulate, write_profile
from benchmarks.watch_soak import soak

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "slow-rank-pipeline"
SLOW_DATA = ROOT / "examples" / "slow-generator"


@pytest.fixture(scope="module")
def healthy(tmp_path_factory) -> Path:
    """A small profile of one rank."""
    return write_profile(simulate(Scenario(data=1, seed=1)), tmp_path_factory.mktemp("healthy"))[0]


@pytest.fixture
def folder(tmp_path) -> Path:
    """The folder that a training's profiler writes to."""
    place = tmp_path / "training"
    place.mkdir()
    return place


def watch(folder: Path, *more: str) -> int:
    """One look, as the command does it."""
    return main(["watch", str(folder), "--once", "--settled", "0", *more])


def lines(folder: Path) -> list[dict]:
    """What runs.jsonl holds."""
    path = folder / "advisor-reports" / "runs.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_each_profile_gets_one_line(folder, capsys):
    """Step time, direction, first cause, and what changed; then JSON, and a report that `serve` shows."""
    shutil.copytree(EXAMPLE, folder / "run1")
    assert watch(folder) == 0
    shutil.copytree(SLOW_DATA, folder / "run2")
    assert watch(folder, "--lang", "zh") == 0
    first, second = capsys.readouterr().out.splitlines()
    assert "51.1\xa0ms" in first and "Computation" in first and "(rank 1)" in first
    assert "29.5\xa0ms (−42\xa0%)" in second and "新增：" in second and "消失：slow-compute-rank 1" in second
    told = lines(folder)
    assert [line["direction"] for line in told] == ["computation", "scheduling"]
    assert told[1]["cause"]["verdict"] == "data-processing-bottleneck" and told[1]["change"] < -0.3
    from advisor.serve.runs import RunFolder

    saved = RunFolder(folder / "advisor-reports")
    assert {run.name for run in saved.runs(saved.files())} == {line["report"] for line in told}


def test_nothing_is_read_twice(folder, healthy, capsys):
    """Not by the next watcher, not when it comes back under its name, not when another rank of it comes late."""
    name = "host_7_20260101000000000_ascend_ms"
    shutil.copytree(healthy, folder / name)
    watch(folder)
    watch(folder)
    (folder / name).rename(folder.parent / "aside")
    watch(folder)
    (folder.parent / "aside").rename(folder / name)
    shutil.copytree(healthy, folder / "host_8_20260101000000001_ascend_ms")
    watch(folder)
    assert len(lines(folder)) == 1


def test_a_killed_watcher_goes_on_where_it_stopped(folder, healthy):
    """Killed between its line and its memory, or in the middle of a line: the next one repeats nothing."""
    shutil.copytree(healthy, folder / "run1")
    watch(folder)
    state = folder / "advisor-reports" / "state.json"
    state.unlink()
    with (state.parent / "runs.jsonl").open("a") as stream:
        stream.write("")
    shutil.copytree(healthy, folder / "run2")
    watch(folder)
    with (state.parent / "runs.jsonl").open("a") as stream:
        stream.write('{"torn')
    shutil.copytree(healthy, folder / "run3")
    watch(folder)
    text = (state.parent / "runs.jsonl").read_text().splitlines()
    assert text[2] == '{"torn' and [json.loads(text[n])["profile"] for n in (0, 1, 3)] == ["run1", "run2", "run3"]


def test_ranks_of_one_recording_belong_together(tmp_path):
    """By schedule: until a process writes its next folder. By dynamic profiling: the same steps. Else: the folder."""
    names = ["a_1_20260101000000000_ascend_ms", "b_2_20260101000000090_ascend_ms", "b_2_20260101000100000_ascend_ms",
             "a_1_20260101000100050_ascend_ms", "rank0_start5_stop7", "rank1_start5_stop7", "rank0_start9_stop11",
             "run", ".hidden", "advisor-reports"]  # fmt: skip
    for name in names:
        (tmp_path / name).mkdir()
    (tmp_path / "later.tar.gz").write_bytes(b"")
    (tmp_path / "notes.txt").write_text("")
    found = {frozenset(capture.names) for capture in find_captures(tmp_path, tmp_path / "advisor-reports")}
    assert found == {frozenset(names[0:2]), frozenset(names[2:4]), frozenset(names[4:6]), frozenset(names[6:7]),
                     frozenset(names[7:8]), frozenset({"later.tar.gz"})}  # fmt: skip


def test_what_is_still_written_is_waited_for(folder, healthy):
    """Raw data before they are parsed, and files that still change; then it is judged, and as a whole."""
    target = folder / "run"
    (target / "PROF_000001_2026").mkdir(parents=True)
    (target / "PROF_000001_2026" / "raw.bin").write_bytes(b"x")
    told: list[str] = []
    watcher = Watcher(Settings(folder, folder / "advisor-reports", settled_s=0.3, poll_s=0.05), told.append)
    try:
        assert watcher.step() == 0
        time.sleep(0.4)
        assert watcher.step() == 0, "raw data nobody has parsed"
        shutil.copytree(healthy, target, dirs_exist_ok=True)
        assert watcher.step() == 0
        (target / "late.txt").write_text("x")
        assert watcher.step() == 0
        end = time.monotonic() + 20
        while not told and time.monotonic() < end:
            time.sleep(0.1)
            watcher.step()
    finally:
        watcher._judge.close()
    assert len(told) == 1 and "not judged" not in told[0]


def test_a_late_rank_is_waited_for(folder, healthy):
    """Where recordings had two ranks, one with a single rank is given more time before it is taken as it is."""
    told: list[str] = []
    watcher = Watcher(Settings(folder, folder / "advisor-reports", settled_s=0.2, poll_s=0.05), told.append)
    watcher._usual_ranks = 2
    shutil.copytree(healthy, folder / "a_1_20260101000000000_ascend_ms")
    watcher.step()
    time.sleep(0.5)
    assert watcher.step() == 0
    shutil.copytree(healthy, folder / "b_2_20260101000000001_ascend_ms")
    watcher.step()
    time.sleep(0.5)
    try:
        assert watcher.step() == 1
    finally:
        watcher._judge.close()
    assert [line["entries"] for line in lines(folder)] == [
        ["a_1_20260101000000000_ascend_ms", "b_2_20260101000000001_ascend_ms"]
    ]


def test_a_profile_that_kills_its_judge_costs_only_itself(folder, healthy, monkeypatch):
    """The process that judges may die or hang; the next profile is judged."""
    import advisor.watch.judging as judging

    shutil.copytree(healthy, folder / "run1")
    settings = Settings(folder, folder / "advisor-reports", longest_s=60)
    judge = judging.Judge(settings)
    judge._start()
    os.kill(judge._worker.pid, 9)
    judge._worker.join()
    judge._worker = _Alive(judge._worker)
    found = judge.judge((folder / "run1",), folder / "r.json")
    assert isinstance(found, judging.Verdict) and found.step_us, "killed once: judged by the next process"
    monkeypatch.setattr(judging, "_work", _die)
    judge.close()
    assert "killed twice" in str(judge.judge((folder / "run1",), folder / "r.json"))
    monkeypatch.undo()
    judge.close()
    assert isinstance(judge.judge((folder / "run1",), folder / "r.json"), judging.Verdict)
    hasty = judging.Judge(Settings(folder, folder / "advisor-reports", longest_s=0.01))
    assert "not judged within" in str(hasty.judge((folder / "run1",), folder / "r.json"))
    judge.close()


def _die(pipe, settings):
    """A process that a profile kills."""
    pipe.recv()
    os.kill(os.getpid(), 9)


class _Alive:
    """A process that claims to live although it was just killed: the moment between its death and its notice."""

    def __init__(self, process):
        self._process = process

    def is_alive(self):
        return True

    def join(self, *given):
        self._process.join(*given)

    def kill(self):
        self._process.kill()

    def close(self):
        self._process.close()


class _Receiver(BaseHTTPRequestHandler):
    got: list[dict] = []  # noqa: RUF012

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/elsewhere":
            self.send_response(302)
            self.send_header("Location", "/hook")
        else:
            self.got.append(json.loads(body))
            self.send_response(200)
        self.end_headers()

    def log_message(self, *given):
        pass


def test_a_new_cause_calls_once(folder, healthy, tmp_path, capsys):
    """A command gets the event on its standard input, a webhook as its body; neither again while the cause stays, and
    no name of a profile stands on a command line."""
    server = HTTPServer(("127.0.0.1", 0), _Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    _Receiver.got.clear()
    script = tmp_path / "call.py"
    call = f"open({str(tmp_path / 'called')!r}, 'a').write(sys.stdin.read() + chr(10))"
    script.write_text(f"import sys\n{call}\nassert len(sys.argv) == 2\n")
    hook = f"http://127.0.0.1:{server.server_port}/hook"
    more = ["--exec", f"{sys.executable} {script} fixed", "--webhook", hook]
    shutil.copytree(EXAMPLE, folder / "run; touch owned")
    watch(folder, *more)
    shutil.copytree(EXAMPLE, folder / "run2")
    watch(folder, *more)
    [event] = _Receiver.got
    assert event["reasons"] == ["new_cause"] and event["cause"]["verdict"] == "slow-compute-rank"
    assert [json.loads(line) for line in (tmp_path / "called").read_text().splitlines()] == [event]
    shutil.copytree(SLOW_DATA, folder / "run3")
    watch(folder, "--webhook", f"http://127.0.0.1:{server.server_port}/elsewhere")
    assert len(_Receiver.got) == 1, "redirects are not followed"
    server.shutdown()
    server.server_close()
    assert "Traceback" not in capsys.readouterr().err


def test_calls_that_fail_end_nothing(folder, healthy, capsys):
    """A command that is not there or fails, and a webhook nobody answers, are told."""
    shutil.copytree(EXAMPLE, folder / "run1")
    assert watch(folder, "--exec", "/no/such/command", "--webhook", "http://127.0.0.1:9/x") == 0
    told = capsys.readouterr()
    assert "51.1\xa0ms" in told.out and "--exec" in told.err and "--webhook" in told.err
    addresses = ("file:///etc/passwd", "ftp://x", "http://[", "http://", "http://x:port/")
    for wrong in (["--exec", "'"], *(["--webhook", each] for each in addresses)):
        assert watch(folder, *wrong) == 2


def _answering(answers: list[bytes], pause_s: float) -> socket.socket:
    """A server for one call that sends these pieces, whatever it is asked."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = server.accept()
        with connection, suppress(OSError):
            connection.recv(1 << 16)
            for piece in answers:
                connection.sendall(piece)
                time.sleep(pause_s)

    threading.Thread(target=serve, daemon=True).start()
    return server


@pytest.mark.parametrize(
    ("answers", "pause_s"),
    [([b"SSH-2.0-x\r\n"], 0.0), ([b"HTTP/1.1 200 OK\r\nA: ", *[b"a"] * 100], 0.1)],
)
def test_a_webhook_that_is_none_ends_and_delays_nothing(tmp_path, monkeypatch, caplog, answers, pause_s):
    """What answers in another protocol, or byte by byte for longer than a call may take, is told and left."""
    monkeypatch.setattr("advisor.watch.alarms.number", lambda name: 1.0)
    with _answering(answers, pause_s) as server:
        hook = f"http://127.0.0.1:{server.getsockname()[1]}/hook"
        started = time.monotonic()
        alarms.call(Settings(tmp_path, tmp_path, webhook=hook), {})
        assert time.monotonic() - started < 5 and "--webhook 127.0.0.1" in caplog.text


def test_a_slower_step_calls_when_it_becomes_slower(folder):
    """By the gate's rule against this run's own history: not for noise, not again while it stays slow."""
    watcher = Watcher(Settings(folder, folder / "advisor-reports"), lambda line: None)
    from advisor.watch.judging import Verdict

    def seen(step_us: float) -> list[str]:
        return watcher._remember(Verdict({"en": "", "zh": ""}, "healthy", step_us, (), (), 0, 1), {})

    usual = [100_000, 100_900, 99_300, 100_400, 99_800, 100_200, 100_700]
    assert [seen(each) for each in usual] == [[]] * len(usual)
    assert seen(112_000) == ["slower"] and seen(112_500) == [] and seen(100_100) == []
    assert seen(113_000) == ["slower"]


def test_a_cause_that_flickers_is_one_alarm(folder):
    """Gone for a profile or two and back is the same cause; a lesser severity calls nobody."""
    watcher = Watcher(Settings(folder, folder / "advisor-reports"), lambda line: None)
    from advisor.watch.judging import Verdict

    def seen(*severities: str) -> list[str]:
        causes = tuple(
            {"verdict": f"v-{each}", "subject": "1", "severity": each, "en": "", "zh": ""} for each in severities
        )
        return watcher._remember(Verdict({"en": "", "zh": ""}, "computation", None, causes, (), 0, 1), {})

    assert seen("high") == ["new_cause"] and seen() == [] and seen("high") == [] and seen("medium", "high") == []
    assert [seen() for _ in range(6)] == [[]] * 6 and seen("high") == ["new_cause"]


_MEMORY = '{"version": 1, "judged": {}, "steps_us": [%s], "causes": {%s}, "findings": [], "slower": false}'


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"version": 2}', '{"version": 1, "judged": 7}', "null", _MEMORY % ("1" + "0" * 400, ""),
             _MEMORY % ("", '"a": Infinity')])  # fmt: skip
def test_a_damaged_memory_is_told(folder, text, capsys):
    """Instead of judging everything again without a word."""
    (folder / "advisor-reports").mkdir()
    (folder / "advisor-reports" / "state.json").write_text(text)
    assert watch(folder) == 2
    assert "state.json" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["state.json", "runs.jsonl"])
def test_a_memory_that_is_no_plain_file_is_told(folder, healthy, name, capsys):
    """A pipe put in its place would be waited for, and a file of gigabytes would fill the memory."""
    kept = folder / "advisor-reports"
    kept.mkdir()
    os.mkfifo(kept / name)
    shutil.copytree(healthy, folder / "run1")
    assert watch(folder) == (2 if name == "state.json" else 0)
    assert name in capsys.readouterr().err
    (kept / name).unlink()
    with (kept / "state.json").open("wb") as stream:
        stream.truncate(1 << 33)
    assert watch(folder) == 2 and "state.json" in capsys.readouterr().err


def test_reports_stay_inside_whatever_a_profile_is_called(tmp_path):
    """Names with slashes, dots, line breaks or of 300 characters lead to files in the folder, each to its own."""
    ledger = Ledger(tmp_path)
    names = ["../../etc/passwd", "a/b", "a_b", "..", "x" * 300, "a\nb", "算子", "\udcff"]
    paths = [ledger.report_path(name) for name in names]
    assert len(set(paths)) == len(names) and all(path.parent == tmp_path and len(path.name) < 120 for path in paths)


def test_memory_is_bounded(tmp_path, monkeypatch):
    """Days of recordings: names, step times and reports of the oldest are forgotten, but no name that is still in the
    folder, for it would be judged again and again."""
    import advisor.watch.ledger as module

    monkeypatch.setattr(module, "number", lambda name: 5)
    ledger = Ledger.open(tmp_path)
    for count in range(50):
        ledger.remember([f"run{count}"], "judged")
        ledger.forget_gone({"run0"})
        ledger.report_path(f"run{count}").write_text("{}")
        ledger.forget_old_reports()
    assert list(ledger.judged) == [f"run{count}" for count in (0, 46, 47, 48, 49)]
    assert len(list(tmp_path.glob("run*.json"))) == 5


def test_a_soak_with_faults(tmp_path):
    """A short training with everything that happens in a long one: each recording that stayed is told once."""
    result = soak(tmp_path, recordings=14, seed=5)
    assert not result.missed and not result.twice, (result.missed, result.twice, result.output[-2000:])
    assert result.restarts and "Traceback" not in result.output


def test_a_missing_folder_is_told(tmp_path):
    """A typo must not wait for days."""
    with pytest.raises(UsageError, match="no such folder"):
        Watcher(Settings(tmp_path / "none", tmp_path / "out"), print)


def test_a_link_back_to_the_watched_folder_is_no_recording(tmp_path):
    """It holds all the others, and would be judged as one more."""
    (tmp_path / "watched" / "run1").mkdir(parents=True)
    for name, target in (("loop", "."), ("up", ".."), ("copy", "run1")):
        (tmp_path / "watched" / name).symlink_to(target)
    found = find_captures(tmp_path / "watched", tmp_path / "reports")
    assert {capture.key for capture in found} == {"run1", "copy"}

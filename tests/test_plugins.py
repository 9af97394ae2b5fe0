"""Facts of one's own: checked like ours, and never able to end a run."""

import json
import shutil
from pathlib import Path

import pytest

from advisor.basics.errors import RuleError
from advisor.cli.exits import USAGE
from advisor.cli.main import main
from advisor.facts import extractors as plugins
from advisor.facts import registry
from advisor.ruleset.files import packs
from advisor.ruleset.files.loader import load_rules
from advisor.trust import trust

EXAMPLES = Path(__file__).parents[1] / "examples"
GOOD = """
from advisor.facts.extractors import Extractor, fact, kind

def measure(context):
    for path in context.files("**/speed.txt"):
        yield fact("acme.speed", context.run, float(path.read_text()), context.source(path, "speed"))

EXTRACTOR = Extractor("acme", (kind("acme.speed", "per_s", "run", "tokens per second"),), measure)
"""
RULE = """
id: ACME001
title: {en: Slow}
verdict: acme/slow
direction: computation
kind: cause
for: run
params: {floor: {value: 100, unit: per_s, origin: our target}}
needs: [acme.speed]
when: acme.speed < $floor
severity: high
message: {en: "{{ acme.speed }}"}
"""


@pytest.fixture(autouse=True)
def nothing_added(tmp_path, monkeypatch):
    """Extractors of one test are unknown to the next; the folder of the test is trusted, in a list of its own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    trust(tmp_path)
    yield
    registry.add_families(())


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a configuration, an extractor, a rule and a profile with a log."""
    shutil.copytree(EXAMPLES / "slow-rank-pipeline", tmp_path / "run")
    (tmp_path / "run" / "speed.txt").write_text("80")
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "ACME001-slow.yaml").write_text(RULE)
    (tmp_path / "extractor.py").write_text(GOOD)
    (tmp_path / "advisor.toml").write_text('rules = ["rules"]\nextractors = ["extractor.py"]\nselect = ["ACME*"]\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def advised(capsys, *arguments):
    """Exit status and JSON report of `advisor advise run`."""
    status = main(["advise", "run", "--format", "json", "-q", *arguments])
    return status, json.loads(capsys.readouterr().out)


def another_run(name):
    """A second run of the same training: a run is not judged against itself."""
    shutil.copytree("run", name)
    table = next(Path(name).rglob("step_trace_time.csv"))
    table.write_text(table.read_text().replace(".", ".1"))


def test_a_fact_of_ones_own_reaches_a_verdict(place, capsys):
    """With unit and file in the evidence, as for any other."""
    status, report = advised(capsys)
    [finding] = report["findings"]
    assert status == 0 and finding["rule"] == "ACME001"
    [evidence] = finding["evidence"]
    assert (evidence["value"], evidence["unit"], evidence["source"]["file"]) == (80.0, "per_s", "speed.txt")
    assert main(["facts", "list"]) == 0 and "acme.speed" in capsys.readouterr().out
    assert main(["rules", "lint", "rules/ACME001-slow.yaml"]) == 2  # it has no cases
    assert "no fact" not in capsys.readouterr().out


def test_scripts_have_the_facts_too(place):
    """`advisor.load_rules()` follows the configuration as the commands do."""
    import advisor

    report = advisor.advise("run", advisor.load_rules())
    assert [finding.rule for finding in report.findings] == ["ACME001"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("raise ValueError('broken')", "ValueError: broken"),
        ("import sys; sys.exit(0)", "SystemExit: 0"),
        ("x = (", "SyntaxError"),
        ("x = 1", "holds no Extractor"),
        (GOOD.replace('"per_s"', '"furlong"'), "no unit 'furlong'"),
        (GOOD.replace('"acme.speed", "per_s"', '"step.time_us", "us"'), "does not start with the extractor's"),
        (GOOD.replace('Extractor("acme"', 'Extractor("step"'), "is taken"),
        (GOOD.replace('"run", "tokens', '"planet", "tokens'), "no kinds of subject"),
        (GOOD.replace('per second"),), measure', 'per second"),), measure, ("step.tims",)'), "no fact 'step.tims'"),
    ],
)
def test_a_broken_extractor_is_told_and_ends_nothing(place, capsys, text, told):
    """In `doctor` and in the report, with the rest judged; the rules that need it are outcome error."""
    (place / "extractor.py").write_text(text)
    (place / "advisor.toml").write_text('rules = ["rules"]\nextractors = ["extractor.py"]\n')
    status, report = advised(capsys)
    assert status == 0
    assert any(told in problem["problem"] for problem in report["problems"])
    assert {c["rule"]: c["outcome"] for c in report["checked"]}["ACME001"] == "error"
    assert any(finding["rule"] == "CLUS010" for finding in report["findings"])
    assert main(["doctor", "run"]) == 0 and told in capsys.readouterr().out


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("    raise OSError('gone')", "OSError: gone"),
        ("    yield 3", "yields a int"),
        ("    yield fact('acme.other', context.run, 1.0)", "not among its kinds"),
        ("    yield fact('acme.speed', context.rank(0), 1.0)", "not of rank 0"),
        ("    yield fact('acme.speed', context.run, float('nan'))", "no finite number"),
        ("    yield fact('acme.speed', context.run, '80')", "no finite number"),
        ("    import sys; sys.exit(3)", "SystemExit: 3"),
    ],
)
def test_a_bad_fact_is_left_out_and_told(place, capsys, body, told):
    """It becomes no verdict: the rule lacks data."""
    (place / "extractor.py").write_text(GOOD.replace("    for path", body + "\n    for path", 1).replace("80", "0"))
    (place / "run" / "speed.txt").unlink()
    status, report = advised(capsys)
    assert any(told in problem["problem"] for problem in report["problems"])
    assert report["checked"][0]["outcome"] == "no_data" and status == 3


def test_an_endless_extractor_is_left_behind(place, capsys, monkeypatch):
    """A minute at most, then the report comes without its facts."""
    monkeypatch.setattr(plugins, "TIMEOUT_S", 0.2)
    wait = "    import time\n    time.sleep(3)\n    for path"
    (place / "extractor.py").write_text(GOOD.replace("    for path", wait, 1))
    _, report = advised(capsys)
    assert any("was not done after" in problem["problem"] for problem in report["problems"])


def test_a_pack_brings_no_code(place, capsys):
    """Neither its pack.yaml nor a file in its folder makes an extractor run."""
    (place / "advisor.toml").write_text('rules = ["rules"]\n')
    (place / "rules" / "extractors").mkdir()
    for folder in (place / "rules", place / "rules" / "extractors"):
        (folder / "extractor.py").write_text(f"open({str(place / 'ran')!r}, 'w')\n" + GOOD)
    advised(capsys)
    (place / "rules" / "pack.yaml").write_text("extractors: [extractor.py]\n")
    assert main(["advise", "run", "-q"]) == 2
    assert not (place / "ran").exists()


class Point:
    """An entry point of an installed package."""

    def __init__(self, name, value, target):
        self.name, self.value, self.target = name, value, target

    def load(self):
        return self.target


def test_installed_packages_bring_packs_and_extractors(place, capsys, monkeypatch):
    """By entry point; two packages that offer one name are an error, and so is the name of a shipped pack."""
    points = {
        "advisor.packs": [Point("acme", "acme_rules", str(place / "rules"))],
        "advisor.extractors": [Point("acme", "acme:E", plugins.Extractor(
            "acme", (plugins.kind("acme.speed", "per_s", "run", "speed"),),
            lambda context: [plugins.fact("acme.speed", context.run, 70.0)],
        ))],
    }  # fmt: skip
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points.get(group, []))
    (place / "advisor.toml").write_text('extend = ["acme"]\n')
    _, report = advised(capsys)
    assert [f["rule"] for f in report["findings"]] == ["ACME001"]
    points["advisor.packs"].append(Point("acme", "other_rules", "elsewhere"))
    with pytest.raises(RuleError, match="two installed packages"):
        packs.find_pack("acme")
    points["advisor.packs"] = [Point("strict", "acme_rules", str(place / "rules"))]
    with pytest.raises(RuleError, match="shipped pack"):
        packs.find_pack("strict")


def test_a_model_has_its_section(place, capsys):
    """`--model` applies [models.X]; one that does not exist is an error with a suggestion."""
    with (place / "advisor.toml").open("a") as file:
        file.write("[models.small]\nparams = {ACME001 = {floor = 50}}\n")
    assert len(advised(capsys)[1]["findings"]) == 1
    assert advised(capsys, "--model", "small")[1]["findings"] == []
    assert main(["advise", "run", "--model", "smal", "-q"]) == USAGE
    assert "did you mean small?" in capsys.readouterr().err


def test_the_company_example_works(tmp_path, capsys, monkeypatch):
    """Its rules are sound, its cases hold, and the three commands of its README say what the README says."""
    shutil.copytree(EXAMPLES / "in_house", tmp_path / "in_house")
    monkeypatch.chdir(tmp_path / "in_house")
    assert main(["trust", "."]) == 0
    shutil.copytree(EXAMPLES / "slow-rank-pipeline", "run")
    for path in Path("logs").iterdir():
        shutil.copy(path, "run")
    assert main(["rules", "lint", "rules"]) == 0
    assert main(["rules", "test", "rules"]) == 0
    capsys.readouterr()
    _, report = advised(capsys)
    first = report["findings"][0]
    assert (first["rule"], first["subject"]["id"], first["role"]) == ("ACME030", "1", "root_cause")
    explained = {f["verdict"] for f in report["findings"] if first["id"] in f["because"]}
    assert explained >= {"slow-compute-rank", "acme/low-mfu", "acme/token-rate"}
    assert {f["rule"] for f in advised(capsys, "--model", "moe-small")[1]["findings"]} & {"ACME010", "ACME020"} == set()
    another_run("before")
    assert main(["baseline", "add", "before", "--baseline", "baselines#main", "-q"]) == 0
    assert main(["gate", "run", "--baseline", "baselines#main", "-q"]) == 1
    assert "Fewer tokens per second than promised" in capsys.readouterr().out
    assert load_rules([tmp_path / "in_house" / "rules"]).rules


def test_runs_of_different_models_are_not_compared(place, capsys):
    """`--model` stands in the key of a baseline, and the gate that names another one cannot tell."""
    with (place / "advisor.toml").open("a") as file:
        file.write("[models.small]\n[models.large]\n[gate]\nmin_runs = 1\n")
    another_run("before")
    assert main(["baseline", "add", "before", "--baseline", "kept#main", "--model", "small", "-q"]) == 0
    assert main(["gate", "run", "--baseline", "kept#main", "--model", "small", "-q"]) == 0
    capsys.readouterr()
    assert main(["gate", "run", "--baseline", "kept#main", "--model", "large", "-q"]) == 3
    assert "model" in capsys.readouterr().out

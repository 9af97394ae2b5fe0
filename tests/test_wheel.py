"""The wheel carries rules, templates and knowledge base, and runs from any folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The wheel, built from this checkout and unpacked where no checkout is in sight."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", str(folder), str(ROOT)], check=True, timeout=300)
    wheel = next(folder.glob("advisor-*.whl"))
    subprocess.run(
        [*pip, "install", "--no-deps", "--target", str(folder / "site"), str(wheel)], check=True, timeout=300
    )
    return folder / "site"


def advisor(site, *arguments, cwd):
    environment = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(
        [sys.executable, "-m", "advisor", *map(str, arguments)],
        cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_the_installed_command_reports_from_another_folder(installed, tmp_path):
    """A user who installed the wheel gets the rules and the HTML template with it."""
    report = tmp_path / "report.html"
    example = ROOT / "examples" / "slow-rank-pipeline"
    done = advisor(installed, "advise", example, "--format", f"html:{report}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "<html" in report.read_text(encoding="utf-8")
    where = subprocess.run(
        [sys.executable, "-c", "import advisor.basics.resources as r; print(r.resource('rules'))"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(installed)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert str(installed) in where.stdout


def test_the_example_comes_along(installed, tmp_path):
    """Whoever installed the package can try it without a profile of their own."""
    assert advisor(installed, "example", "demo", cwd=tmp_path).returncode == 0
    done = advisor(installed, "advise", "demo", "-q", cwd=tmp_path)
    assert done.returncode == 0 and "4 ranks" in done.stdout, done.stderr


def test_the_wheel_carries_its_licence_and_its_types(installed):
    """Who ships it on has the text of the licence, who imports it has its types checked."""
    metadata = next(installed.glob("advisor-*.dist-info"))
    assert "Apache License" in (metadata / "licenses" / "LICENSE").read_text(encoding="utf-8")
    assert (installed / "advisor" / "py.typed").is_file()

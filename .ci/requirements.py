"""Prints the project's requirements, one a line: `--extra NAME` those of an extra, `--without NAME` all but one."""

import argparse
import re
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--extra")
parser.add_argument("--without", default="")
arguments = parser.parse_args()

text = (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")
heading = arguments.extra or "dependencies"
block = re.search(rf"^{heading} = \[(.*?)\]$", text, re.M | re.S)
if block is None:
    raise SystemExit(f"pyproject.toml has no list {heading}")
for requirement in re.findall(r'"([^"]+)"', block[1]):
    if not arguments.without or not requirement.startswith(arguments.without):
        print(requirement)

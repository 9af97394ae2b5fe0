"""What the schema of Jenkins' JUnit plugin allows, told by its structure: elements, attributes, order and contents."""

from __future__ import annotations

import re
from xml.etree import ElementTree

ATTRIBUTES = {
    "testsuites": {"name", "time", "tests", "failures", "errors", "disabled"},
    "testsuite": {
        "name", "tests", "failures", "errors", "group", "time", "skipped", "timestamp", "hostname", "id", "package",
        "file", "log", "url", "version",
    },
    "testcase": {"name", "assertions", "time", "timestamp", "classname", "status", "class", "file", "line", "log",
                 "group", "url"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
    "skipped": {"type", "message"},
    "system-out": set(),
    "system-err": set(),
    "properties": set(),
    "property": {"name", "value"},
}  # fmt: skip
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"testsuite", "properties", "testcase", "system-out", "system-err"},
    "testcase": {"skipped", "error", "failure", "system-out", "system-err", "properties"},
    "properties": {"property"},
}
REQUIRED = {"testsuite": {"name", "tests", "failures", "errors"}, "testcase": {"name"}, "property": {"name", "value"}}
NUMBERS = ("tests", "failures", "errors", "skipped", "disabled", "time")


def assert_fits_jenkins(text: str) -> None:
    """Fails with the first element that the schema refuses."""
    root = ElementTree.fromstring(text)
    assert root.tag in ("testsuites", "testsuite")
    for element in root.iter():
        given = set(element.attrib)
        assert element.tag in ATTRIBUTES, f"no element {element.tag}"
        assert given <= ATTRIBUTES[element.tag], f"{element.tag}/@{', @'.join(sorted(given - ATTRIBUTES[element.tag]))}"
        assert REQUIRED.get(element.tag, set()) <= given, f"{element.tag} lacks attributes"
        assert {child.tag for child in element} <= CHILDREN.get(element.tag, set()), f"children of {element.tag}"
        for name in given & set(NUMBERS):
            assert re.fullmatch(r"\d+(\.\d+)?", element.attrib[name]), f"{element.tag}/@{name}"

"""Schemas for editors: what the loader takes they take, and a misspelt key they mark."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jsonschema
import pytest

from advisor.authoring.schemas import KINDS, schema_path, schema_text
from advisor.cli.main import main
from advisor.cli.rules import SCHEMAS
from advisor.yamlfiles.document import read_document

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("kind", KINDS)
def test_published_schemas_are_those_of_the_loaders(kind, capsys):
    """Printed and by path alike."""
    assert schema_path(kind).read_text(encoding="utf-8") == schema_text(kind), "`make docs` writes it anew"
    jsonschema.Draft202012Validator.check_schema(json.loads(schema_text(kind)))
    assert main(["rules", "schema", kind, "--path"]) == 0
    assert Path(capsys.readouterr().out.strip()) == schema_path(kind)
    assert main(["rules", "schema", kind]) == 0 and capsys.readouterr().out == schema_text(kind)
    assert SCHEMAS == KINDS


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        ("cases", "rules/*/*.test.yaml"),
        ("remedy", "knowledge_base/remedies/*.yaml"),
        ("pack", "rules/packs/*/pack.yaml"),
    ],
)
def test_shipped_files_fit_and_a_misspelt_key_does_not(kind, pattern):
    """An editor underlines nothing in a good file, and the key that lint would refuse."""
    validator = jsonschema.Draft202012Validator(json.loads(schema_text(kind)))
    files = sorted(ROOT.glob(pattern))
    assert files
    for path in files:
        data = read_document(path).data
        assert not list(validator.iter_errors(data)), path
        assert list(validator.iter_errors({**data, "misspelt": 1}))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib")
def test_the_example_configuration_fits():
    """advisor.toml with its policy."""
    import tomllib

    table = tomllib.loads((ROOT / "examples" / "in_house" / "advisor.toml").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(json.loads(schema_text("config")))
    assert not list(validator.iter_errors(table))
    assert list(validator.iter_errors({**table, "selct": []}))
    assert list(validator.iter_errors({**table, "gate": {"min_rnus": 1}}))

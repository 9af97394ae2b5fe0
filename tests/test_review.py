"""The page for an editor of texts."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from advisor.basics.resources import resource
from benchmarks import review


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_all_texts_of_a_language_stand_on_the_page_and_none_of_the_other(lang):
    """What an editor does not see is not mended; what changed is marked, with what it was."""
    root = resource("rules").parent
    texts = dict(review._texts(root, lang))
    assert {key[0].partition("/")[0] for key in texts} == {"rules", "knowledge_base", "reports"}
    title = next(key for key in texts if key[1:] == ("title",) and key[0].startswith("rules/"))
    page = review._page({**texts, title: "what it was"}, texts, {title[0]: ["A sentence."]}, lang)
    assert page.count("class=new") == 1 and "what it was" in page
    other = "zh" if lang == "en" else "en"
    assert not [key for key in texts if other in key[1:]]


def test_the_texts_of_an_earlier_commit_are_those_of_its_files(tmp_path):
    """The page needs nothing but the repository."""
    if shutil.which("git") is None or subprocess.run(["git", "rev-parse"], capture_output=True).returncode:
        pytest.skip("no repository here")
    target = tmp_path / "review.html"
    assert review.main(["--before", "HEAD", "--output", str(target)]) == 0
    assert "CLUS010" in target.read_text(encoding="utf-8")

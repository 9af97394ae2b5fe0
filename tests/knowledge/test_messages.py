"""Messages about files and arguments, in Chinese."""

import re

import pytest

from advisor.basics.errors import UsageError
from advisor.basics.resources import resource
from advisor.knowledge.messages import in_both, told, told_fault, translated
from advisor.yamlfiles.document import read_document
from advisor.yamlfiles.faults import LintError

HAN = re.compile("[\u4e00-\u9fff]")
SIGNS = re.compile(r"^(?:\{\d\}|[～，：…'\s])+$")
"""A message that is made of values alone."""


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("is cut short: the last row ends in the middle and was left out, 1843 rows were kept",
         "被截断：最后一行不完整，未使用；保留1843行"),
        ("it holds more than 9 entries; it was not unpacked", "条目超过9个；未解压"),
        ("3 of 9 values of Duration(us) are negative, which no time, size, count or share can be; left out",
         "Duration(us)的9个值中有3个为负数，而时间、大小、次数和占比不可能为负；未使用"),
        ("something nobody translated", "something nobody translated"),
    ],
)  # fmt: skip
def test_a_message_is_said_in_chinese_with_its_values(english, chinese):
    """Who reads a Chinese report reads what is wrong with the files in Chinese as well."""
    assert translated(english, "zh") == chinese
    assert in_both(english).en == english


def test_an_error_is_told_with_its_place_and_hint():
    """What is wrong, where, and what to do next."""
    error = UsageError("no such file or folder", place="/x", hint="check the path of the profiler result")
    assert told(error, "zh") == "/x：文件或目录不存在\n  提示：请检查采集结果的路径"
    assert told(error, "en") == str(error)


def test_a_defect_of_a_rule_is_told_like_an_error():
    """`rules lint --lang zh` speaks Chinese; English is what it always was."""
    error = LintError("a.yaml", 3, "the rule has no cases", "write a.test.yaml beside it", "warning")
    assert told_fault(error, "zh") == "a.yaml:3：警告：该规则没有用例\n  提示：请在同目录下编写a.test.yaml"
    assert told_fault(error, "en") == str(error)


def test_translations_have_the_values_of_their_messages():
    """A value that is left out hides the number of the rows."""
    entries = read_document(resource("knowledge_base", "messages.yaml")).data
    optional = {"table {1} lacks the column{2} {3}", "lacks the column{1} {2}; it was not read"}
    for english, chinese in entries.items():
        slots = [set(re.findall(r"\{\d\}", text)) for text in (english, chinese)]
        assert slots[0] == slots[1] or (english in optional and slots[1] < slots[0]), english
        assert HAN.search(chinese) or english == chinese or english.startswith("--") or SIGNS.match(chinese), english

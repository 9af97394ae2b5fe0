"""Makes texts from profiles harmless where they are shown: terminals, Markdown, XML, workflow commands.

Names in a profile are whatever somebody's program was called; none of them may move a cursor, end a table, close a
tag or start a command.
"""

from __future__ import annotations

import re
from html import escape

_ESCAPE_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]{0,256}(?:\x07|\x1b\\)|[@-_])")
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 and C1 without tab and line feed
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]"  # invisible, direction-changing
)
_HALF_CHARACTER = re.compile("[\ud800-\udfff\ufffe\uffff]")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+!|~^$&@-])")


def printable(text: object, *, lines: bool = False) -> str:
    """`text` without escape sequences, control characters, direction overrides and half characters.

    Line breaks and tabs become blanks unless `lines` is set.
    """
    result = _ESCAPE_SEQUENCE.sub("", str(text).replace("\r\n", "\n"))
    result = _HALF_CHARACTER.sub("\ufffd", _CONTROL.sub("", result))
    return result if lines else re.sub(r"[\n\t]+", " ", result)


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters, the middle left out: both ends of a long name tell names apart."""
    if len(text) <= limit:
        return text
    head = (limit - 1) * 2 // 3
    return text[:head] + "…" + text[len(text) - (limit - 1 - head) :]


_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])")


def first_sentences(text: str, limit: int) -> str:
    """The whole sentences that fit in `limit` characters, one at least; a mark where more follow."""
    if len(text) <= limit:
        return text
    ends = [match.start() for match in _SENTENCE.finditer(text)]
    fitting = [end for end in ends if 0 < end <= limit]
    told = text[: max(fitting, default=next((end for end in ends if end > 0), len(text)))]
    return told if told == text else f"{told} …"


def markdown(text: object) -> str:
    """One line of Markdown that shows `text` literally: no markup, no HTML, no mention, no table end."""
    result = _MARKDOWN.sub(r"\\\1", printable(text)).replace("<", "&lt;").replace(">", "&gt;")
    result = result.replace("://", "&#58;//")  # whatever stands before it: renderers link inside words too
    result = re.sub(r"(?i)www\.", "www&#46;", result)
    return result.replace("\\@", "@\u200b").replace("\\&", "&amp;")


def html_line(text: object) -> str:
    """`text` inside an HTML block of Markdown, where backslashes are shown and entities work; no mention, no link."""
    result = escape(printable(text)).replace("@", "@\u200b").replace("://", "&#58;//")
    result = re.sub(r"[\[\]`*_]", lambda mark: f"&#{ord(mark[0])};", result)
    return re.sub(r"(?i)www\.", "www&#46;", result)


def markdown_code(text: object) -> str:
    """Inline code showing `text`; the fence is longer than any run of backticks inside."""
    content = printable(text).replace("|", "\u01c0")
    longest = max((len(run) for run in re.findall("`+", content)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if content[:1] in "` " or content[-1:] in "` " else ""
    return f"{fence}{pad}{content}{pad}{fence}" if content else ""


def markdown_block(text: object, language: str = "") -> str:
    """A fenced code block; the fence is longer than any run of backticks inside."""
    content = printable(text, lines=True).rstrip("\n")
    fence = "`" * max(3, max((len(run) for run in re.findall("`+", content)), default=0) + 1)
    return f"{fence}{language}\n{content}\n{fence}"


def xml(text: object) -> str:
    """`text` with only characters XML 1.0 allows; escaping of markup is the writer's."""
    return printable(text, lines=True)


def workflow_message(text: object) -> str:
    """The message of a workflow command: percent signs and line breaks escaped."""
    return printable(text, lines=True).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def workflow_property(text: object) -> str:
    """A property of a workflow command: as the message, and without the separators."""
    return workflow_message(text).replace(":", "%3A").replace(",", "%2C")

"""JSON documents as the advisor writes them: what names in a profile could do to a terminal is spelt out."""

from __future__ import annotations

import re

_UNSEEN = re.compile("[\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]")


def shield_json(text: str) -> str:
    """A JSON document whose control, direction-changing and half characters are written as \\uXXXX: it means the same,
    and a terminal or an editor that shows it obeys none of them."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found.group()):04x}", text)

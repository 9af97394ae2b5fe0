"""What durable-rules gets to see instead of names and values: generated names and integers.

A field goes over the wire as up to three integers: its *token* (equal values of one type share it), its *kind* (number,
text or truth value) and, for numbers, its *order* (an integer that sorts as the float does). So the C code never
compares texts, parses floats or mixes types, all of which it does wrongly, and every float and text is exact.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from advisor.engine.matching.values import Value

TYPE, GUARD = "t", "g"
"""Properties every fact carries: the number of its type, and 1."""

TOKEN, KIND, ORDER = "token", "kind", "order"

KINDS: dict[type, int] = {float: 1, str: 2, tuple: 3}


def hash_name(name: str) -> int:
    """FNV-1a, 32 bits: all that durable-rules compares of a property's, alias's, fact's or session's name."""
    value = 0x811C9DC5
    for byte in name.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


class Names:
    """Endless names prefix0, prefix1, … whose hashes differ from one another's and from those of `reserved`."""

    def __init__(self, prefix: str, reserved: Sequence[str] = ()) -> None:
        self._prefix, self._tried = prefix, 0
        self._hashes = {hash_name(name) for name in reserved}
        self._names: list[str] = []

    def __getitem__(self, index: int) -> str:
        while len(self._names) <= index:
            name = f"{self._prefix}{self._tried}"
            self._tried += 1
            value = hash_name(name)
            if value not in self._hashes:
                self._hashes.add(value)
                self._names.append(name)
        return self._names[index]


_RESERVED = ("id", "sid", "$s", "$i", "$m", "$time", TYPE, GUARD)
ALIASES = Names("a", _RESERVED)
PROPERTIES = Names("p", (*_RESERVED, *(ALIASES[place] for place in range(16))))
IDS = Names("r", ("$s", "$pulse"))
SESSIONS = Names("s")


def order_number(number: float) -> int:
    """An integer that sorts among its like as the finite float does; 0 for both zeros."""
    bits: int = struct.unpack("<q", struct.pack("<d", number))[0]
    return bits if bits >= 0 else -(bits & 0x7FFFFFFFFFFFFFFF)


class Tokens:
    """Numbers for values, equal exactly where values and their types are. Literals keep theirs from run to run."""

    def __init__(self) -> None:
        self._literals: dict[Value, int] = {}
        self._known: dict[Value, int] = {}

    def keep(self, value: Value) -> int:
        """The token of a literal of a rule."""
        return self._literals.setdefault(value, len(self._literals))

    def begin(self) -> None:
        """Forgets all values but literals."""
        self._known = dict(self._literals)

    def get(self, value: Value) -> int:
        """The token of a value of this run."""
        return self._known.setdefault(value, len(self._known))


class Layout:
    """Which aspects of which fields one shard wants of a record of one type, and the properties that carry them."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.properties: dict[tuple[str, str], str] = {}
        """(field, aspect) -> property."""

    def name(self, field: str, aspect: str) -> str:
        """The property for this aspect, from now on part of every fact that has it."""
        return self.properties.setdefault((field, aspect), PROPERTIES[len(self.properties)])

    def write_fact(self, id_: str, session: str, fields: Mapping[str, Value], tokens: Tokens) -> str:
        """The record as the JSON object durable-rules reads; absent fields stay absent."""
        parts = [f'{{"id":"{id_}","sid":"{session}","{TYPE}":{self.number},"{GUARD}":1']
        for (name, aspect), wired in self.properties.items():
            value = fields.get(name)
            if value is None:
                continue
            if aspect == TOKEN:
                parts.append(f'"{wired}":{tokens.get(value)}')
            elif aspect == KIND:
                parts.append(f'"{wired}":{KINDS[value.__class__]}')
            elif isinstance(value, float):
                parts.append(f'"{wired}":{order_number(value)}')
        return ",".join(parts) + "}"

"""The engine on durable-rules: its hash joins, confined to the forms that are exact and memory-safe.

durable-rules ends the process, hangs or answers wrongly on much of what its grammar allows. Nothing of the user's gets
through to it: `wire.py` replaces names and values, `shards.py` writes positive conjunctions only and stays clear of the
limits, `growth.py` stops joins before they explode. What is left to this module is how a run is driven:

- The core is called directly. Its Python layer adds threads that fire actions in the background and leases by the wall
  clock, and swallows exceptions of actions.
- One fact per call: a batch silently drops what follows a fact that cannot be stored. All that fires is taken at once.
- A session opens with a sentinel fact that fires: deleting one in which nothing ever fired frees uninitialised memory.
- A session is deleted when the run ends, else each run keeps megabytes; but not after an error of the core.
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import durable_rules_engine as core

from advisor.engine.matching.base import MAX_HITS, CompiledRule, EngineFailure, Hit, Record
from advisor.engine.matching.growth import Growth
from advisor.engine.matching.shards import SENTINEL, Shard, deal_rules
from advisor.engine.matching.values import check_record, check_rules
from advisor.engine.matching.wire import ALIASES, IDS, SESSIONS, TYPE, Tokens

MAX_SESSIONS = 1000
"""Live at once in one ruleset; the core crashes at 1,025."""
FLAT_FACTS = 500
"""Facts after which a session without joins starts afresh: the core keeps about 9 kB a fact, and nothing needs them."""
MAX_FACTS = 100_000
"""Facts that the sessions with joins of one run may keep: somewhat less than a gigabyte."""

Fired = dict[str, dict[str, dict[str, Any]]]
"""{rule: {alias: fact}}, one rule."""


class Ruleset:
    """One compiled shard inside the core, some hundred kilobytes that are never freed; hence one for all engines whose
    rules have the same shape."""

    def __init__(self, name: str, definition: str) -> None:
        self._handle = _call(core.create_ruleset, name, definition)
        self._free: list[str] = []
        self._made = 0

    def open_session(self) -> str:
        """The id of an empty session."""
        if not self._free:
            if self._made == MAX_SESSIONS:
                raise EngineFailure(f"{MAX_SESSIONS} runs of the same rules are open at once")
            self._free.append(SESSIONS[self._made])
            self._made += 1
        session = self._free.pop()
        self.put_fact(f'{{"id":"s","sid":"{session}","{TYPE}":{SENTINEL}}}', lambda fired: None)
        return session

    def put_fact(self, fact: str, take: Callable[[Fired], None]) -> bool:
        """Stores the fact (JSON) and hands over what fires, in no useful order. False where it meets no pattern."""
        code, state = _call(core.assert_fact, self._handle, fact)
        if code == 1:
            return False
        if code:
            raise EngineFailure(f"durable-rules answered {code} to a fact")
        started = _call(core.start_action_for_state, self._handle, state)
        fired = started[1] if started else None
        while fired:
            take(json.loads(fired))
            fired = _call(core.complete_and_start_action, self._handle, state)
        return True

    def close_session(self, session: str) -> None:
        """Frees the session and what it holds."""
        _call(core.delete_state, self._handle, session)
        self._free.append(session)


_rulesets: dict[str, Ruleset] = {}


def _find_ruleset(definition: str) -> Ruleset:
    if definition not in _rulesets:
        _rulesets[definition] = Ruleset(f"shard{len(_rulesets)}", definition)
    return _rulesets[definition]


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception as error:
        raise CoreFailure(f"durable-rules failed: {error}") from error


class CoreFailure(EngineFailure):
    """An error of the C core, after which its session is not touched again."""


class Session:
    """One shard during a run."""

    def __init__(self, shard: Shard) -> None:
        self.shard = shard
        self._ruleset = _find_ruleset(shard.write_definition())
        self._id: str | None = None
        self._facts = 0

    def begin(self) -> None:
        self._id, self._facts = self._ruleset.open_session(), 0

    def add(self, fact_id: str, type_: str, fields: Any, tokens: Tokens, take: Callable[[Fired], None]) -> bool:
        """Whether the fact is kept; what fires is handed over."""
        if self._id is None or (self.shard.flat and self._facts >= FLAT_FACTS):
            self.end()
            self.begin()
        assert self._id is not None
        try:
            stored = self._ruleset.put_fact(
                self.shard.layouts[type_].write_fact(fact_id, self._id, fields, tokens), take
            )
        except CoreFailure:
            self._id = None
            raise
        self._facts += stored
        return stored and not self.shard.flat

    def end(self) -> None:
        if self._id is not None:
            session, self._id = self._id, None
            self._ruleset.close_session(session)


class DurableEngine:
    """`Engine` on durable-rules, which must be importable.

    Construction raises `EngineFailure` where the rules are beyond its limits; a run does beyond `max_hits` hits, where
    a rule of three and more patterns may have too many partial matches, and on any error of the core.
    """

    name = "durable"

    def __init__(self, rules: Sequence[CompiledRule], max_hits: int = MAX_HITS) -> None:
        if struct.calcsize("l") < 8:
            raise EngineFailure("durable-rules reads 32-bit integers on this platform")
        check_rules(rules)
        self.rules, self.max_hits = tuple(rules), max_hits
        self._tokens = Tokens()
        self._sessions = [Session(shard) for shard in deal_rules(self.rules, self._tokens)]
        self._growth = Growth(self.rules)
        self._start()

    def _start(self) -> None:
        self._seen: set[str] = set()
        self._ids: dict[str, str] = {}
        """Wire id -> record id."""
        self._kept = 0
        self._count = 0
        self._hits: Counter[int] = Counter()
        self._tokens.begin()
        self._growth.begin()

    def begin(self) -> None:
        self.end()

    def add(self, record: Record) -> list[Hit]:
        fields = check_record(record, self._seen)
        exploding = self._growth.add(record.type, fields)
        if exploding is not None:
            raise EngineFailure("its joins may have too many partial matches", rule=self.rules[exploding].key)
        wired = IDS[len(self._ids)]
        self._ids[wired] = record.id
        found: list[tuple[int, int, tuple[str, ...]]] = []
        for session in self._sessions:
            if record.type not in session.shard.layouts:
                continue

            def take(fired: Fired, shard: Shard = session.shard) -> None:
                self._take(fired, shard, found)

            self._kept += session.add(wired, record.type, fields, self._tokens, take)
            if self._kept > MAX_FACTS:
                raise EngineFailure(f"more than {MAX_FACTS} facts to keep in one run")
        found.sort()
        return [self._hit(index, ids) for _, index, ids in found]

    def end(self) -> None:
        for session in self._sessions:
            session.end()
        self._start()

    def _take(self, fired: Fired, shard: Shard, found: list[tuple[int, int, tuple[str, ...]]]) -> None:
        for name, facts in fired.items():
            if name == "s":
                continue
            index = shard.rules[int(name[1:])]
            rule = self.rules[index]
            ids = tuple(self._ids[facts[ALIASES[place]]["id"]] for place in range(len(rule.patterns)))
            found.append((rule.priority, index, ids))
            self._count += 1
            self._hits[index] += 1
            if self._count > self.max_hits:
                worst = self.rules[self._hits.most_common(1)[0][0]].key
                raise EngineFailure(f"more than {self.max_hits} matches in one run", rule=worst)

    def _hit(self, index: int, ids: tuple[str, ...]) -> Hit:
        rule = self.rules[index]
        return Hit(rule.key, tuple((pattern.alias, id_) for pattern, id_ in zip(rule.patterns, ids, strict=True)))

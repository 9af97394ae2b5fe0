"""The verdicts reached so far, found by word and subject without looking through all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, overload

from advisor.model import Subject


class Reached(Protocol):
    """A verdict about a subject: all that conditions ask of a finding."""

    @property
    def verdict(self) -> str: ...
    @property
    def subject(self) -> Subject: ...


class Board(Sequence[Reached]):
    """Findings in the order in which they were reached."""

    def __init__(self, findings: Iterable[Reached] = ()) -> None:
        self._all: list[Reached] = []
        self._by_verdict: dict[str, list[Reached]] = {}
        self._first: dict[tuple[str, Subject], Reached] = {}
        self.extend(findings)

    def extend(self, findings: Iterable[Reached]) -> None:
        """Notes further findings."""
        for finding in findings:
            self._all.append(finding)
            self._by_verdict.setdefault(finding.verdict, []).append(finding)
            self._first.setdefault((finding.verdict, finding.subject), finding)

    def of(self, verdict: str) -> Sequence[Reached]:
        """Findings of this verdict."""
        return self._by_verdict.get(verdict, ())

    def about(self, verdict: str, subject: Subject) -> Reached | None:
        """The first finding of this verdict about exactly this subject."""
        return self._first.get((verdict, subject))

    @overload
    def __getitem__(self, index: int) -> Reached: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Reached]: ...
    def __getitem__(self, index: int | slice) -> Reached | Sequence[Reached]:
        return self._all[index]

    def __len__(self) -> int:
        return len(self._all)

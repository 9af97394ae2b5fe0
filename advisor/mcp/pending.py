"""A client's messages end when its questions are answered, not when it has asked the last.

The SDK drops what is at work as soon as its input ends, and whoever pipes questions into a server ends it at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anyio import CapacityLimiter

PAUSE_S = 0.1
QUIET = 5
"""Pauses without a tool at work behind which nothing is taken to come: what needs no tool is answered at once."""


class Patient:
    """The stream of a client's messages; its end comes once no tool is at work. `workers` are what tools work with."""

    def __init__(self, stream: Any, workers: CapacityLimiter) -> None:
        self._stream = stream
        self._workers = workers

    async def receive(self) -> Any:
        """The next message. Raises EndOfStream behind the last."""
        import anyio

        try:
            return await self._stream.receive()
        except anyio.EndOfStream:
            quiet = 0
            while quiet < QUIET:
                await anyio.sleep(PAUSE_S)
                at_work = self._workers.statistics()
                quiet = 0 if at_work.borrowed_tokens or at_work.tasks_waiting else quiet + 1
            raise

    def __aiter__(self) -> Patient:
        return self

    async def __anext__(self) -> Any:
        import anyio

        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Patient:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *about: Any) -> Any:
        return await self._stream.__aexit__(*about)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

"""A client's messages end when its questions are answered, not when it has asked the last.

The SDK drops what is at work as soon as its input ends, and whoever pipes questions into a server ends it at once.
"""

from __future__ import annotations

from typing import Any


class Questions:
    """The stream of a client's messages, with the questions that are still open."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._open: set[Any] = set()
        self._answered: Any = None

    async def receive(self) -> Any:
        """The next message. The end comes once nothing is open."""
        import anyio

        try:
            given = await self._stream.receive()
        except anyio.EndOfStream:
            while self._open:
                self._answered = anyio.Event()
                await self._answered.wait()
            raise
        message = getattr(given, "message", None)
        if getattr(message, "method", None) == "notifications/cancelled":
            self.close((getattr(message, "params", None) or {}).get("requestId"))
        elif getattr(message, "method", None) is not None and getattr(message, "id", None) is not None:
            self._open.add(message.id)  # type: ignore[union-attr]
        return given

    def close(self, question: Any) -> None:
        """Nobody waits for the answer to this one any longer."""
        self._open.discard(question)
        if self._answered is not None:
            self._answered.set()

    def __aiter__(self) -> Questions:
        return self

    async def __anext__(self) -> Any:
        import anyio

        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Questions:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *about: Any) -> Any:
        return await self._stream.__aexit__(*about)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Answers:
    """The stream to the client; what goes through it closes its question."""

    def __init__(self, stream: Any, questions: Questions) -> None:
        self._stream = stream
        self._questions = questions

    async def send(self, given: Any) -> None:
        """Sends a message."""
        await self._stream.send(given)
        if getattr(given.message, "method", None) is None:
            self._questions.close(getattr(given.message, "id", None))

    async def __aenter__(self) -> Answers:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *about: Any) -> Any:
        return await self._stream.__aexit__(*about)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

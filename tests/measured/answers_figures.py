"""Measures the reading of model answers on the labelled set: ``python -m tests.measured.answers_figures [half]``.

First each answer alone: what can be read for certain is, nothing else is. Then each as the first answer of a model that
is asked over HTTP as the phase does it, and that answers a second question with one of the set's readable answers.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import chain, cycle
from typing import Annotated, Literal
from unittest.mock import patch

from pydantic import BaseModel, StringConstraints

from actors.website import model
from actors.website.analysis import Lines
from actors.website.answers import Unusable, read_answer
from actors.website.chat import ModelEndpoint
from actors.website.messages import Message
from pipeline import Transient
from tests.measured.test_sets import HALVES, HERE, Row, rows

# Calls after which nobody would wait any longer.
MOST_CALLS = 6


class Asked(BaseModel):
    """What the set's prompt asked for."""

    summary: Annotated[str, StringConstraints(min_length=1)]
    topics: Lines
    language: Annotated[str, StringConstraints(min_length=1)]
    sentiment: Literal["positive", "neutral", "negative", "mixed"]


@dataclass
class Figures:
    """Of one half. ``differ`` names each answer that was read and should not be, or the other way round, or wrongly."""

    half: str
    total: int = 0
    readable: int = 0
    differ: list[str] = field(default_factory=list)
    # by the answer's id, the calls until there was an analysis
    calls: dict[str, int] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """As they are printed."""
        right = self.total - len(self.differ)
        yield f"answers, {self.half}: {right} of {self.total} right ({self.readable} readable)"
        yield from (f"  {one}" for one in self.differ)
        counts = {n: sum(calls == n for calls in self.calls.values()) for n in range(1, MOST_CALLS + 1)}
        told = ", ".join(f"{count} after {n} calls" for n, count in counts.items() if count)
        yield f"  an analysis in the end: {told}"


def measure(half: str) -> Figures:
    """Every answer of one half."""
    figures = Figures(half)
    for row in rows("answers", half):
        figures.total += 1
        figures.readable += isinstance(row["expected"], dict)
        if wrong := difference(row, half):
            figures.differ.append(f"{row['id']} {row['form']}: {wrong}")
    figures.calls = asyncio.run(_ask_all(half))
    return figures


def text_of(row: Row, half: str) -> str:
    """The answer as it came."""
    text: bytes = (HERE / "answers" / half / row["file"]).read_bytes()
    return text.decode("utf-8")


def difference(row: Row, half: str) -> str:
    """In what the reading of an answer differs from what is expected; empty if it does not."""
    expected = row["expected"] if isinstance(row["expected"], dict) else None
    try:
        found = read_answer(text_of(row, half), Asked).model_dump()
    except Unusable:
        return "not read" if expected else ""
    if expected is None:
        return "read"
    return ", ".join(sorted(key for key in expected if found[key] != expected[key]))


async def _ask_all(half: str) -> dict[str, int]:
    all_rows = rows("answers", half)
    readable = cycle(text_of(row, half) for row in all_rows if isinstance(row["expected"], dict))
    with patch.object(model, "read_analysis", lambda text, cut: read_answer(text, Asked, cut=cut)):
        return {row["id"]: await _calls(text_of(row, half), readable) for row in all_rows}


async def _calls(first: str, others: Iterator[str]) -> int:
    """The calls until there is an analysis; an attempt that fails is made again, as the engine does it."""
    asked: list[str] = []
    async with _endpoint(chain([first], others), asked) as endpoint:
        while len(asked) < MOST_CALLS:
            try:
                await model.analyse(endpoint, [Message(role="user", content="Describe the page.")])
            except Transient:
                continue
            break
    return len(asked)


@asynccontextmanager
async def _endpoint(answers: Iterator[str], asked: list[str]) -> AsyncIterator[ModelEndpoint]:
    """A model that gives these answers, and writes down each question."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = int(head.partition("content-length:")[2].splitlines()[0])
        asked.append((await reader.readexactly(length)).decode())
        message = {"role": "assistant", "content": next(answers)}
        said = json.dumps({"model": "set", "choices": [{"message": message, "finish_reason": "stop"}]}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(said), said))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield ModelEndpoint(url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", name="set")
    finally:
        server.close()


def main(arguments: list[str]) -> None:
    """Print the figures of both halves, or the one that was named."""
    for half in arguments or HALVES:
        print(*measure(half).lines(), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])

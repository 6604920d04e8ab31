"""Phases that wait: for an answer over HTTP, and for nothing in particular."""

from __future__ import annotations

import asyncio
import os

from pipeline import Job, Workflow

PORT = int(os.environ.get("SLOW_PORT", "0"))
REQUEST = b"GET / HTTP/1.1\r\nHost: slow\r\nConnection: close\r\n\r\n"
waiting, endless = Workflow("waiting"), Workflow("endless")


@waiting.phase
async def ask(job: Job) -> dict[str, int]:
    """One request of its own, answered after a second."""
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    writer.write(REQUEST)
    answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 200 ")
    return {"bytes": len(answer)}


@endless.phase
async def sleep(job: Job) -> None:
    await asyncio.sleep(600)

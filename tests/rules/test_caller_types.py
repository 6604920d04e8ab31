"""A type checker knows what a caller gets: an answer, or something to await."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.place import ROOT

ACCEPTED = """
from uuid import UUID

import psycopg
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session

from pipeline import Workflow, cancel, open_batch, replay, seal_batch, submit, submit_many
from pipeline.store.gateway.callers import AsyncCaller, AsyncpgConnection, DjangoConnection, SyncCaller

orders = Workflow("orders")


def plain(
    job: UUID,
    a: Session,
    b: scoped_session[Session],
    c: Connection,
    d: psycopg.Connection,
    e: psycopg.Cursor,
    f: DjangoConnection,
    g: SyncCaller,
) -> None:
    each = (submit(a, "o"), submit(b, "o"), submit(c, "o"), submit(d, "o"), submit(e, "o"), submit(f, "o"), submit(g, "o"))
    reveal_type(each[0])  # UUID
    ids: tuple[UUID, ...] = each
    reveal_type(submit(None, "o", {"n": 1}, priority=3, key="k", batch=job))  # UUID
    reveal_type(submit_many(a, "o", [{}], keys=["k"]))  # list[UUID]
    reveal_type(cancel(d, job))  # bool
    reveal_type(replay(f, job))  # bool
    reveal_type(open_batch(a))  # UUID
    seal_batch(a, job)
    reveal_type(orders.submit())  # JobHandle[Any]
    reveal_type(orders.submit({"n": 1}, session=d))  # JobHandle[Any]
    reveal_type(orders.submit_many([{}], session=a))  # list[JobHandle[Any]]


async def awaited(
    job: UUID,
    a: AsyncSession,
    b: async_scoped_session[AsyncSession],
    c: AsyncConnection,
    d: psycopg.AsyncConnection,
    e: psycopg.AsyncCursor,
    f: AsyncpgConnection,
    g: AsyncCaller,
) -> None:
    each = (await submit(a, "o"), await submit(b, "o"), await submit(c, "o"), await submit(d, "o"), await submit(e, "o"))
    reveal_type(each[0])  # UUID
    ids: tuple[UUID, ...] = each
    reveal_type(submit(f, "o"))  # Coroutine[Any, Any, UUID]
    reveal_type(await submit(g, "o", {"n": 1}, priority=3, key="k", batch=job))  # UUID
    reveal_type(await submit_many(a, "o", [{}], keys=["k"]))  # list[UUID]
    reveal_type(await cancel(d, job))  # bool
    reveal_type(await replay(f, job))  # bool
    reveal_type(await open_batch(a))  # UUID
    await seal_batch(a, job)
    reveal_type(await orders.submit({"n": 1}, session=d))  # AsyncJobHandle[Any]
    reveal_type(await orders.submit_many([{}], session=a))  # list[AsyncJobHandle[Any]]
"""
REFUSED = """# mypy: enable-error-code="truthy-bool"
from uuid import UUID

from sqlalchemy import Engine
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession
from sqlalchemy.orm import Session

from pipeline import Workflow, cancel, submit, submit_many

orders = Workflow("orders")


async def wrong(engine: Engine, async_engine: AsyncEngine, session: Session, async_session: AsyncSession) -> None:
    submit(engine, "o")  # call-overload
    submit(async_engine, "o")  # call-overload
    submit("o", {})  # call-overload
    submit(session, "o", {}, prioritty=3)  # call-overload
    submit(session, "o", {}, priority="3")  # call-overload
    submit_many(session, "o", [{}], key="k")  # call-overload
    orders.submit({}, session=engine)  # call-overload
    orders.submit({}, session=session, keys=["k"])  # call-overload
    submit(async_session, "o")  # unused-coroutine
    orders.submit({}, session=async_session)  # unused-coroutine
    job: UUID = submit(async_session, "o")  # assignment
    await submit(session, "o")  # misc
    if cancel(async_session, job):  # truthy-bool
        pass
"""


@pytest.mark.timeout(900)  # without script/test's cache mypy reads SQLAlchemy and psycopg first
def test_mypy_knows_what_each_caller_gets_and_refuses_the_rest(tmp_path: Path) -> None:
    """Also the await that was forgotten: the job would not exist."""
    (tmp_path / "accepted.py").write_text(ACCEPTED)
    (tmp_path / "refused.py").write_text(REFUSED)
    files = [str(tmp_path / name) for name in ("accepted.py", "refused.py")]
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "--no-error-summary", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    said = re.findall(r"(\w+)\.py:(\d+): (\w+): (.*)", done.stdout)
    revealed = {int(line): said for file, line, _, said in said if file == "accepted"}
    assert {line: _short(said) for line, said in revealed.items()} == _expected(ACCEPTED), done.stdout + done.stderr
    errors = {int(line): said for file, line, kind, said in said if (file, kind) == ("refused", "error")}
    assert {line: said.rsplit("[", 1)[1][:-1] for line, said in errors.items()} == _expected(REFUSED), done.stdout


def _expected(code: str) -> dict[int, str]:
    lines = enumerate(code.splitlines(), 1)
    return {number: line.split("  # ")[1] for number, line in lines if "  # " in line}


def _short(said: str) -> str:
    """``Revealed type is "…"`` with the names alone."""
    return re.sub(r"\b(\w+\.)+|^Revealed type is |\"", "", said)

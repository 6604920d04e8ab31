"""Sources and coins for a test, and one job of theirs without a broker."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import text

from actors.scrape.collect import collect
from actors.scrape.price_collection import price_collection
from pipeline.declare.errors import Permanent, Snooze, Transient
from pipeline.declare.job import Job
from pipeline.store import database
from pipeline.testing import FakeServices
from sandbox import Sandbox
from tests.place import Place

FAST = 600_000.0  # a rate that no test reaches


class Stall:
    """What a scrape test needs of its place."""

    def __init__(self, place: Place, sandbox: Sandbox) -> None:
        self.place = place
        self.sandbox = sandbox

    def source(self, name: str, adapter: str = "items-api", **columns: Any) -> str:
        """A marketplace of the sandbox; its id is its name."""
        values = {"rate_limit_per_minute": FAST, "base_url": f"{self.sandbox.url}/market/{name}", **columns}
        self.place.db.execute(
            "INSERT INTO sources (id, name, adapter, base_url, rate_limit_per_minute, enabled) VALUES (%s, %s, %s, %s, %s, %s)",
            (name, name, adapter, values["base_url"], values["rate_limit_per_minute"], values.get("enabled", True)),
        )
        return name

    def intake(self, title: str = "Lincoln cent", year: int = 1909) -> str:
        row = self.place.row(
            "INSERT INTO coin_intakes (year, mintmark, denomination, series, title) VALUES (%s, 'S', 'cent', 'Lincoln', %s) RETURNING id",
            year,
            title,
        )
        assert row is not None
        return str(row["id"])

    def collect(self, intake: str, sources: Sequence[str]) -> list[UUID]:
        with database.engine().begin() as connection:
            return collect(connection, intake, sources)

    def job(self, job_id: UUID, intake: str, source: str, **params: Any) -> Job:
        """The job as its phase sees it, on the test's database."""
        body = {"intake_id": intake, "source_id": source, "query_params": params}
        return Job(body=body, id=job_id, workflow="scrape", phase="price-collection", services=FakeServices(read=_read))

    def breaker(self, source: str) -> dict[str, Any]:
        row = self.place.row("SELECT *, paused_until > now() AS open FROM sources WHERE id = %s", source)
        assert row is not None
        return row

    def calls(self, source: str) -> int:
        """Requests that reached the marketplace."""
        paths = self.sandbox.stats()["paths"]
        return sum(count for path, count in paths.items() if path.startswith(f"/market/{source}/"))


def _read(statement: str, parameters: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    with database.engine().connect() as connection:
        return connection.execute(text(statement), dict(parameters)).mappings().all()  # type: ignore[return-value]  # rows are mappings


class Bench:
    """One sick source and as many jobs for it as a test needs."""

    def __init__(self, stall: Stall, jobs: int = 12) -> None:
        self.stall = stall
        self.intake = stall.intake()
        stall.source("coins")
        self.jobs = stall.collect(self.intake, ["coins"] * jobs)

    def run(self, number: int) -> str:
        """Run a job's phase; what became of it."""
        try:
            asyncio.run(price_collection(self.stall.job(self.jobs[number], self.intake, "coins")))
        except (Snooze, Transient, Permanent) as error:
            return type(error).__name__.lower()
        return "done"

    def open(self) -> None:
        self.stall.sandbox.add_fault(match="/market/coins", status=500, times=5)
        assert [self.run(number) for number in range(5)] == ["transient"] * 4 + ["snooze"]

    def let_the_pause_pass(self) -> None:
        for table, name in (("sources", "id = 'coins'"), ("pipeline.rate_limits", "name = 'source:coins'")):
            self.stall.place.db.execute(f"UPDATE {table} SET paused_until = now() - interval '1 second' WHERE {name}")

    @property
    def row(self) -> dict[str, object]:
        return self.stall.breaker("coins")

    @property
    def rate_limit_is_paused(self) -> bool:
        return bool(
            self.stall.place.count(
                "SELECT count(*) FROM pipeline.rate_limits WHERE name = 'source:coins' AND paused_until > now()"
            )
        )

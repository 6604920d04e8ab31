"""The example of the language, as it is written, with real workers: killed during each of its waits."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest
from pydantic import HttpUrl
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from pipeline import JobHandle
from pipeline.declare import registry
from tests.apart import apart
from tests.apis import running_api
from tests.leaders import kill_leader
from tests.place import Place

with apart() as EXAMPLE:
    from tests.audit_workflow import PAGES, REPORTS, Audit, Report, audit

MODULE = {"PIPELINE_WORKFLOWS": "tests.audit_workflow"}
FOUND = ["failed" if n % 10 == 9 else f"/page/{n}" for n in range(PAGES)]
CHILDREN = "SELECT count(*) FROM pipeline.jobs WHERE workflow = 'audit-page' AND status = %s"
# As if nobody had looked since Monday.
MISSED = "UPDATE pipeline.schedules SET next_at = %s, planned = true, revision = revision + 1 WHERE name = 'weekly'"


class Crew:
    """Two worker processes, and what their functions have reached."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._started = 0

    def start(self) -> None:
        self._place.worker(settings=MODULE)

    def hold(self, what: str) -> Path:
        """Whoever reaches this stays there until the file is gone."""
        held = self._place.folder / f"hold-{what}"
        held.touch()
        return held

    def reached(self, what: str) -> int:
        path = self._place.folder / "reached"
        return path.read_text().split().count(what) if path.exists() else 0

    def killed_while(self, what: str, there: Callable[[], Any]) -> None:
        """Every process dies there; others take their places."""
        self._place.until(there, 60, what)
        for pid in self._place.pids():
            os.kill(pid, signal.SIGKILL)
        self.start()


def waits_for(place: Place, job: JobHandle[Any]) -> str:
    row = place.row("SELECT waits_for FROM pipeline.outbox WHERE job_id = %s", job.id)
    return str(row["waits_for"]) if row else ""


def approve_over_http(place: Place, job: JobHandle[Any]) -> httpx.Response:
    with running_api(place) as api:
        return api.post(f"/v1/jobs/{job.id}/events/approved", json={"by": "Ada"})


@pytest.fixture
def crew(place: Place, monkeypatch: pytest.MonkeyPatch) -> Crew:
    monkeypatch.setattr(registry, "_workflows", {**registry.workflows(), **EXAMPLE})
    engine = create_engine(place.database_url.replace("postgresql://", "postgresql+psycopg://"))
    REPORTS.metadata.create_all(engine)
    engine.dispose()
    crew = Crew(place)
    crew.start()
    return crew


@pytest.mark.timeout(300)
def test_the_example_runs_as_it_is_written_through_a_kill_in_each_of_its_waits(place: Place, crew: Crew) -> None:
    """In its step, while its children run, while it waits for a person, in its child process; and once all are done."""
    steps, visits, renders = crew.hold("fetch"), crew.hold("visit"), crew.hold("render")
    engine = create_engine(place.database_url.replace("postgresql://", "postgresql+psycopg://"))
    with Session(engine) as session:
        body = Audit(customer="c-17", url=HttpUrl("http://example.org/"))
        job = audit.submit(body, session=session, unique="open", tags=["vip"], expires=timedelta(hours=2))
        session.commit()
    with ThreadPoolExecutor(1) as threads:
        result = threads.submit(job.result, timeout=120)
        crew.killed_while("the step runs", lambda: crew.reached("fetch") == 1)
        place.until(lambda: crew.reached("fetch") == 2, 30, "the step to run again")
        steps.unlink()
        crew.killed_while("the children run", lambda: crew.reached("visit") >= 3)
        assert waits_for(place, job).startswith("children:")
        visits.unlink()
        crew.killed_while("half of them ended", lambda: place.count(CHILDREN, "succeeded") >= PAGES // 2)
        crew.killed_while("a person is asked", lambda: waits_for(place, job) == "event:approved")
        assert approve_over_http(place, job).json()["answer"] == "delivered"
        crew.killed_while("the child process renders", lambda: crew.reached("render") == 1)
        place.until(lambda: crew.reached("render") == 2, 30, "the phase to run again")
        renders.unlink()
        assert result.result() == Report(found=FOUND)
    done = [(one["phase"], one["fence"]) for one in place.attempts(job.id) if one["outcome"] == "succeeded"]
    assert [phase for phase, _ in done] == ["crawl", "look", "approve", "publish"]
    assert crew.reached("fetch") == 2, "the step was not called again once its result was kept"
    assert place.rows("SELECT * FROM reports") == [{"customer": "c-17", "found": " ".join(FOUND)}]
    assert (place.count(CHILDREN, "succeeded"), place.count(CHILDREN, "failed")) == (PAGES - 3, 3)
    assert place.rows("SELECT * FROM pipeline.verify(false)") == []
    # Its key is free again.
    with Session(engine) as session:
        assert audit.submit(body, session=session, unique="open").id != job.id


def test_each_monday_of_the_example_has_one_job_whoever_leads(place: Place, crew: Crew) -> None:
    """At seven in Paris; the leader is killed as the moment comes."""
    place.until(lambda: place.count("SELECT count(*) FROM pipeline.schedules WHERE planned"), 20, "the first moment")
    now = datetime.now(UTC).astimezone(ZoneInfo("Europe/Paris"))
    monday = now.replace(hour=7, minute=0, second=0, microsecond=0) - timedelta(days=now.weekday() + 7)
    crew.start()
    place.db.execute(MISSED, (monday,))
    place.db.execute("SELECT pg_notify('pipeline_maintenance', 'schedule')")
    kill_leader(place)
    found = "SELECT body, pipeline.moment(id) AS at FROM pipeline.jobs WHERE tags @> ARRAY['schedule:weekly']"
    [job] = place.until(lambda: place.rows(found), 30, "its job")
    assert (job["body"]["customer"], (job["at"] - monday).days % 7) == ("c-18", 0)
    [schedule] = place.rows("SELECT next_at, last_at FROM pipeline.schedules WHERE name = 'weekly'")
    assert schedule["next_at"] > now and schedule["last_at"] == job["at"]


def test_customers_of_the_example_take_turns_and_are_told_of_failures(place: Place, crew: Crew) -> None:
    """Two audits of a customer are under way, in whatever phase they are, while another one's goes past the third."""
    fetches = crew.hold("fetch")
    url = HttpUrl("http://example.org/broken/")
    large = audit.submit_many([Audit(customer="large", url=url) for _ in range(20)])
    waiting = "SELECT count(*) FROM pipeline.outbox WHERE has_turn IS FALSE"
    place.until(lambda: place.count(waiting) == 18, 30, "two of the large customer's")
    small = audit.submit(Audit(customer="small", url=url))
    place.until(lambda: small.status().wait_reason != "key", 30, "the small customer's")
    assert [job.status().wait_reason for job in large].count("key") == 18
    place.until(lambda: crew.reached("fetch"), 30, "one of them to run")
    for pid in place.pids():
        os.kill(pid, signal.SIGKILL)
    fetches.unlink()
    crew.start()
    place.finished(*(job.id for job in [*large, small]), timeout=60)
    place.until(lambda: crew.reached("told") >= 21, 30, "each failure to be told")
    told = "SELECT count(*) AS n, count(DISTINCT body->>'job') AS jobs FROM pipeline.jobs WHERE workflow = 'tell-the-customer'"
    assert place.rows(told) == [{"n": 21, "jobs": 21}]
    most = """SELECT max((SELECT count(*) FROM pipeline.attempts b JOIN pipeline.jobs k ON k.id = b.job_id
            WHERE k.body->>'customer' = j.body->>'customer' AND k.workflow = 'audit'
              AND b.started_at <= a.started_at AND b.finished_at > a.started_at))
        FROM pipeline.attempts a JOIN pipeline.jobs j ON j.id = a.job_id WHERE j.workflow = 'audit'"""
    assert place.count(most) == 2

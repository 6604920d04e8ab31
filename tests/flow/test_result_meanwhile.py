"""Watching jobs, and waiting for them through lost connections, errors and forks."""

from __future__ import annotations

import asyncio
import multiprocessing
from uuid import uuid4

import psycopg
import pytest

from pipeline import job, submit
from pipeline.journey import ends
from pipeline.store.gateway import results
from tests.awaiting import LISTENER, awaited, finish, in_a_thread
from tests.db import steps
from tests.place import Place

# ---- watching


def test_a_watcher_sees_progress_and_the_end(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each change once; the end as soon as it is there, however far the next look is."""
    hold = steps.held(place.db)
    seen = []
    for status in job(hold.job).watch():
        seen.append((status.state.value, status.progress))
        if status.progress is None and not status.is_final:
            steps.one(place.db, "SELECT pipeline.progress(%s, %s, 1, 3)", hold.job, hold.fence)
        elif not status.is_final:
            monkeypatch.setattr(ends, "EVERY", 3600)
            awaited(place)
            finish(place, hold)
    assert seen == [("running", None), ("running", (1, 3)), ("succeeded", None)]


def test_a_watcher_on_an_event_loop_sees_the_same(place: Place) -> None:
    """``async for``."""
    hold = steps.held(place.db)

    async def watch() -> list[str]:
        seen = []
        async for status in job(hold.job).aio.watch():
            seen.append(status.state.value)
            if not status.is_final:
                await asyncio.to_thread(finish, place, hold)
        return seen

    assert asyncio.run(watch()) == ["running", "succeeded"]


# ---- what may happen meanwhile


def test_a_lost_connection_is_made_again_and_what_ended_meanwhile_is_found(place: Place) -> None:
    """Also what ended while nobody listened."""
    hold, other = steps.held(place.db), steps.held(place.db)
    waiting = [in_a_thread(one.job) for one in (hold, other)]
    awaited(place, 2)
    with place.db.transaction():
        finish(place, hold, {"n": 1})
        [listener] = place.rows(LISTENER)
        place.db.execute("SELECT pg_terminate_backend(%s, 5000)", (listener["pid"],))
    assert waiting[0]() == {"n": 1}
    finish(place, other, {"n": 2})
    assert waiting[1]() == {"n": 2}


def test_what_others_say_on_the_channel_disturbs_nobody(place: Place) -> None:
    """Nonsense, a job that nobody waits for here, and a job that has not ended."""
    hold = steps.held(place.db)
    waiting = in_a_thread(hold.job)
    awaited(place)
    for said in ("nonsense", str(uuid4()), str(hold.job)):
        place.db.execute("SELECT pg_notify('pipeline_ended', %s)", (said,))
    finish(place, hold, {"n": 1})
    assert waiting() == {"n": 1}


def test_an_error_that_time_does_not_mend_is_everybodys_answer(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """And whoever asks when it is mended is answered."""
    one = submit(None, "single")
    monkeypatch.setattr(results, "STATUS", "SELECT nonsense(%s)")
    with pytest.raises(psycopg.errors.UndefinedFunction):
        job(one).status()
    monkeypatch.undo()
    assert job(one).status().state == "pending"


def test_a_forked_process_waits_by_itself(place: Place) -> None:
    """Its parent's thread is not there, and its parent's connection is not its own."""
    hold = steps.held(place.db)
    job(hold.job).status()
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe()
    child = fork.Process(target=lambda: there.send(job(hold.job).result(20)))
    child.start()
    awaited(place)
    finish(place, hold, {"n": 1})
    assert here.poll(20) and here.recv() == {"n": 1}
    child.join(10)
    assert job(hold.job).result(5) == {"n": 1}

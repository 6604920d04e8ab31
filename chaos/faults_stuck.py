"""Phases that are stuck where no exception reaches them: at their time limit, at a cancel, at a deploy."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from chaos.crew import Worker, lives, send
from chaos.fault import Hits, Scene, fault
from chaos.observer import Deadline, until
from chaos.work import UNFINISHED, insist, stuck_jobs
from pipeline import cancel

# Longer than anything that waits for it.
STUCK = 90.0
# The limit itself, what the engine may take to notice it, the backoff, and the next attempt on a busy machine.
ENDS_WITHIN = 20.0
# What a container is given to stop in, by Kubernetes; then it is killed, and its jobs have crashed.
GRACE = 30.0
HOLDERS = "SELECT DISTINCT locked_by FROM pipeline.jobs WHERE id = ANY (%s) AND status = 'running'"
BUSY = "SELECT count(*) FROM pipeline.places WHERE job_id = ANY (%s)"


def _cannot(scene: Scene) -> Hits | None:
    return None if scene.stage.subject.has_ledger else Hits(0, "stuck: they are phases of the built-in workflow")


@fault("phases stuck past their time limit", explains=["retried"])
def past_the_limit(scene: Scene) -> Hits:
    """In time.sleep, in a socket and in C: each attempt ends as an error of its own, and the next one succeeds."""
    if no := _cannot(scene):
        return no
    jobs = stuck_jobs(scene, "chaos-limited", STUCK)
    done = Hits(len(jobs), "phases", jobs=jobs)
    _expect_end(scene, done, jobs, ENDS_WITHIN)
    return done


@fault("phases stuck at a cancel")
def at_a_cancel(scene: Scene) -> Hits:
    """The cancel stands at once, and the pool has its processors back though the threads are not."""
    if no := _cannot(scene):
        return no
    jobs = stuck_jobs(scene, "chaos-endless", STUCK)
    for job in jobs:
        insist(lambda job=job: cancel(None, job))  # type: ignore[misc]
    done = Hits(len(jobs), "phases", jobs=jobs, cancelled=jobs)
    _expect_end(scene, done, jobs, 5.0)
    if busy := scene.observer.one(BUSY, jobs):
        done.complaints.append(f"{busy} processors belong to cancelled jobs")
    return done


@fault("phases stuck at a deploy", explains=["released", "retried"])
def at_a_deploy(scene: Scene) -> Hits:
    """Their workers are asked to stop, and killed like containers that do not: no crash is to come of it."""
    if no := _cannot(scene):
        return no
    jobs = stuck_jobs(scene, "chaos-endless", STUCK)
    holders = {row["locked_by"] for row in scene.observer.rows(HOLDERS, jobs)}
    victims = [worker for worker in scene.stage.crew.living(scene.observer) if worker.id in holders]
    done = Hits(len(victims), "workers", jobs=jobs)
    with ThreadPoolExecutor(len(victims) or 1) as threads:
        list(threads.map(_stop_as_a_container, victims))
    scene.stage.crew.at_least(scene.observer, scene.stage.crew.size)
    _expect_end(scene, done, jobs, ENDS_WITHIN)
    return done


def _stop_as_a_container(worker: Worker) -> None:
    master, group = worker.master, os.getpgid(worker.pid)
    send(master, signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    while time.monotonic() < deadline and (lives(worker.pid) or lives(master)):
        time.sleep(0.1)
    if lives(worker.pid):
        os.killpg(group, signal.SIGKILL)


def _expect_end(scene: Scene, done: Hits, jobs: list[UUID], seconds: float) -> None:
    """Before the stuck calls return, which would hide what was not ended."""
    try:
        until(lambda: not scene.observer.one(UNFINISHED, jobs), seconds, "jobs with a stuck attempt to end", pause=0.2)
    except Deadline as late:
        left = scene.observer.one(UNFINISHED, jobs)
        done.complaints += [f"{late}: {left} of {len(jobs)} are left"] if scene.alone else []

"""Others of our own kind: an older version beside a newer one, another pipeline on the same host."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from chaos.fault import Hits, Scene, fault
from chaos.guest import guest
from chaos.observer import Deadline, Observer, until
from chaos.times import HEALTH
from chaos.work import PHASES, UNFINISHED, insist, long_jobs
from chaos.workflow import LEDGER

CHAIN = "chaos-chain"
WITHOUT = """SELECT count(*) FROM unnest(%s::uuid[]) j(id), unnest(%s::text[]) p(phase)
    WHERE NOT EXISTS (SELECT 1 FROM chaos_ledger l WHERE l.job_id = j.id AND l.phase = p.phase)"""
SUBMIT = """SELECT pipeline.submit_many(%s, (SELECT array_agg(jsonb_build_object('n', n, 'seconds', %s::jsonb))
    FROM generate_series(1, %s) n))"""
ENDED_OTHERWISE = "SELECT outcome || ': ' || coalesce(error, '') FROM pipeline.attempts WHERE outcome <> 'succeeded'"
OTHER = "chaos_neighbour"


@fault("old and new code side by side with different chains", explains=["released"])
def two_versions(scene: Scene) -> Hits:
    """The new version is deployed with ``pipeline migrate``; an old worker that starts after it changes nothing."""
    if not scene.stage.subject.has_ledger:
        return Hits(0, "versions: they are of the built-in workflow")
    done = Hits(2, "versions")
    with guest(scene, _modules(scene, "chaos.chain_old"), name="chaos-old"):
        early = _submit(scene, 5)
        _migrate(scene)
        with (
            guest(scene, _modules(scene, "chaos.chain_new"), name="chaos-new"),
            guest(scene, _modules(scene, "chaos.chain_old"), name="chaos-older"),
        ):
            jobs = _submit(scene, 15)
            done.jobs += jobs
            _expect_ends(scene, done, [*early, *jobs])
    # Those may have passed where the new phase is before there was one.
    if missing := scene.observer.one(WITHOUT, early, [PHASES[0], PHASES[-1]]):
        done.complaints.append(f"{missing} phases of the old chain were skipped")
    if missing := scene.observer.one(WITHOUT, jobs, list(PHASES)):
        done.complaints.append(f"{missing} phases of the new chain were skipped")
    return done


@fault("two pipelines on one host")
def neighbours(scene: Scene) -> Hits:
    """Two databases, two vhosts, one temp folder: neither touches the other's files."""
    if not scene.stage.subject.has_ledger:
        return Hits(0, "neighbours: their phases are those of the built-in workflow")
    done = Hits(1, "neighbour", jobs=long_jobs(scene, 4, 3 * HEALTH))
    with _other_pipeline(scene) as (settings, look), guest(scene, settings, name="neighbour", observer=look):
        look.run(LEDGER)
        seconds = f'{{"first": 0.1, "second": {3 * HEALTH}, "third": 0.1}}'
        workflow = scene.stage.subject.workflow
        jobs = [row["submit_many"] for row in look.rows(SUBMIT, workflow, seconds, 4)]
        try:
            until(lambda: not look.one(UNFINISHED, jobs), 90, "the neighbour's jobs to end", pause=0.2)
        except Deadline as late:
            done.complaints.append(str(late))
        done.complaints += [f"the neighbour: {row['?column?']}" for row in look.rows(ENDED_OTHERWISE)]
    return done


def _modules(scene: Scene, module: str) -> dict[str, str]:
    return {"PIPELINE_WORKFLOWS": f"{scene.stage.subject.module},{module}"}


def _migrate(scene: Scene) -> None:
    """As a deploy does it: from the new code, before its workers start."""
    environment = {**os.environ, **scene.stage.environment(), **_modules(scene, "chaos.chain_new")}
    command = [sys.executable, "-m", "pipeline.front.cli.main", "migrate"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    if ended.returncode:
        raise RuntimeError(f"pipeline migrate: {ended.stderr.strip()[-300:]}")


def _submit(scene: Scene, n: int) -> list[UUID]:
    """In SQL: this process knows neither version."""
    seconds = '{"first": 0.1, "second": 0.1, "third": 0.1}'
    return [row["submit_many"] for row in insist(lambda: scene.observer.rows(SUBMIT, CHAIN, seconds, n))]


def _expect_ends(scene: Scene, done: Hits, jobs: list[UUID]) -> None:
    """While somebody is there who serves the chain."""
    try:
        until(lambda: not scene.observer.one(UNFINISHED, jobs), 90, "jobs of both versions to end", pause=0.2)
    except Deadline as late:
        done.complaints.append(str(late))


@contextmanager
def _other_pipeline(scene: Scene) -> Iterator[tuple[dict[str, str], Observer]]:
    servers = scene.stage.servers
    insist(lambda: servers.postgres.create_database(OTHER))
    with scene.stage.rabbitmq_lock:
        servers.rabbitmq.create_vhost(OTHER)
    look = Observer(servers.postgres.url(OTHER))
    try:
        yield {"DATABASE_URL": servers.postgres.url(OTHER), "RABBITMQ_URL": servers.rabbitmq.url(OTHER)}, look
    finally:
        look.close()
        with scene.stage.rabbitmq_lock:
            servers.rabbitmq.delete_vhost(OTHER)
        insist(lambda: servers.postgres.drop_database(OTHER))

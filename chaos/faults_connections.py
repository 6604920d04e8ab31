"""One connection lost, and nothing else."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import ExitStack

from chaos.fault import Hits, Scene, fault, now
from chaos.observer import Deadline, until
from chaos.routes import MANAGEMENT, RABBITMQ
from chaos.work import check_others, long_jobs

# A name without the number of the worker: liveness, relay, committer, the pool's, and whatever is added to them.
KINDS = """SELECT DISTINCT regexp_replace(application_name, ' [0-9]+$', '') FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'pipeline%%' ORDER BY 1"""
LOSE = """SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND regexp_replace(application_name, ' [0-9]+$', '') = %s
    ORDER BY md5(pid::text || %s) LIMIT 1) one"""
STARTED = "SELECT count(*) FROM pipeline.attempts WHERE started_at > %s"
# How soon somebody else must lead who reaches RabbitMQ.
LEADS_WITHIN = 10.0


@fault("one PostgreSQL connection of each kind lost alone", explains=["snoozed"])
def lose_connections(scene: Scene) -> Hits:
    """Again and again, while phases run that outlast it: a living worker has its lock back before it is missed."""
    done, lost = Hits(), Counter[str]()
    kinds = [str(row["regexp_replace"]) for row in scene.observer.rows(KINDS)]
    done.jobs = long_jobs(scene, 6, scene.times(15, 40))
    for kind in kinds * scene.times(3, 8):
        lost[kind] += scene.observer.one(LOSE, kind, str(scene.chance.random()))
        scene.pause(0.1, 1.0)
    done.hits = lost.total()
    done.unit = f"sessions ({', '.join(f'{kind} {n}' for kind, n in sorted(lost.items()))})"
    return done


@fault("relay leader cut off from RabbitMQ alone", proxied=True)
def cut_leader(scene: Scene) -> Hits:
    """Reset and refused: somebody leads who reaches it, and jobs go on starting."""
    done, number = Hits(1, "leader"), _leader(scene)
    with scene.stage.routes.proxy(RABBITMQ, number).behaving("cut"):
        moment = now()
        _expect_starts(scene, done)
        time.sleep(scene.times(8, 20))
        check_others(scene, done, [], moment, LEADS_WITHIN)
    return done


@fault("relay leader's RabbitMQ silent", proxied=True)
def silence_leader(scene: Scene) -> Hits:
    """What it sends does not arrive, and nobody tells it."""
    number = _leader(scene)
    with scene.stage.routes.proxy(RABBITMQ, number).behaving("hold_up"):
        scene.pause(15, 25)
    return Hits(1, "leader")


@fault("management API hangs", proxied=True, management=True)
def hang_management(scene: Scene) -> Hits:
    """It accepts and never answers; sending and recovery do not need it."""
    proxies, moment = scene.stage.routes.all_of(MANAGEMENT), now()
    done = Hits(1, "hang")
    with ExitStack() as stack:
        for proxy in proxies:
            stack.enter_context(proxy.behaving("hold_down"))
        scene.pause(scene.times(12, 24), scene.times(12, 30))
        check_others(scene, done, [], moment, LEADS_WITHIN)
    return done


def _leader(scene: Scene) -> int:
    """The place of the worker whose relay sends."""

    def look() -> int:
        leader = scene.stage.crew.leader(scene.observer)
        return next((w.number for w in scene.stage.crew.living(scene.observer) if w.id == leader), 0)

    return int(until(look, 60, "a leader"))


def _expect_starts(scene: Scene, done: Hits) -> None:
    """The load goes on submitting: attempts must begin that could only be sent since."""
    moment = now()
    try:
        until(lambda: scene.observer.one(STARTED, moment) >= 10, LEADS_WITHIN, "jobs to start without the leader")
    except Deadline as late:
        done.complaints += [str(late)] if scene.alone else []

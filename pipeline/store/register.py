"""Make PostgreSQL know the workflows that this code declares; where the two differ, PostgreSQL's chain is in force."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, text

from pipeline.declare.phase import PhaseSpec
from pipeline.declare.registry import DeclaredWorkflow
from pipeline.store.gateway import schedules
from pipeline.store.limits import declared as limits

# What an operator has set stays in force (pipeline.set_pool, pipeline.set_rate).
UPSERT = text("""
    INSERT INTO pipeline.phases (workflow, phase, position, queue, actor, pool, queue_limit, max_attempts, max_crashes,
                        stale_after, isolated, throttle_count, throttle_seconds, rate_limit, breaker,
                        declared_pool, declared_throttle_count, declared_throttle_seconds)
    VALUES (:workflow, :phase, :position, :queue, :actor, :pool, :queue_limit, :max_attempts, :max_crashes,
            make_interval(secs => :stale_after), :isolated, :throttle_count, :throttle_seconds, :rate_limit, :breaker,
            :pool, :throttle_count, :throttle_seconds)
    ON CONFLICT (workflow, phase) DO UPDATE SET position = excluded.position, actor = excluded.actor,
        pool = CASE WHEN phases.pool_is_set THEN phases.pool ELSE excluded.pool END,
        queue_limit = excluded.queue_limit, max_attempts = excluded.max_attempts,
        max_crashes = excluded.max_crashes, stale_after = excluded.stale_after, isolated = excluded.isolated,
        rate_limit = excluded.rate_limit, breaker = excluded.breaker,
        throttle_count = CASE WHEN phases.rate_is_set THEN phases.throttle_count ELSE excluded.throttle_count END,
        throttle_seconds = CASE WHEN phases.rate_is_set THEN phases.throttle_seconds ELSE excluded.throttle_seconds END,
        declared_pool = excluded.pool, declared_throttle_count = excluded.throttle_count,
        declared_throttle_seconds = excluded.throttle_seconds
    WHERE (phases.position, phases.declared_pool, phases.queue_limit, phases.max_attempts, phases.max_crashes,
           phases.stale_after, phases.isolated, phases.declared_throttle_count, phases.declared_throttle_seconds,
           phases.rate_limit, phases.breaker)
        IS DISTINCT FROM (excluded.position, excluded.pool, excluded.queue_limit, excluded.max_attempts,
           excluded.max_crashes, excluded.stale_after, excluded.isolated, excluded.throttle_count,
           excluded.throttle_seconds, excluded.rate_limit, excluded.breaker)
""")
PLACES = text("SELECT pipeline.set_places(id, pool) FROM pipeline.phases WHERE workflow = ANY (:workflows)")
CHAIN = text("""
    UPDATE pipeline.phases p SET next_id = n.next_id
    FROM (SELECT id, lead(id) OVER (ORDER BY position) AS next_id FROM pipeline.phases
          WHERE workflow = :workflow AND phase = ANY (:phases)) n
    WHERE p.id = n.id AND p.next_id IS DISTINCT FROM n.next_id
""")
# A phase that left the workflow keeps its row, so that its jobs can still be seen, but starts nothing new.
RETIRE = text(
    "UPDATE pipeline.phases SET position = 0 WHERE workflow = :workflow AND phase <> ALL (:phases) AND position > 0"
)
KNOWN = text("SELECT DISTINCT workflow FROM pipeline.phases WHERE workflow = ANY (:workflows)")
IN_FORCE = text("""
    SELECT workflow, phase, pool, queue_limit, max_attempts, max_crashes,
           extract(epoch FROM stale_after)::float AS stale_after, isolated, throttle_count, throttle_seconds,
           rate_limit, breaker, declared_pool, declared_throttle_count, declared_throttle_seconds,
           pool_is_set, rate_is_set
    FROM pipeline.phases WHERE (CAST(:workflows AS text[]) IS NULL OR workflow = ANY (:workflows)) AND position > 0
    ORDER BY workflow, position
""")
UNHOOK = text("DELETE FROM pipeline.hooks WHERE workflow = ANY (:workflows)")
HOOK = text("""
    INSERT INTO pipeline.hooks (workflow, no, event, submits, body)
    VALUES (:workflow, :no, :event, :submits, CAST(:body AS jsonb))""")
HOOKS_IN_FORCE = text("SELECT workflow, event, submits, body FROM pipeline.hooks WHERE workflow = ANY (:workflows)")
# Of a workflow that has no keys any more, its waiting jobs keep theirs: no key is looked for in new ones.
WITHOUT_KEYS = text("""
    UPDATE pipeline.turns SET field = NULL, per_key = NULL, in_order = false, rate_count = NULL, rate_seconds = NULL
    WHERE workflow = ANY (:workflows)""")
TURNS = text("""
    INSERT INTO pipeline.turns (workflow, field, per_key, in_order, rate_count, rate_seconds)
    VALUES (:workflow, :field, :per_key, :in_order, :rate_count, :rate_seconds)
    ON CONFLICT (workflow) DO UPDATE SET field = excluded.field, per_key = excluded.per_key,
        in_order = excluded.in_order, rate_count = excluded.rate_count, rate_seconds = excluded.rate_seconds""")
TAKE_TURNS = text("""
    UPDATE pipeline.phases p SET turns_id = (
        SELECT t.id FROM pipeline.turns t WHERE t.workflow = p.workflow AND t.field IS NOT NULL)
    WHERE p.workflow = ANY (:workflows)""")
TURNS_IN_FORCE = text("""
    SELECT workflow, field, per_key, in_order, rate_count, rate_seconds FROM pipeline.turns
    WHERE workflow = ANY (:workflows) AND field IS NOT NULL""")
# One at a time: of two versions that meet a new workflow together, the second finds it known.
ONE_AT_A_TIME = text("SELECT pg_advisory_xact_lock('pipeline.phases'::regclass::oid::integer, 0)")


@dataclass(frozen=True)
class Difference:
    """Where the database, whose value is in force, and this code do not agree."""

    workflow: str
    phase: str | None
    option: str
    database: object
    code: object


def register(connection: Connection, workflows: Iterable[DeclaredWorkflow], stale_after: float | None = None) -> None:
    """Put this code's chains, options and schedules in force; only ``pipeline migrate`` may, for a known workflow."""
    connection.execute(ONE_AT_A_TIME)
    _write(connection, list(workflows), stale_after)


def introduce(
    connection: Connection, workflows: Iterable[DeclaredWorkflow], stale_after: float | None
) -> list[Difference]:
    """Register the workflows that the database does not know. What differs in the others is returned, not changed."""
    declared = {workflow.name: workflow for workflow in workflows}
    if declared.keys() - _known(connection, declared):
        connection.execute(ONE_AT_A_TIME)
        known = _known(connection, declared)
        _write(connection, [workflow for name, workflow in declared.items() if name not in known], stale_after)
    return differences(connection, declared.values(), stale_after)


def differences(
    connection: Connection, workflows: Iterable[DeclaredWorkflow], stale_after: float | None
) -> list[Difference]:
    """Where the database and this code do not agree."""
    declared = {workflow.name: workflow for workflow in workflows}
    known, scheduled = in_force(connection, declared), schedules.in_code(connection, list(declared))
    found = [one for name in declared for one in _differences(declared[name], known.get(name, []), stale_after)]
    found += _different_schedules(declared.values(), scheduled)
    found += [Difference(*one) for one in limits.differences(connection, declared.values())]
    return found + list(_different_turns(connection, declared)) + list(_different_hooks(connection, declared))


def in_force(connection: Connection, workflows: Iterable[str] | None = None) -> dict[str, list[dict[str, Any]]]:
    """By workflow, its phases in their order with the options that are in force; of all workflows by default."""
    found: dict[str, list[dict[str, Any]]] = {}
    wanted = None if workflows is None else list(workflows)
    for row in connection.execute(IN_FORCE, {"workflows": wanted}).mappings():
        found.setdefault(row["workflow"], []).append(dict(row))
    return found


def _write(connection: Connection, workflows: list[DeclaredWorkflow], stale_after: float | None) -> None:
    """A few round trips, however many there are."""
    chains = [{"workflow": one.name, "phases": [actor.spec.name for actor in one.phases]} for one in workflows]
    rows = [_row(actor.spec, place, stale_after) for one in workflows for place, actor in enumerate(one.phases, 1)]
    if rows:
        connection.execute(RETIRE, chains)
        connection.execute(UPSERT, rows)
        connection.execute(CHAIN, chains)
        named = {"workflows": [one.name for one in workflows]}
        connection.execute(PLACES, named)
        connection.execute(WITHOUT_KEYS, named)
        if turns := [{"workflow": one.name, **one.turns.options()} for one in workflows if one.turns]:
            connection.execute(TURNS, turns)
        connection.execute(TAKE_TURNS, named)
        connection.execute(UNHOOK, named)
        if hooks := [
            {"workflow": one.name, "no": no, **vars(hook)} for one in workflows for no, hook in enumerate(one.hooks, 1)
        ]:
            connection.execute(HOOK, hooks)
        limits.declare(connection, workflows)
        schedules.declare(connection, [(one.name, one.schedules) for one in workflows])


def _row(spec: PhaseSpec, position: int, stale_after: float | None) -> dict[str, object]:
    place = {"workflow": spec.workflow, "position": position, "queue": spec.queue, "actor": spec.actor}
    return {**place, **_options(spec, stale_after)}


def _known(connection: Connection, workflows: Iterable[str]) -> set[str]:
    return set(connection.execute(KNOWN, {"workflows": list(workflows)}).scalars())


def _differences(
    workflow: DeclaredWorkflow, in_force: list[dict[str, Any]], stale_after: float | None
) -> Iterator[Difference]:
    declared = {actor.spec.name: _options(actor.spec, stale_after) for actor in workflow.phases}
    chains = [" → ".join(chain) for chain in ((row["phase"] for row in in_force), declared)]
    if chains[0] != chains[1]:
        only_one_has = sorted({row["phase"] for row in in_force} ^ declared.keys())
        yield Difference(workflow.name, ", ".join(only_one_has) or None, "chain", *chains)
    for row in in_force:
        for option, code in declared.get(row["phase"], {}).items():
            # What an operator has set differs on purpose.
            declared_there = row.get(f"declared_{option}", row[option])
            if declared_there != code:
                yield Difference(workflow.name, row["phase"], option, declared_there, code)


def _different_turns(connection: Connection, declared: Mapping[str, DeclaredWorkflow]) -> Iterator[Difference]:
    rows = connection.execute(TURNS_IN_FORCE, {"workflows": list(declared)}).mappings()
    in_force = {row["workflow"]: {option: row[option] for option in row if option != "workflow"} for row in rows}
    for name, workflow in declared.items():
        code = workflow.turns.options() if workflow.turns else {}
        database = in_force.get(name, {})
        for option in sorted(code.keys() | database.keys()):
            if code.get(option) != database.get(option):
                yield Difference(name, None, f"key: {option}", database.get(option), code.get(option))


def _different_hooks(connection: Connection, declared: Mapping[str, DeclaredWorkflow]) -> Iterator[Difference]:
    in_force: dict[str, set[str]] = {name: set() for name in declared}
    for row in connection.execute(HOOKS_IN_FORCE, {"workflows": list(declared)}):
        in_force[row.workflow].add(_hook(row.event, row.submits, row.body))
    for name, workflow in declared.items():
        code = {_hook(hook.event, hook.submits, json.loads(hook.body)) for hook in workflow.hooks}
        if code != in_force[name]:
            yield Difference(name, None, "hooks", ", ".join(sorted(in_force[name])), ", ".join(sorted(code)))


def _hook(event: str, submits: str, body: Mapping[str, Any]) -> str:
    """For people; the same for the same, however PostgreSQL keeps it."""
    return f"{event}: {submits}" + (f" {json.dumps(body, sort_keys=True)}" if body else "")


def _different_schedules(
    workflows: Iterable[DeclaredWorkflow], in_force: Mapping[tuple[str, str], Mapping[str, Any]]
) -> Iterator[Difference]:
    declared = {
        (one.name, spec.name): schedules.as_stored(one.name, spec) for one in workflows for spec in one.schedules
    }
    for workflow, name in sorted(declared.keys() | in_force.keys()):
        code, database = declared.get((workflow, name)), in_force.get((workflow, name))
        if code is None or database is None:
            yield Difference(workflow, None, f"schedule {name}", _said(database), _said(code))
            continue
        for option, value in code.items():
            if value != database[option]:
                yield Difference(workflow, None, f"schedule {name}: {option}", database[option], value)


def _said(schedule: Mapping[str, Any] | None) -> str | None:
    """Its moments, for people."""
    if schedule is None:
        return None
    return str(schedule["cron"] or f"every {schedule['every']:g} s")


def _options(spec: PhaseSpec, stale_after: float | None) -> dict[str, object]:
    return {
        "phase": spec.name,
        "pool": spec.pool,
        "queue_limit": spec.queue_limit,
        "max_attempts": spec.max_attempts,
        "max_crashes": spec.max_crashes,
        "stale_after": spec.stale_after or stale_after,
        "isolated": spec.isolated,
        "throttle_count": spec.throttle.count if spec.throttle else None,
        "throttle_seconds": spec.throttle.seconds if spec.throttle else None,
        "rate_limit": spec.rate_limit,
        "breaker": spec.breaker.name if spec.breaker else None,
    }

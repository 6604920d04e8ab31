"""Which SQL functions are ours to drop: those on record, in our own schema, that the SQL files no longer create.

The database belongs to others too. A function that only has a name like ours is never touched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, text

CREATE = re.compile(r"^CREATE (?:OR REPLACE )?FUNCTION (\w+)", re.IGNORECASE | re.MULTILINE)
# Earlier versions kept no record. What they may have left is told by name: all that their SQL files ever defined.
BEFORE_THE_RECORD = """
    admit alive anybody_waits cancel cancel_many cause check_body claim claim_carefully collect complete
    complete_carefully count_children crash dead_group dead_groups delete discard end_failed end_waiting ended
    extraction_queue_write fail finish_batch first_phase forget_pages grants heartbeat hold hold_lanes id_at in_hand
    keep_counters list_jobs match_batch match_entries_added match_job_ended match_lives match_project_gone
    match_project_leaves match_submit match_task_before match_tasks_changed match_tasks_gone next_due note nudge
    open_batch open_lane out outcome park pause pause_lane processor progress prune recent reclaim refund refuse_body
    relay_lag replay replay_many request_send reserve reset retry roll_up room scrape_jobs_insert scrape_jobs_update
    seal_batch set_lane source_close source_closed source_enter source_failed source_leave source_open source_pause
    source_rate source_refund source_succeeded stats submit submit_many take_over timeline turn undeliverable unsend
    verify wait waited_for worker_name worker_state wrong_body
"""
# The functions of our schema: the one that `jobs` lies in. Written in this transaction means created by this code.
OURS = """(
    SELECT p.oid::regprocedure::text AS place, p.proname AS name, p.xmin = pg_current_xact_id()::xid AS new,
           format('%I(%s)', p.proname, oidvectortypes(p.proargtypes)) AS signature
    FROM pg_proc p WHERE p.prokind = 'f' AND p.pronamespace = (
        SELECT c.relnamespace FROM pg_class c WHERE c.oid = to_regclass('jobs'))) f"""
RECORD = text(f"INSERT INTO pipeline_functions SELECT signature FROM {OURS} WHERE new AND name = ANY (:created)")  # noqa: S608
RECORDED = text(f"SELECT place FROM {OURS} JOIN pipeline_functions USING (signature) WHERE NOT new")  # noqa: S608
UNRECORDED = text(f"SELECT place FROM {OURS} WHERE NOT new AND name = ANY (:names)")  # noqa: S608


def names(definitions: Iterable[str]) -> set[str]:
    """The names of the functions that these SQL files create."""
    return {name for definition in definitions for name in CREATE.findall(definition)}


def keep_only_what_was_just_created(connection: Connection, created: set[str], *, first: bool) -> None:
    """Drop what an earlier version created and this one did not, and put this version's functions on record."""
    if not first:
        for place in _left_behind(connection, created):
            connection.exec_driver_sql(f"DROP FUNCTION {place}")
    connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS pipeline_functions (signature text PRIMARY KEY)")
    connection.exec_driver_sql("DELETE FROM pipeline_functions")
    # A migration's own functions have other names and stay with the tables that need them.
    connection.execute(RECORD, {"created": sorted(created)})


def _left_behind(connection: Connection, created: set[str]) -> Sequence[str]:
    if connection.execute(text("SELECT to_regclass('pipeline_functions')")).scalar_one():
        return connection.execute(RECORDED).scalars().all()
    earlier = created | {f"pipeline_{name}" for name in BEFORE_THE_RECORD.split()}
    return connection.execute(UNRECORDED, {"names": sorted(earlier)}).scalars().all()

"""Time passes without waiting."""

from __future__ import annotations

from tests.db.steps import Db

MOMENTS = {
    "jobs": "created_at ready_at updated_at next_retry_at sent_at locked_at heartbeat_at completed_at expires_at",
    "outbox": "due_at sent_at expires_at",
    "keys": "until",
    "attempts": "ready_at due_at sent_at started_at finished_at",
    "workers": "started_at heartbeat_at confirmed_at stopped_at",
    "batches": "created_at completed_at",
    "phases": "throttle_from",
    "rate_limits": "next_at paused_until",
    "permits": "at until",
    "breakers": "open_until probe_until closed_at last_success_at last_failure_at",
    "key_turns": "paused_until",
    "key_rates": "next_at",
}


def let_pass(db: Db, seconds: float) -> None:
    """Time passes without waiting: everything that has happened, or is planned, moves into the past."""
    for table, columns in MOMENTS.items():
        moved = ", ".join(f"{column} = {column} - make_interval(secs => {seconds})" for column in columns.split())
        db.execute(f"UPDATE pipeline.{table} SET {moved}")
    db.execute(
        "SELECT setval('pipeline.expiry_look', greatest(last_value - %s, 1)) FROM pipeline.expiry_look",
        (int(seconds * 1000),),
    )

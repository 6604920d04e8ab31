"""A PostgreSQL that answers and can do nothing: read-only after a failover, or without space."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chaos.disk import cannot_mount, filled, mount, unmount
from chaos.fault import Hits, Scene, fault
from chaos.faults_postgres import AWAY
from chaos.work import insist, long_jobs
from pipeline.dev.services.processes import unprivileged_account

# The tables that grow with every phase; what they have now fits several times into the small disk.
TABLES = ("pipeline.jobs", "pipeline.outbox", "pipeline.attempts")
SIZE = "200m"
READ_ONLY = "ALTER SYSTEM SET default_transaction_read_only = on"
WRITABLE = "ALTER SYSTEM RESET default_transaction_read_only"
RELOAD = "SELECT pg_reload_conf()"


@fault("PostgreSQL read-only for a while", explains=AWAY)
def read_only(scene: Scene) -> Hits:
    """As when a failover leaves the pools connected to what is a standby now."""
    jobs = long_jobs(scene, 6, 6)
    with scene.stage.postgres_lock:
        try:
            _do(scene, READ_ONLY, RELOAD)
            scene.pause(5, 9)
        finally:
            _do(scene, WRITABLE, RELOAD)
    return Hits(1, "switch", jobs=jobs)


@fault("PostgreSQL out of disk space", explains=AWAY, impossible=cannot_mount)
def out_of_space(scene: Scene) -> Hits:
    """The tables move to a small file system, which then is full for a while; the log has a disk of its own."""
    folder = Path(scene.stage.servers.postgres._state.read()["place"]) / "small"
    folder.mkdir(exist_ok=True)
    if said := mount(folder, SIZE):
        return Hits(0, f"mounts: {said}")
    try:
        if account := unprivileged_account():
            os.chown(folder, *account)
        jobs = long_jobs(scene, 6, 8)
        with scene.stage.postgres_lock, _tables_in(scene, folder), filled(folder) as taken:
            scene.pause(5, 9)
    finally:
        unmount(folder)
    return Hits(taken, "bytes taken", jobs=jobs)


@contextmanager
def _tables_in(scene: Scene, folder: Path) -> Iterator[None]:
    _do(scene, f"CREATE TABLESPACE small LOCATION '{folder}'")
    try:
        _do(scene, *(f"ALTER TABLE {table} SET TABLESPACE small" for table in TABLES))
        yield
    finally:
        _do(scene, *(f"ALTER TABLE {table} SET TABLESPACE pg_default" for table in TABLES))
        _do(scene, "CHECKPOINT", "DROP TABLESPACE IF EXISTS small")


def _do(scene: Scene, *statements: str) -> None:
    for statement in statements:
        insist(lambda statement=statement: scene.observer.run(statement))  # type: ignore[misc]

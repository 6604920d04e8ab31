"""A PgBouncer of the test's own in front of its PostgreSQL."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from psycopg.conninfo import conninfo_to_dict

from pipeline.dev.services import Postgres, processes
from pipeline.dev.services.ports import LOOPBACK, answers, free_port
from pipeline.dev.services.postgres_cluster import environment, reachable_place
from pipeline.dev.services.readiness import wait_until
from pipeline.dev.services.state import make_folder

Mode = Literal["session", "transaction"]
# Everything else is PgBouncer's default.
SETTINGS = """[databases]
* = host={host} port={port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {users}
pool_mode = {mode}
default_pool_size = {size}
max_client_conn = 500
"""
# A session pool needs a place for each connection; the pools of a worker's transactions do not.
SIZES = {"session": 100, "transaction": 8}


@contextmanager
def pooled(postgres: Postgres, mode: Mode, folder: Path) -> Iterator[Callable[[str], str]]:
    """The address of a database behind it."""
    program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
    make_folder(folder)
    account = processes.unprivileged_account()
    place, log, port = reachable_place(folder, account), folder / "pgbouncer.log", free_port()
    server = conninfo_to_dict(postgres.url("postgres"))
    users, config = place / "users", place / "pgbouncer.ini"
    users.write_text(f'"{server["user"]}" "{server["password"]}"\n')
    config.write_text(
        SETTINGS.format(host=server["host"], port=server["port"], listen=port, users=users, mode=mode, size=SIZES[mode])
    )
    for path in (users, config):
        path.chmod(0o600)
        if account:
            os.chown(path, *account)
    process = processes.spawn([program, str(config)], log, environment(), account)
    try:
        wait_until(lambda: answers(port), process, log, "PgBouncer", 20)
        yield lambda database: f"postgresql://{server['user']}:{server['password']}@{LOOPBACK}:{port}/{database}"
    finally:
        processes.send(process, signal.SIGQUIT)
        processes.end_all([process], grace=5)
        shutil.rmtree(place, ignore_errors=True)

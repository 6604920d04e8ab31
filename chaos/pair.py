"""A primary and a standby on loopback: the standby is promoted when the primary is killed, which then follows it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from time import monotonic
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from chaos.observer import until
from pipeline.dev.services.postgres import Postgres
from pipeline.dev.services.postgres_cluster import binary, environment, reachable_place
from pipeline.dev.services.processes import ServiceError, unprivileged_account
from pipeline.dev.services.state import State, make_folder

FOLLOWS = "SELECT state = 'streaming' AND sync_state = %s FROM pg_stat_replication"
CAUGHT_UP = "SELECT replay_lsn >= pg_current_wal_lsn() FROM pg_stat_replication"
SAME = ("password", "user")


class Pair:
    """``first`` runs, with data or without; the other is made from it. ``close`` leaves ``first`` as it was found.

    ``synchronous``: a commit is answered once it is on both, so that a failover loses nothing.
    """

    def __init__(self, first: Postgres, folder: Path, *, synchronous: bool = True) -> None:
        self._first, self._folder, self._synchronous = first, folder, synchronous
        self._folders = {id(first): first._folder}
        self.primary, self.standby = first, Postgres(folder)
        self._folders[id(self.standby)] = folder

    def open(self) -> None:
        """Return when the standby follows."""
        make_folder(self._folder)
        known = State(self._folders[id(self.primary)], "postgres").read()
        state = State(self._folder, "postgres")
        place = reachable_place(self._folder, unprivileged_account())
        state.update(initialised=True, place=str(place), **{name: known[name] for name in SAME})
        self.follow()

    def close(self) -> None:
        """One server again, the first one, which waits for nobody."""
        if self.primary is not self._first:
            if not self.standby.running:
                self.follow()
            self.fail_over()
        _run(self.primary, "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
        self.standby.stop("immediate")
        self.standby.remove()

    def url(self, database: str) -> str:
        """Both servers; whoever connects gets the one that takes writes."""
        one = self._first.url(database)
        before, _, after = one.partition("@")
        other = Postgres(self._folder).url(database).partition("@")[2]
        hosts = f"{after.partition('/')[0]},{other.partition('/')[0]}"
        return f"{before}@{hosts}/{database}?target_session_attrs=read-write"

    def fail_over(self) -> float:
        """Kill the primary and promote the other, which then has nobody. The moment when it took writes (monotonic)."""
        self.primary.kill()
        # As whoever watches over such a pair does: nobody is there to confirm what is committed next.
        _run(self.standby, "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_promote()")
        moment = monotonic()
        self.primary, self.standby = self.standby, self.primary
        return moment

    def cut(self) -> None:
        """The standby hears nothing more: what the primary commits from now on is lost with it."""
        _run(self.standby, "ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
        until(
            lambda: not _ask(self.primary, "SELECT count(*) FROM pg_stat_replication"), 30, "the standby to be cut off"
        )

    def caught_up(self) -> None:
        """Return when the standby has what is committed now."""
        until(lambda: _ask(self.primary, CAUGHT_UP), 30, "the standby to catch up")

    def follow(self) -> None:
        """The standby gets a copy of the primary's data. Return when it follows; after a failover, too."""
        self._copy()
        self.standby.start()
        if self._synchronous:
            _run(self.primary, "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
        state = "sync" if self._synchronous else "async"
        until(lambda: _ask(self.primary, FOLLOWS, state), 30, "the standby to follow")

    def _copy(self) -> None:
        recorded = State(self._folders[id(self.standby)], "postgres").read()
        data, account = Path(recorded["place"]) / "data", unprivileged_account()
        shutil.rmtree(data, ignore_errors=True)
        source = make_conninfo(self.primary.url("postgres"), dbname="replication", application_name="standby")
        command = [binary("pg_basebackup"), "-D", str(data), "-d", source, "-R", "-X", "stream", "-c", "fast"]
        done = subprocess.run(
            [*command, "--no-sync"],
            cwd="/",
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        )
        if done.returncode:
            raise ServiceError(f"the standby could not be made: {done.stderr.strip()}")


def _run(server: Postgres, *statements: str) -> None:
    with psycopg.connect(server.url("postgres"), autocommit=True, connect_timeout=10) as connection:
        # Nobody may be there to confirm this.
        connection.execute("SET synchronous_commit = local")
        for statement in statements:
            connection.execute(statement)


def _ask(server: Postgres, query: str, *values: Any) -> Any:
    with psycopg.connect(server.url("postgres"), autocommit=True, connect_timeout=10) as connection:
        row = connection.execute(query, values).fetchone()
        return row[0] if row else None

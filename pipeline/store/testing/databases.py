"""Databases for tests: clones of a migrated template, put back as they were and given to the next under a new name.

Creating and dropping one for each test made PostgreSQL write hundreds of files to disk each time: a drop waits until
everything of everybody is there, half a minute for 25 of them.
"""

from __future__ import annotations

from typing import Protocol
from uuid import uuid4

import psycopg
from psycopg import sql

Connection = psycopg.Connection[tuple[object, ...]]
# What every test finds in the same state: the tables of the engine and of the application.
TABLES = """SELECT oid::regclass::text, (SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute
        WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '')
    FROM pg_class c WHERE relkind = 'r' AND oid >= 16384 AND relpersistence <> 't'"""
# Everything that a statement could define or alter; a row's xmin is the transaction that wrote it.
SHAPE = """SELECT md5(string_agg(part, ' ' ORDER BY part)) FROM (
    SELECT format('class %s %s %s %s %s %s %s', oid, relname, relkind, relowner, relpersistence, reloptions, relacl)
        FROM pg_class WHERE oid >= 16384 AND relpersistence <> 't' AND relnamespace <> 'pg_toast'::regnamespace
    UNION ALL SELECT format('attribute %s %s %s', attrelid, attnum, a.xmin)
        FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid WHERE c.oid >= 16384 AND relpersistence <> 't'
    UNION ALL SELECT format('function %s %s', oid, xmin) FROM pg_proc WHERE oid >= 16384
    UNION ALL SELECT format('constraint %s %s', oid, xmin) FROM pg_constraint WHERE oid >= 16384
    UNION ALL SELECT format('trigger %s %s', oid, xmin) FROM pg_trigger
    UNION ALL SELECT format('event trigger %s %s', oid, xmin) FROM pg_event_trigger
    UNION ALL SELECT format('policy %s %s', oid, xmin) FROM pg_policy
    UNION ALL SELECT format('default acl %s %s', oid, xmin) FROM pg_default_acl
    UNION ALL SELECT format('index %s %s', indexrelid, xmin) FROM pg_index WHERE indexrelid >= 16384
    UNION ALL SELECT format('sequence %s %s', seqrelid, xmin) FROM pg_sequence
    UNION ALL SELECT format('enum %s %s', oid, xmin) FROM pg_enum
    UNION ALL SELECT format('extension %s %s', oid, xmin) FROM pg_extension
    UNION ALL SELECT format('schema %s %s', oid, xmin) FROM pg_namespace WHERE nspname !~ '^pg_(toast_)?temp_'
    UNION ALL SELECT format('setting %s %s', setrole, setconfig) FROM pg_db_role_setting s
        JOIN pg_database d ON d.oid = setdatabase AND datname = current_database()) AS parts (part)"""
LEFT_BEHIND = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"
EXISTS = "SELECT 1 FROM pg_database WHERE datname = %s"
# Dead rows of a large test would be read by every later one.
GROWN = "SELECT name FROM unnest(%s::text[]) AS name WHERE pg_table_size(name::regclass) > %s"
LARGE = 200_000


class Server(Protocol):
    """A server that the tests have for themselves."""

    def url(self, database: str) -> str: ...

    def create_database(self, name: str, template: str | None) -> None: ...


class Fresh:
    """What a new clone contains: read once, and written to those that were used."""

    def __init__(self, clone: Connection) -> None:
        self._shape = _one(clone, SHAPE)
        self._tables = [str(table) for table, _ in clone.execute(TABLES).fetchall()]
        self._rows: list[tuple[str, bytes]] = []
        for table, columns in clone.execute(TABLES).fetchall():
            if rows := b"".join(_copied(clone, f"COPY {table} ({columns}) TO STDOUT")):
                self._rows.append((f"COPY {table} ({columns}) FROM STDIN", rows))
        sequences = clone.execute("SELECT seqrelid::regclass::text FROM pg_sequence").fetchall()
        self._numbers = [
            (name, *clone.execute(f"SELECT last_value, is_called FROM {name}".encode()).fetchall()[0])  # noqa: S608  a name of the schema
            for (name,) in sequences
        ]

    def write_to(self, used: Connection) -> bool:
        """False if the test has altered more than rows."""
        if _one(used, SHAPE) != self._shape:
            return False
        with used.transaction():
            # Neither triggers nor foreign keys have a say in what was true before.
            used.execute("SET LOCAL session_replication_role = replica")
            used.execute("; ".join(f"DELETE FROM {table}" for table in self._tables).encode())  # noqa: S608  names of the schema
            for statement, rows in self._rows:
                with used.cursor().copy(statement.encode()) as copy:
                    copy.write(rows)
            used.cursor().executemany("SELECT setval(%s::regclass, %s, %s)", self._numbers)
        for (table,) in used.execute(GROWN, (self._tables, LARGE)).fetchall():
            used.execute(f"VACUUM {table}".encode())
        return True


class Databases:
    """One for each test, with a name that no process of an earlier test knows."""

    def __init__(self, postgres: Server, template: str) -> None:
        self._postgres = postgres
        self._template = template
        self._fresh: Fresh | None = None
        self._spare: list[str] = []

    def new(self, prefix: str) -> str:
        name = f"{prefix}_{uuid4().hex[:12]}"
        if self._spare:
            self._rename(self._spare.pop(), name)
        else:
            self._postgres.create_database(name, template=self._template)
        if self._fresh is None:
            with self._connect(name) as connection:
                self._fresh = Fresh(connection)
        return name

    def give_back(self, name: str) -> None:
        """Whoever is still connected is not any more. One that cannot be put back goes away with the server."""
        spare = f"spare_{uuid4().hex[:12]}"
        try:
            self._rename(name, spare)
        except (psycopg.errors.ObjectInUse, psycopg.errors.InvalidCatalogName):
            return
        if self.put_back(spare):
            self._spare.append(spare)

    def put_back(self, name: str) -> bool:
        """As it was when it was new; False if the test has altered more than rows."""
        assert self._fresh is not None
        with self._connect(name) as connection:
            return self._fresh.write_to(connection)

    def _rename(self, name: str, new: str) -> None:
        with self._connect("postgres") as connection:
            connection.execute(LEFT_BEHIND, (name,))
            statement = sql.SQL("ALTER DATABASE {} RENAME TO {}")
            connection.execute(statement.format(sql.Identifier(name), sql.Identifier(new)))

    def _connect(self, name: str) -> Connection:
        return psycopg.connect(self._postgres.url(name), autocommit=True, options="-c lock_timeout=10s")


def exists(url: str, name: str) -> bool:
    """Whether the server has a database of that name."""
    with psycopg.connect(url) as connection:
        return connection.execute(EXISTS, (name,)).fetchone() is not None


def _one(connection: Connection, query: str) -> object:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def _copied(connection: Connection, statement: str) -> list[bytes]:
    with connection.cursor().copy(statement.encode()) as copy:
        return [bytes(part) for part in copy]

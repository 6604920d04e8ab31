"""Databases for tests: cloned from a migrated template; dropped many at a time, or put back as they were."""

from __future__ import annotations

from uuid import uuid4

import psycopg

from pipeline.dev.services import Servers

# Dropping a database makes PostgreSQL write out everything first: as slow for one as for many.
MANY = 25


class Databases:
    """One for each test. What is not dropped in the end goes away with the server."""

    def __init__(self, servers: Servers, template: str) -> None:
        self._postgres = servers.postgres
        self._template = template
        self._used: list[str] = []

    def new(self, prefix: str) -> str:
        name = f"{prefix}_{uuid4().hex[:12]}"
        self._postgres.create_database(name, template=self._template)
        return name

    def give_back(self, name: str) -> None:
        self._used.append(name)
        if len(self._used) >= MANY:
            for used in self._used:
                self._postgres.drop_database(used)
            self._used.clear()


# The rows that the template came with are kept beside it; everything else a test wrote goes away.
REMEMBER = """
    CREATE SCHEMA pristine;
    DO $$ DECLARE t regclass; BEGIN
        FOR t IN SELECT oid FROM pg_class WHERE relkind = 'r'
            AND relnamespace IN ('public'::regnamespace, 'pipeline'::regnamespace) LOOP
            EXECUTE format('CREATE TABLE pristine.%I AS SELECT * FROM %s', t::text, t);
        END LOOP;
    END $$"""
PUT_BACK = """
    SET session_replication_role = replica;
    DO $$ DECLARE t regclass; s regclass; columns text; BEGIN
        FOR t IN SELECT oid FROM pg_class WHERE relkind = 'r'
            AND relnamespace IN ('public'::regnamespace, 'pipeline'::regnamespace) LOOP
            EXECUTE format('DELETE FROM %s', t);
            SELECT string_agg(quote_ident(attname), ', ') INTO columns FROM pg_attribute
            WHERE attrelid = t AND attnum > 0 AND NOT attisdropped AND attgenerated = '';
            EXECUTE format('INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM pristine.%I',
                           t, columns, columns, t::text);
        END LOOP;
        FOR s IN SELECT seqrelid FROM pg_sequence LOOP
            EXECUTE format('ALTER SEQUENCE %s RESTART', s);
        END LOOP;
    END $$"""
SHAPE = """SELECT array_agg(relname ORDER BY oid), (SELECT count(*) FROM pg_proc) FROM pg_class
    WHERE relnamespace IN ('public'::regnamespace, 'pipeline'::regnamespace)"""


class Lasting:
    """One database that is put back after each test; a test that changes the schema costs a new one."""

    def __init__(self, databases: Databases, servers: Servers) -> None:
        self._databases = databases
        self._servers = servers
        self._begin()

    def put_back(self) -> None:
        with self._connect() as connection:
            if connection.execute(SHAPE).fetchone() == self._shape:
                connection.execute(PUT_BACK)
                return
        self._databases.give_back(self.name)
        self._begin()

    def _begin(self) -> None:
        self.name = self._databases.new("lasting")
        with self._connect() as connection:
            connection.execute(REMEMBER)
            self._shape = connection.execute(SHAPE).fetchone()

    def _connect(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self._servers.postgres.url(self.name), autocommit=True, options="-c lock_timeout=10s")

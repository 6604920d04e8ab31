"""Who may do what in PostgreSQL: client, worker and operator, as the scripts in ``grants`` have it.

Grants are on record, so that a function which a later migration makes anew is granted again.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, text

from pipeline.declare.errors import BadInput
from pipeline.store import own_functions

FOLDER = Path(__file__).parent / "grants"
SCRIPTS = {"client": ("client",), "worker": ("worker",), "operator": ("client", "operator")}
MEANING = {
    "client": "it may submit, cancel and replay jobs, and reaches no table",
    "worker": "it may read and write jobs and call every function of the engine",
    "operator": "it may read everything, and do what clients and operators do",
}
CREATE = """CREATE TABLE IF NOT EXISTS pipeline.granted_roles (
    role text NOT NULL, kind text NOT NULL, PRIMARY KEY (role, kind))"""
EXISTS = text("SELECT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = :role)")
OWNER = text("SELECT nspowner::regrole::text = quote_ident(:role) FROM pg_namespace WHERE nspname = 'pipeline'")
RECORD = text("INSERT INTO pipeline.granted_roles VALUES (:role, :kind) ON CONFLICT DO NOTHING")
FORGET = text("DELETE FROM pipeline.granted_roles WHERE role = :role")
FORGET_DROPPED = text("DELETE FROM pipeline.granted_roles WHERE role NOT IN (SELECT rolname FROM pg_roles)")
RECORDED = text("SELECT role, kind FROM pipeline.granted_roles ORDER BY role, kind")


def parse(wish: str) -> tuple[str, str]:
    """The kind and the role of ``client=shop``. BadInput if it is not of that form."""
    kind, equals, role = wish.partition("=")
    if not equals or not role:
        raise BadInput(f'"{wish}" does not say who gets what: write KIND=ROLE, such as client=shop')
    if kind not in SCRIPTS:
        raise BadInput(f'"{kind}" is not a kind of role: the kinds are {", ".join(SCRIPTS)}')
    return kind, role


def grant(connection: Connection, kind: str, role: str) -> None:
    """Give an existing role the rights of a kind, now and after every migration. Twice is as good as once."""
    _must_exist(connection, role)
    _apply(connection, kind, role)
    connection.execute(RECORD, {"role": role, "kind": kind})


def revoke(connection: Connection, role: str) -> None:
    """Take from a role all rights on the engine's schema and on everything in it."""
    _must_exist(connection, role)
    if connection.execute(OWNER, {"role": role}).scalar_one():
        raise BadInput(f'"{role}" owns the schema pipeline: nothing would work without its rights')
    for objects in ("ALL TABLES IN SCHEMA pipeline", "ALL FUNCTIONS IN SCHEMA pipeline", "SCHEMA pipeline"):
        connection.exec_driver_sql(f"REVOKE ALL ON {objects} FROM {_quoted(connection, role)}")
    connection.execute(FORGET, {"role": role})


def renew(connection: Connection) -> None:
    """Grant everything on record again, after functions were replaced. Roles that were dropped are forgotten."""
    connection.exec_driver_sql(CREATE)
    connection.execute(FORGET_DROPPED)
    for role, kind in connection.execute(RECORDED).all():
        _apply(connection, kind, role)


def remove(connection: Connection) -> None:
    """Rights on objects go with the objects; the schema stays if something of somebody else's is in it."""
    connection.execute(FORGET_DROPPED)
    for role in {role for role, _ in connection.execute(RECORDED).all()}:
        connection.exec_driver_sql(f"REVOKE ALL ON SCHEMA pipeline FROM {_quoted(connection, role)}")


def scripts() -> list[Path]:
    """The SQL that grants, for whoever needs to know whether it has changed."""
    return sorted(FOLDER.glob("*.sql"))


def _apply(connection: Connection, kind: str, role: str) -> None:
    name = _quoted(connection, role)
    for script in SCRIPTS[kind]:
        statements = (FOLDER / f"{script}.sql").read_text(encoding="utf-8")
        connection.exec_driver_sql(statements.replace(':"role"', name))
    if kind == "worker":
        for function in own_functions.all_of_them(connection):
            connection.exec_driver_sql(f"GRANT EXECUTE ON FUNCTION {function} TO {name}")


def _must_exist(connection: Connection, role: str) -> None:
    # A name such as "public" passes for a role in GRANT and means everybody; none of those is in pg_roles.
    if not connection.execute(EXISTS, {"role": role}).scalar_one():
        raise BadInput(f'there is no role "{role}" in PostgreSQL: create it first, with CREATE ROLE')


def _quoted(connection: Connection, role: str) -> str:
    return connection.dialect.identifier_preparer.quote_identifier(role)

"""pipeline migrate --grant: each kind of role has what its work needs, nothing more, and keeps it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine, create_engine, make_url

from pipeline.declare.errors import BadInput
from pipeline.declare.registry import workflows
from pipeline.dev.services import Servers
from pipeline.store import roles
from pipeline.store.migrate import migrate, remove
from pipeline.store.register import register
from tests.databases import Databases

CALLABLE = """SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace = 'pipeline'::regnamespace
    AND has_function_privilege('{role}', p.oid, 'EXECUTE')"""
ALL = "SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace = 'pipeline'::regnamespace"
RELATIONS = """SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'pipeline'::regnamespace AND c.relkind IN ('r', 'v')
    AND {condition}"""
SUBMIT = (
    "pipeline.submit(text,jsonb,integer,uuid,text,text,timestamp with time zone,text,"
    "text,interval,text[],timestamp with time zone)"
)
# Made anew, as by a version that gives it another signature: what was granted on the old one is gone.
ANOTHER_VERSION = (
    "DROP FUNCTION pipeline.seal_batch(uuid)",
    "DROP FUNCTION pipeline.move(text, text, uuid, integer)",
    "UPDATE pipeline.installation SET digest = 'of another version'",
)


@pytest.fixture
def engine(servers: Servers, databases: Databases) -> Iterator[Engine]:
    made = create_engine(servers.postgres.url(databases.new("roles")).replace("postgresql://", "postgresql+psycopg://"))
    yield made
    made.dispose()
    assert made.url.database
    databases.give_back(made.url.database)


@pytest.fixture
def role(servers: Servers, engine: Engine) -> Iterator[str]:
    """A role with a name that must be quoted."""
    name = f"Shop {secrets.token_hex(4)}"
    execute(engine, f'CREATE ROLE "{name}"')
    yield name
    execute(engine, f'DROP OWNED BY "{name}"')
    execute(engine, f'DROP ROLE "{name}"')


def execute(engine: Engine, *statements: str) -> None:
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def found(engine: Engine, query: str) -> set[str]:
    with engine.connect() as connection:
        return {row[0] for row in connection.exec_driver_sql(query)}


def grant(engine: Engine, *wishes: tuple[str, str]) -> None:
    with engine.begin() as connection:
        for kind, role in wishes:
            roles.grant(connection, kind, role)


def functions(engine: Engine, role: str) -> set[str]:
    return found(engine, CALLABLE.format(role=role))


def relations(engine: Engine, role: str, right: str) -> set[str]:
    return found(engine, RELATIONS.format(condition=f"has_table_privilege('{role}', c.oid, '{right}')"))


def test_a_client_may_call_what_clients_call_and_reaches_no_table(engine: Engine, role: str) -> None:
    """All of it runs with its owner's rights but new_id, which touches nothing."""
    grant(engine, ("client", role))
    for right in ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "TRIGGER", "REFERENCES"):
        assert relations(engine, role, right) == set()
    names = sorted(name.removeprefix("pipeline.").split("(")[0] for name in functions(engine, role))
    steering = "cancel cancel_many link_state new_id open_batch replay request_send seal_batch signal signal_by_link submit submit_many"
    scheduling = "schedule unschedule pause_schedule resume_schedule run_schedule backfill list_schedules moment"
    assert set(names) == {*steering.split(), *scheduling.split(), "await_ends", "job_status"}
    assert found(engine, CALLABLE.format(role=role) + " AND NOT p.prosecdef") == {"pipeline.new_id()"}


def test_a_worker_writes_jobs_and_only_reads_what_migrations_act_upon(engine: Engine, role: str) -> None:
    """Whoever wrote own_functions or granted_roles would decide what the owner's next migration drops or grants."""
    grant(engine, ("worker", role))
    everything = found(engine, RELATIONS.format(condition="true"))
    assert everything - relations(engine, role, "SELECT") == {"own_functions", "granted_roles"}
    tables = found(engine, RELATIONS.format(condition="c.relkind = 'r'"))
    bookkeeping = {"own_functions", "granted_roles", "installation", "versions"}
    for right in ("INSERT", "UPDATE", "DELETE"):
        assert relations(engine, role, right) & tables == tables - bookkeeping
    assert functions(engine, role) == found(engine, ALL)


def test_an_operator_reads_everything_and_writes_through_functions_alone(engine: Engine, role: str) -> None:
    """What changes something runs with its owner's rights; workers' steps are not an operator's."""
    grant(engine, ("operator", role))
    assert relations(engine, role, "SELECT") == found(engine, RELATIONS.format(condition="true"))
    for right in ("INSERT", "UPDATE", "DELETE", "TRUNCATE"):
        assert relations(engine, role, right) == set()
    mine = functions(engine, role)
    assert {"pipeline.verify(boolean)", "pipeline.discard(uuid,text)", SUBMIT} <= mine
    assert not {
        name for name in mine if name.startswith(("pipeline.claim(", "pipeline.complete(", "pipeline.heartbeat("))
    }


def test_grants_are_given_again_to_functions_that_a_migration_makes_anew(engine: Engine, role: str) -> None:
    """CREATE OR REPLACE keeps rights; another signature is another function."""
    grant(engine, ("client", role), ("operator", role), ("operator", role))
    before = functions(engine, role)
    execute(engine, *ANOTHER_VERSION)
    assert functions(engine, role) < before
    assert migrate(engine)
    assert functions(engine, role) == before


def test_a_role_that_was_dropped_is_forgotten(engine: Engine) -> None:
    """A migration works without it, and whoever gets its name later gets none of its rights."""
    name = f"gone_{secrets.token_hex(4)}"
    execute(engine, f"CREATE ROLE {name}")
    grant(engine, ("worker", name))
    execute(engine, f"DROP OWNED BY {name}", f"DROP ROLE {name}", *ANOTHER_VERSION)
    assert migrate(engine)
    assert found(engine, "SELECT role FROM pipeline.granted_roles") == set()


def test_what_is_revoked_stays_so(engine: Engine, role: str) -> None:
    """Without the record a later migration would give it back."""
    grant(engine, ("worker", role), ("operator", role))
    with engine.begin() as connection:
        roles.revoke(connection, role)
    execute(engine, *ANOTHER_VERSION)
    assert migrate(engine)
    assert functions(engine, role) == relations(engine, role, "SELECT") == set()
    assert found(engine, f"SELECT 1 WHERE has_schema_privilege('{role}', 'pipeline', 'USAGE')") == set()


def test_the_owner_need_not_be_a_superuser(servers: Servers, role: str) -> None:
    """It owns its database: migrating, granting, submitting with its rights, revoking and removing ask for no more."""
    name = f"owner_{secrets.token_hex(4)}"
    servers.postgres.create_database(name)
    url = make_url(servers.postgres.url(name).replace("postgresql://", "postgresql+psycopg://"))
    administrator = create_engine(url)
    execute(administrator, f"CREATE ROLE {name} LOGIN PASSWORD 'x'", f"ALTER DATABASE {name} OWNER TO {name}")
    administrator.dispose()
    owner = create_engine(url.set(username=name, password="x"))
    assert migrate(owner)
    grant(owner, ("client", role), ("worker", role), ("operator", role))
    execute(owner, *ANOTHER_VERSION)
    assert migrate(owner)
    with owner.begin() as connection:
        register(connection, [workflows()["single"]], 300.0)
    assert found(owner, "SELECT pipeline.cancel(pipeline.submit('single'))::text") == {"true"}
    with owner.begin() as connection:
        roles.revoke(connection, role)
    assert remove(owner)
    owner.dispose()


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ("shop", "write KIND=ROLE, such as client=shop"),
        ("client=", "write KIND=ROLE"),
        ("reader=shop", '"reader" is not a kind of role: the kinds are client, worker, operator'),
    ],
)
def test_a_wish_that_cannot_be_read_is_refused_in_one_sentence(wish: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        roles.parse(wish)


@pytest.mark.parametrize("name", ["nobody_there", "public", "PUBLIC", "current_user", 'a"; DROP SCHEMA pipeline --'])
def test_only_a_role_that_exists_is_granted_anything(engine: Engine, name: str) -> None:
    """GRANT takes some words for everybody, or for whoever runs it."""
    with engine.begin() as connection, pytest.raises(BadInput, match=r"^there is no role \".*\" in PostgreSQL"):
        roles.grant(connection, "worker", name)
    assert found(engine, "SELECT role FROM pipeline.granted_roles") == set()


def test_the_owner_keeps_its_rights(engine: Engine) -> None:
    """Functions that run with its rights would find no table any more."""
    with engine.begin() as connection, pytest.raises(BadInput, match="owns the schema"):
        roles.revoke(connection, owner(connection))


def owner(connection: Connection) -> str:
    name: str = connection.exec_driver_sql("SELECT current_user").scalar_one()
    return name

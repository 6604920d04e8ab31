"""Private servers, on real PostgreSQL and RabbitMQ: they keep what they promised and leave nothing behind."""

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pika
import pika.exceptions
import psycopg
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from pipeline.dev import services
from pipeline.dev.services import Servers, ServiceError
from pipeline.dev.services.processes import identify

# One pair of servers for all of them, in one process.
FAMOUS_PORTS = (5432, 5672, 15672, 4369)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A deep folder with a space, which as root the account `postgres` cannot even reach."""
    return tmp_path_factory.mktemp("private servers") / ("deep" * 30) / ".pipeline"


@pytest.fixture(scope="module")
def servers(folder: Path) -> Iterator[Servers]:
    """One pair for the module, started while the servers' usual ports are taken."""
    with contextlib.ExitStack() as taken:
        for port in FAMOUS_PORTS:
            listener = taken.enter_context(socket.socket())
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):  # taken by somebody else is just as well
                listener.bind(("127.0.0.1", port))
                listener.listen()
        with services.private_servers(folder, remove=True) as both:
            yield both


@contextlib.contextmanager
def channel(url: str) -> Iterator[BlockingChannel]:
    """A channel with publisher confirms."""
    connection = pika.BlockingConnection(pika.URLParameters(url))
    try:
        opened = connection.channel()
        opened.confirm_delivery()
        yield opened
    finally:
        if connection.is_open:
            connection.close()


def publish(url: str, queue: str) -> None:
    """Put one persistent message into a durable queue and wait for the broker's word that it has it."""
    with channel(url) as opened:
        opened.queue_declare(queue, durable=True)
        opened.basic_publish("", queue, b"kept", pika.BasicProperties(delivery_mode=2))


def first(opened: BlockingChannel, queue: str, *, auto_ack: bool = False) -> bytes | None:
    """What the queue gives, if anything."""
    body: Any = opened.basic_get(queue, auto_ack)[2]  # types-pika says str
    return bytes(body) if body is not None else None


def eventually(condition: Callable[[], bool]) -> None:
    """Wait for a condition with a deadline."""
    deadline = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true within 15 s"
        time.sleep(0.05)


def test_postgres_is_durable_and_has_the_statistics_extension(servers: Servers) -> None:
    """Durability is never loosened, not even for tests."""
    with psycopg.connect(servers.database_url) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            assert connection.execute(f"SHOW {setting}").fetchone() == ("on",)
        assert connection.execute("SHOW shared_preload_libraries").fetchone() == ("pg_stat_statements",)
        assert connection.execute("SHOW data_checksums").fetchone() == ("on",)


def test_start_is_idempotent(servers: Servers, folder: Path) -> None:
    """Starting what runs returns the same servers and starts no second ones."""
    before = servers.postgres.pids[:1] + servers.rabbitmq.pids[:1]
    again = services.start(folder)
    assert (again.database_url, again.rabbitmq_url) == (servers.database_url, servers.rabbitmq_url)
    assert again.postgres.pids[:1] + again.rabbitmq.pids[:1] == before
    assert services.running(folder) is not None


def test_an_inner_block_does_not_stop_servers_it_did_not_start(servers: Servers, folder: Path) -> None:
    """Only what a block started ends with it, whatever happens inside."""
    with pytest.raises(ZeroDivisionError), services.private_servers(folder, remove=True):
        raise ZeroDivisionError
    assert services.running(folder) is not None


def test_only_the_owner_can_read_the_passwords(servers: Servers, folder: Path) -> None:
    """Every file that holds a password is closed to others."""
    for path in (folder / "services.json", folder / "rabbitmq" / "definitions.json"):
        assert path.stat().st_mode & 0o077 == 0


def test_wrong_passwords_and_guests_are_refused(servers: Servers) -> None:
    """There is no way in without this folder's passwords."""
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(servers.database_url.replace("developer:", "developer:not"))
    guest = httpx.get(f"{servers.management_url}/api/whoami", auth=("guest", "guest"), trust_env=False)
    assert guest.status_code == httpx.codes.UNAUTHORIZED


def test_everything_listens_on_the_loopback_address_only(servers: Servers) -> None:
    """Nothing of the private servers can be reached from another machine."""
    inodes = {
        Path(entry).readlink().name
        for pid in servers.postgres.pids + servers.rabbitmq.pids
        for entry in Path(f"/proc/{pid}/fd").iterdir()
        if entry.is_symlink()
    }
    for table, loopback in (("tcp", "0100007F"), ("tcp6", "00000000000000000000000001000000")):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                assert fields[1].partition(":")[0] == loopback


def test_databases_can_be_cloned_and_dropped(servers: Servers) -> None:
    """A template's tables are in the copy; dropping ends the sessions in it."""
    servers.postgres.create_database("original")
    with psycopg.connect(servers.postgres.url("original")) as connection:
        connection.execute("CREATE TABLE things AS SELECT 7 AS thing")
    servers.postgres.create_database("copy", template="original")
    session = psycopg.connect(servers.postgres.url("copy"))
    assert session.execute("SELECT thing FROM things").fetchone() == (7,)
    servers.postgres.drop_database("copy")
    with pytest.raises(psycopg.OperationalError):
        session.execute("SELECT thing FROM things")
    servers.postgres.drop_database("original")
    servers.postgres.drop_database("original")
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(servers.postgres.url("original"))


def test_postgres_keeps_committed_rows_through_kills_and_restarts(servers: Servers) -> None:
    """A commit survives SIGKILL and an immediate stop, and the address stays the same."""
    address = servers.database_url
    with psycopg.connect(address) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS one")
    for interrupt in (servers.postgres.kill, lambda: servers.postgres.stop("immediate")):
        interrupt()
        assert servers.postgres.pids == []
        servers.postgres.start()
        with psycopg.connect(address) as connection:
            assert connection.execute("SELECT one FROM kept").fetchone() == (1,)
    servers.postgres.restart()
    psycopg.connect(address).close()


def test_a_vhost_of_its_own_counts_its_queues_and_loses_its_connections(servers: Servers) -> None:
    """Vhosts come with the users and policies of the first; counts and closed connections are visible."""
    servers.rabbitmq.create_vhost("own/one")
    url = servers.rabbitmq.url("own/one")
    publish(url, "errands")
    with channel(url) as opened:
        assert first(opened, "errands") == b"kept"
        publish(url, "errands")
        eventually(lambda: servers.rabbitmq.queue_counts("own/one") == {"errands": (1, 1)})
        assert servers.rabbitmq.close_connections("own/one") >= 1
        with pytest.raises(pika.exceptions.AMQPError):
            opened.basic_get("errands")
    servers.rabbitmq.delete_vhost("own/one")
    servers.rabbitmq.delete_vhost("own/one")
    with pytest.raises(pika.exceptions.AMQPError):
        publish(url, "errands")


def test_the_last_bound_holds_phase_queues_and_dead_letters_are_kept(servers: Servers) -> None:
    """Policies cap phase queues by refusing, and let dead letters be looked at as often as anybody likes."""
    login, base = servers.management_user, f"{servers.management_url}/api/queues/pipeline"
    with channel(servers.rabbitmq_url) as opened:
        for queue, kind in {"bounded": "classic", "bounded.DQ": "classic", "bounded.XQ": "quorum"}.items():
            opened.queue_declare(queue, durable=True, arguments={"x-queue-type": kind})

        def policies() -> dict[str, str | None]:
            answer = httpx.get(base, auth=login, trust_env=False).raise_for_status().json()
            return {queue["name"]: queue.get("policy") for queue in answer if "bounded" in queue["name"]}

        expected = {"bounded": "phase-queue-bound", "bounded.DQ": None, "bounded.XQ": "dead-letters-kept"}
        eventually(lambda: policies() == expected)


def test_the_operator_can_move_dead_letters_with_a_shovel(servers: Servers) -> None:
    """What the management UI's "Move messages" does works for the operator, who is no administrator."""
    publish(servers.rabbitmq_url, "stranded.XQ")
    with channel(servers.rabbitmq_url) as opened:
        opened.queue_declare("stranded", durable=True)
    shovel = {
        "src-uri": "amqp:///pipeline",
        "src-queue": "stranded.XQ",
        "src-protocol": "amqp091",
        "src-delete-after": "queue-length",
        "dest-uri": "amqp:///pipeline",
        "dest-queue": "stranded",
        "dest-protocol": "amqp091",
    }
    address = f"{servers.management_url}/api/parameters/shovel/pipeline/move"
    httpx.put(address, json={"value": shovel}, auth=servers.management_user, trust_env=False).raise_for_status()
    with channel(servers.rabbitmq_url) as opened:
        eventually(lambda: first(opened, "stranded", auto_ack=True) == b"kept")


def on_disk(folder: Path, queue: str) -> bool:
    """True once a restart after a kill will find the queue.

    Since RabbitMQ 4.3 it is there as soon as it is declared. Before, its own database writes down what a transaction does before it says that the queue is declared. That the
    transaction is decided, another process of the node writes later, on a busy machine up to two seconds: until then a
    restart undoes it. Both name the transaction by the same bytes.
    """
    data = folder / "rabbitmq" / "data"
    if not any(data.glob("*/schema.DAT")):
        return True
    with contextlib.suppress(FileNotFoundError):  # the database replaces its log files now and then
        if any(queue.encode() in path.read_bytes() for path in data.glob("*/rabbit_durable_queue.DC?")):
            return True  # only what is decided goes from the log into the table's own files
        log = b"".join(path.read_bytes() for path in sorted(data.glob("*/*.LOG"), reverse=True))
        before, named, _ = log.partition(queue.encode())
        transaction = before.rpartition(b"\x0dpresume_abort")[0].rpartition(b"decision")[2]
        return bool(named) and b"decision" + transaction + b"\x09committed" in log
    return False


def test_rabbitmq_keeps_confirmed_messages_through_a_kill_and_loses_them_to_a_wipe(
    servers: Servers, folder: Path
) -> None:
    """SIGKILL loses no confirmed message; a wipe loses them all, but users and vhost are back."""
    address = servers.rabbitmq_url
    with channel(address) as opened:
        opened.queue_declare("kept", durable=True)
    eventually(lambda: on_disk(folder, "kept"))
    publish(address, "kept")
    servers.rabbitmq.kill()
    with pytest.raises(pika.exceptions.AMQPError):
        publish(address, "kept")
    servers.rabbitmq.start()
    with channel(address) as opened:
        assert first(opened, "kept") == b"kept"
    with pytest.raises(ServiceError, match="stop it before"):
        servers.rabbitmq.wipe()
    servers.rabbitmq.stop()
    servers.rabbitmq.wipe()
    servers.rabbitmq.start()
    assert servers.rabbitmq.queue_counts() == {}
    publish(address, "kept")


def test_stop_leaves_no_process_behind(servers: Servers, folder: Path) -> None:
    """Both servers, their children and the port mapper are gone, and a second stop is fine."""
    pids = servers.postgres.pids + servers.rabbitmq.pids
    assert len(pids) > 6
    services.stop(folder)
    services.stop(folder)
    assert [pid for pid in pids if identify(pid)] == []
    assert services.running(folder) is None


def test_a_recycled_pid_is_never_signalled(tmp_path: Path) -> None:
    """A pid that belongs to somebody else by now counts as stopped and is left alone."""
    own = identify(1)
    assert own is not None
    postgres = services.Postgres(tmp_path)
    postgres._state.update(process=(1, own.started + "0"))
    assert not postgres.running
    postgres.stop()
    postgres.kill()
    assert identify(1) == own

"""A worker that cannot boot ends: Dramatiq would log an error and run it without us, alive and doing nothing."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from tests.place import Place

# A worker runs until somebody stops it: one that is still there after this long has not ended by itself.
ENDS_WITHIN = 40


def ended(place: Place, **settings: str) -> str:
    """What a worker said that ended by itself with the code for "cannot start"."""
    worker = place.worker(threads=1, wait=False, settings=settings)
    place.until(
        lambda: worker.poll() is not None or "ready for action" in place.logs(), ENDS_WITHIN, "the worker's end"
    )
    assert "ready for action" not in place.logs()
    assert worker.wait(ENDS_WITHIN) == 3
    return place.logs()


def test_a_worker_on_an_older_database_ends_and_says_what_to_run(place: Place) -> None:
    """Late in the boot, when its threads are there already. PostgreSQL's words, without the statement."""
    place.db.execute("ALTER TABLE pipeline.workers RENAME COLUMN threads TO not_there_yet")
    said = ended(place)
    message = said[said.index("pipeline: this worker cannot start: ") :]
    assert message.splitlines()[0].endswith('UndefinedColumn: column "threads" of relation "workers" does not exist'), (
        message
    )
    assert 'run "pipeline migrate"' in message.splitlines()[1]


def test_a_worker_whose_role_has_no_rights_ends_and_says_so(place: Place) -> None:
    """Early in the boot."""
    place.db.execute("REVOKE ALL ON SCHEMA pipeline FROM PUBLIC")
    role = f"stranger_{place.name}"
    place.db.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'secret'")
    try:
        address = urlsplit(place.database_url)
        stranger = address._replace(netloc=f"{role}:secret@{address.hostname}:{address.port}").geturl()
        said = ended(place, DATABASE_URL=stranger)
    finally:
        place.db.execute(f"DROP ROLE {role}")
    message = said[said.index("pipeline: this worker cannot start: ") :]
    assert "permission denied for schema pipeline" in message and "the rights of its role" in message


def test_wrong_settings_are_one_message_without_a_traceback(place: Place) -> None:
    """What is refused on purpose needs no place in the code."""
    said = ended(place, PIPELINE_HEARTBEAT_SECONDS="-3")
    assert "PIPELINE_HEARTBEAT_SECONDS" in said and "Traceback" not in said


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_what_nobody_thought_of_ends_a_worker_with_its_traceback(place: Place, log_format: str) -> None:
    """The application's own code may raise anything while a worker boots."""
    (place.folder / "broken.py").write_text(
        "import pipeline.worker.process\n"
        "def broken(config):\n"
        "    raise ZeroDivisionError('nobody thought of this')\n"
        "pipeline.worker.process.prepare = broken\n"
    )
    said = ended(
        place,
        PIPELINE_WORKFLOWS="tests.workflows,broken",
        PYTHONPATH=f"{place.environment()['PYTHONPATH']}:{place.folder}",
        PIPELINE_LOG_FORMAT=log_format,
    )
    assert "pipeline: this worker cannot start: ZeroDivisionError: nobody thought of this" in said
    assert "broken.py" in said, "the traceback names the place"

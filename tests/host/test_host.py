"""G10, and a guest in the process: a team with an application of its own adopts the engine, and removes it again.

One story in the order of the tests: the database, the work, the way out.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from uuid import UUID

import pytest

from tests.host.host import READY, Host

# One environment for all; installing it takes as long as the network does.
pytestmark = pytest.mark.timeout(600)
ALONE = "@dramatiq.actor(broker=...)"


def order(web: str, **wish: Any) -> dict[str, Any]:
    request = Request(f"{web}/orders", json.dumps(wish).encode(), {"Content-Type": "application/json"})
    with urlopen(request, timeout=30) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def report(host: Host) -> str:
    row = host.row("SELECT pipeline_report() AS said")
    assert row is not None
    return str(row["said"])


# ---- the database


def test_the_engines_migration_touches_nothing_outside_of_its_schema(
    shop: Host, migrated: tuple[str, str, str]
) -> None:
    """Tables, functions, rights, rows, and Alembic's version table are the application's own, as they were."""
    before, after, said = migrated
    assert "the database was upgraded" in said and "printing: plan-sheets → bill" in said
    assert after == before
    assert "CREATE TABLE public.jobs" in before and "CREATE FUNCTION public.pipeline_report" in before
    assert shop.schemas() == {"public", "billing", "pipeline"}
    assert "up to date" in shop.do("pipeline", "migrate")


def test_the_applications_migrations_still_run_and_autogenerate_sees_no_difference(guest: Host) -> None:
    """Its history and the engine's know nothing of one another."""
    assert "No new upgrade operations detected" in guest.do("alembic", "check")
    assert guest.rows("SELECT version_num FROM public.alembic_version") == [{"version_num": "0002"}]
    assert report(guest) == f"{guest.count('SELECT count(*) FROM jobs')} print jobs"


# ---- the work


def test_a_job_submitted_in_the_applications_transaction_runs_and_writes_its_row(
    guest: Host, web: str, worker: subprocess.Popen[bytes]
) -> None:
    """The invoice, which a trigger of the shop notices, commits with the end of the job."""
    done = order(web, copies=6)
    (job,) = guest.finished(UUID(done["job"]))
    assert job["status"] == "succeeded"
    assert guest.rows("SELECT cents FROM billing.invoices WHERE job_id = %s", done["order"]) == [{"cents": 42}]
    assert guest.row("SELECT status FROM public.jobs WHERE id = %s", done["order"]) == {"status": "billed"}


def test_an_application_that_rolls_back_has_submitted_nothing(guest: Host, web: str) -> None:
    """Neither its own row nor the engine's is there."""
    before = guest.count("SELECT count(*) FROM pipeline.jobs")
    with pytest.raises(HTTPError, match="409"):
        order(web, copies=1, change_of_mind=True)
    assert guest.count("SELECT count(*) FROM pipeline.jobs") == before
    assert guest.count("SELECT count(*) FROM public.jobs WHERE copies = 1") == 0


@pytest.mark.parametrize("first", ["workflow first", "broker first"])
def test_the_applications_actors_keep_their_broker_middleware_encoder_and_retries(
    guest: Host, worker: subprocess.Popen[bytes], first: str
) -> None:
    """In their own worker, beside the engine's, whichever of the two modules is imported first."""
    program = (
        "import dramatiq, actors\n"
        "from actors.mails import confirm\n"
        "from shop.work import printing\n"
        "assert dramatiq.get_broker() is actors.broker and type(dramatiq.get_encoder()) is actors.Letterhead\n"
        "assert set(actors.broker.actors) == {'confirm'}, actors.broker.actors\n"
        "assert 'Retries' in [type(one).__name__ for one in actors.broker.middleware]\n"
        "assert not [one for one in actors.broker.middleware if type(one).__module__.startswith('pipeline')]\n"
        f"confirm.send('{first}')\n"
    )
    own, _ = guest.start("dramatiq", "actors.mails", "--processes", "1", "--threads", "2", says=READY, SHOP_ORDER=first)
    guest.do("python", "-c", program, SHOP_ORDER=first)
    guest.until(lambda: guest.task(first) == {"attempts": 3, "signed": 3}, 30, f"three attempts: {guest.task(first)}")
    assert guest.said(own).count("the mail server is busy") >= 2
    guest.kill(own)


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        ("shop.actor_among_workflows", "actor newsletter cannot run on the pipeline's broker"),
        ("shop.broker_among_workflows", "has called dramatiq.set_broker(...)"),
    ],
)
def test_what_cannot_work_together_is_refused_at_once_and_says_what_to_do(
    guest: Host, module: str, sentence: str
) -> None:
    """By a worker, and by a command that needs the workflows; one that does not need them works."""
    for program, *arguments in (["dramatiq", "pipeline.actors", "--processes", "1"], ["pipeline", "migrate"]):
        done = guest.run(program, *arguments, PIPELINE_WORKFLOWS=module)
        assert done.returncode != 0
        assert sentence in done.stderr and ALONE in done.stderr, done.stderr
    assert done.stderr.count(sentence) == 1 and "Traceback" not in done.stderr, done.stderr
    assert guest.run("pipeline", "workers", PIPELINE_WORKFLOWS=module).returncode == 0


# ---- the way out


def test_remove_takes_everything_of_the_engine_away_and_nothing_of_the_application(
    guest: Host, removed: tuple[str, str, str]
) -> None:
    """The schema is gone; tables, rows and functions of the application are as they were."""
    before, after, said = removed
    assert "are gone" in said
    assert after == before
    assert guest.schemas() == {"public", "billing"}
    assert "nothing to remove" in guest.do("pipeline", "migrate", "--remove")


def test_without_the_engine_the_application_migrates_and_works_as_before(
    guest: Host, removed: tuple[str, str, str]
) -> None:
    """Its functions, its autogenerate, its history in both directions, its actors."""
    assert report(guest) == f"{guest.count('SELECT count(*) FROM jobs')} print jobs"
    guest.do("alembic", "downgrade", "0001")
    guest.do("alembic", "upgrade", "head")
    assert "No new upgrade operations detected" in guest.do("alembic", "check")
    own, _ = guest.start("dramatiq", "actors.mails", "--processes", "1", "--threads", "1", says=READY)
    guest.do("python", "-c", "from actors.mails import confirm; confirm.send('after')")
    guest.until(lambda: guest.task("after") == {"attempts": 3, "signed": 3}, 30, f"a mail: {guest.task('after')}")
    guest.kill(own)

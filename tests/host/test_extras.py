"""The engine in an environment without extras: the core works, and what needs an extra says which."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest

from tests.host.host import READY, Host
from tests.place import ROOT

# One environment for all; installing it takes as long as the network does.
pytestmark = pytest.mark.timeout(600)


def submit(bare: Host) -> UUID:
    """A job by the command line, to its end."""
    job = UUID(bare.do("pipeline", "submit", "printing", json.dumps({"print_job": bare.print_job(2)})).strip())
    assert bare.finished(job)[0]["status"] == "succeeded"
    return job


def test_every_command_of_the_core_works_without_extras(bare: Host, worker: subprocess.Popen[bytes]) -> None:
    """Neither FastAPI nor httpx, Prometheus or OpenTelemetry is there."""
    job = submit(bare)
    commands = [
        ("--help",),
        ("--version",),
        ("migrate",),
        ("doctor",),
        ("verify", "--dry-run"),
        ("status", str(job)),
        ("workers",),
        ("workers", "--ready"),
        ("watch", "--once"),
        ("dead", "list"),
        ("dead", "groups"),
        ("relay", "--help"),
        ("services", "--help"),
    ]
    with ThreadPoolExecutor(4) as pool:
        for said in pool.map(lambda command: bare.do("pipeline", *command), commands):
            assert "could not be loaded" not in said and "Traceback" not in said


def test_worker_and_scheduler_run_without_extras(bare: Host) -> None:
    """They stop when they are asked to."""
    own, _ = bare.start("dramatiq", "pipeline.actors", "--processes", "1", "--threads", "1", says=READY)
    scheduler, _ = bare.start("periodiq", "pipeline.actors", says="Scheduling Actor")
    submit(bare)
    assert "Traceback" not in bare.end(scheduler)
    bare.end(own)
    assert own.returncode == 0


@pytest.mark.parametrize(
    ("program", "arguments", "extra"),
    [
        ("pipeline", ("api",), "api"),
        ("pipeline", ("up",), "api"),
        ("python", ("-c", "import pipeline.http.client"), "http"),
        ("python", ("-c", "from pipeline.webhooks import webhook"), "http"),
    ],
)
def test_what_needs_an_extra_says_which(bare: Host, program: str, arguments: tuple[str, ...], extra: str) -> None:
    """In one sentence, with the command that installs it."""
    done = bare.run(program, *arguments)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1].endswith(f'not installed here: pip install "pipeline[{extra}]"')


def test_webhooks_are_verified_without_extras(bare: Host) -> None:
    """A receiver sends none."""
    program = "from pipeline.webhooks import verify; verify(b'', {}, 'whsec_' + 'A' * 40)"
    assert "InvalidWebhook: not a signed webhook" in bare.run("python", "-c", program).stderr


def test_tracing_without_its_extra_says_so_once_and_jobs_run(guest: Host, worker: subprocess.Popen[bytes]) -> None:
    """The variable is a standard one: it may be set for the application."""
    submit(guest)
    assert guest.said(worker).count('pip install "pipeline[tracing]"') == 1, guest.said(worker)


def test_the_templates_of_the_private_servers_come_with_the_wheel(bare: Host) -> None:
    """The same files that the container uses; ``pipeline services start`` needs no checkout."""
    program = (
        "import pathlib\n"
        "from pipeline.dev.services.rabbitmq_node import prepare_node\n"
        "from pipeline.dev.services.state import State\n"
        "folder = pathlib.Path('private')\n"
        "print(prepare_node(folder, State(folder, 'rabbitmq')))\n"
    )
    home = bare.home / bare.do("python", "-c", program).strip()
    assert (home / "enabled_plugins").read_text() == (ROOT / "rabbitmq" / "enabled_plugins").read_text()
    assert (home / "rabbitmq.conf").read_text().startswith((ROOT / "rabbitmq" / "rabbitmq.conf").read_text())

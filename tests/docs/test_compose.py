"""compose.yaml and the Dockerfile: what they promise, and each of our services run as its command is written."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.place import ROOT, Place

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if service.get("image") == "pipeline"]
PROCESSES = sorted(set(OURS) - {"migrate"})
TOKEN = "t" * 32


def test_the_services_are_those_of_the_deployment() -> None:
    assert set(SERVICES) == {"postgres", "rabbitmq", "migrate", "api", "relay", "scheduler", "worker"}
    assert set(OURS) == {"migrate", "api", "relay", "scheduler", "worker"}


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_limited_and_looked_after(name: str) -> None:
    """Memory and CPU are bounded; everything that stays has a health check."""
    service = SERVICES[name]
    assert set(service["deploy"]["resources"]["limits"]) >= {"cpus", "memory"}
    assert "healthcheck" in service or service["restart"] == "no"


@pytest.mark.parametrize("name", OURS)
def test_our_services_have_no_rights_and_take_their_passwords_from_secrets(name: str) -> None:
    service = SERVICES[name]
    assert (
        service["read_only"] and service["cap_drop"] == ["ALL"] and "no-new-privileges:true" in service["security_opt"]
    )
    assert set(service["secrets"]) <= set(COMPOSE["secrets"])
    assert service["volumes"] == ["work:/var/lib/pipeline"]
    assert "env_file" in service and not re.search(
        "password|_url", " ".join(service.get("environment", {})), re.IGNORECASE
    )


def test_the_image_runs_as_a_user_of_its_own_and_keeps_cache_and_documents_on_the_volume() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert re.findall(r"^USER (\w+)", text, re.MULTILINE) == ["pipeline"]
    assert {"CACHE_FOLDER=/var/lib/pipeline/cache", "PIPELINE_DOCUMENT_FOLDER=/var/lib/pipeline/documents"} <= set(
        text.split()
    )


@contextmanager
def running(place: Place, name: str, port: int) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """The service's command as written, in the environment that its container would have."""
    log = place.folder / f"{name}.log"
    process = subprocess.Popen(
        SERVICES[name]["command"],
        cwd=place.folder,
        env=_environment(place, name, port),
        stdout=log.open("wb"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        yield process, log
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_each_command_comes_up_as_written_and_goes_in_order(place: Place) -> None:
    """Migrate first; then all at once, until each is well by its own sign and its health check; then SIGTERM."""
    port = _free_port()
    with running(place, "migrate", port) as (process, log):
        assert process.wait(60) == 0, log.read_text()
    signs = {"api": "Uvicorn running", "relay": "is up", "scheduler": "Starting Periodiq", "worker": "ready for action"}
    assert sorted(signs) == PROCESSES
    with (
        running(place, "api", port) as api,
        running(place, "relay", port) as relay,
        running(place, "scheduler", port) as scheduler,
        running(place, "worker", port) as worker,
    ):
        up = {"api": api, "relay": relay, "scheduler": scheduler, "worker": worker}
        for name, (process, log) in up.items():
            place.until(partial(_says, log, signs[name]), 60, f"{name}: {log.read_text()}")
            place.until(partial(_is_well, place, name, port), 20, f"the health check of {name}")
            assert process.poll() is None, log.read_text()
        place.until(lambda: len(place.pids()) == 5, 40, "four worker processes and the relay")
        for process, _ in up.values():
            process.send_signal(signal.SIGTERM)
        codes = {name: process.wait(60) for name, (process, _) in up.items()}
    # Uvicorn and periodiq end by the signal itself, after they have finished.
    assert codes == {"api": -signal.SIGTERM, "relay": 0, "scheduler": -signal.SIGTERM, "worker": 0}


def _says(log: Path, sign: str) -> bool:
    return sign in log.read_text()


def _environment(place: Place, name: str, port: int) -> dict[str, str]:
    said = {key: str(value) for key, value in SERVICES[name].get("environment", {}).items()}
    tokens = {"PIPELINE_API_TOKENS": f"operator:{TOKEN}", "PIPELINE_API_PORT": str(port)} if name == "api" else {}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, **place.environment(), **said, **tokens, "PATH": path}


def _is_well(place: Place, name: str, port: int) -> bool:
    check = [word.replace(":8000/", f":{port}/") for word in SERVICES[name]["healthcheck"]["test"]]
    assert check[0] == "CMD"
    return (
        subprocess.run(check[1:], env=_environment(place, name, port), capture_output=True, check=False).returncode == 0
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

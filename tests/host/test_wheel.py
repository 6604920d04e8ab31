"""What a team gets that installs the engine: one package, little weight, and an import that does nothing."""

from __future__ import annotations

import json
import re
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from pipeline import __version__
from tests.host import environments
from tests.host.conftest import Installed
from tests.host.host import Host
from tests.place import ROOT

# One environment for all; installing it takes as long as the network does.
pytestmark = pytest.mark.timeout(600)
MOST = 90.0
QUIET_IMPORT = str(Path(__file__).parent / "quiet_import.py")


def test_the_wheel_holds_the_engine_with_its_sql_and_files_and_nothing_else(installed: Installed) -> None:
    """No package of the application that lives in the same repository."""
    with zipfile.ZipFile(installed.wheel) as wheel:
        names = {name for name in wheel.namelist() if not name.endswith("/")}
    meta = f"pipeline-{__version__}.dist-info"
    assert {name.partition("/")[0] for name in names} == {"pipeline", meta}
    everything = (path for path in (ROOT / "pipeline").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    expected = {path.relative_to(ROOT).as_posix() for path in everything}
    assert {name for name in names if name.startswith("pipeline/")} == expected
    assert {"pipeline/py.typed", "pipeline/front/dashboard/static/index.html"} <= names
    assert {"pipeline/store/functions/transitions/claim.sql", "pipeline/store/migrations/remove.sql"} <= names


def test_the_wheel_depends_on_little_within_bounds_and_the_rest_is_extras(installed: Installed) -> None:
    """What the engine overrides is pinned to versions that were tried."""
    with zipfile.ZipFile(installed.wheel) as wheel:
        meta = Parser().parsestr(wheel.read(f"pipeline-{__version__}.dist-info/METADATA").decode())
    assert (meta["Name"], meta["Version"], meta["Requires-Python"]) == ("pipeline", __version__, ">=3.11")
    assert set(meta.get_all("Provides-Extra", [])) >= {"api", "http", "tracing"}
    needed = [line for line in meta.get_all("Requires-Dist", []) if "extra ==" not in line]
    names = {re.split(r"[^\w-]", line)[0].lower() for line in needed}
    assert {"alembic", "dramatiq", "pika", "psycopg", "sqlalchemy"} <= names
    assert not names & {"fastapi", "httpx", "lxml", "onnxruntime", "prometheus-client", "pytest", "rapidocr"}
    assert all(re.search("[<>=]", line) for line in needed), needed
    assert all("<" in line for line in needed if line.startswith(("dramatiq", "pika", "periodiq")))


def test_the_applications_environment_grows_by_at_most_90_mb(
    installed: Installed, capsys: pytest.CaptureFixture[str]
) -> None:
    """The wheel with all its dependencies, beside those that the application has anyway."""
    grown = installed.after - installed.before
    alone = environments.megabytes(installed.bare)
    with capsys.disabled():
        print(
            f"\nhost: environment {installed.before:.1f} MB, with the engine {installed.after:.1f} MB: grows by "
            f"{grown:.1f} MB (at most {MOST:.0f}); the engine in an empty environment {alone:.1f} MB, "
            f"its wheel {installed.wheel.stat().st_size / environments.MEGABYTE:.2f} MB"
        )
    assert grown <= MOST


def test_importing_a_workflow_touches_no_broker_no_environment_and_opens_no_connection(shop: Host) -> None:
    """No address is known, and sockets are forbidden: declaring a workflow needs neither."""
    done = shop.run("python", QUIET_IMPORT, "shop.work", without=("DATABASE_URL", "RABBITMQ_URL"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["engine"].startswith(str(shop.programs.parent)), "the engine came from the wheel"
    assert (found["broker"], found["encoder"], found["path unchanged"]) == ("None", "JSONEncoder", True)
    guilty = [look for look in found["looks"] if look[1].startswith(found["engine"]) or "pydantic_settings" in look[1]]
    guilty += [look for look in found["looks"] if look[0].startswith(("PIPELINE_", "DATABASE_", "RABBITMQ_"))]
    assert not guilty
    assert "pipeline.actors" not in found["modules"]

"""mypy and pyright know the body, the phases and the results of a typed workflow, and refuse what is wrong."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.place import ROOT
from tests.rules.shown_code import shown
from tests.rules.typed_code import ACCEPTED, EXAMPLE, REFUSED

LANGUAGE = (ROOT / "tests/language_workflow.py").read_text()
# Django and RabbitMQ's client have no types; all else is as strict as our own code.
OF_DJANGO = re.compile(r'"objects"|\| Atomic"')
UNTYPED = ("--allow-untyped-decorators", "--allow-subclassing-any")

Check = Callable[[Path], dict[str, set[int]]]


def write(folder: Path, files: dict[str, str]) -> dict[str, set[int]]:
    """What is to be refused, by file."""
    for name, code in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.py").write_text(code)
    marked = {
        name: {n for n, line in enumerate(code.splitlines(), 1) if "# wrong" in line} for name, code in files.items()
    }
    return {name: lines for name, lines in marked.items() if lines}


def by_mypy(folder: Path) -> dict[str, set[int]]:
    """The lines with errors, by file."""
    options = ["--config-file", "pyproject.toml", "--explicit-package-bases", *UNTYPED]
    command = [sys.executable, "-m", "mypy", *options, *map(str, sorted(folder.rglob("*.py")))]
    environment = {**os.environ, "MYPYPATH": f"{folder}:{ROOT}"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert "error" in done.stdout, done.stdout + done.stderr
    found: dict[str, set[int]] = {}
    # What an earlier run has cached is told with that run's folder.
    names = "|".join(str(path.relative_to(folder).with_suffix("")) for path in sorted(folder.rglob("*.py")))
    for name, line in re.findall(rf"^\S*/({names})\.py:(\d+): error", done.stdout, re.MULTILINE):
        found.setdefault(name, set()).add(int(line))
    return found


def by_pyright(folder: Path) -> dict[str, set[int]]:
    """The same, by pyright's rules."""
    settings = {"include": [str(folder)], "typeCheckingMode": "standard", "extraPaths": [str(ROOT)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found: dict[str, set[int]] = {}
    for one in json.loads(done.stdout)["generalDiagnostics"]:
        if one["severity"] == "error" and not OF_DJANGO.search(one["message"]):
            file = Path(one["file"]).relative_to(folder).with_suffix("")
            found.setdefault(str(file), set()).add(one["range"]["start"]["line"] + 1)
    return found


@pytest.mark.timeout(900)  # without script/test's cache mypy reads SQLAlchemy and psycopg first
@pytest.mark.parametrize("check", [by_mypy, by_pyright])
def test_a_type_checker_accepts_what_is_right_and_refuses_what_is_not(check: Check, tmp_path: Path) -> None:
    """A wrong body, option, result or field is an error at its line, and nothing else is one, in no example either."""
    files = {"accepted": ACCEPTED, "refused": REFUSED, "example": EXAMPLE, "language": LANGUAGE, **shown()}
    refused = write(tmp_path, files)
    assert refused.keys() == {"refused", "example"}
    assert check(tmp_path) == refused

"""mypy and pyright know the body, the phases and the results of a typed workflow, and refuse what is wrong."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.blocks import blocks
from tests.place import ROOT
from tests.rules.typed_code import ACCEPTED, EXAMPLE, REFUSED

# What the documentation shows, and the workflow that tests/flow/test_language.py runs.
SHOWN = {
    "language": (ROOT / "tests/language_workflow.py").read_text(),
    "readme": next(one.text for one in blocks(ROOT / "README.md") if "audit = Workflow(" in one.text),
    **{
        name: next(
            one.text for one in blocks(ROOT / "docs/howto/submit.md") if one.text.startswith(f"# shop/{name}.py")
        )
        for name in ("workflows", "keys", "waiting")
    },
}

Check = Callable[[Path], dict[str, set[int]]]


def write(folder: Path, files: dict[str, str]) -> dict[str, set[int]]:
    """What is to be refused, by file. The documentation's modules import one another from the package ``shop``."""
    for name, code in files.items():
        (folder / f"{name}.py").write_text(code.replace("from shop.workflows import", "from workflows import"))
    marked = {
        name: {n for n, line in enumerate(code.splitlines(), 1) if "# wrong" in line} for name, code in files.items()
    }
    return {name: lines for name, lines in marked.items() if lines}


def by_mypy(folder: Path) -> dict[str, set[int]]:
    """The lines with errors, by file."""
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", *map(str, sorted(folder.glob("*.py")))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found: dict[str, set[int]] = {}
    for name, line in re.findall(r"(\w+)\.py:(\d+): error", done.stdout):
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
        if one["severity"] == "error":
            found.setdefault(Path(one["file"]).stem, set()).add(one["range"]["start"]["line"] + 1)
    return found


@pytest.mark.timeout(900)  # without script/test's cache mypy reads SQLAlchemy and psycopg first
@pytest.mark.parametrize("check", [by_mypy, by_pyright])
def test_a_type_checker_accepts_what_is_right_and_refuses_what_is_not(check: Check, tmp_path: Path) -> None:
    """A wrong body, option, result or field is an error at its line, and nothing else is one."""
    refused = write(tmp_path, {"accepted": ACCEPTED, "refused": REFUSED, "example": EXAMPLE, **SHOWN})
    assert refused.keys() == {"refused", "example"}
    assert check(tmp_path) == refused

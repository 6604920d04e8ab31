"""Environments: each rival has one of its own in bench/.venvs, made when it is first needed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from bench import lab

REQUIREMENTS = Path(__file__).with_name("requirements")
VENVS = lab.ROOT / "bench" / ".venvs"
NEWER = ("python3.12", "python3.13", "python3.14")


class NotInstalled(Exception):
    """Why a rival cannot take part."""


def environment(name: str, at_least: tuple[int, int] = (3, 11)) -> Path:
    """The folder of programs, with what ``requirements/<name>.txt`` pins; raises NotInstalled with the reason."""
    wanted = (REQUIREMENTS / f"{name}.txt").read_text()
    folder = VENVS / name
    stamp = folder / "installed.txt"
    if not stamp.exists() or stamp.read_text() != wanted:
        _run(_python(at_least), "-m", "venv", "--clear", "--without-pip", str(folder))
        pip = [sys.executable, "-m", "pip", "--python", str(folder), "--disable-pip-version-check"]
        _run(*pip, "install", "--quiet", "--no-deps", "-r", str(REQUIREMENTS / f"{name}.txt"))
        stamp.write_text(wanted)
    return folder / "bin"


def _python(at_least: tuple[int, int]) -> str:
    for python in (sys.executable, *filter(None, map(shutil.which, NEWER)), *_of_pyenv()):
        check = subprocess.run(
            [python, "-c", f"import sys; sys.exit(sys.version_info < {at_least})"], check=False, capture_output=True
        )
        if check.returncode == 0:
            return python
    raise NotInstalled(f"needs Python {at_least[0]}.{at_least[1]} or newer, and none was found")


def _of_pyenv() -> list[str]:
    return sorted(map(str, (Path.home() / ".pyenv" / "versions").glob("3.*/bin/python")))


def _run(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise NotInstalled((done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[-1])

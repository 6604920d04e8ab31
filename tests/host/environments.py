"""Fresh virtual environments, a wheel of this checkout, and how much room they take on the disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from tests.place import ROOT

MEGABYTE = 1_000_000
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".pipeline", "__pycache__", "build", "*.egg-info")


def pip(*arguments: str | Path) -> None:
    """The tests' pip, with the network and the configuration of whoever runs them, but not their import path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT.anchor)
    assert done.returncode == 0, done.stdout + done.stderr


def build_wheel(folder: Path) -> Path:
    """From a copy of the checkout: setuptools leaves files behind and would pack those of an earlier build."""
    source = folder / "source"
    shutil.copytree(ROOT, source, ignore=LEFT_OUT, symlinks=True)
    pip("wheel", "--no-deps", "--wheel-dir", folder / "wheels", source)
    (wheel,) = (folder / "wheels").glob("*.whl")
    return wheel


def create(folder: Path) -> Path:
    """An empty environment, without pip: it is no part of the application."""
    venv.create(folder, with_pip=False, symlinks=True)
    return folder


def install(environment: Path, *what: str | Path) -> None:
    """From the package index, in the versions that this project was tried with."""
    pip("--python", environment / "bin" / "python", "install", "--constraint", ROOT / "requirements.txt", *what)


def megabytes(folder: Path) -> float:
    """What the files occupy on the disk."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*")) / MEGABYTE

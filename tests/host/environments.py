"""Fresh virtual environments, a wheel of this checkout, and how much room they take on the disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterable
from email.parser import Parser
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

from tests.place import ROOT

MEGABYTE = 1_000_000
SITE = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
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


def install(environment: Path, *needed: str) -> None:
    """Distributions and what they need, in the versions that the tests' own environment has: each file is a link to it."""
    for found in closure(needed):
        for file in found.files or ():
            source, target = Path(str(found.locate_file(file))), environment / SITE / file
            if not source.is_file():
                continue
            target = Path(os.path.normpath(target))
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.parent.name == "bin":
                # Its first line names the interpreter.
                text = source.read_text()
                target.write_text(f"#!{environment / 'bin' / 'python'}\n{text.partition(chr(10))[2]}")
                target.chmod(0o755)
            elif not target.exists():
                os.link(source, target) if same_disk(source, target.parent) else shutil.copy2(source, target)


def install_wheel(environment: Path, wheel: Path) -> None:
    """A wheel with all that it says it needs, without extras; as pip does it, and pip finds nothing missing."""
    with zipfile.ZipFile(wheel) as packed:
        (name,) = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        install(environment, *Parser().parsestr(packed.read(name).decode()).get_all("Requires-Dist", []))
    python = environment / "bin" / "python"
    pip("--python", python, "install", "--no-deps", wheel)
    pip("--python", python, "check")


def closure(needed: Iterable[str]) -> list[Distribution]:
    """The installed distributions that these requirements ask for, and what those ask for."""
    found: dict[tuple[str, frozenset[str]], Distribution] = {}
    waiting = [(requirement, frozenset[str]()) for requirement in needed]
    while waiting:
        text, extras = waiting.pop()
        requirement = Requirement(text)
        wanted = requirement.marker is None or any(
            requirement.marker.evaluate({"extra": extra}) for extra in extras or {""}
        )
        key = (requirement.name.lower(), frozenset(requirement.extras))
        if wanted and key not in found:
            found[key] = here = distribution(requirement.name)
            assert requirement.specifier.contains(here.version, prereleases=True), f"{text}: {here.version} is here"
            waiting += [(one, key[1]) for one in here.requires or ()]
    return list(found.values())


def same_disk(one: Path, other: Path) -> bool:
    return one.stat().st_dev == other.stat().st_dev


def megabytes(folder: Path) -> float:
    """What the files occupy on the disk."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*")) / MEGABYTE

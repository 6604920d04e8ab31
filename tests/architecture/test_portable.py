"""The repository works on any machine: no file knows this one."""

from __future__ import annotations

import re

from tests.architecture.house import ROOT, files, text

# Package registries and mirrors that only somebody's network has. The public ones are named by their tools.
REGISTRY = re.compile(
    r"https?://[^\s\"']*(artifactory|jfrog|nexus|/simple/?\b|pypi-proxy|registry)[^\s\"']*|--(extra-)?index-url\s+http",
    re.IGNORECASE,
)
# A path that begins in a person's home or in this checkout. A container's own home (Dockerfile) is no machine's.
HOME = re.compile(r"(?<![\w.~-])/(home|Users|root|work|workspace)/[\w.-]+")
OWN = {"tests/architecture/test_portable.py"}
CONTAINERS = ("Dockerfile", "compose.yaml")


def test_no_file_names_a_package_registry() -> None:
    """Whoever installs this has an index of their own."""
    guilty = {
        str(path): found[0] for path in files() if str(path) not in OWN and (found := REGISTRY.search(text(path)))
    }
    assert not guilty


def test_no_file_names_an_absolute_path_of_this_machine() -> None:
    """Neither a home folder nor this checkout."""
    guilty = {}
    for path in files():
        found = HOME.search(text(path))
        here = str(ROOT) in text(path)
        if (here or found) and str(path) not in OWN and not path.name.startswith(CONTAINERS):
            guilty[str(path)] = found[0] if found else str(ROOT)
    assert not guilty

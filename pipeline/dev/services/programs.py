"""Where the programs of private servers are."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from pipeline.dev.services.processes import ServiceError

# Folders to look into first, as in PATH: for servers other than the machine's own (see script/servers).
VARIABLE = "PIPELINE_SERVER_PATH"


def program(name: str, usual: Iterable[Path], *, install: str) -> str:
    """The program of this name: in the folders of PIPELINE_SERVER_PATH, else in a usual place, else in PATH."""
    found = shutil.which(name, path=os.environ.get(VARIABLE, ""))
    found = found or next((str(place) for place in usual if os.access(place, os.X_OK)), None) or shutil.which(name)
    if found is None:
        raise ServiceError(f"The program {name} is not installed: install the package {install}, or run script/setup.")
    return found

"""The ``pipeline`` command: in a process of its own, or here, where a test is about what a command says and does."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryFile
from unittest.mock import patch

from pipeline import settings
from pipeline.front.cli.main import main
from pipeline.store import database
from tests.forking import ROOT, forks
from tests.place import Place

Ran = subprocess.CompletedProcess[str]


def pipeline(place: Place | None, *words: str, **environment: str) -> Ran:
    """Run it as a user does, on the test's own servers, if it has some."""
    return pipeline_in(ROOT, *words, **{**(place.environment() if place else {}), **environment})


def pipeline_in(folder: Path, *words: str, **environment: str) -> Ran:
    """The same in a folder of an application, which is where it finds modules."""
    settings = {**os.environ, **environment}
    with TemporaryFile() as out, TemporaryFile() as err:
        process = forks().start("pipeline.front.cli.main", words, settings, out=out, err=err, folder=folder)
        try:
            code = process.wait(60)
        finally:
            process.kill()
        for file in (out, err):
            file.seek(0)
        return Ran(process.args, code, out.read().decode(), err.read().decode())


def pipeline_here(place: Place, *words: str, **environment: str) -> Ran:
    """The same ``main``, output and exit code without the second that a process needs for its imports.

    Not for commands that load workflows: this process knows those of all tests.
    """
    out, err = StringIO(), StringIO()
    code: object = 0
    settings.get.cache_clear()
    try:
        with (
            patch.dict(os.environ, {**place.environment(), **environment}),
            patch.object(sys, "argv", ["pipeline", *words]),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            try:
                main()
            except SystemExit as end:
                code = end.code
            finally:
                database.close_idle()
    finally:
        settings.get.cache_clear()
    return Ran(["pipeline", *words], int(str(code or 0)), out.getvalue(), err.getvalue())

"""Composition root: ``dramatiq pipeline.actors`` and ``periodiq pipeline.actors`` load the workflows and the sweeps.

``PIPELINE_WORKFLOWS`` names the modules to load. Where it is not set, these are the workflows of the repository that
this package lies in; an installed engine has none. Every phase can be imported from here by its function's name.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import dramatiq

from pipeline.declare.errors import BadInput
from pipeline.phase import Phase
from pipeline.worker.process import broker as _broker
from pipeline.worker.process import declare_actors

HERE = Path(__file__).parents[1]


def _modules() -> list[str]:
    """Read here and not through the settings, which need servers: importing must work without any."""
    named = os.environ.get("PIPELINE_WORKFLOWS")
    if named is not None:
        return [part.strip() for part in named.split(",") if part.strip()]
    # A checkout, with its own workflows beside the engine; never somebody else's package of that name.
    if (HERE / "actors" / "workflows.py").is_file() and (HERE / "pyproject.toml").is_file():
        _search(str(HERE))
        return ["actors.workflows"]
    return []


def _search(folder: str) -> None:
    if folder not in sys.path:
        sys.path.insert(0, folder)


def _load(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise BadInput(
            f"PIPELINE_WORKFLOWS names {module}, and there is no such module here: "
            "run this in the folder of its file, or set PYTHONPATH to it"
        ) from None


broker = _broker()
_theirs = dramatiq.broker.global_broker
if _theirs is None:
    dramatiq.set_broker(broker)
# As dramatiq and periodiq do for themselves: a workflow may lie in the folder in which the command is run.
_search(os.getcwd())  # noqa: PTH109  sys.path holds strings
for _name in _modules():
    for _key, _value in vars(_load(_name)).items():
        if isinstance(_value, Phase):
            globals()[_key] = _value
if _theirs is None and dramatiq.broker.global_broker is not broker:
    raise BadInput(
        "a module that PIPELINE_WORKFLOWS names has called dramatiq.set_broker(...): a worker has one broker, and this "
        "one is the pipeline's. Pass your broker to your own actors (@dramatiq.actor(broker=...)) and run them in a "
        "worker of their own"
    )
declare_actors(broker)


def __getattr__(name: str) -> Phase:
    raise AttributeError(f"no workflow that is loaded here has a phase {name!r}")

"""Which modules declare the workflows of a worker, so that another process can declare them, too."""

from __future__ import annotations

import importlib
import runpy
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pipeline.declare.registry import find_phase, workflows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.declare.registry import DeclaredPhase, DeclaredWorkflow

MAIN = ("__main__", "__mp_main__")
Declarations = dict[str, Any]


def declarations() -> Declarations:
    """What this process imported to declare its workflows, and from where, as JSON can carry it."""
    script = sys.modules["__main__"]
    spec = getattr(script, "__spec__", None)
    return {
        "modules": {name: _modules(workflow) for name, workflow in workflows().items()},
        "path": [str(folder) for folder in sys.path],
        # A workflow of the program itself: its module's name (python -m) or its file.
        "main": {"name": spec.name if spec else None, "file": getattr(script, "__file__", None)},
    }


def _modules(workflow: DeclaredWorkflow) -> list[str]:
    return list(dict.fromkeys([workflow.module, *(phase.work.__module__ for phase in workflow.phases)]))


def declare_all(told: Declarations) -> None:
    """Import whatever declares a workflow, in the order in which the worker did."""
    sys.path[:] = told["path"]
    for modules in told["modules"].values():
        _import(modules, told)


def declared(queue: str, told: Declarations) -> DeclaredPhase:
    """The phase that serves ``queue``; what declares it is imported if nobody has yet."""
    try:
        return find_phase(queue)
    except LookupError:
        sys.path[:] = told["path"]
        _import(told["modules"].get(queue.partition(".")[0], []), told)
    try:
        return find_phase(queue)
    except LookupError:
        import pipeline.actors  # noqa: F401  declares every phase that the settings name

        return find_phase(queue)


def _import(modules: Iterable[str], told: Declarations) -> None:
    for module in modules:
        if module not in MAIN:
            importlib.import_module(module)
        elif MAIN[1] not in sys.modules:
            _run_main(**told["main"])


def _run_main(name: str | None, file: str | None) -> None:
    """As multiprocessing does: under another name, so that what is only for the program itself does not run."""
    main = ModuleType(MAIN[1])
    if name is not None:
        main.__dict__.update(runpy.run_module(name, run_name=MAIN[1], alter_sys=True))
    elif file is not None:
        main.__dict__.update(runpy.run_path(file, run_name=MAIN[1]))
    sys.modules[MAIN[0]] = sys.modules[MAIN[1]] = main

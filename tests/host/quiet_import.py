"""Imports the module that is named, and tells what that did to the process. Runs in the host's environment.

Sockets are forbidden, and every look at the environment is recorded with the file that looked.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any

STANDARD = os.path.dirname(os.__file__)  # noqa: PTH120  as the frames spell it
looks: list[tuple[str, str]] = []


def forbid_sockets(event: str, arguments: tuple[Any, ...]) -> None:
    if event.startswith("socket."):
        raise PermissionError(f"{event}{arguments} at import")


def looker() -> str:
    """The nearest file on the way here that is not the standard library's; site-packages lies in its folder."""
    frame = sys._getframe(2)
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith((STANDARD, "<frozen")) and "site-packages" not in frame.f_code.co_filename
    ):
        frame = frame.f_back
    return frame.f_code.co_filename


class Watched(type(os.environ)):  # type: ignore[misc]
    def __getitem__(self, name: str) -> str:
        looks.append((name, looker()))
        return str(super().__getitem__(name))

    def __iter__(self) -> Any:
        looks.append(("*", looker()))
        return super().__iter__()


os.environ.__class__ = Watched
sys.addaudithook(forbid_sockets)
sys.path.insert(0, os.getcwd())  # noqa: PTH109  as `python -c` would
path = list(sys.path)
module = importlib.import_module(sys.argv[1])

import dramatiq.broker  # noqa: E402
import dramatiq.encoder  # noqa: E402
import dramatiq.message  # noqa: E402

json.dump(
    {
        "broker": repr(dramatiq.broker.global_broker),
        "encoder": type(dramatiq.get_encoder()).__name__,
        "path unchanged": sys.path == path,
        "engine": os.path.dirname(sys.modules["pipeline"].__file__ or ""),  # noqa: PTH120
        "looks": sorted(set(looks)),
        "modules": sorted(sys.modules),
    },
    sys.stdout,
)

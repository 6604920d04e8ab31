"""Who uses the command line, for the audit."""

from __future__ import annotations

import getpass
import os
import socket

from pipeline.store.control.actions import Actor


def actor() -> Actor:
    """The user of this machine; with sudo, the one who called that."""
    try:
        name = os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        name = f"uid {os.getuid()}"
    return Actor(name, "command line", socket.gethostname())

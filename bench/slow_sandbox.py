"""The sandbox as a process of its own, whose sites take a second to answer."""

from __future__ import annotations

import sys
from threading import Event

from sandbox import running_sandbox


def main() -> None:
    with running_sandbox(port=int(sys.argv[1])) as sandbox:
        sandbox.add_fault(match="/sites/", delay=1.0)
        Event().wait()


if __name__ == "__main__":
    main()

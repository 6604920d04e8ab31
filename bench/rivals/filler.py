"""Fills a peer's queue on demand: ``python -m bench.rivals.filler MODULE`` reads ``["fill", 1000]`` from a line.

It stays, because starting Python and importing a peer takes longer than filling its queue.
"""

from __future__ import annotations

import importlib
import json
import sys


def main() -> None:
    module = importlib.import_module(sys.argv[1])
    if hasattr(module, "prepare"):
        module.prepare()
    print("ok", flush=True)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        getattr(module, name)(*arguments)
        print("ok", flush=True)


if __name__ == "__main__":
    main()

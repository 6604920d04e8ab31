"""Fills a peer's queue on demand: ``python -m bench.rivals.filler MODULE`` reads ``["fill", 1000]`` and answers.

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
    print(json.dumps(None), flush=True)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        print(json.dumps(getattr(module, name)(*arguments)), flush=True)


if __name__ == "__main__":
    main()

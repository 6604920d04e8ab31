"""Measure this project against its peers, interleaved in one run, on private servers. Ratios first."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from bench import growth, lab, latency, page, submitting, throughput


def main() -> None:
    options = _options()
    # Whoever stops it, by whatever signal, stops the servers and peers with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    quick = options.quick
    jobs, rounds = 4000 if quick else 5000, options.rounds or (3 if quick else 5)
    with lab.laboratory() as folder:
        figures = _told(throughput.measure(jobs, rounds, folder / "done"))
        pace = figures["jobs_per_s"]["pipeline"]
        figures |= _told(latency.measure(pace, folder, seconds=10 if quick else 20, idle_seconds=60))
        figures |= _told(submitting.measure(20_000 if quick else 100_000, 3))
        if not quick:
            figures |= _told(growth.measure(10_000, 1_000_000, 3))
            figures |= _told(growth.processes(jobs))
            figures |= _told(growth.memory(100_000))
    command = "script/bench" + " --quick" * quick + (f" --rounds {options.rounds}" if options.rounds else "")
    figures["setup"] = {
        "command": command,
        "jobs": jobs,
        "rounds": rounds,
        "processes": lab.PROCESSES,
        "threads": lab.THREADS,
        "cores": os.cpu_count(),
    }
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    if not quick or options.page:
        page.write(figures)


def _told(figures: dict[str, Any]) -> dict[str, Any]:
    """Print what is known already: a full run takes half an hour."""
    print(json.dumps(figures, indent=2), flush=True)
    return figures


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="script/bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer jobs and rounds, and no growth")
    parser.add_argument("--rounds", type=int, metavar="N", help="of the throughput (default 5, or 3 with --quick)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    parser.add_argument("--page", action="store_true", help="write docs/benchmarks.md (a full run always does)")
    return parser.parse_args()


if __name__ == "__main__":
    main()

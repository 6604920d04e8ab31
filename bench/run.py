"""Measure this project against its peers, interleaved in one run, on private servers. Ratios first."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from bench import growth, lab, latency, page, submitting, throughput


def main() -> None:
    options = _options()
    quick = options.quick
    jobs, rounds = (4000, 3) if quick else (5000, 5)
    with lab.laboratory() as folder:
        figures: dict[str, Any] = throughput.measure(jobs, rounds, folder / "done")
        pace = figures["jobs_per_s"]["pipeline"]
        figures |= latency.measure(pace, folder, seconds=10 if quick else 20, idle_seconds=60)
        figures |= submitting.measure(20_000 if quick else 100_000, 3)
        if not quick:
            figures |= growth.measure(10_000, 1_000_000, 15, 3)
            figures |= growth.processes(jobs)
            figures |= growth.memory(100_000)
    figures["setup"] = {"command": "script/bench --quick" if quick else "script/bench", "jobs": jobs, "rounds": rounds,
                        "processes": lab.PROCESSES, "threads": lab.THREADS, "cores": os.cpu_count()}  # fmt: skip
    print(json.dumps(figures, indent=2))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    if not quick or options.page:
        page.write(figures)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="script/bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer jobs and rounds, and no growth")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    parser.add_argument("--page", action="store_true", help="write docs/benchmarks.md (a full run always does)")
    return parser.parse_args()


if __name__ == "__main__":
    main()

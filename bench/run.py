"""Measure what users write against what they would write without this project: paired rounds on private servers."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from bench import execution, growth, lab, language, latency, page, submitting, throughput, waiting
from bench.paired import Figures, Plan, merge
from bench.rivals import row

Row = Callable[[lab.Laboratory, Plan], Figures]


class Listed(NamedTuple):
    """A row, and whether ``--quick`` has it."""

    run: Row
    quick: bool = True


ROWS = {
    "defaults": Listed(throughput.defaults),
    "peers": Listed(row.peers),
    "pooled": Listed(throughput.pooled),
    "writes": Listed(throughput.writes),
    "results": Listed(throughput.results, quick=False),
    "typed": Listed(throughput.typed, quick=False),
    "keyed": Listed(throughput.keyed, quick=False),
    "steps": Listed(language.steps, quick=False),
    "awaited": Listed(language.awaited, quick=False),
    "submit": Listed(submitting.single),
    "submit_many": Listed(submitting.batched),
    "workflows": Listed(growth.workflows),
    "snapshot": Listed(growth.snapshot),
    "execution": Listed(execution.execution),
    "latency": Listed(latency.latency),
    "idle": Listed(latency.idle, quick=False),
    "pending": Listed(growth.pending, quick=False),
    "processes": Listed(growth.processes, quick=False),
    "memory": Listed(growth.memory, quick=False),
    "waiting": Listed(waiting.waiting, quick=False),
    "in_flight": Listed(waiting.in_flight, quick=False),
}
FULL, SINGLE, QUICK = Plan(9, 4.0, 100_000, full=True), Plan(5, 2.0, 20_000), Plan(3, 1.0, 5_000, quick=True)


def main() -> None:
    options = _options()
    # Whoever stops it, by whatever signal, stops the servers and peers with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    names = options.only or [name for name, row in ROWS.items() if row.quick or not options.quick]
    plan = SINGLE if options.only else QUICK if options.quick else FULL
    plan = plan._replace(rounds=options.rounds or plan.rounds)
    figures: Figures = {}
    failed: list[str] = []
    with lab.laboratory() as laboratory:
        for name in names:
            started = monotonic()
            print(f"{name}: {_about(name)}", flush=True)
            try:
                figures = merge(figures, ROWS[name].run(laboratory, plan))
            except Exception as error:
                # The other rows are worth having: a full run takes an hour.
                traceback.print_exception(error)
                failed.append(name)
            print(f"  ({monotonic() - started:.0f} s)", flush=True)
    figures["setup"] = {
        "command": " ".join(["script/bench", *sys.argv[1:]]),
        "rounds": plan.rounds,
        "seconds": plan.seconds,
        "processes": lab.PROCESSES,
        "threads": lab.THREADS,
        "cores": os.cpu_count(),
    }
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    if failed:
        sys.exit(f"no figures for {', '.join(failed)}: see above")
    if not (options.quick or options.only):
        page.write(figures)


def _about(name: str) -> str:
    return (ROWS[name].run.__doc__ or "").partition("\n")[0]


def _options() -> argparse.Namespace:
    rows = "\n".join(f"  {name:12} {_about(name)}" for name in ROWS)
    parser = argparse.ArgumentParser(
        prog="script/bench",
        description=__doc__,
        epilog=f"rows:\n{rows}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="few and short rounds; ends within five minutes")
    parser.add_argument("--only", type=_names, metavar="ROW,…", help="these rows alone, a minute each")
    parser.add_argument("--rounds", type=int, metavar="N", help="(default 9; 3 with --quick, 5 with --only)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    return parser.parse_args()


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in ROWS]:
        raise argparse.ArgumentTypeError(f"no row {', '.join(unknown)}; there are {', '.join(ROWS)}")
    return names


if __name__ == "__main__":
    main()

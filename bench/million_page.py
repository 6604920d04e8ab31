"""The figures as a page."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bench import lab
from bench.million_plans import Statement

if TYPE_CHECKING:
    from bench.million import Measured

FILE = lab.ROOT / "docs" / "million.md"
LONGEST = 110
HEAD = """<!-- written by python -m bench.million --page -->
# {jobs:,} jobs in the table

Every GET of the API over {jobs:,} jobs (about 90 % succeeded, 5 % waiting, 3 % failed for 30 causes, the rest running,
backing off or cancelled), their attempts, seven days of rollups, 5,000 batches, and a project with a tenth as many
records.

`python -m bench.million --jobs {jobs}`, {cores} cores shared by PostgreSQL, the API and the client; load average of
the machine at the end: {load:.1f}. *First* is the first request of its kind to a server that has just become ready,
*median* and *max* are of the five after it; answers that are remembered for a second or two are asked for when they
are forgotten. Milliseconds until the whole answer was read.
"""
PLANS = """## What PostgreSQL did

EXPLAIN (ANALYZE, BUFFERS) of each statement as it ran for the requests above (auto_explain; those inside functions as
well); of each, the execution that touched most buffers (8 KiB each). Measuring slows it down.
"""


def text(jobs: int, measured: list[Measured], statements: list[Statement]) -> str:
    return "\n".join([*_head(jobs, measured, statements), *_times(measured), "", *_plans(statements), ""])


def _head(jobs: int, measured: list[Measured], statements: list[Statement]) -> list[str]:
    slow = max(measured, key=lambda one: max(one.cold, one.median))
    scans = sorted({table for statement in statements for table in statement.scanned})
    return [
        HEAD.format(jobs=jobs, cores=os.cpu_count(), load=os.getloadavg()[0]),
        f"Slowest: `{slow.case.name}`, first {slow.cold:.0f} ms, median {slow.median:.0f} ms; the limit is 200 ms.",
        f"Reads the whole table of jobs, attempts or outbox: {', '.join(scans) or 'none'}.",
        "",
    ]


def _times(measured: list[Measured]) -> list[str]:
    rows = [
        f"| `{one.case.name}` | {one.cold:.1f} | {one.median:.1f} | {max(one.warm):.1f} | {one.rows} |"
        f"{' **too slow** |' if one.slow else ''}"
        for one in measured
    ]
    return ["| request | first ms | median ms | max ms | rows |", "|---|---|---|---|---|", *rows]


def _plans(statements: list[Statement]) -> list[str]:
    return [
        PLANS,
        "| statement | for | ms | buffers | plan |",
        "|---|---|---|---|---|",
        *(_plan(one) for one in sorted(statements, key=lambda one: -one.buffers)),
    ]


def _plan(one: Statement) -> str:
    more = f" and {len(one.routes) - 1} more" if one.routes[1:] else ""
    scans = f"**Seq Scan on {', '.join(sorted(one.scanned))}** " if one.scanned else ""
    return f"| `{_cut(one.text)}` | `{one.routes[0]}`{more} | {one.ms:.1f} | {one.buffers:,} | {scans}{one.nodes} |"


def _cut(said: str, most: int = LONGEST) -> str:
    clean = said.replace("|", "¦").replace("`", "'")
    return clean if len(clean) <= most else clean[:most] + "…"

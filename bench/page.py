"""The figures as a page: a table of what was promised and what was measured, and a plot."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import lab

RIVALS = lab.ROOT

DOCS = lab.ROOT / "docs"
START, END = "<!-- figures: written by script/bench -->", "<!-- end of figures -->"
Figures = dict[str, Any]
# What it is, where it stands in the figures, the floor, and the goal.
PROMISES: list[tuple[str, Callable[[Figures], Any], str, str]] = [
    ("against bare Dramatiq with publisher confirms", lambda f: f["ratio"]["dramatiq_confirmed"], "≥ 0.7", "1.0"),
    ("against bare Dramatiq without confirms", lambda f: f["ratio"]["dramatiq"], "≥ 0.4", "0.7"),
    ("against the naive arrangement", lambda f: f["ratio"]["naive"], "≥ 2", ""),
    ("against Celery", lambda f: f["ratio"]["celery"], "≥ 1.0", "1.5"),
    ("against Procrastinate", lambda f: f["ratio"]["procrastinate"], "≥ 3", "5"),
    ("against DBOS", lambda f: f["ratio"]["dbos"], "≥ 8", "12"),
    ("throughput at 1 million pending against 10 thousand", lambda f: f["pending_ratio"], "≥ 0.9", "1.0"),
    ("submit_many against a plain batched INSERT of the same rows", lambda f: f["submit_ratio"], "≥ 0.5", "0.8"),
    ("the same, if the plain INSERT is sent as ours is", lambda f: f["submit_ratio_as_text"], "", ""),
    ("SQL statements a phase under load", lambda f: f["cost_per_phase"]["statements"], "≤ 0.5", "0.3"),
    ("WAL bytes a phase, no full-page images", lambda f: round(f["cost_per_phase"]["wal_bytes"]), "≤ 1,500", "1,000"),
    ("broker messages a phase", lambda f: f["cost_per_phase"]["messages"], "", ""),
    ("idle: queries a second per process", lambda f: f["idle_queries_per_s_per_process"], "≤ 0.2", ""),
    ("idle: CPU % per process", lambda f: f["idle_cpu_percent_per_process"], "", ""),
    ("worker memory growth over 100,000 jobs, %", lambda f: f["memory_growth_percent"], "≤ 2", ""),
    ("idle latency p50 against bare Dramatiq's chain", lambda f: f["idle_latency_ratio"], "≤ 3", "1.5"),
]


def write(figures: Figures) -> None:
    """Replace what stands between the marks; the words around it are people's."""
    file = DOCS / "benchmarks.md"
    before, _, rest = file.read_text(encoding="utf-8").partition(START)
    after = rest.partition(END)[2]
    file.write_text(f"{before}{START}\n{_body(figures)}\n{END}{after}", encoding="utf-8")
    _plot(figures)


def _body(figures: Figures) -> str:
    setup = figures["setup"]
    lines = [
        f"`{setup['command']}`, {setup['cores']} cores shared by servers and workers; {setup['processes']} processes "
        f"of {setup['threads']} threads; medians of {setup['rounds']} interleaved rounds of {setup['jobs']:,} jobs.",
        "",
        "| | measured | floor | goal |",
        "|---|---|---|---|",
        *(f"| {name} | {_value(read, figures)} | {floor} | {goal} |" for name, read, floor, goal in PROMISES),
        "",
        "| system | jobs/s | rounds |",
        "|---|---|---|",
        *(
            f"| {name} | {rate} | {', '.join(map(str, figures['rounds'][name]))} |"
            for name, rate in sorted(figures["jobs_per_s"].items(), key=lambda item: -item[1])
        ),
        "",
        "| latency, ms | p50 | p99 |",
        "|---|---|---|",
        *(
            f"| {name} | {figures[key]['p50']} | {figures[key]['p99']} |"
            for name, key in (
                ("idle", "idle_latency_ms"),
                ("idle, bare Dramatiq's chain", "idle_latency_dramatiq_ms"),
                ("at half load", "half_load_latency_ms"),
            )
        ),
        "",
        *_growth(figures),
    ]
    return "\n".join(lines)


def _value(read: Callable[[Figures], Any], figures: Figures) -> str:
    try:
        return f"{read(figures):,}"
    except KeyError:
        return "not measured"


def _growth(figures: Figures) -> list[str]:
    if "pending_jobs_per_s" not in figures:
        return []
    rows = [(f"{int(n):,} pending", rate) for n, rate in figures["pending_jobs_per_s"].items()]
    rows += [(f"after {int(n):,} finished jobs", rate) for n, rate in figures["after_finished_jobs_per_s"].items()]
    rows += [(f"{n} processes", rate) for n, rate in figures["processes_jobs_per_s"].items()]
    return ["| growth | jobs/s |", "|---|---|", *(f"| {name} | {rate} |" for name, rate in rows)]


def _plot(figures: Figures) -> None:
    """matplotlib lives with the peers, in their environment: the project itself does not need it."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(figures, file)
        file.flush()
        target = str(DOCS / "benchmarks.svg")
        subprocess.run(
            [str(RIVALS / "python"), str(Path(__file__).with_name("plot.py")), file.name, target], check=True
        )

"""The figures as a page: tables of what was promised and what was measured, and a plot."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench import lab
from bench.paired import Figures
from bench.rivals.install import NotInstalled, environment

DOCS = lab.ROOT / "docs"
START, END = "<!-- figures: written by script/bench -->", "<!-- end of figures -->"


class Promise(NamedTuple):
    """What it is, where it stands in the figures, the floor, and the goal."""

    about: str
    place: str
    floor: str = ""
    goal: str = ""


USERS = [
    Promise("default options, against bare Dramatiq without confirms", "real.defaults_vs_dramatiq", "≥ 1.1", "2"),
    Promise("… with publisher confirms", "real.defaults_vs_dramatiq_confirmed", "≥ 1.5", "3"),
    Promise("… with the three functions called in one actor", "ratio.dramatiq_one_actor"),
    Promise("… with one UPDATE to claim and one to complete (naive)", "ratio.naive"),
    Promise("against Celery", "ratio.celery", "≥ 2.5", "4"),
    Promise("against Taskiq", "ratio.taskiq"),
    Promise("against Procrastinate", "ratio.procrastinate", "≥ 9", "15"),
    Promise("against DBOS", "ratio.dbos", "≥ 13", "20"),
    Promise("against Oban", "ratio.oban", "≥ 4", "8"),
    Promise("against awa-pg", "ratio.awa", "≥ 2.5", "5"),
    Promise("against PgQueuer", "ratio.pgqueuer"),
    Promise("a pool of ten, against no pool", "real.pooled_vs_unpooled", "≥ 0.85", "1.0"),
    Promise("a row written in each phase, against Dramatiq + INSERT", "real.writes_vs_dramatiq_insert", "≥ 0.7", "1.2"),
    Promise("… against naive claim, INSERT, complete", "real.writes_vs_naive_insert", "≥ 2", "4"),
    Promise("results of 20 KB, against Dramatiq whose messages carry them", "real.results_vs_dramatiq"),
    Promise("a model as the body and typed results, against dictionaries", "real.typed_vs_untyped", "≥ 0.9", "1.0"),
    Promise("jobs that take turns by a key, against jobs without", "real.keyed_vs_unkeyed", "≥ 0.8"),
    Promise("single submits by 1 client, against a plain INSERT of two rows", "real.submit_1_vs_insert"),
    Promise("… by 8 clients", "real.submit_8_vs_insert"),
    Promise("… by 32 clients", "real.submit_32_vs_insert", "≥ 0.6", "0.8"),
    Promise("100 workflows, against one", "real.workflows_100_vs_1"),
    Promise("300 workflows, against one", "real.workflows_300_vs_1", "≥ 0.8", "1.0"),
    Promise("threads a process with 300 workflows", "real.threads_300", "≤ 60"),
    Promise("after 100,000 jobs under a held snapshot, against none", "real.snapshot_vs_none", "≥ 0.7", "0.9"),
    Promise("idle latency, against a bare chain", "real.idle_latency_ratio", "≤ 2.3", "1.6"),
    Promise("p99 at half load, against the bare chain's", "real.half_load_p99_vs_bare", "≤ 2", "1.2"),
    Promise("1 million pending, against 10 thousand", "pending_ratio", "≥ 0.9", "1.0"),
    Promise("submit_many, against a plain batched INSERT of the same rows", "submit_ratio", "≥ 0.7", "0.9"),
    Promise("… if the plain INSERT is sent as ours is", "submit_ratio_as_text"),
]
COSTS = [
    Promise("SQL statements a phase", "cost_per_phase.statements", "≤ 0.1"),
    Promise("WAL bytes a phase, no full-page images", "cost_per_phase.wal_bytes", "≤ 900", "600"),
    Promise("broker messages a phase", "cost_per_phase.messages"),
    Promise("SQL statements a phase that writes a row", "cost_per_writing_phase.statements"),
    Promise("WAL bytes a phase that writes a row", "cost_per_writing_phase.wal_bytes"),
    Promise("SQL statements a pooled phase", "cost_per_pooled_phase.statements"),
    Promise("idle: queries a second per process", "idle_queries_per_s_per_process", "≤ 0.2"),
    Promise("idle: CPU % per process", "idle_cpu_percent_per_process"),
    Promise("statements a step, in threads", "statements_a_step.steps", "≤ 0.5"),
    Promise("… on the event loop", "statements_a_step.steps-loop", "≤ 0.5"),
    Promise("commits a step, in threads", "commits_a_step.steps", "≤ 0.5"),
    Promise("… on the event loop", "commits_a_step.steps-loop", "≤ 0.5"),
    Promise("ms from an idle job's last transition to the waiter, its commit included", "result_after_transition_ms"),
    Promise("statements of 1,000 waiters in ten seconds", "statements_of_1000_waiters", "0"),
    Promise("worker memory growth over 100,000 jobs, %", "memory_growth_percent", "≤ 2"),
]
LATENCIES = {
    "idle": "idle_latency_ms",
    "idle, bare Dramatiq's chain": "idle_latency_dramatiq_ms",
    "at half load": "half_load_latency_ms",
    "at half load, bare Dramatiq's chain": "half_load_latency_dramatiq_ms",
}
GROWTH = {
    "pending_jobs_per_s": "{} pending",
    "after_finished_jobs_per_s": "after {} finished jobs",
    "workflows_jobs_per_s": "{} workflows",
    "processes_jobs_per_s": "{} processes",
}


def write(figures: Figures) -> None:
    """Replace what stands between the marks; the words around it are people's."""
    file = DOCS / "benchmarks.md"
    before, _, rest = file.read_text(encoding="utf-8").partition(START)
    after = rest.partition(END)[2]
    file.write_text(f"{before}{START}\n{body(figures)}\n{END}{after}", encoding="utf-8")
    _plot(figures)


def body(figures: Figures) -> str:
    setup = figures["setup"]
    head = (
        f"`{setup['command']}`, {setup['cores']} cores shared by servers and workers; {setup['processes']} processes "
        f"of {setup['threads']} threads. Ratios are medians of {setup['rounds']} paired rounds, with the lowest and "
        f"the highest; a turn takes about {setup['seconds']:g} s."
    )
    tables = [
        _table("what users write | measured | rounds | floor | goal", (_promised(figures, p) for p in USERS)),
        _table("what it costs | measured | rounds | floor | goal", (_promised(figures, p) for p in COSTS)),
        _table("system | jobs/s | rounds", _rates(figures)),
        _table(
            "latency, ms | p50 | p99",
            ((about, figures[key]["p50"], figures[key]["p99"]) for about, key in LATENCIES.items() if key in figures),
        ),
        _table("growth | jobs/s", _growth(figures)),
    ]
    return "\n\n".join([head, *tables])


def _table(head: str, rows: Iterator[tuple[object, ...]]) -> str:
    rule = "|---" * (head.count("|") + 1) + "|"
    return "\n".join([f"| {head} |", rule, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


def _promised(figures: Figures, promise: Promise) -> tuple[object, ...]:
    name = promise.place.rpartition(".")[2]
    low, high = figures.get("spread", {}).get(name, ("", ""))
    return promise.about, _value(figures, promise.place), f"{low}–{high}" if high else "", promise.floor, promise.goal


def _value(figures: Figures, place: str) -> str:
    value: object = figures
    for key in place.split("."):
        if not isinstance(value, dict) or key not in value:
            return "not measured"
        value = value[key]
    return f"{value:,}"


def _rates(figures: Figures) -> Iterator[tuple[object, ...]]:
    for name, rate in sorted(figures["jobs_per_s"].items(), key=lambda item: -float(item[1])):
        yield name, rate, ", ".join(map(str, figures["rounds"][name]))


def _growth(figures: Figures) -> Iterator[tuple[object, ...]]:
    for key, about in GROWTH.items():
        for number, rate in figures.get(key, {}).items():
            yield about.format(f"{int(number):,}"), rate


def _plot(figures: Figures) -> None:
    """matplotlib has an environment of its own, as the rivals have: the project itself does not need it."""
    try:
        python = environment("plot") / "python"
    except NotInstalled as reason:
        print(f"no plot: {reason}")
        return
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(figures, file)
        file.flush()
        command = [str(python), str(Path(__file__).with_name("plot.py")), file.name, str(DOCS / "benchmarks.svg")]
        subprocess.run(command, check=True)

"""``pipeline watch``: the cluster at a glance, like top."""

from __future__ import annotations

import json
from time import sleep
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from pipeline.front.api.stats import Phase, Stats

out = Console()
# Narrower terminals have no room for the reasons; the numbers stay readable at 80 columns.
WIDE = 100


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(watch)


def watch(
    every: Annotated[float, typer.Option(min=0.2, help="Seconds between two looks.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Look once and end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON a look, for scripts.")] = False,
) -> None:
    """Watch queues, pools and workers; Ctrl-C ends it."""
    from pipeline.front.api.stats import compute

    if as_json or once:
        _print(compute, every, once, as_json)
        return
    try:
        with Live(_view(compute()), console=out, screen=out.is_terminal, auto_refresh=False) as live:
            while True:
                sleep(every)
                live.update(_view(compute()), refresh=True)
    except KeyboardInterrupt:
        pass


def _print(compute: object, every: float, once: bool, as_json: bool) -> None:
    assert callable(compute)
    while True:
        stats = compute()
        if as_json:
            print(json.dumps(stats.model_dump(mode="json")), flush=True)
        else:
            out.print(_view(stats))
        if once:
            return
        sleep(every)


def _view(stats: Stats) -> Group:
    workers = ", ".join(f"{n} {state}" for state, n in sorted(stats.workers.items())) or "none"
    head = Text(
        f"{stats.at:%T}  workers: {workers}  relay lag: {stats.relay_lag_seconds:.1f} s  "
        f"open batches: {stats.open_batches}"
    )
    table = Table(box=None, pad_edge=False)
    table.add_column("phase", no_wrap=True, min_width=max((len(p.queue) for p in stats.phases), default=5))
    for name in ("wait", "sent", "run", "pool", "dead", "/s", "err", "age"):
        table.add_column(name, justify="right", no_wrap=True)
    wide = out.width >= WIDE
    if wide:
        table.add_column("waits for")
    for phase in stats.phases:
        cells = _cells(phase)
        table.add_row(*(cells if wide else cells[:-1]), style=None if _busy(phase) else "dim")
    return Group(head, Text(""), table)


def _cells(phase: Phase) -> list[str]:
    reasons = [f"{reason} {n}" for reason, n in sorted(phase.waiting.items(), key=lambda pair: -pair[1])[:3]]
    pace = phase.ended_per_second
    return [
        phase.queue,
        _count(sum(phase.waiting.values())),
        _count(phase.queued),
        _count(phase.running),
        f"{phase.busy}/{phase.pool}" if phase.pool else "-",
        _count(phase.failed),
        f"{pace:.1f}" if pace < 100 else f"{pace:.0f}",
        f"{phase.error_rate:.0%}",
        _age(phase.oldest_seconds),
        ", ".join(["paused", *reasons] if phase.paused else reasons),
    ]


def _count(n: int) -> str:
    """Counts stop at ten thousand of a kind."""
    return str(n) if n < 10_000 else f"{n // 1000}k+"


def _age(seconds: float | None) -> str:
    """Three or four characters, so that a row fits into 80 columns."""
    if seconds is None:
        return ""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.0f}s"


def _busy(phase: Phase) -> bool:
    return bool(phase.waiting or phase.queued or phase.running or phase.ended_per_second)

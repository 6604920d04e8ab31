"""The result: JSON for programs, a table for people, and the same table in docs/reliability.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from chaos.recovery import percentiles
from chaos.wave import Wave

PAGE = Path(__file__).parent.parent / "docs" / "reliability.md"
BEGIN, END = "<!-- table: written by script/chaos -->", "<!-- end of table -->"
# G7, for 99 of 100 jobs of killed workers.
RECOVERED_WITHIN = 2.0
COLUMNS = (
    "fault",
    "times",
    "jobs",
    "hits",
    "lost",
    "doubled",
    "unexplained",
    "ended otherwise",
    "settled s",
    "recovery s (p50 / p99)",
    "consumers back s",
)


def summary(seed: int, waves: Sequence[Wave]) -> dict[str, Any]:
    """The figures of the whole run. Recovery is that of the kills alone: in a pair the other fault has its share."""
    samples = [sample for wave in waves if len(wave.faults) == 1 for sample in wave.samples]
    return {
        "seed": seed,
        "jobs": sum(len(wave.jobs) for wave in waves),
        "lost": sum(len(wave.findings.lost) for wave in waves),
        "duplicated": sum(len(wave.findings.duplicated) for wave in waves),
        "unexplained": sum(len(wave.findings.unexplained) for wave in waves),
        "recovery_s": percentiles(samples),
        "faults": {name: _merged(these) for name, these in _by_name(waves).items()},
    }


def is_clean(figures: dict[str, Any]) -> bool:
    """Whether nothing was lost, done twice or left without a reason, and the jobs of killed workers ran soon."""
    slow = (figures["recovery_s"]["p99"] or 0.0) > RECOVERED_WITHIN
    return not (figures["lost"] or figures["duplicated"] or figures["unexplained"] or slow)


def rows(figures: dict[str, Any]) -> list[list[str]]:
    """One a fault, as text."""
    return [_row(name, entry) for name, entry in figures["faults"].items()]


def rich_table(figures: dict[str, Any]) -> Table:
    table = Table(title=f"seed {figures['seed']}: {_sentence(figures)}", title_justify="left")
    for n, column in enumerate(COLUMNS):
        table.add_column(column, justify="left" if n in (0, 3, 7) else "right")
    for row in rows(figures):
        table.add_row(*row)
    return table


def write_page(figures: dict[str, Any], command: str, page: Path = PAGE) -> None:
    """Replace what stands between the page's two markers."""
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    lines = [
        f"`{command}`, seed {figures['seed']}: {_sentence(figures)}.",
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "|" + "---|" * len(COLUMNS),
    ]
    lines += ["| " + " | ".join(row) + " |" for row in rows(figures)]
    page.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}")


def _sentence(figures: dict[str, Any]) -> str:
    took = figures["recovery_s"]
    return (
        f"{figures['jobs']} jobs, {figures['lost']} lost, {figures['duplicated']} doubled, "
        f"{figures['unexplained']} unexplained; recovery after SIGKILL of a worker "
        f"p50 {_number(took['p50'])} s, p99 {_number(took['p99'])} s, max {_number(took['max'])} s"
    )


def _by_name(waves: Sequence[Wave]) -> dict[str, list[Wave]]:
    found: dict[str, list[Wave]] = {}
    for wave in waves:
        found.setdefault(wave.name, []).append(wave)
    return found


def _merged(waves: Sequence[Wave]) -> dict[str, Any]:
    """All waves of one fault: counts are added, times are the worst."""
    each = [wave.as_json() for wave in waves]
    outcomes = sum((wave.outcomes for wave in waves), start=type(waves[0].outcomes)())
    times = [entry["consumers_back_s"] for entry in each if entry["consumers_back_s"] is not None]
    return {
        "times": sum(wave.skipped is None for wave in waves),
        "without_management": sum(not wave.management and wave.skipped is None for wave in waves),
        "jobs": sum(entry["jobs"] for entry in each),
        "hits": "; ".join(entry["hits"] for entry in each if entry["hits"]),
        **{key: sum(entry[key] for entry in each) for key in ("lost", "duplicated", "unexplained")},
        "outcomes": dict(outcomes),
        "settled_s": max(entry["settled_s"] for entry in each),
        "recovery_s": percentiles([s for w in waves for s in w.samples]) if any(w.kills for w in waves) else None,
        "consumers_back_s": max(times, default=None),
        "skipped": next((wave.skipped for wave in waves if wave.skipped), None),
        "findings": [sentence for entry in each for sentence in entry["findings"]],
        "told": [line for entry in each for line in entry["told"]],
    }


def _row(name: str, entry: dict[str, Any]) -> list[str]:
    others = ", ".join(f"{n} {outcome}" for outcome, n in sorted(entry["outcomes"].items()) if outcome != "succeeded")
    took = entry["recovery_s"]
    hits = f"skipped: {entry['skipped']}" if entry["skipped"] else entry["hits"]
    counts = [str(entry[key]) for key in ("lost", "duplicated", "unexplained")]
    recovery = f"{_number(took['p50'])} / {_number(took['p99'])}" if took else ""
    return [
        name,
        str(entry["times"]),
        str(entry["jobs"]),
        hits,
        *counts,
        others,
        _number(entry["settled_s"]),
        recovery,
        _number(entry["consumers_back_s"]) if entry["consumers_back_s"] is not None else "",
    ]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}" if value >= 10 else f"{value:.2f}"

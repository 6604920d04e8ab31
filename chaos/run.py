"""Faults under load: real servers, real processes, a ledger written inside the phases, and the books at the end."""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from rich.console import Console

from chaos import faults, subject, table
from chaos.fault import Fault
from chaos.routes import MANAGEMENT
from chaos.stage import Stage
from chaos.wave import Size, Wave, judge, run_wave
from pipeline import settings
from pipeline.dev import services, supervise

QUICK, FULL = Size(45, 4.0), Size(130, 5.0)
LONGEST = 85.0
out = Console(width=None if sys.stdout.isatty() else 200)


def main() -> None:
    """Exit code 0 only if nothing was lost, done twice or left without a reason."""
    options = _options()
    try:
        chosen = subject.find(options.workflow)
        plan = _plan(options)
    except (ValueError, ImportError) as error:
        out.print(f"chaos: {error}", style="red", highlight=False)
        sys.exit(2)
    # The deaths here are our own doing: nobody has to be spared a worker that cannot live.
    supervise.PAUSES = (0.1,) * 5
    folder = Path(tempfile.mkdtemp(prefix="pipeline-chaos-"))
    with services.private_servers(folder, remove=True) as servers:
        stage = Stage(servers, chosen, folder, seed=options.seed)
        # The workers inherit this environment: the management address must not come to them by it.
        os.environ.pop(MANAGEMENT, None)
        os.environ.update({name: value for name, value in stage.environment().items() if name != MANAGEMENT})
        settings.get.cache_clear()
        try:
            stage.open()
            waves = run_plan(
                stage, plan, QUICK if options.quick else FULL, quick=options.quick, minutes=options.minutes
            )
        finally:
            stage.close()
    figures = table.summary(options.seed, waves)
    _report(figures, options, folder)
    sys.exit(0 if table.is_clean(figures) else 1)


def run_plan(
    stage: Stage, plan: Sequence[tuple[Fault, ...]], size: Size, *, quick: bool, minutes: float = LONGEST
) -> list[Wave]:
    """Wave after wave, then the books of all of them once more: what a late attempt did since counts, too."""
    started, waves = monotonic(), []
    for number, chosen in enumerate(plan, 1):
        if monotonic() - started > 60 * minutes:
            out.print(f"chaos: time is up; {len(plan) - number + 1} waves are left out", style="yellow")
            break
        name = " + ".join(fault.name for fault in chosen)
        with out.status(f"{number}/{len(plan)}  {name}"):
            wave = run_wave(
                stage, chosen, f"wave-{number}", size, quick=quick, management=faults.with_management(number)
            )
        waves.append(wave)
        out.print(_line(number, len(plan), wave, monotonic() - started), highlight=False, markup=False)
    for wave in waves:
        if wave.skipped is None:
            judge(stage, wave)
    return waves


def _plan(options: argparse.Namespace) -> faults.Plan:
    if options.only:
        return faults.plan_of(options.only)
    return faults.quick_plan() if options.quick else faults.full_plan(random.Random(options.seed))  # noqa: S311


def _line(number: int, total: int, wave: Wave, seconds: float) -> str:
    entry = wave.as_json()
    what = f"skipped: {wave.skipped}" if wave.skipped else f"{entry['hits']}, {entry['jobs']} jobs"
    return (
        f"{seconds:5.0f} s  {number}/{total}  {wave.name}: {what}; lost {entry['lost']}, "
        f"doubled {entry['duplicated']}, unexplained {entry['unexplained']}"
    )


def _report(figures: dict[str, object], options: argparse.Namespace, folder: Path) -> None:
    out.print(table.rich_table(figures))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    if options.page:
        limit = f" --minutes {options.minutes:g}" if options.minutes != LONGEST else ""
        table.write_page(figures, f"script/chaos{' --quick' if options.quick else ''}{limit}")
    if table.is_clean(figures):
        shutil.rmtree(folder, ignore_errors=True)
        return
    for name, entry in figures["faults"].items():  # type: ignore[attr-defined]
        for line in [*entry["findings"], *entry["told"]]:
            out.print(f"{name}: {line}", highlight=False, markup=False)
    out.print(f"the workers' logs are kept in {folder}", highlight=False)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="script/chaos", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="nine of the worst, once; ends within five minutes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    parser.add_argument("--seed", type=int, default=1, help="the dice: moments, victims, pairs (default 1)")
    parser.add_argument("--minutes", type=float, default=LONGEST, help="begin no wave after this (default %(default)s)")
    parser.add_argument("--workflow", metavar="MODULE:NAME", help="a workflow of your own instead of the built-in one")
    parser.add_argument("--only", action="append", metavar="FAULT", help="this fault alone; may be repeated")
    parser.add_argument("--page", action="store_true", help="write the table into docs/reliability.md")
    options = parser.parse_args()
    options.page = options.page or not (options.quick or options.only or options.workflow)
    return options


if __name__ == "__main__":
    main()

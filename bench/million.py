"""A million jobs in the tables: how long every GET of the API takes then, and what PostgreSQL does for it."""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import Any

import httpx

from bench import lab, million_page
from bench.million_cases import Case, cases
from bench.million_fill import fill
from bench.million_plans import Plans
from pipeline.dev.services.ports import free_port

LIMIT_MS = 200
ROUNDS = 5
WORKFLOWS = "actors.workflows,bench.workflows.defaults"


@dataclass
class Measured:
    """The first answer, and those after it."""

    case: Case
    cold: float = 0.0
    warm: list[float] = field(default_factory=list)
    rows: int = 0

    @property
    def median(self) -> float:
        return statistics.median(self.warm)

    @property
    def slow(self) -> bool:
        return max(self.cold, self.median) > LIMIT_MS


def main() -> None:
    options = _options()
    with lab.laboratory(WORKFLOWS) as laboratory, lab.database() as db:
        started = monotonic()
        fill(db, options.jobs)
        print(f"filled in {monotonic() - started:.0f} s", file=sys.stderr)
        with _api() as client:
            asked = cases(client, db)
            _all_routes_asked(client, asked)
        with _api() as client:
            measured = [_measure(client, case) for case in asked]
        plans = Plans(db, laboratory.folder / "postgres.log")
        with _api() as client:
            for case in asked:
                _ask(client, case)
                plans.take(case.name)
    found = million_page.text(options.jobs, measured, list(plans.statements.values()))
    print(found)
    if options.page:
        million_page.FILE.write_text(found, encoding="utf-8")
    scanned = any(statement.scanned for statement in plans.statements.values())
    sys.exit(1 if scanned or any(one.slow for one in measured) else 0)


@contextmanager
def _api() -> Iterator[httpx.Client]:
    """A server of its own, that has just said it is ready."""
    port = free_port()
    with (
        lab.running([sys.executable, "-m", "pipeline.front.cli.main", "api", "--port", str(port)]),
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client,
    ):
        lab.until(lambda: _answers(client), 60)
        yield client


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").is_success
    except httpx.HTTPError:
        return False


def _all_routes_asked(client: httpx.Client, asked: list[Case]) -> None:
    routes = {path for path, ways in client.get("/v1/openapi.json").json()["paths"].items() if "get" in ways}
    # A link's page needs a secret, and reads one row.
    missing = routes - {case.route for case in asked} - {"/v1/events/{token}"}
    if missing:
        raise SystemExit(f"no request for {', '.join(sorted(missing))}: add one to bench/million_cases.py")


def _measure(client: httpx.Client, case: Case) -> Measured:
    found = Measured(case)
    found.cold, found.rows = _ask(client, case)
    for _ in range(ROUNDS):
        sleep(case.apart)
        found.warm.append(_ask(client, case)[0])
    return found


def _ask(client: httpx.Client, case: Case) -> tuple[float, int]:
    """Milliseconds until the whole answer was read (of the stream: its first event), and its rows."""
    started = monotonic()
    with client.stream("GET", case.path, params=case.params) as answer:
        answer.raise_for_status()
        if case.stream:
            next(line for line in answer.iter_lines() if line.startswith("data:"))
            return (monotonic() - started) * 1000, 1
        answer.read()
    took = (monotonic() - started) * 1000
    return took, _rows(answer.json()) if "json" in answer.headers["content-type"] else len(answer.text.splitlines())


def _rows(answer: Any) -> int:
    if isinstance(answer, dict):
        answer = answer.get("items", answer.get("phases", [answer]))
    return len(answer)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.million", description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000, help="how many (at least 20000)")
    parser.add_argument("--page", action="store_true", help="write docs/million.md")
    return parser.parse_args()


if __name__ == "__main__":
    main()

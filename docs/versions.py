"""Writes what script/versions found into docs/supported-versions.md: python -m docs.versions SUITE RESULTS."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import takewhile
from pathlib import Path
from xml.etree import ElementTree

from pipeline.dev.services.postgres_cluster import binary
from pipeline.dev.services.rabbitmq_node import installed_version

PAGE = Path(__file__).parent / "supported-versions.md"
COLUMNS = ("RabbitMQ", "PostgreSQL", "from", "broker", "db", "crash", "flow", "quick chaos")
HEAD = f"| {' | '.join(COLUMNS)} |"
KEY = 3
NOT_RUN = "–"


def main() -> None:
    suite, results = sys.argv[1:]
    found = {path.stem: passed(path) for path in Path(results).glob("*.xml")}
    if (figures := Path(results) / "chaos.json").exists():
        found["quick chaos"] = books(json.loads(figures.read_text()))
    servers = (installed_version(), postgres(), "this Debian" if suite == "own" else f"Debian {suite}")
    PAGE.write_text(with_row(PAGE.read_text(encoding="utf-8"), servers, found), encoding="utf-8")


def passed(report: Path) -> str:
    """As pytest counted them."""
    counted = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for suite in ElementTree.parse(report).getroot().iter("testsuite"):  # noqa: S314  pytest wrote it a moment ago
        for name in counted:
            counted[name] += int(suite.get(name, 0))
    ran = counted["tests"] - counted["skipped"]
    return f"{ran - counted['failures'] - counted['errors']} of {ran}"


def books(figures: dict[str, dict[str, dict[str, int]]]) -> str:
    """What the faults did to the jobs."""
    waves = figures["faults"].values()
    jobs, lost, doubled = (sum(wave[name] for wave in waves) for name in ("jobs", "lost", "duplicated"))
    return f"{jobs} jobs, {lost} lost, {doubled} doubled"


def with_row(page: str, servers: tuple[str, ...], found: dict[str, str]) -> str:
    """The page with these results; those of other servers, and of tests that did not run now, stay."""
    lines = page.splitlines()
    head, rule, *rows = takewhile(lambda line: line.startswith("|"), lines[lines.index(HEAD) :])
    table = {tuple(cells(row)[:KEY]): cells(row)[KEY:] for row in rows}
    before = dict(zip(COLUMNS[KEY:], table.get(servers, []), strict=False))
    table[servers] = [found.get(name, before.get(name, NOT_RUN)) for name in COLUMNS[KEY:]]
    ordered = sorted(table, key=lambda key: [int(part) for part in key[0].split(".")])
    written = "\n".join([head, rule, *(f"| {' | '.join([*key, *table[key]])} |" for key in ordered)])
    return page.replace("\n".join([head, rule, *rows]), written)


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split("|")]


def postgres() -> str:
    return subprocess.run([binary("postgres"), "--version"], capture_output=True, text=True, check=True).stdout.split()[
        2
    ]


if __name__ == "__main__":
    main()

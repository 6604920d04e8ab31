"""What PostgreSQL did for a request: its own plans (auto_explain), read from its log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import lab

BIG = ("jobs", "attempts", "outbox")
SETTINGS = {
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_buffers": "on",
    "auto_explain.log_nested_statements": "on",
    "auto_explain.log_format": "json",
}
ENTRY = re.compile(r"duration: ([0-9.]+) ms  plan:\n((?:\t.*\n)+)")
QUIET = re.compile(r"pg_catalog|pg_locks|alembic_version|^\s*select\s+\S+\s*(:=|$)", re.IGNORECASE)


@dataclass
class Statement:
    """One statement, with the worst of its executions."""

    text: str
    ms: float = 0.0
    buffers: int = 0
    nodes: str = ""
    scanned: set[str] = field(default_factory=set)
    routes: list[str] = field(default_factory=list)


class Plans:
    """Follows the log; ``take`` gives what was written since the last call to the route that asked."""

    def __init__(self, db: lab.Connection, log: Path) -> None:
        """From now on new connections explain themselves."""
        for name, value in SETTINGS.items():
            db.execute(f"ALTER DATABASE pipeline SET {name} = '{value}'")
        self._log = log
        self._read = log.stat().st_size
        self.statements: dict[str, Statement] = {}

    def take(self, route: str) -> None:
        with self._log.open(encoding="utf-8", errors="replace") as file:
            file.seek(self._read)
            written = file.read()
            self._read = file.tell()
        for found in ENTRY.finditer(written):
            self._keep(route, float(found[1]), json.loads(found[2]))

    def _keep(self, route: str, ms: float, entry: dict[str, Any]) -> None:
        text = " ".join(entry["Query Text"].split())
        nodes = list(_nodes(entry["Plan"]))
        if QUIET.search(text) or not any("Relation Name" in node or "Index Name" in node for node in nodes):
            return
        kept = self.statements.setdefault(text, Statement(text))
        buffers = entry["Plan"].get("Shared Hit Blocks", 0) + entry["Plan"].get("Shared Read Blocks", 0)
        kept.scanned |= {node["Relation Name"] for node in nodes if _reads_all(node)}
        if route not in kept.routes:
            kept.routes.append(route)
        if buffers >= kept.buffers:
            kept.ms, kept.buffers, kept.nodes = ms, buffers, ", ".join(dict.fromkeys(map(_short, nodes)))


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from _nodes(below)


def _reads_all(node: dict[str, Any]) -> bool:
    return node["Node Type"] == "Seq Scan" and node["Relation Name"] in BIG and node["Actual Loops"] > 0


def _short(node: dict[str, Any]) -> str:
    return " ".join(filter(None, (node["Node Type"], node.get("Index Name") or node.get("Relation Name"))))

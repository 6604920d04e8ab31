"""What a job waits for, its parent, its children and its events, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.markup import escape
from rich.table import Table


def lines(found: dict[str, Any]) -> Iterator[str]:
    """What a job waits for and what to do about it, its parent and its children, for people."""
    if found["advice"]:
        yield found["advice"]
    waiting = found["waiting"]
    if waiting is not None and waiting["reason"] == "event":
        until = f" until {waiting['until']:%F %T %Z}" if waiting["until"] else ""
        yield f"waits for event {waiting['event']}{until}"
    if found["parent"]:
        yield "child of: {id}  {workflow}.{phase}  {status}".format(**found["parent"])
    for batch in found["children"]:
        yield from _of_batch(batch, waiting)


def _of_batch(batch: dict[str, Any], waiting: dict[str, Any] | None) -> Iterator[str]:
    failed = f", {batch['failed']:,} failed" if batch["failed"] else ""
    what = f"({batch['workflow']}, {batch['policy']}){failed}"
    if waiting is not None and waiting["batch"] == batch["batch"]:
        yield f"waits for {batch['total'] - batch['ended']:,} of {batch['total']:,} children {what}"
    else:
        yield f"children: {batch['ended']:,} of {batch['total']:,} ended {what}"
    if batch["first_failed"]:
        yield f"  first failed: {', '.join(map(str, batch['first_failed']))}"


def table(events: list[dict[str, Any]]) -> Table:
    """The events that a job was told of, the oldest first."""
    shown = Table("event", "told", "taken", "bytes", "body")
    for one in reversed(events):
        preview = one["preview"] if len(one["preview"]) <= 80 else f"{one['preview'][:80]}…"
        taken = f"{one['taken_at']:%F %T}" if one["taken_at"] else "kept"
        shown.add_row(escape(one["name"]), f"{one['at']:%F %T}", taken, str(one["size"]), escape(preview))
    return shown

"""Sources for operators: how each is, what of it could not be read, and pausing and resuming it by hand."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, text

from actors.scrape.price.currencies import CODES
from pipeline import BadInput

# A pause without an end: PostgreSQL's infinity has no counterpart in Python.
FOREVER_DAYS = 36_500
LIST = text("""select s.id, s.name, s.adapter, s.base_url, s.enabled, s.rate_limit_per_minute, s.currency,
        s.failure_streak,
        s.last_success_at, s.last_failure_at, s.last_error, s.paused_until, s.pause_reason, s.times_opened, s.probes,
        case when not s.enabled then 'disabled'
             when s.probe_until > now() then 'probing'
             when s.paused_until > now() and s.pause_reason = 'breaker' then 'open'
             when s.paused_until > now() then 'paused'
             when s.pause_reason = 'breaker' then 'half-open'
             else 'closed' end as state,
        (select count(*) from pipeline.outbox o
         where o.rate_limit = 'source:' || s.id and o.sent_at is null) as waiting,
        (select count(*) from (select 1 from unread_prices u where u.source_id = s.id limit 10000) u) as unread
    from sources s where cast(:which as text) is null or s.id = :which or s.name = :which order by s.name limit 1000""")
UNREAD_REASONS = text("""select reason, count(*) as prices from unread_prices where source_id = :id
    group by reason order by 2 desc, 1""")
UNREAD = text("""select intake_id, title, url, price_text, reason, detail, first_seen_at, last_seen_at
    from unread_prices where source_id = :id and (cast(:reason as text) is null or reason = :reason)
    order by last_seen_at desc, id desc limit :most""")
PAUSE = text("SELECT source_pause(:id, now() + make_interval(secs => :seconds), 'operator')")
CURRENCY = text("UPDATE sources SET currency = :currency WHERE id = :id")
RESUME = text("SELECT source_close(:id)")


def list_sources(connection: Connection) -> list[dict[str, Any]]:
    """All sources by name, each with its state and the number of jobs that wait for it."""
    return _rows(connection, None)


def pause_source(connection: Connection, which: str, seconds: float | None = None) -> dict[str, Any]:
    """Hold the source's jobs for so long, or until it is resumed; the source (by id or name) as it then is."""
    found = find_source(connection, which)
    if seconds is not None and not 0 < seconds <= FOREVER_DAYS * 86400:
        raise BadInput(f"a pause is longer than nothing and shorter than a century, not {seconds:g} s")
    connection.execute(PAUSE, {"id": found["id"], "seconds": seconds or FOREVER_DAYS * 86400.0})
    return find_source(connection, found["id"])


def resume_source(connection: Connection, which: str) -> dict[str, Any]:
    """End any pause, the breaker's too; its jobs go out at its rate."""
    found = find_source(connection, which)
    connection.execute(RESUME, {"id": found["id"]})
    return find_source(connection, found["id"])


def set_currency(connection: Connection, which: str, currency: str) -> dict[str, Any]:
    """What a bare number and a sign of several currencies mean at the source from now on; a code of ISO 4217."""
    found, code = find_source(connection, which), currency.strip().upper()
    if code not in CODES:
        raise BadInput(f"{currency!r} is not a currency: use its code of ISO 4217, such as USD")
    connection.execute(CURRENCY, {"id": found["id"], "currency": code})
    return find_source(connection, found["id"])


def unread_prices(
    connection: Connection, which: str, reason: str | None = None, most: int = 100
) -> tuple[dict[str, int], list[dict[str, Any]]]:
    """What the source said of prices and could not be read: how many for each reason, and those seen last."""
    source = find_source(connection, which)["id"]
    reasons = {row.reason: row.prices for row in connection.execute(UNREAD_REASONS, {"id": source})}
    rows = connection.execute(UNREAD, {"id": source, "reason": reason, "most": most}).mappings()
    return reasons, [dict(row) for row in rows]


def find_source(connection: Connection, which: str) -> dict[str, Any]:
    """One source by id or name; raises BadInput with the names there are."""
    found = _rows(connection, which)
    if not found:
        names = ", ".join(row["name"] for row in _rows(connection, None)[:20]) or "none yet"
        raise BadInput(f"there is no source {which!r}; known sources: {names}")
    return next((row for row in found if row["id"] == which), found[0])


def _rows(connection: Connection, which: str | None) -> list[dict[str, Any]]:
    return [dict(row) for row in connection.execute(LIST, {"which": which}).mappings()]

"""The rows of the scrape workflow: price points kept once, and one valuation an intake."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from actors.scrape.listing import PricePoint, Unpriced
from actors.scrape.money import CURRENCY
from actors.scrape.task import Task
from actors.scrape.value import Seen, value

Write = Callable[[Connection], None]
MOST_POINTS = 10_000

# In the order of the keys, so that two workers with the same listings wait for one another and never deadlock.
UPSERT = text("""
    insert into price_points (intake_id, source_id, dedupe_key, external_id, title, url, price_cents, original_cents,
                              currency, price_type, observed_at, match_strength, quantity, approximate, rate_day)
    select :intake, :source, p.dedupe_key, p.external_id, p.title, p.url, p.price_cents, p.original_cents,
           p.currency, p.price_type, p.observed_at, p.match_strength, p.quantity, p.approximate, p.rate_day
    from jsonb_to_recordset(cast(:points as jsonb)) as p(dedupe_key text, external_id text, title text, url text,
        price_cents bigint, original_cents bigint, currency text, price_type text, observed_at timestamptz,
        match_strength double precision, quantity bigint, approximate boolean, rate_day date)
    order by p.dedupe_key
    on conflict (intake_id, source_id, dedupe_key) do update
    set external_id = excluded.external_id, title = excluded.title, url = excluded.url,
        price_cents = excluded.price_cents, original_cents = excluded.original_cents, currency = excluded.currency,
        price_type = excluded.price_type, observed_at = excluded.observed_at,
        match_strength = excluded.match_strength, quantity = excluded.quantity, approximate = excluded.approximate,
        rate_day = excluded.rate_day, updated_at = now()
    where excluded.match_strength > price_points.match_strength
""")
# What could not be priced is seen again with every answer of the source: it stays one row.
UPSERT_UNREAD = text("""
    insert into unread_prices (intake_id, source_id, title, url, price_text, reason, detail)
    select :intake, :source, u.title, u.url, u.price_text, u.reason, u.detail
    from jsonb_to_recordset(cast(:unread as jsonb)) as u(title text, url text, price_text text,
        reason text, detail text)
    order by md5(u.url || chr(10) || u.price_text)
    on conflict (intake_id, source_id, md5(url || chr(10) || price_text)) do update
    set title = excluded.title, reason = excluded.reason, detail = excluded.detail, last_seen_at = now()
""")
# A job outside of an open batch (submitted alone, replayed, revived) has nobody who would value after it.
VALUE_LATER = text("""
    select pipeline.submit('valuation', jsonb_build_object('intake_id', cast(:intake as text)))
    from pipeline.jobs j left join pipeline.batches b on b.id = j.batch_id
    where j.id = :job and (b.id is null or b.completed_at is not null)
""")
LOCK = text("select 1 from coin_intakes where id = :intake for no key update")
POINTS = text("""select price_cents, price_type, match_strength from price_points where intake_id = :intake
    order by observed_at desc, id desc limit :most""")
UPSERT_VALUE = text("""
    insert into valuations (intake_id, low_cents, mid_cents, high_cents, currency, confidence, points_used,
                            points_seen, outliers, points_by_type)
    values (:intake, :low_cents, :mid_cents, :high_cents, :currency, :confidence, :points_used, :points_seen,
            :outliers, cast(:by_type as jsonb))
    on conflict (intake_id) do update
    set low_cents = excluded.low_cents, mid_cents = excluded.mid_cents, high_cents = excluded.high_cents,
        currency = excluded.currency, confidence = excluded.confidence, points_used = excluded.points_used,
        points_seen = excluded.points_seen, outliers = excluded.outliers, points_by_type = excluded.points_by_type,
        updated_at = now()
""")
OF_JOB = text("""select p.dedupe_key, p.title, p.url, p.price_cents, p.currency, p.original_cents, p.price_type,
        p.observed_at, p.match_strength
    from pipeline.jobs j join price_points p
        on p.intake_id = j.body ->> 'intake_id' and p.source_id = j.body ->> 'source_id'
    where j.id = :job order by p.match_strength desc, p.id limit 50""")
VALUE_OF_JOB = text("""select v.* from pipeline.jobs j join valuations v on v.intake_id = j.body ->> 'intake_id'
    where j.id = :job""")


def save_points(job_id: UUID, task: Task, points: Sequence[PricePoint], aside: Sequence[Unpriced] = ()) -> Write:
    """A write that keeps the points: one statement, the stronger match wins, a tie keeps the row; unread ones aside."""
    # One row a text and address: the index refuses to change a row twice in one statement.
    unread = list({(one.url, one.price_text): asdict(one) for one in aside}.values())
    kept = {"intake": task.intake.id, "source": task.source.id, "unread": json.dumps(unread, ensure_ascii=False)}
    rows = json.dumps([point.as_row() for point in points], ensure_ascii=False)
    values = {"intake": task.intake.id, "source": task.source.id, "points": rows}

    def write(connection: Connection) -> None:
        if points:
            connection.execute(UPSERT, values)
        if unread:
            connection.execute(UPSERT_UNREAD, kept)
        connection.execute(VALUE_LATER, {"intake": task.intake.id, "job": job_id})

    return write


def save_value(intake_id: str) -> Write:
    """A write that values the intake by the points there are now; two at once come one after the other."""

    def write(connection: Connection) -> None:
        connection.execute(LOCK, {"intake": intake_id})
        rows = connection.execute(POINTS, {"intake": intake_id, "most": MOST_POINTS}).all()
        found = asdict(value([Seen(*row) for row in rows]))
        by_type = json.dumps(found.pop("points_by_type"))
        connection.execute(UPSERT_VALUE, {**found, "intake": intake_id, "currency": CURRENCY, "by_type": by_type})

    return write


def stored_points(connection: Connection, job_id: UUID) -> list[dict[str, Any]] | None:
    """The best matches of the job's intake at its source; None if there are none."""
    return [dict(row) for row in connection.execute(OF_JOB, {"job": job_id}).mappings()] or None


def stored_value(connection: Connection, job_id: UUID) -> dict[str, Any] | None:
    """The valuation of the job's intake; None before there is one."""
    row = connection.execute(VALUE_OF_JOB, {"job": job_id}).mappings().one_or_none()
    return dict(row) if row is not None else None

"""What a price-collection job is about, in one read: the coin and the source as they are now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from actors.scrape.listing import Intake
from pipeline import Job, Permanent, Snooze

READ = """select i.id, i.title, i.year, i.mintmark, i.denomination, i.series, now() as seen,
       j.rate_limit is not null as in_rate_limit, s.id as source_id, s.name, s.adapter, s.base_url, s.enabled,
       s.currency, s.pause_reason,
       case when s.paused_until > now() or s.probe_until > now() and s.probe_by is distinct from :job
            then extract(epoch from least(greatest(s.paused_until, s.probe_until), now() + interval '365 days') - now())
       end::double precision as paused
    from (select 1) one left join coin_intakes i on i.id = :intake left join sources s on s.id = :source
    left join pipeline.jobs j on j.id = :job and j.rate_limit = 'source:' || s.id"""
# The gate holds the jobs of a paused rate limit by itself, and lets them go when the pause ends early: they need not
# know how long it is.
SOON = 1.0


@dataclass(frozen=True)
class Source:
    """A marketplace, as far as one call needs to know it."""

    id: str
    name: str
    adapter: str
    base_url: str
    currency: str | None = None  # of prices that name none, or only a sign of several currencies

    @property
    def rate_limit(self) -> str:
        """The rate limit of all jobs that ask this source: its rate and its pauses."""
        return f"source:{self.id}"


@dataclass(frozen=True)
class Task:
    """One intake at one source. ``seen`` is PostgreSQL's now; ``in_rate_limit``: the gate holds the job."""

    intake: Intake
    source: Source
    params: Mapping[str, Any]
    seen: datetime
    in_rate_limit: bool = False

    def at_the_gate(self, wait: Snooze) -> Snooze:
        """The same wait, spent at the gate; a permit that was kept for the job stays valid."""
        if not self.in_rate_limit or wait.reason == "rate_limit":
            return wait
        return Snooze(min(wait.seconds, SOON), wait.reason, str(wait), asked=wait.asked)


async def load_task(job: Job) -> Task:
    """Raises Permanent for what is unknown or disabled, and Snooze while the source is paused."""
    intake_id, source_id = job.body.get("intake_id"), job.body.get("source_id")
    params = job.body.get("query_params") or {}
    if not (isinstance(intake_id, str) and isinstance(source_id, str) and isinstance(params, dict)):
        raise Permanent('the job needs {"intake_id": "…", "source_id": "…"}; query_params is an object')
    [row] = await job.read(READ, intake=intake_id, source=source_id, job=job.id)
    if row["id"] is None:
        raise Permanent(f"there is no coin intake {intake_id!r}")
    if row["source_id"] is None:
        raise Permanent(f"there is no source {source_id!r}")
    if not row["enabled"]:
        raise Permanent(f"source {row['name']} is disabled: enable it in sources and retry the job")
    intake = Intake(**{name: row[name] for name in ("id", "title", "year", "mintmark", "denomination", "series")})
    source = Source(row["source_id"], row["name"], row["adapter"], row["base_url"], row["currency"])
    task = Task(intake, source, params, row["seen"], row["in_rate_limit"])
    if row["paused"] is not None:
        why = f"source {source.name} is paused ({row['pause_reason']})"
        raise task.at_the_gate(Snooze(row["paused"], row["pause_reason"], why))
    return task

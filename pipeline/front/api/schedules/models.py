"""What the JSON of a schedule looks like, on its way in and out."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from pipeline.declare.schedules.schedule import LONGEST_NAME, MOST_MADE_UP, NAME, Overlap
from pipeline.front.api.http.fields import Body, Moment, Name, Priority, Seconds, Tag, Text
from pipeline.store.gateway.schedules import Schedule

ScheduleName = Annotated[str, Field(pattern=f"^{NAME.pattern}$", max_length=LONGEST_NAME)]


class ScheduleRow(BaseModel):
    """A schedule, and how it is."""

    workflow: str
    name: str
    source: Literal["code", "run time"] = Field(description="code: changed by pipeline migrate alone")
    cron: str | None
    every: float | None = Field(description="seconds")
    timezone: str
    body: dict[str, Any]
    priority: int
    tags: list[str]
    overlap: Overlap
    catch_up: int | None = Field(description="so many of the missed moments are made up")
    catch_up_for: float | None = Field(description="or those that are not older than so many seconds")
    next_at: datetime | None = Field(description="null while it is paused, or not worked out yet")
    waits: bool = Field(description="the next moment waits for an earlier job to end")
    backfill_at: datetime | None
    backfill_until: datetime | None
    paused_at: datetime | None
    last_at: datetime | None = Field(description="the last moment that got a job")
    last_job: UUID | None
    problem: str | None = Field(description="why it gets no jobs")

    @classmethod
    def of(cls, one: Schedule) -> ScheduleRow:
        """As the store has it."""
        found = {name: getattr(one, name) for name in cls.model_fields if hasattr(one, name)}
        aged = isinstance(one.catch_up, timedelta)
        found["catch_up"] = None if aged else one.catch_up
        found["catch_up_for"] = one.catch_up.total_seconds() if isinstance(one.catch_up, timedelta) else None
        found["every"] = None if one.every is None else one.every.total_seconds()
        return cls(**found)


class ScheduleDetail(ScheduleRow):
    """A schedule, and what comes."""

    moments: list[datetime] = Field(description="the next ones; none while it is paused")


class NewSchedule(BaseModel):
    """When, and with what: either ``cron`` or ``every``."""

    model_config = ConfigDict(extra="forbid")
    cron: Text | None = Field(default=None, description="minute, hour, day, month and weekday, or @daily")
    every: Seconds | None = None
    timezone: Text | None = Field(default=None, description="for cron, such as Europe/Paris; else UTC")
    body: Body = Field(default_factory=dict)
    overlap: Overlap = Field(default="allow", description="what to do while an earlier job has not ended")
    catch_up: Annotated[int, Field(ge=0, le=MOST_MADE_UP, strict=True)] | None = None
    catch_up_for: Seconds | None = None
    priority: Priority = 0
    tags: list[Tag] = Field(default_factory=list, max_length=19)

    def made_up(self) -> int | timedelta:
        """The latest missed moment, unless something else is said."""
        if self.catch_up_for is not None:
            return timedelta(seconds=self.catch_up_for)
        return 1 if self.catch_up is None else self.catch_up


class Backfill(BaseModel):
    """Past moments, from the first to the last, both included."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    first: Moment = Field(alias="from")
    until: Moment


class Steered(BaseModel):
    """Whether the call changed anything."""

    workflow: Name
    name: str
    changed: bool

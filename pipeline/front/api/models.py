"""What the JSON answers look like."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, Field

from pipeline.front.api.http.pages import Page, cut
from pipeline.front.api.http.shorten import shorten


class JobRow(BaseModel):
    """A job in a list."""

    id: UUID
    workflow: str
    phase: str
    status: str
    priority: int
    attempts: int
    max_attempts: int
    crashes: int
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None
    next_retry_at: datetime | None
    locked_by: str | None
    wait_reason: str | None
    progress_done: int | None
    progress_total: int | None
    batch_id: UUID | None
    rate_limit: str | None
    idempotency_key: str | None = Field(description="given, or made from the body")
    tags: list[str]
    expires_at: datetime | None = Field(description="a job that has not begun by then fails")
    trace_id: str
    error_message: str | None = Field(description="cut to 4000 characters")


class Part(BaseModel):
    """A stretch of a job's life; the parts follow one another without a gap."""

    phase: str
    attempt: int
    part: str = Field(description="waiting (to be sent), queued, running, failed, or what else it waited for")
    started_at: datetime
    ended_at: datetime
    seconds: float
    outcome: str | None
    worker: str | None
    error: str | None


class Attempt(BaseModel):
    """One try at a phase that has ended."""

    phase: str
    attempt: int
    fence: int
    outcome: str
    worker: str | None
    wait_reason: str | None
    started_at: datetime | None
    finished_at: datetime
    error: str | None
    log: bool = Field(description="whether it kept a traceback or lines: see /v1/jobs/{id}/attempts/{fence}")


class AttemptLog(Attempt):
    """Why an attempt failed, as far as it could say so. Both texts are cut to 8 KiB."""

    traceback: str | None = Field(description="the team's frames; those of libraries and of the engine are folded")
    lines: str | None = Field(description="what its phase logged last")


class Step(BaseModel):
    """A step whose result was kept."""

    phase: str
    name: str
    at: datetime
    size: int = Field(description="bytes of JSON")
    preview: str = Field(description="its JSON, cut to 1000 characters")


class Waiting(BaseModel):
    """What somebody has to bring before the job continues."""

    reason: str = Field(description="event or children")
    event: str | None = Field(description="the name of the event")
    batch: UUID | None = Field(description="which of its children, see `children`")
    until: datetime | None = Field(description="then the job continues without; null: it waits as long as it takes")


class Parent(BaseModel):
    """The job that waits for this one."""

    id: UUID
    workflow: str
    phase: str
    status: str


class ChildrenOf(BaseModel):
    """The children that one attempt submitted; `GET /v1/jobs/{id}/children` lists them."""

    batch: UUID
    workflow: str | None
    policy: str = Field(description="best_effort, all or any")
    total: int
    ended: int
    failed: int = Field(description="of those that ended: failed or cancelled")
    answered: bool = Field(description="whether the job need not wait for them any longer")
    first_failed: list[UUID] = Field(description="up to five, looked for among the first 10,000")
    created_at: datetime


class EventTold(BaseModel):
    """An event that the job was told of."""

    name: str
    at: datetime
    taken_at: datetime | None = Field(description="when a wait ended with it; null: kept")
    size: int = Field(description="bytes of JSON")
    preview: str = Field(description="its JSON, cut to 1000 characters")


class JobDetail(BaseModel):
    """Everything about a job. Long texts and lists in body, result and output are cut, and say so."""

    job: JobRow
    waits_for: str | None = Field(description="why it does not run just now")
    advice: str | None = Field(description="what somebody has to do about it: no worker, an alarm of RabbitMQ")
    due_at: datetime | None = Field(description="until when, if it waits for a time")
    body: dict[str, Any]
    whole: bool = Field(description="whether nothing of the body was cut")
    result: dict[str, Any] | None = Field(description="what its phases returned, by phase")
    timeline: list[Part]
    attempts: list[Attempt] = Field(description="the newest 200")
    why: AttemptLog | None = Field(description="the newest attempt that kept why it failed")
    steps: list[Step] = Field(description="the newest 200")
    waiting: Waiting | None = Field(description="null: nobody has to bring anything")
    parent: Parent | None
    children: list[ChildrenOf] = Field(description="by attempt, the newest 20")
    events: list[EventTold] = Field(description="the newest 200")
    output: Any = Field(description="what its workflow stored")


class JobResult(BaseModel):
    """What the last phase of a job returned, whole."""

    id: UUID
    status: str
    result: Any


class Unfinished(BaseModel):
    """Where a job is that has not ended."""

    id: UUID
    status: str
    phase: str
    attempts: int
    wait_reason: str | None = Field(description="why it does not run just now")
    due_at: datetime | None = Field(description="until when, if it waits for a time")
    progress: tuple[int, int] | None = Field(description="done and total, as its phase reported")


class Accepted(BaseModel):
    """The job exists and will reach a final state."""

    id: UUID
    status_url: str


class Changed(BaseModel):
    """The job's id and its state after the change."""

    id: UUID
    status: str


class Worker(BaseModel):
    """A worker process."""

    id: str
    host: str
    pid: int
    threads: int
    queues: list[str]
    started_at: datetime
    heartbeat_at: datetime
    age: float = Field(description="seconds since the last heartbeat")
    state: str = Field(description="alive, draining, not_consuming, missing, stopped or died")
    version: str = Field(description="PIPELINE_CODE_VERSION, or a digest of the files with its workflows")
    memory: int | None = Field(description="bytes that its process has in memory, without child processes")
    draining_at: datetime | None = Field(description="since when it takes nothing new")
    stuck_jobs: list[UUID] = Field(description="jobs that were settled without the thread that is stuck in them")
    not_consuming: list[str] = Field(description="queues that it should consume and does not")
    stuck: int = Field(description="threads in a call that cannot be interrupted; others took their places")
    running: int


class Batch(BaseModel):
    """A fan-out: ``remaining`` of ``total`` jobs are not final yet."""

    id: UUID
    total: int
    remaining: int
    failed: int
    sealed: bool
    callback_workflow: str | None
    callback_job: UUID | None
    parent_job: UUID | None = Field(description="the job that waits for these, its children")
    created_at: datetime
    completed_at: datetime | None


def job_page(rows: list[dict[str, Any]], limit: int) -> Page[JobRow]:
    """A page of ``limit + 1`` jobs, in the order of their ids; long errors are cut."""
    for row in rows:
        row["error_message"] = shorten(row["error_message"])
    return Page[JobRow].model_validate(cut(rows, limit, lambda row: str(row["id"])))

"""Keys of a workflow: who waits for a turn; pause, resume and weigh one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from pipeline.front.api.http.auth import Operator, Viewer
from pipeline.front.api.http.fields import Name, Seconds, Text
from pipeline.front.api.http.pages import Limit
from pipeline.front.api.http.responses import problems
from pipeline.front.database import transaction
from pipeline.store.control import actions as control

router = APIRouter(prefix="/v1/keys", tags=["control"])
CHANGE = problems(400, 401, 403, 404, 409, 413, 422, 503)
Key = Annotated[str, Field(max_length=1000)]


class KeyNow(BaseModel):
    """A key that has unfinished jobs."""

    key: str = Field(description="empty: of jobs whose body has none")
    under_way: int
    waiting: int = Field(description="for a turn; counted up to 1,000")
    weight: int = Field(description="jobs in each of its turns")
    paused: bool
    paused_until: datetime | None = Field(description="null while paused: until somebody resumes it")


class Keys(BaseModel):
    """A page of keys; ``next`` is the key with which the next one begins, null on the last."""

    items: list[KeyNow]
    next: str | None


class WhichKey(BaseModel):
    """One key of a workflow."""

    model_config = ConfigDict(extra="forbid")
    workflow: Name
    key: Key
    reason: Text | None = Field(default=None, description="why, for the audit")

    @property
    def subject(self) -> str:
        """For the audit."""
        return f"{self.workflow} {self.key}"


class PauseKey(WhichKey):
    """For so long, or until somebody resumes it."""

    seconds: Seconds | None = None


class WeighKey(WhichKey):
    """So many jobs in each of its turns, where others have one."""

    weight: Annotated[int, Field(ge=1, le=1000, strict=True)]


class KeyChanged(BaseModel):
    """Whether the call changed anything."""

    workflow: str
    key: str
    changed: bool


@router.get("", responses=problems(401, 403, 422, 503))
def list_keys(
    who: Viewer,  # noqa: ARG001  the dependency is the check
    workflow: Annotated[Name, Query()],
    first: Annotated[str, Query(alias="from", max_length=1000, description="begin with this key")] = "",
    limit: Limit = 50,
) -> Keys:
    """The keys of a workflow that have unfinished jobs, in their order."""
    with transaction() as connection:
        found = control.list_turns(connection, workflow, first, limit + 1)
    items = [KeyNow.model_validate(one._asdict()) for one in found]
    return Keys(items=items[:limit], next=items[limit].key if len(items) > limit else None)


@router.post("/pause", responses=CHANGE)
def pause_key(who: Operator, wish: PauseKey) -> KeyChanged:
    """Begin no more jobs of the key; what is under way goes on."""
    with transaction() as connection:
        control.pause_key(connection, wish.workflow, wish.key, wish.seconds)
        control.record(connection, who.actor, "pause key", subject=wish.subject, reason=wish.reason)
    return KeyChanged(workflow=wish.workflow, key=wish.key, changed=True)


@router.post("/resume", responses=CHANGE)
def resume_key(who: Operator, wish: WhichKey) -> KeyChanged:
    """End the pause of a key."""
    with transaction() as connection:
        changed = control.resume_key(connection, wish.workflow, wish.key)
        control.record(connection, who.actor, "resume key", subject=wish.subject, reason=wish.reason)
    return KeyChanged(workflow=wish.workflow, key=wish.key, changed=changed)


@router.post("/weigh", responses=CHANGE)
def weigh_key(who: Operator, wish: WeighKey) -> KeyChanged:
    """Give a key more jobs in each of its turns."""
    with transaction() as connection:
        control.set_key_weight(connection, wish.workflow, wish.key, wish.weight)
        detail = {"weight": wish.weight}
        control.record(connection, who.actor, "weigh key", subject=wish.subject, reason=wish.reason, detail=detail)
    return KeyChanged(workflow=wish.workflow, key=wish.key, changed=True)

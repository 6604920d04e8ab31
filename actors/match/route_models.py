"""What the JSON of projects looks like, in and out."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from actors.match.decide import ProjectSettings
from pipeline.api import Problem, Text, invalid

TaskStatus = Literal["NEW", "QUEUED", "COMPLETED", "FAILED", "CANCELLED"]
DecisionName = Literal["matched", "ambiguous", "none"]
WhichTasks = Literal["all", "unfinished"]
MOST_ENTRIES = 10_000


class NewProject(BaseModel):
    """A name, and how records are searched and judged."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[Text, Field(max_length=200)]
    settings: ProjectSettings = ProjectSettings()


class Created(BaseModel):
    """The new project's number."""

    id: int


class Added(BaseModel):
    """How many records were added."""

    added: int


class ProjectRow(BaseModel):
    """A project in a list."""

    id: int
    name: str
    status: Literal["NEW", "MATCHING", "COMPLETED", "CANCELLED"]
    settings: dict[str, Any]
    round: int = Field(description="how often it was matched")
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None


class ProjectDetail(ProjectRow):
    """A project and how far it is."""

    tasks: dict[str, int] = Field(description="total, and how many are new, queued, completed, failed, cancelled")
    decisions: dict[str, int] = Field(description="how many are matched, ambiguous, none")
    done: float = Field(description="the share of tasks that are final, 0 to 1")


class TaskRow(BaseModel):
    """A record and what became of it."""

    id: int
    dataset_entry_id: int
    external_id: str | None
    name: str
    status: TaskStatus
    decision: DecisionName | None
    qid: str | None
    score: float | None
    why: str | None = Field(description="what speaks for the decision, in words")
    candidates: list[dict[str, Any]] | None
    error_message: str | None
    updated_at: datetime
    completed_at: datetime | None


class MatchStarted(BaseModel):
    """Where to look how far it is."""

    project_id: int
    tasks: int
    round: int
    batch_id: UUID
    status_url: str


class ProjectCancelled(BaseModel):
    """How many tasks were queued or running."""

    id: int
    cancelled: int


class NewEntry(BaseModel):
    """A record. Further fields are kept, and used where they are known."""

    model_config = ConfigDict(extra="allow")
    name: str = Field(min_length=1, max_length=500, pattern=r"\S")
    external_id: Annotated[str, Field(min_length=1, max_length=200)] | None = None


_ENTRIES = TypeAdapter(Annotated[list[NewEntry], Field(min_length=1, max_length=MOST_ENTRIES)])
ENTRIES_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": MOST_ENTRIES,
                    "items": NewEntry.model_json_schema(),
                }
            },
            "text/csv": {
                "schema": {"type": "string", "description": "UTF-8; the first line names the columns, one is name"}
            },
        },
    }
}


def read_entries(body: bytes) -> list[dict[str, Any]]:
    """The records of a JSON body, or a problem that names what is wrong with which."""
    try:
        read = _ENTRIES.validate_python(orjson.loads(body))
    except orjson.JSONDecodeError:
        raise Problem(400, "Not JSON", "the body is not valid JSON; send a list of objects, each with a name") from None
    except ValidationError as error:
        raise invalid(error.errors(include_url=False, include_input=False)) from None
    return [entry.model_dump(exclude_none=True) for entry in read]

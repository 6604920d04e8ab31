"""The requests: every GET of the API, each filter, next pages, places in the middle. The dashboard asks the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import httpx

from bench import lab
from pipeline.front.api.http.cursors import encode_cursor

STATUSES = ("pending", "running", "retryable", "succeeded", "failed", "cancelled")
MIDDLE = """SELECT id FROM pipeline.jobs WHERE status = 'succeeded' ORDER BY id
    OFFSET (SELECT count(*) / 2 FROM pipeline.jobs) LIMIT 1"""
WITH_STATUS = "SELECT id FROM pipeline.jobs WHERE status = %s ORDER BY id LIMIT 1"


@dataclass
class Case:
    """One request. ``apart`` is longer than the answer is remembered: each is computed."""

    route: str
    name: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    at: str = ""
    apart: float = 0.0
    stream: bool = False

    def __post_init__(self) -> None:
        self.name = f"{self.route} {self.name}".strip()

    @property
    def path(self) -> str:
        return self.at or self.route


def cases(client: httpx.Client, db: lab.Connection) -> list[Case]:
    middle = str(lab.one(db, MIDDLE))
    operated = [*_found(db, middle), *_workflows(), *_operators(db)]
    return [
        *_overview(),
        *_jobs(client, db, middle),
        *operated,
        *_dead(client),
        *_projects(client),
        *_batches(client, db),
    ]


def _overview() -> list[Case]:
    history = "/v1/stats/history"
    return [
        Case("/v1/stats", apart=1.1),
        Case("/v1/events", "(first event)", apart=1.1, stream=True),
        Case("/metrics", apart=2.1),
        *(Case(history, f"{hours} h", {"hours": hours}) for hours in (1, 6, 24, 168)),
        Case(history, "168 h, workflow", {"hours": 168, "workflow": "website"}),
        Case(history, "168 h, queue", {"hours": 168, "queue": "website.website-analysis"}),
        Case("/v1/workers"),
        Case("/v1/sources"),
        Case("/v1/sources/{source_id}/unread", at="/v1/sources/s1/unread"),
        Case("/v1/session"),
        Case("/healthz"),
        Case("/readyz"),
    ]


def _jobs(client: httpx.Client, db: lab.Connection, middle: str) -> list[Case]:
    place = encode_cursor(middle)
    filters: list[tuple[str, dict[str, Any]]] = [
        ("all", {}),
        ("200 a page", {"limit": 200}),
        *((status, {"status": status}) for status in STATUSES),
        ("workflow", {"workflow": "website"}),
        ("phase", {"phase": "ocr"}),
        ("workflow without jobs", {"workflow": "match-finish"}),
        *(
            (f"website.prompt-forming {status}", {"workflow": "website", "phase": "prompt-forming", "status": status})
            for status in STATUSES
        ),
    ]
    found = [Case("/v1/jobs", name, params) for name, params in filters]
    found += [
        Case("/v1/jobs", f"{name}, next page", params | {"cursor": after})
        for name, params in filters
        if (after := client.get("/v1/jobs", params=params).json()["next"])
    ]
    found += [Case("/v1/jobs", f"{name}, from the middle", params | {"cursor": place}) for name, params in filters]
    ids = {"in the middle": middle} | {status: str(lab.one(db, WITH_STATUS, status)) for status in STATUSES}
    return found + [Case("/v1/jobs/{job_id}", name, at=f"/v1/jobs/{job}") for name, job in ids.items()]


def _found(db: lab.Connection, middle: str) -> list[Case]:
    """Searches, counts, and what belongs to one job."""
    parent = str(
        lab.one(db, "SELECT parent_job FROM pipeline.batches WHERE parent_job IS NOT NULL ORDER BY id LIMIT 1")
    )
    failed, fence = str(lab.one(db, WITH_STATUS, "failed")), 2
    searches: list[tuple[str, dict[str, Any]]] = [
        ("tag", {"tag": "tag-7"}),
        ("tag without jobs", {"tag": "nothing"}),
        ("text in the error", {"error": "answered", "status": "failed"}),
        ("text that no error has", {"error": "xyzzy", "status": "failed"}),
        ("text in the error, any state", {"error": "xyzzy"}),
        ("beginning of the id", {"id": middle[:11]}),
        ("unfinished", {"status": "unfinished"}),
        ("unfinished of a workflow", {"status": "unfinished", "workflow": "document"}),
        ("an hour", {"since": "2026-01-01T00:00:00Z", "until": "2026-01-01T01:00:00Z"}),
    ]
    found = [Case("/v1/jobs", name, params) for name, params in searches]
    found += [Case("/v1/jobs/count", name, params) for name, params in searches]
    return [
        *found,
        Case("/v1/jobs/{job_id}/children", at=f"/v1/jobs/{parent}/children"),
        Case("/v1/jobs/{job_id}/children", "failed", {"status": "failed"}, f"/v1/jobs/{parent}/children"),
        Case("/v1/jobs/{job_id}/attempts/{fence}", at=f"/v1/jobs/{failed}/attempts/{fence}"),
        Case("/v1/jobs/{job_id}/result", at=f"/v1/jobs/{middle}/result"),
    ]


def _workflows() -> list[Case]:
    history = "/v1/workflows/{name}/history"
    return [
        Case("/v1/workflows"),
        Case("/v1/workflows/{name}", at="/v1/workflows/website"),
        *(Case(history, f"{hours} h", {"hours": hours}, "/v1/workflows/website/history") for hours in (1, 6, 24, 168)),
        Case("/v1/schedules"),
        Case("/v1/schedules", "workflow", {"workflow": "website", "limit": 100}),
        Case("/v1/schedules/{workflow}/{name}", at="/v1/schedules/website/every-7"),
        Case("/v1/keys", params={"workflow": "website"}),
        Case("/v1/keys", "next page", {"workflow": "website", "from": "customer-5"}),
        Case("/v1/limits"),
    ]


def _operators(db: lab.Connection) -> list[Case]:
    job = str(lab.one(db, "SELECT job_ids[1] FROM pipeline.audit ORDER BY id LIMIT 1"))
    return [
        Case("/v1/audit"),
        Case("/v1/audit", "person", {"by": "somebody 7"}),
        Case("/v1/audit", "job", {"job": job}),
        Case("/v1/audit", "action without entries", {"action": "drain"}),
        Case("/v1/bulk"),
        Case("/v1/workers/{worker_id}", at="/v1/workers/host-1"),
    ]


def _dead(client: httpx.Client) -> list[Case]:
    first = client.get("/v1/dead", params={"limit": 20}).json()
    group = max(first["items"], key=lambda item: item["jobs"])["group"]
    after = client.get("/v1/dead/jobs", params={"group": group, "limit": 10}).json()["next"]
    return [
        Case("/v1/dead", "20 a page", {"limit": 20}),
        Case("/v1/dead", "50 a page"),
        Case("/v1/dead", "200 a page", {"limit": 200}),
        Case("/v1/dead", "next page", {"limit": 20, "cursor": first["next"]}),
        Case("/v1/dead", "workflow", {"workflow": "website"}),
        Case("/v1/dead/jobs", "largest group", {"group": group}),
        Case("/v1/dead/jobs", "next page", {"group": group, "limit": 10, "cursor": after}),
    ]


def _projects(client: httpx.Client) -> list[Case]:
    tasks, at = "/v1/projects/{project_id}/tasks", "/v1/projects/1/tasks"
    after = client.get(at).json()["next"]
    return [
        Case("/v1/projects"),
        Case("/v1/projects", "next page", {"cursor": client.get("/v1/projects").json()["next"]}),
        Case("/v1/projects/{project_id}", "large", at="/v1/projects/1"),
        Case("/v1/projects/{project_id}", "small", at="/v1/projects/2"),
        Case(tasks, "large", at=at),
        Case(tasks, "next page", {"cursor": after}, at),
        Case(tasks, "with candidates", {"candidates": True}, at),
        Case(tasks, "status", {"status": "QUEUED"}, at),
        Case(tasks, "status without tasks", {"status": "FAILED"}, at),
        Case(tasks, "decision", {"decision": "matched"}, at),
        Case(tasks, "rare decision", {"decision": "ambiguous"}, at),
    ]


def _batches(client: httpx.Client, db: lab.Connection) -> list[Case]:
    batch = str(lab.one(db, "SELECT batch_id FROM pipeline.jobs WHERE batch_id IS NOT NULL ORDER BY id LIMIT 1"))
    return [
        Case("/v1/batches/{batch_id}", at=f"/v1/batches/{batch}"),
        Case("/v1/batches/{batch_id}/jobs", at=f"/v1/batches/{batch}/jobs"),
        Case("/v1/batches/{batch_id}/jobs", "failed", {"status": "failed"}, f"/v1/batches/{batch}/jobs"),
        Case("/v1/batches"),
        Case("/v1/batches", "open", {"open": True}),
        Case("/v1/batches", "next page", {"cursor": client.get("/v1/batches").json()["next"]}),
    ]

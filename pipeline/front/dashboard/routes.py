"""Serves the dashboard. The files hold no data: everything shown comes from ``/v1``, which asks who may see it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles

FOLDER = Path(__file__).parent / "static"
# Scripts and styles from this server's files only; text can never become markup (trusted types, none allowed).
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
# A browser keeps the files, and asks each time whether they changed: after an upgrade nobody sees old ones.
HEADERS = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}
VIEWS = (
    "/",
    "/jobs",
    "/jobs/{job_id}",
    "/dead",
    "/workers",
    "/sources",
    "/batches",
    "/projects",
    "/projects/{project_id}",
)

router = APIRouter(include_in_schema=False)


class _Files(StaticFiles):
    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers.update(HEADERS)
        return response


def page() -> FileResponse:
    """The same page for every view: its script reads the address."""
    return FileResponse(FOLDER / "index.html", headers=HEADERS)


for view in VIEWS:
    router.api_route(view, methods=["GET", "HEAD"], response_class=FileResponse)(page)


def mount(app: FastAPI) -> None:
    """Put the dashboard at ``/`` of the application."""
    app.include_router(router)
    app.mount("/static", _Files(directory=FOLDER), name="static")

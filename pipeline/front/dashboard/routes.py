"""Serves the dashboard. The files hold no data: everything shown comes from ``/v1``, which asks who may see it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, FastAPI
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Match
from starlette.staticfiles import StaticFiles

from pipeline.declare.errors import BadInput
from pipeline.declare.extension import Extension, extensions

FOLDER = Path(__file__).parent / "static"
# Scripts and styles from this server's files only; text can never become markup (trusted types, none allowed).
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
# A browser keeps the files, and asks each time whether they changed: after an upgrade nobody sees old ones.
HEADERS = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}
VIEWS = (
    *("/", "/jobs", "/jobs/{job_id}", "/jobs/{job_id}/children", "/dead", "/batches", "/batches/{batch_id}"),
    *("/workflows", "/workflows/{workflow}", "/workflows/{workflow}/keys"),
    *("/schedules", "/schedules/{workflow}/{schedule}", "/limits"),
    *("/phases", "/workers", "/workers/{worker_id}", "/bulk", "/audit"),
)
SERVED = frozenset({".js", ".css", ".svg"})


class _Files(StaticFiles):
    """Starlette refuses paths and symbolic links that lead out of the folder."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers.update(HEADERS)
        return response


class _ExtensionFiles(_Files):
    """An application's folder may hold more than its pages, such as Python code: that is not served."""

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        found, status = super().lookup_path(path)
        # The name of the file itself, after links were followed.
        return (found, status) if Path(found).suffix in SERVED else ("", None)


def page() -> FileResponse:
    """The same page for every view: its script reads the address."""
    return FileResponse(FOLDER / "index.html", headers=HEADERS)


def mount(app: FastAPI) -> None:
    """Put the dashboard at ``/`` of the application, with the views of the extensions that are loaded."""
    app.include_router(_pages(VIEWS))
    app.mount("/static", _Files(directory=FOLDER), name="static")
    listed: list[dict[str, str | None]] = []

    @app.get("/extensions", include_in_schema=False)
    def list_views() -> JSONResponse:
        return JSONResponse(listed)

    for extension in extensions():
        listed += _mount_views(app, extension)


def _mount_views(app: FastAPI, extension: Extension) -> list[dict[str, str | None]]:
    """What the dashboard's script is told about each view of the extension."""
    if extension.folder is None:
        return []
    address = f"/extensions/{extension.name}"
    for view in extension.views:
        if not view.module.is_file():
            raise BadInput(f"the dashboard has no file for {view.path}: {view.module} does not exist")
        if _is_taken(app, view.path):
            raise BadInput(f"the dashboard cannot show a view of {extension.name} at {view.path}: it is taken")
        app.include_router(_pages([view.path]))
    app.mount(address, _ExtensionFiles(directory=extension.folder), name=f"extension-{extension.name}")
    return [
        {"path": view.path, "title": view.title, "module": f"{address}/{quote(view.module.name)}"}
        for view in extension.views
    ]


def _pages(paths: Iterable[str]) -> APIRouter:
    router = APIRouter(include_in_schema=False)
    for path in paths:
        router.api_route(path, methods=["GET", "HEAD"], response_class=FileResponse)(page)
    return router


def _is_taken(app: FastAPI, path: str) -> bool:
    scope = {"type": "http", "method": "GET", "path": path, "root_path": "", "headers": []}
    return any(route.matches(scope)[0] is Match.FULL for route in app.routes)

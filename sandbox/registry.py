"""The document registry: login, search by number, PDFs. Sessions last until ``POST /registry/_expire``."""

from __future__ import annotations

import secrets
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from sandbox import papers

USER, PASSWORD = "demo", "demo-registre"  # opens nothing but this
COOKIE = "registry_session"


def routes() -> list[BaseRoute]:
    """``/registry/login``, ``/registry/documents?number=…``, its PDFs."""
    registry = _Registry()
    return [
        Route("/registry/login", registry.log_in, methods=["POST"]),
        Route("/registry/documents", registry.search),
        Route("/registry/documents/{number:path}/pdf", registry.pdf),
        Route("/registry/_expire", registry.expire, methods=["POST"]),
    ]


class _Registry:
    def __init__(self) -> None:
        self._sessions: set[str] = set()

    async def log_in(self, request: Request) -> Response:
        try:
            account = await request.json()
            known = (account["user"], account["password"]) == (USER, PASSWORD)
        except (ValueError, KeyError, TypeError):
            return JSONResponse({"error": "user and password are required"}, status_code=400)
        if not known:
            return JSONResponse({"error": "unknown account or wrong password"}, status_code=401)
        token = secrets.token_urlsafe(16)
        self._sessions.add(token)
        answer = JSONResponse({"user": USER})
        answer.set_cookie(COOKIE, token, httponly=True, samesite="strict")
        return answer

    async def expire(self, _: Request) -> Response:
        expired = len(self._sessions)
        self._sessions.clear()
        return JSONResponse({"expired": expired})

    # not async: making a PDF takes a second, in which others must be served

    def search(self, request: Request) -> Response:
        if not self._knows(request):
            return _please_log_in()
        found = papers.paper(request.query_params.get("number", ""))
        return JSONResponse({"documents": [_listed(found)] if found else []})

    def pdf(self, request: Request) -> Response:
        if not self._knows(request):
            return _please_log_in()
        found = papers.paper(request.path_params["number"])
        if found is None:
            return JSONResponse({"error": "no such document"}, status_code=404)
        return Response(papers.pdf(found.number), media_type="application/pdf")

    def _knows(self, request: Request) -> bool:
        return request.cookies.get(COOKIE) in self._sessions


def _listed(paper: papers.Paper) -> dict[str, str]:
    return {
        "number": paper.number,
        "title": paper.title,
        "pdf": f"/registry/documents/{quote(paper.number, safe='')}/pdf",
    }


def _please_log_in() -> Response:
    return JSONResponse({"error": "log in first: the session is missing or has expired"}, status_code=401)

"""Who may do what: bearer tokens with a role, or the dashboard's cookie. Without tokens, everybody on this machine.

Endpoints ask by their signature: ``def read(who: Viewer)``, ``def change(who: Operator)``.
"""

from __future__ import annotations

from typing import Annotated, Literal, NoReturn

from fastapi import Depends, Request, Security
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer

from pipeline.front.api.http.guessing import Guessing
from pipeline.front.api.http.problem import Problem
from pipeline.front.api.http.shield import host_of, is_loopback
from pipeline.front.api.http.tokens import COOKIE, Holder, Role, Tokens
from pipeline.store.control.actions import Actor

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
GUARD = "X-Pipeline"


# Who it is where nobody has a token.
ANYBODY = "anybody on this machine"


class Identity:
    """Who asks: the role, by which way it was proved, and what is written down of what they do."""

    def __init__(
        self, role: Role, way: Literal["open", "bearer", "cookie"], name: str = ANYBODY, origin: str | None = None
    ) -> None:
        self.role = role
        self.way = way
        self.name = name
        self.origin = origin
        self.guard = False

    @property
    def actor(self) -> Actor:
        """For the audit. The dashboard's requests carry a header of their own."""
        return Actor(self.name, "dashboard" if self.guard else "api", self.origin)


_bearer = HTTPBearer(auto_error=False, scheme_name="token", description="one of PIPELINE_API_TOKENS")
_cookie = APIKeyCookie(name=COOKIE, auto_error=False, scheme_name="session", description="from POST /v1/session")


def identify(
    request: Request,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
    cookie: Annotated[str | None, Security(_cookie)],
) -> Identity:
    """The caller, or 401. A cookie alone changes nothing without the header that other sites cannot send."""
    found = _identified(request, bearer, cookie)
    found.guard = request.headers.get(GUARD) == "1"
    return found


def _identified(request: Request, bearer: HTTPAuthorizationCredentials | None, cookie: str | None) -> Identity:
    tokens: Tokens | None = request.app.state.tokens
    origin = request.client.host if request.client else None
    if tokens is None:
        _refuse_other_sites(request)
        return Identity("operator", "open", origin=origin)
    if request.headers.get("authorization") is not None:
        holder = holder_of_token(request, tokens, bearer.credentials if bearer else "")
        return Identity(holder.role, "bearer", holder.name, origin)
    known = tokens.holder_of_session(cookie) if cookie else None
    if known is None:
        _unknown("the session has ended: sign in again" if cookie else "send Authorization: Bearer TOKEN")
    if request.method not in SAFE and request.headers.get(GUARD) != "1":
        raise Problem(403, "Header missing", f"with a session, requests that change something carry {GUARD}: 1")
    return Identity(known.role, "cookie", known.name, origin)


def holder_of_token(request: Request, tokens: Tokens, token: str) -> Holder:
    """Who has the token, or 401; 429 for an address that has guessed too often."""
    guessing: Guessing = request.app.state.guessing
    address = request.client.host if request.client else ""
    guessing.check(address)
    holder = tokens.holder_of(token)
    if holder is None:
        guessing.was_wrong(address)
        _unknown("the token is not known here")
    return holder


def operate(who: Annotated[Identity, Depends(identify)]) -> Identity:
    """The caller, or 403 if it may only look."""
    if who.role != "operator":
        raise Problem(403, "Not allowed", "this needs a token with the role operator; yours is viewer")
    return who


def _unknown(detail: str) -> NoReturn:
    raise Problem(401, "Not signed in", detail, headers={"WWW-Authenticate": "Bearer"})


def _refuse_other_sites(request: Request) -> None:
    """A web page elsewhere can make a browser post to this machine; it cannot hide that it comes from elsewhere."""
    if request.method in SAFE:
        return
    site = request.headers.get("sec-fetch-site", "none")
    origin = request.headers.get("origin", "http://localhost")
    if site not in ("none", "same-origin") or not is_loopback(host_of(origin.rpartition("//")[2])):
        raise Problem(403, "Not allowed", "a page of another site sent this request")


Viewer = Annotated[Identity, Depends(identify)]
"""The type of an endpoint's argument: whoever may read. Without a valid token or session the answer is 401.

>>> @router.get("/v1/parcels")
... def parcels(_: Viewer) -> list[str]:
...     return ["a lamp"]
"""
Operator = Annotated[Identity, Depends(operate)]
"""As ``Viewer``, for whoever may change something. A viewer's answer is 403. ``who.name`` is who it is.

>>> @router.post("/v1/parcels")
... def send(who: Operator) -> str:
...     return f"sent by {who.name}"
"""

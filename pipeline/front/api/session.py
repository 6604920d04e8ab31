"""The dashboard's sign-in: a token once, then a strict cookie."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from pipeline.front.api.http.auth import Viewer, holder_of_token
from pipeline.front.api.http.responses import problems
from pipeline.front.api.http.tokens import COOKIE, SESSION_SECONDS, Role, Tokens

router = APIRouter(prefix="/v1/session", tags=["session"])


class SignIn(BaseModel):
    """One of the configured tokens."""

    model_config = ConfigDict(extra="forbid")
    token: Annotated[str, Field(min_length=1, max_length=500, repr=False)]


class Session(BaseModel):
    """Who is signed in."""

    role: Role
    name: str | None = Field(default=None, description="what the token's holder is called")
    open: bool = Field(description="true if no tokens are configured: everybody on this machine is operator")


@router.get("", responses=problems(401, 403))
def read(request: Request, who: Viewer) -> Session:
    """The caller's role, or 401."""
    tokens: Tokens | None = request.app.state.tokens
    return Session(role=who.role, name=None if tokens is None else who.name, open=tokens is None)


@router.post("", responses=problems(400, 401, 403, 413, 422))
def sign_in(request: Request, response: Response, wish: SignIn) -> Session:
    """Set the cookie. It ends after twelve hours, when its token is taken out of the settings, or with this server."""
    tokens: Tokens | None = request.app.state.tokens
    if tokens is None:
        return Session(role="operator", open=True)
    holder = holder_of_token(request, tokens, wish.token)
    response.set_cookie(
        COOKIE,
        tokens.new_session(wish.token),
        max_age=SESSION_SECONDS,
        path="/",
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return Session(role=holder.role, name=holder.name, open=False)


@router.delete("", status_code=204)
def sign_out(response: Response) -> None:
    """Forget the cookie."""
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")

"""What exceptions become on their way out."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DataError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from pipeline.declare.errors import BadInput, database_is_unable
from pipeline.front.api.http.problem import Problem, answer, from_status, invalid, path_of
from pipeline.front.database import LOCKED, is_locked
from pipeline.observe import logs

log = logs.get("pipeline.api")

# Cancelled because it took too long, deadlocked, out of connections or memory: the same request may work in a moment.
FOR_NOW = ("57014", "40", "53")
# A NUL (psycopg sees it before PostgreSQL does), half a surrogate pair, a number beyond PostgreSQL's types.
NOT_STORABLE = (None, "22P05", "22P02", "22021", "22003")


def install(app: FastAPI) -> None:
    """Every error leaves as application/problem+json."""
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(BadInput, _bad_input)
    app.add_exception_handler(DBAPIError, _database)
    app.add_exception_handler(PoolTimeout, _busy)
    app.add_exception_handler(UnicodeEncodeError, _not_storable)


def away() -> Problem:
    """503: nothing was accepted; the same request may be sent again."""
    return Problem(
        503,
        "PostgreSQL does not answer",
        "nothing was changed: send the same request again later",
        headers={"Retry-After": "2"},
    )


def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return answer(request, error)


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return answer(request, invalid(error.errors()))


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return answer(request, from_status(error.status_code, error.detail, error.headers))


def _bad_input(request: Request, error: Exception) -> Response:
    return answer(request, Problem(422, "Not possible", str(error)))


def _busy(request: Request, error: Exception) -> Response:
    log.warning("no connection to PostgreSQL was free in time", path=path_of(request), error=str(error))
    return answer(request, away())


def _database(request: Request, error: Exception) -> Response:
    assert isinstance(error, DBAPIError)
    state = getattr(error.orig, "sqlstate", None)
    if isinstance(error, DataError) and state in NOT_STORABLE:
        return _not_storable(request, error)
    # Reading waits for nobody's row: there it is a whole table that is locked.
    if is_locked(error) and request.method != "GET":
        said = f"nothing was changed: {LOCKED}"
        return answer(request, Problem(409, "Locked by another transaction", said, headers={"Retry-After": "2"}))
    if database_is_unable(error) or (state or "").startswith(FOR_NOW):
        log.warning("PostgreSQL does not answer", path=path_of(request), sqlstate=state)
        return answer(request, away())
    raise error


def _not_storable(request: Request, error: Exception) -> Response:
    log.info("a value cannot be stored", path=path_of(request), error=type(error).__name__)
    return answer(request, Problem(422, "Not valid", "a value in the request cannot be stored by PostgreSQL"))

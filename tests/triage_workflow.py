"""A workflow that fails for five causes until somebody mends each, for people who look for them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from pipeline import Job, Permanent, Workflow

CAUSES = 5
log = logging.getLogger("shop")


class Offer(TypedDict, total=False):
    number: int
    # Which of the causes it fails for, until the file exists that says it is repaired.
    cause: int
    repaired: str
    price: str


listings = Workflow("listings", body=Offer)


@listings.phase
def fetch(job: Job[Offer]) -> dict[str, Any]:
    """Never fails."""
    return {"number": job.body["number"]}


@listings.phase(max_attempts=1)
def price(job: Job[Offer]) -> dict[str, Any]:
    """Fails as its body says."""
    log.info("offer %s of shop %s", job.body["number"], job.body["cause"])
    if job.body["cause"] in range(CAUSES) and not Path(job.body["repaired"]).exists():
        _fail(job.body)
    return {"price": job.body.get("price", "1.00")}


@listings.phase
def store(job: Job[Offer]) -> None:
    """Never fails."""


def _fail(body: Offer) -> None:
    if body["cause"] == 0:
        _read(body)
    if body["cause"] == 1:
        raise ValueError(f"no price on page {body['number']}")
    if body["cause"] == 2:
        raise Permanent(f"https://shop.example/listings/{body['number']} answered 404 Not Found")
    if body["cause"] == 3:
        raise ConnectionError(f"https://shop.example/listings/{body['number']} answered 503 Service Unavailable")
    raise ZeroDivisionError("the rate of 'XTS' is 0")


def _read(body: Offer) -> str:
    return body["price"]

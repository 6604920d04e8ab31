"""Whether a site's robots.txt lets this program read a page (RFC 9309), and how often."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from protego import Protego

from actors.reading import read_in_time
from pipeline import Permanent
from pipeline.http.addresses import AddressPolicy
from pipeline.http.client import Limits, fetch
from pipeline.http.refusals import require_success, unreachable

KEPT_SECONDS = 600.0
KEPT_SITES = 500
LARGEST = 512 * 1024
# A site that asks for more is asked once a minute; less than a tenth of a second is no delay worth a place in a row.
LONGEST_DELAY, LEAST_DELAY = 60.0, 0.1


@dataclass(frozen=True)
class _Rules:
    parsed: Protego | None
    size: int
    delay: float
    until: float


_known: dict[tuple[str, AddressPolicy], _Rules] = {}
_lock = threading.Lock()


async def check_robots(url: str, user_agent: str, policy: AddressPolicy, limits: Limits) -> float:
    """The seconds between two documents that the site asks for, usually 0. Raises Permanent if it forbids ``url``.

    No robots.txt (any 4xx but 429) allows everything; one that cannot be had now raises, so that the page is
    asked for later.
    """
    rules = await _rules(_origin(url), user_agent, policy, limits)
    if rules.parsed is not None and not await read_in_time(rules.size, rules.parsed.can_fetch, url, user_agent):
        raise Permanent(f"{url} may not be read: the site's robots.txt forbids it for {user_agent}")
    return rules.delay


def same_origin(one: str, other: str) -> bool:
    """Whether two addresses are governed by the same robots.txt."""
    return _origin(one) == _origin(other)


def forget() -> None:
    """Drop every robots.txt kept in this process."""
    with _lock:
        _known.clear()


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()


async def _rules(origin: str, user_agent: str, policy: AddressPolicy, limits: Limits) -> _Rules:
    now = time.monotonic()
    with _lock:
        known = _known.get((origin, policy))
    if known and known.until > now:
        return known
    body = await _fetch_rules(origin, user_agent, policy, limits)
    parsed = None if body is None else await read_in_time(len(body), read_rules, body)
    rules = _Rules(parsed, len(body or b""), crawl_delay(parsed, user_agent), now + KEPT_SECONDS)
    with _lock:
        if len(_known) >= KEPT_SITES:
            _known.clear()
        _known[(origin, policy)] = rules
    return rules


async def _fetch_rules(origin: str, user_agent: str, policy: AddressPolicy, limits: Limits) -> bytes | None:
    small = replace(limits, max_raw=LARGEST, max_body=LARGEST, cut_oversize=True)
    headers = {"User-Agent": user_agent}
    url = f"{origin}/robots.txt"
    with unreachable(url):
        answer = await fetch(url, policy=policy, limits=small, headers=headers)
    if 400 <= answer.status < 500 and answer.status != 429:
        return None
    require_success(answer)
    return answer.body


def read_rules(body: bytes) -> Protego:
    """The rules in a robots.txt; a mark of its encoding is not part of them, and a page of HTML holds none."""
    text = body.decode("utf-8-sig", "replace")
    return Protego.parse("" if text.lstrip().startswith("<") else text)


def crawl_delay(rules: Protego | None, user_agent: str) -> float:
    """The seconds that Crawl-delay says, within reason; 0 if nothing."""
    asked = None if rules is None else rules.crawl_delay(user_agent)
    return 0.0 if asked is None or not asked >= LEAST_DELAY else min(float(asked), LONGEST_DELAY)

"""Have a page rendered: start the browser's process, fetch for it what the guard allows, and end it in time."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import structlog

from actors.website.browser.processes import kill, memory, tree
from pipeline import Permanent, Transient, count
from pipeline.http.client import MEBIBYTE, Fetched
from pipeline.http.per_loop import PerLoop

log = structlog.get_logger("actors.website.browser")
INSIDE = Path(__file__).with_name("inside.py")
# What a child may know of our environment: nothing that is secret.
KNOWN = ("PATH", "LANG", "LC_ALL", "TZ", "PLAYWRIGHT_BROWSERS_PATH")
LOOK = 0.25
LONGEST_FOLDER = 40
# Characters of a page, requests of one page, and bytes that they may bring together.
LONGEST, MOST_REQUESTS, MOST_BYTES = 5_000_000, 150, 30 * MEBIBYTE

Get = Callable[[str, str], Awaitable[Fetched]]


@dataclass(frozen=True)
class Browser:
    """Which one, and its bounds: seconds for a page, memory of all its processes, and how many run at once."""

    path: str
    user_agent: str
    sandbox: bool
    seconds: float
    megabytes: int
    places: int


@dataclass(frozen=True)
class Rendered:
    """What the page has become, and its address in the end."""

    url: str
    html: str


_places: PerLoop[int, asyncio.Semaphore] = PerLoop(asyncio.Semaphore)


async def render(browser: Browser, answer: Fetched, get: Get, patience: float) -> Rendered | None:
    """The page in ``answer`` once its scripts have run; None, and a count, if the browser does not get that far.

    The browser has no network: all that it asks for comes from ``get(url, accept)``, which raises for what is refused.
    ``patience``: the seconds for all of it, and for waiting until a browser may be started.
    """
    try:
        async with _place(browser, patience - browser.seconds):
            return await _rendered(browser, answer, get)
    except (TimeoutError, _Ended) as ended:
        count("website.not_rendered")
        log.warning("a page was not rendered", url=answer.url_final, why=str(ended) or "out of time")
        return None


@asynccontextmanager
async def _place(browser: Browser, patience: float) -> AsyncIterator[None]:
    places = await _places.get(browser.places)
    async with asyncio.timeout(patience):
        await places.acquire()
    try:
        yield
    finally:
        places.release()


async def _rendered(browser: Browser, answer: Fetched, get: Get) -> Rendered:
    child = await _start()
    try:
        async with asyncio.timeout(browser.seconds):
            return await _Session(browser, answer, get, child.process).run()
    finally:
        await _end(child)


class _Ended(Exception):
    """The browser has ended, or was ended, without a page."""


@dataclass
class _Child:
    process: asyncio.subprocess.Process
    home: tempfile.TemporaryDirectory[str]


async def _start() -> _Child:
    # The path of a socket has room for 108 characters: below a long one Chromium would not start.
    folder = None if len(tempfile.gettempdir()) <= LONGEST_FOLDER else "/tmp"  # noqa: S108  a folder of its own in it
    home = tempfile.TemporaryDirectory(prefix="browser-", dir=folder, ignore_cleanup_errors=True)
    environment = {name: os.environ[name] for name in KNOWN if name in os.environ}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        str(INSIDE),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=8 * LONGEST,
        env={**environment, "HOME": home.name, "TMPDIR": home.name},
        cwd=home.name,
        start_new_session=True,
    )
    return _Child(process, home)


async def _end(child: _Child) -> None:
    """Of Chromium's processes too: what it is told at the end of its pipe, one that is stuck does not hear."""
    if child.process.returncode is None:
        await asyncio.to_thread(kill, child.process.pid)
    await child.process.wait()
    await asyncio.to_thread(child.home.cleanup)


class _Session:
    """The talk with one child."""

    def __init__(self, browser: Browser, answer: Fetched, get: Get, process: asyncio.subprocess.Process) -> None:
        self._browser = browser
        self._answer = answer
        self._get = get
        self._process = process
        self._requests, self._bytes = 0, 0
        self._tasks = set[asyncio.Task[None]]()

    async def run(self) -> Rendered:
        """Its page; raises _Ended if there is none."""
        self._start(self._watch())
        try:
            await self._tell(self._order())
            while line := await self._line():
                said = json.loads(line)
                if "html" in said:
                    return _checked(said)
                if "failed" in said:
                    raise _Ended(said["failed"])
                if "alone" in said:
                    _note_network(said["alone"])
                else:
                    self._start(self._fetch(said))
            raise _Ended("the browser ended, or took too much memory")
        finally:
            for task in self._tasks:
                task.cancel()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _order(self) -> dict[str, Any]:
        browser = self._browser
        return {
            "url": self._answer.url_final,
            "answer": _shown(self._answer),
            "browser": browser.path,
            "user_agent": browser.user_agent,
            "sandbox": browser.sandbox,
            "seconds": browser.seconds / 2,
            "most": LONGEST,
        }

    async def _fetch(self, asked: dict[str, Any]) -> None:
        """Answer one request; nothing for one that is refused, fails, or is one too many."""
        self._requests += 1
        answer: dict[str, Any] = {}
        if self._requests <= MOST_REQUESTS and self._bytes <= MOST_BYTES:
            try:
                fetched = await self._get(asked["url"], asked["accept"])
                self._bytes += len(fetched.body)
                answer = _shown(fetched)
            except (httpx.HTTPError, Permanent, Transient) as refused:
                log.debug("not fetched for a page", url=asked["url"], why=str(refused))
        await self._tell({**answer, "id": asked["fetch"]})

    async def _watch(self) -> None:
        """End a browser that takes too much memory."""
        while True:
            await asyncio.sleep(LOOK)
            await asyncio.to_thread(_bound, self._process.pid, self._browser.megabytes * MEBIBYTE)

    async def _line(self) -> bytes:
        assert self._process.stdout is not None
        try:
            return await self._process.stdout.readline()
        except ValueError:
            raise _Ended("the page is too large") from None

    async def _tell(self, said: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with suppress(ConnectionError):
            self._process.stdin.write(json.dumps(said).encode() + b"\n")
            await self._process.stdin.drain()


@cache
def _note_network(alone: bool) -> None:
    """Once in a process."""
    if not alone:
        log.warning(
            "this kernel allows the browser no network of its own: only its settings keep it off the network",
            remedy="allow user namespaces, or give the workers CAP_SYS_ADMIN",
        )


def _checked(said: dict[str, Any]) -> Rendered:
    """The page, if that is what the browser shows: not an error of its own, and not one of the site it was led to."""
    if not said["url"].startswith(("http://", "https://")):
        raise _Ended("it leads to an address that was refused, or did not answer")
    if said["status"] >= 400:
        raise _Ended(f"it leads to {said['url'][:200]}, which answered {said['status']}")
    return Rendered(said["url"], said["html"])


def _bound(process: int, most: int) -> None:
    if memory(tree(process)) > most:
        kill(process)


def _shown(answer: Fetched) -> dict[str, Any]:
    body = b64encode(answer.body).decode()
    return {"url": answer.url_final, "status": answer.status, "headers": dict(answer.headers), "body": body}

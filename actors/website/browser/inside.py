"""The child process: Chromium renders one page. Whatever it wants to fetch, it asks of the parent, line by line.

Run by its path, with nothing of ours in its environment. It imports nothing of the project, and first gives up the
network where the kernel allows that. Chromium resolves no name and has a proxy that is not there, so that what is not
intercepted fails too.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import sys
from base64 import b64decode
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from playwright.async_api import Error, Page, Request, Route, async_playwright

NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
ADOPT_ORPHANS = 36  # prctl's PR_SET_CHILD_SUBREAPER
FLAGS = [
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=http://127.0.0.1:1",
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-quic",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--js-flags=--max-old-space-size=512",
]
# What shows no text is not fetched.
UNREAD = frozenset({"image", "media", "font", "websocket", "manifest", "ping", "texttrack", "eventsource"})
# Of the network's own doing, or Chromium's to say.
UNFIT = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection", "set-cookie", "refresh"})
LONGEST_LINE = 64 * 1024 * 1024
# A page that has nothing more to fetch for so long is complete, in seconds.
QUIET = 0.5


class Parent:
    """The process that started this one: it fetches, or refuses to."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._last = 0
        self._busy_until = 0.0

    async def line(self) -> dict[str, Any]:
        """The next thing it says. Its end is ours."""
        line = await self._reader.readline()
        if not line:
            os._exit(0)
        return cast(dict[str, Any], json.loads(line))

    async def listen(self) -> None:
        """Hand its answers to those who asked."""
        while True:
            answer = await self.line()
            self._asked.pop(answer["id"]).set_result(answer)
            self._busy_until = asyncio.get_running_loop().time() + QUIET

    async def gone(self) -> None:
        """For ever: its end is ours."""
        await asyncio.Event().wait()

    async def fetch(self, request: Request) -> dict[str, Any]:
        """What is at an address, after redirects; an empty answer if it is refused."""
        self._last += 1
        number = self._last
        self._asked[number] = asyncio.get_running_loop().create_future()
        accept = request.headers.get("accept", "*/*")
        tell({"fetch": number, "url": request.url, "accept": accept})
        return await self._asked[number]

    async def quiet(self) -> None:
        """Return once nothing is being fetched, and nothing was lately."""
        loop = asyncio.get_running_loop()
        self._busy_until = loop.time() + QUIET
        while self._asked or loop.time() < self._busy_until:
            await asyncio.sleep(QUIET / 5)


class Rendering:
    """One page. ``given`` are answers that the parent has already, by their addresses."""

    def __init__(self, order: dict[str, Any], parent: Parent) -> None:
        self._order = order
        self._parent = parent
        self._given: dict[str, dict[str, Any]] = {order["url"]: order["answer"]}
        self._status = 0

    async def run(self) -> None:
        """Tell the parent what the page has become."""
        order = self._order
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=order["browser"] or None,
                args=FLAGS,
                chromium_sandbox=order["sandbox"] and os.geteuid() != 0,
            )
            context = await browser.new_context(
                user_agent=order["user_agent"], service_workers="block", accept_downloads=False
            )
            await context.route("**/*", self._route)
            page = await context.new_page()
            context.on("page", lambda other: asyncio.ensure_future(other.close()))
            with suppress(Error):
                await page.goto(order["url"], wait_until="load", timeout=order["seconds"] * 1000)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._parent.quiet(), order["seconds"] / 2)
            tell({"html": (await page.content())[: order["most"]], "url": address(page), "status": self._status})
            await self._parent.gone()

    async def _route(self, route: Route, request: Request) -> None:
        if request.method != "GET" or request.resource_type in UNREAD:
            await route.abort()
            return
        answer = self._given.pop(request.url, None) or await self._parent.fetch(request)
        if request.is_navigation_request() and request.frame.parent_frame is None:
            self._status = answer.get("status", 0)
        if not answer.get("status"):
            await route.abort()
        elif request.is_navigation_request() and answer["url"] != request.url:
            # An intercepted answer cannot redirect: the page it is has another address.
            self._given[answer["url"]] = answer
            await route.fulfill(status=200, content_type="text/html", body=leading_to(answer["url"]))
        else:
            headers = {name: value for name, value in answer["headers"].items() if name.lower() not in UNFIT}
            await route.fulfill(status=answer["status"], headers=headers, body=b64decode(answer["body"]))


def leading_to(url: str) -> str:
    """A page that is another one at once, and of which no history is kept."""
    return f"<script>location.replace({json.dumps(url).replace('<', '%3C')})</script>"


def address(page: Page) -> str:
    """Where the page is in the end."""
    return page.url.partition("#")[0]


def tell(said: dict[str, Any]) -> None:
    """One line to the parent."""
    data = memoryview(json.dumps(said, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
    while data:
        data = data[os.write(OUT, data) :]


def without_network() -> bool:
    """Move into a network of this process's own, where nobody else is. False if the kernel does not allow that."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_NETWORK) == 0:
        return True
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(NEW_USER | NEW_NETWORK) != 0:
        return False
    with suppress(OSError):
        for name, text in (("uid_map", f"{user} {user} 1"), ("setgroups", "deny"), ("gid_map", f"{group} {group} 1")):
            Path(f"/proc/self/{name}").write_text(text, encoding="ascii")
    return True


def adopt_orphans() -> None:
    """Whatever Chromium starts stays below this process, so that the parent finds it when it ends the browser."""
    ctypes.CDLL(None).prctl(ADOPT_ORPHANS, 1, 0, 0, 0)


async def main() -> None:
    """Take the order, render, and wait for the end: the parent ends this process with all that it has started."""
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    parent = Parent(reader)
    order = await parent.line()
    listening = asyncio.create_task(parent.listen())
    try:
        await Rendering(order, parent).run()
    except Error as error:
        tell({"failed": error.message[:300]})
    await listening


if __name__ == "__main__":
    # Chromium and Playwright write to the standard output as they like.
    OUT = os.dup(1)
    os.dup2(2, 1)
    adopt_orphans()
    tell({"alone": without_network()})
    asyncio.run(main())

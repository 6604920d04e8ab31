"""Compares what is expected of the labelled pages with what Chromium shows: ``python -m tests.measured.pages_chromium``.

Debian's Chromium, over HTTP and HTTPS on loopback; it follows redirects and refreshes by itself. Pages that robots.txt
forbids are left out: a browser does not ask it. No page is loaded from anywhere else.
"""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from playwright.async_api import BrowserContext, Error, Page, async_playwright

from tests.measured.pages_figures import CHROMIUM
from tests.measured.pages_web import LOOPBACK, Web, same
from tests.measured.test_sets import HALVES, HERE, Row, rows

AT_ONCE = 3
# Refreshes of up to a second have come by then.
SETTLED = 2.5
SHOWN = """() => {
    const seen = [...document.querySelectorAll("h1, h2, h3, h4, h5, h6, a[href]")]
        .filter(one => one.checkVisibility({visibilityProperty: true}));
    const plain = text => text.replace(/\\s+/g, " ").trim();
    return {
        headings: seen.filter(one => one.matches("h1, h2, h3, h4, h5, h6"))
            .map(one => [Number(one.localName[1]), plain(one.innerText)]).filter(([, text]) => text),
        links: seen.filter(one => one.localName === "a" && URL.canParse(one.href)).map(one => one.href),
        text: document.body && document.body.localName === "body" ? plain(document.body.innerText) : "",
    };
}"""


async def shown(page: Page, row: Row) -> Row:
    """The page as Chromium has it, in the set's words."""
    with suppress(Error):
        await page.goto(row["url"], wait_until="load", timeout=30_000)
    await asyncio.sleep(SETTLED)
    top: Row = await page.evaluate(SHOWN)
    framed = [
        frame
        for frame in page.frames[1:]
        if await (await frame.frame_element()).evaluate("e => e.localName") == "frame"
    ]
    inside = [await frame.evaluate(SHOWN) for frame in framed]
    links = [link for part in (top, *inside) for link in part["links"]]
    language = row["expected"]["language"]
    return {
        "title": " ".join((await page.title()).split()),
        "headings": [heading for part in (top, *inside) for heading in part["headings"]],
        "links": [same(link) for link in links],
        "link_count": len(links),
        "text": top["text"],
        "url": same(page.url),
        # whether the body is in the expected language: Chromium does not say which it takes it for
        "language": language
        if not language or await page.evaluate(f"document.body.matches(':lang({language})')")
        else "?",
    }


def differences(row: Row, found: Row) -> list[str]:
    """Keys in which Chromium shows something else than is expected."""
    expected = {key: value for key, value in row["expected"].items() if key in found}
    for key in ("links", "url"):
        if key in expected:
            expected[key] = [same(one) for one in expected[key]] if key == "links" else same(expected[key])
    return [key for key, value in expected.items() if found[key] != value]


async def compare(half: str) -> tuple[int, list[str]]:
    """How many pages of a half were compared, and which differ in what."""
    pages = [row for row in rows("pages", half) if row["expected"].get("allowed") is not False]
    async with serving(pages, HERE / "pages" / half) as flags, async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=[*flags, "--no-sandbox"])
        places = asyncio.Semaphore(AT_ONCE)

        async def one(row: Row) -> str:
            async with places:
                context: BrowserContext = await browser.new_context(ignore_https_errors=True, locale="und")
                try:
                    wrong = differences(row, await shown(await context.new_page(), row))
                except Error as error:
                    wrong = [f"not shown ({error.message.splitlines()[0][:80]})"]
                finally:
                    await context.close()
            return f"{row['id']} {row['form']}: {', '.join(wrong)}" if wrong else ""

        told = await asyncio.gather(*map(one, pages))
        await browser.close()
    return len(pages), [one for one in told if one]


@asynccontextmanager
async def serving(pages: list[Row], folder: Path) -> AsyncIterator[list[str]]:
    """While the block lasts, a browser with these flags reaches the pages and nothing else."""
    web = Web(pages, folder)
    http = await asyncio.start_server(web.of("http"), LOOPBACK, 0)
    https = await asyncio.start_server(web.of("https"), LOOPBACK, 0, ssl=certificate())
    plain, secret = (server.sockets[0].getsockname()[1] for server in (http, https))
    rules = f"MAP *:443 {LOOPBACK}:{secret},MAP *:80 {LOOPBACK}:{plain},MAP * ~NOTFOUND"
    yield [f"--host-resolver-rules={rules}", "--disable-features=HttpsUpgrades"]
    http.close()
    https.close()


def certificate() -> Any:
    """Of nobody, for a day."""
    with tempfile.TemporaryDirectory() as folder:
        key, cert = f"{folder}/key.pem", f"{folder}/cert.pem"
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=set"]
        subprocess.run([*command, "-keyout", key, "-out", cert], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
    return context


def main(arguments: list[str]) -> None:
    """Print both halves, or the one that was named."""
    for half in arguments or HALVES:
        total, differ = asyncio.run(compare(half))
        print(
            f"expected of {half} pages: Chromium shows the same on {total - len(differ)} of {total}",
            *differ,
            sep="\n  ",
        )


if __name__ == "__main__":
    main(sys.argv[1:])

"""A page for somebody who has nothing but a link: words and one button, no script, nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from html import escape

from starlette.requests import Request
from starlette.responses import HTMLResponse

STYLE = (
    ":root{color-scheme:light dark}"
    "body{margin:0;padding:12vh 20px;font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;"
    "background:light-dark(#f7f7f8,#111214);color:light-dark(#1b1b20,#ececf0)}"
    "main{max-width:420px;margin:auto;padding:28px;border:1px solid light-dark(#e4e4e9,#2b2c31);border-radius:12px;"
    "background:light-dark(#fff,#18191c)}"
    "h1{margin:0 0 10px;font-size:20px;line-height:1.3;overflow-wrap:anywhere}"
    "p{margin:10px 0;color:light-dark(#61616c,#a0a0ab);overflow-wrap:anywhere}"
    "pre{margin:10px 0;padding:10px 12px;border-radius:6px;background:light-dark(#f1f1f4,#131417);font-size:13px;"
    "white-space:pre-wrap;overflow-wrap:anywhere}"
    "button{margin-top:10px;padding:9px 18px;border:0;border-radius:7px;background:#5050c8;color:#fff;font:inherit;"
    "font-weight:600;cursor:pointer}"
)
HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{HASH}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)


def wants_page(request: Request) -> bool:
    """Whether a person's browser asks."""
    return "text/html" in request.headers.get("accept", "")


def page(status: int, title: str, *texts: str, shown: str | None = None, button: str | None = None) -> HTMLResponse:
    """All of it is text. ``shown`` stands in a box; ``button`` sends the page's own address as a POST."""
    parts = [f"<h1>{escape(title)}</h1>", *(f"<p>{escape(text)}</p>" for text in texts)]
    if shown is not None:
        parts.append(f"<pre>{escape(shown)}</pre>")
    if button is not None:
        parts.append(f'<form method="post"><button type="submit">{escape(button)}</button></form>')
    content = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>{''.join(parts)}</main></body></html>"
    )
    return HTMLResponse(content.encode("utf-8", "replace"), status, {"Content-Security-Policy": POLICY})

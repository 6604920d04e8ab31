"""Scripts that lead elsewhere are told from those that only might."""

from __future__ import annotations

import time

import pytest

from actors.website.scripts import Leap, first_target, leaps, may_lead_on

AT_ONCE = [
    'location.href = "/new"',
    "window.location='/new';",
    'top.location.replace("/new");',
    "window.document.location.assign('/new')",
    "<!--\nlocation = '/new';\n//-->",
    '(function () { location.href = "/new"; })();',
    '(() => { location.replace("/new") })()',
    'window.onload = function () { location.href = "/new"; };',
    'addEventListener("load", () => { location.href = "/new" })',
    'document.addEventListener("DOMContentLoaded", function () { location.href = "/new" })',
    '$(document).ready(function () { window.location.href = "/new"; });',
    '$(function () { window.location.href = "/new"; });',
    'setTimeout(function () { location.href = "/new" }, 0);',
    'setTimeout(() => location.replace("/new"), 500)',
    'setTimeout(() => { location = "/new" })',
    'var waiting = true;\nlocation.href = "/new"\nconsole.log("gone")',
    'function go() { location.href = "/new"; }\ngo();',
    'const go = () => { location.href = "/new"; };\nsetTimeout(go, 10);',
    'try { location.href = "/new" } catch (error) { document.title = "no" }',
    "location.href = `/new`;",
    'var s = "it\'s {"; /* { */ location.href = "/new";',
]
MADE_UP = [
    'location.href = "/new?from=" + document.title;',
    "location.replace(next)",
    "location.href = `/${language}/`;",
    'window.location.search = "?js=1&" + Math.random();',
]
NOT_BY_ITSELF = [
    'if (top != self) top.location.href = "/new";',
    'if (screen.width < 600) { location.href = "/mobile"; }',
    'if (screen.width < 600)\n  location.href = "/mobile";',
    'navigator.userAgent.match(/Mobi/) && (location.href = "/mobile");',
    'button.onclick = function () { location.href = "/shop"; };',
    'button.addEventListener("click", () => { location.href = "/shop" });',
    'function buy() { location.href = "/shop"; }',
    'setTimeout(function () { location.href = "/logout" }, 900000);',
    'setTimeout(() => location.replace("/logout"), 900000)',
    'var location = "Berlin"; shop.location = "Berlin";',
    '// location.href = "/new";',
    "var text = \"location.href = '/new';\";",
    'if (location.href == "/new") { document.title = "new"; }',
    "const pattern = /location='x'/; const there = location.href;",
]


@pytest.mark.parametrize("script", AT_ONCE)
def test_what_runs_at_once_leads_to_its_address(script: str) -> None:
    """Bare, at the page's load, within a second, or by a function that is called."""
    assert [leap.target for leap in leaps(script)][:1] == ["/new"]
    assert first_target(script) == "/new"


@pytest.mark.parametrize("script", MADE_UP)
def test_an_address_that_a_script_makes_up_is_not_guessed(script: str) -> None:
    """It leads on, but nobody knows where."""
    assert list(leaps(script)) == [Leap(None, bare=True)]
    assert may_lead_on(script)


@pytest.mark.parametrize("script", NOT_BY_ITSELF)
def test_what_waits_for_something_does_not_lead_on(script: str) -> None:
    """A condition, a click, a quarter of an hour; a variable of that name, a comment, a text."""
    assert list(leaps(script)) == []


@pytest.mark.parametrize(
    "sign", ["{", "}", '"', "'", "`", "/*", "/", "(", "location=", "location.href=\n", "setTimeout("]
)
def test_a_hostile_script_costs_no_time(sign: str) -> None:
    """Twenty thousand characters are all that is kept of a page's scripts."""
    began = time.process_time()
    list(leaps((sign * 20_000)[:20_000]))
    may_lead_on((sign * 20_000)[:20_000])
    assert time.process_time() - began < 1

"""A site's robots.txt is asked, obeyed, and kept for a while."""

from __future__ import annotations

import asyncio

import pytest

from actors.website import robots
from actors.website.config import WebsiteSettings
from actors.website.robots import check_robots
from pipeline.declare.errors import Permanent, Transient
from sandbox import Sandbox


def check(settings: WebsiteSettings, path: str, agent: str = "durable-pipeline/1.0") -> None:
    asyncio.run(check_robots(settings.sandbox_url + path, agent, settings.address_policy, settings.limits))


def test_what_is_forbidden_is_refused_for_good(settings: WebsiteSettings) -> None:
    """The message says who forbids it."""
    check(settings, "/sites/1/")
    with pytest.raises(Permanent, match=r"robots\.txt forbids"):
        check(settings, "/private/x")


def test_the_file_is_asked_for_once(settings: WebsiteSettings, sandbox: Sandbox) -> None:
    """Many pages of one site cost one robots.txt."""
    for number in range(5):
        check(settings, f"/sites/{number}/")
    assert sandbox.stats()["paths"] == {"/robots.txt": 1}


def test_a_program_is_known_by_its_name(settings: WebsiteSettings) -> None:
    """A group for one agent binds that agent."""
    with pytest.raises(Permanent):
        check(settings, "/sites/1/", agent="banned-bot")


def test_no_robots_file_allows_everything(settings: WebsiteSettings, sandbox: Sandbox) -> None:
    """Any 4xx means there are no rules."""
    sandbox.add_fault(match="/robots.txt", status=404)
    check(settings, "/private/x")


@pytest.mark.parametrize("status", [429, 500, 503])
def test_rules_that_cannot_be_had_now_delay_the_page(settings: WebsiteSettings, sandbox: Sandbox, status: int) -> None:
    """A site in trouble is not read without its rules."""
    sandbox.add_fault(match="/robots.txt", status=status, times=1)
    with pytest.raises(Transient):
        check(settings, "/sites/1/")
    check(settings, "/sites/1/")


def test_garbage_in_place_of_rules_allows_everything(settings: WebsiteSettings, sandbox: Sandbox) -> None:
    """Lines that say nothing forbid nothing."""
    sandbox.add_fault(match="/robots.txt", garbage=True)
    check(settings, "/sites/1/")


def test_forgetting_asks_anew(settings: WebsiteSettings, sandbox: Sandbox) -> None:
    """The memory can be emptied."""
    check(settings, "/sites/1/")
    robots.forget()
    check(settings, "/sites/1/")
    assert sandbox.stats()["paths"]["/robots.txt"] == 2

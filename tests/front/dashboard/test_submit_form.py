"""The form of a typed workflow: made from its JSON Schema, with the JSON beside it, and mistakes at their fields."""

from __future__ import annotations

import json
import re
from types import ModuleType
from typing import Any
from uuid import UUID

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from tests.front.api.conftest import Serve
from tests.front.dashboard.conftest import OpenPage
from tests.front.dashboard.test_dashboard_safety import PHONE, findings
from tests.place import Place


def form(page: Page) -> Locator:
    """Open it with the keyboard, and choose the typed workflow."""
    page.get_by_role("button", name="Submit job").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Workflow").select_option("shop-orders")
    return dialog


def payload(dialog: Locator) -> Any:
    return json.loads(dialog.get_by_label("Body").input_value())


def submitted(page: Page, dialog: Locator) -> UUID:
    dialog.get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile(r"/jobs/[0-9a-f-]{36}$"))
    return UUID(page.url[-36:])


def test_each_field_has_a_control_of_its_kind_and_what_is_typed_is_stored(
    place: Place, shop: ModuleType, serve: Serve, open_page: OpenPage
) -> None:
    """Number, text, choice, checkbox, date; nested values as JSON. What is left empty gets the model's default."""
    page = open_page(serve())
    dialog = form(page)
    number = dialog.get_by_label("order required")
    expect(number).to_have_attribute("type", "number")
    expect(number).to_have_accessible_description("Its number in the shop.")
    number.fill("17")
    dialog.get_by_label("note", exact=True).fill("ring twice")
    dialog.get_by_label("price").fill("12.50")
    dialog.get_by_label("speed").select_option("quick")
    dialog.get_by_label("gift").check()
    dialog.get_by_label("deliver_on").fill("2026-12-24")
    dialog.get_by_label("placed_at").fill("2026-11-18T20:00:00Z")
    dialog.get_by_label("lines", exact=True).fill('[{"sku": "a"}]')
    dialog.get_by_label("mainLine").fill('{"sku": "b", "count": 2}')
    assert payload(dialog)["lines"] == [{"sku": "a"}] and payload(dialog)["gift"] is True
    body = place.job(submitted(page, dialog))["body"]
    assert body == {
        "order": 17,
        "note": "ring twice",
        "price": "12.50",
        "speed": "quick",
        "gift": True,
        "deliver_on": "2026-12-24",
        "placed_at": "2026-11-18T20:00:00Z",
        "lines": [{"sku": "a", "count": 1}],
        "mainLine": {"sku": "b", "count": 2},
    }


def test_the_fields_and_the_json_follow_each_other(
    place: Place, shop: ModuleType, serve: Serve, open_page: OpenPage
) -> None:
    """What the form does not know stays in the JSON; an emptied field leaves it; another workflow has its own form."""
    page = open_page(serve())
    dialog = form(page)
    dialog.get_by_label("Body").fill('{"order": 5, "speed": "quick", "colour": "red"}')
    expect(dialog.get_by_label("order required")).to_have_value("5")
    expect(dialog.get_by_label("speed")).to_have_value('"quick"')
    dialog.get_by_label("order required").fill("")
    assert payload(dialog) == {"speed": "quick", "colour": "red"}
    dialog.get_by_label("Workflow").select_option("single")
    expect(dialog.get_by_role("group", name="Fields")).to_have_count(0)
    dialog.get_by_label("Body").fill('{"n": 1}')
    assert place.job(submitted(page, dialog))["body"] == {"n": 1}


def test_mistakes_are_said_at_their_fields_and_can_be_mended_with_the_keyboard(
    place: Place, shop: ModuleType, serve: Serve, open_page: OpenPage
) -> None:
    """The server's words, and the focus on the first; what belongs to no field is said below."""
    page = open_page(serve())
    dialog = form(page)
    number = dialog.get_by_label("order required")
    dialog.get_by_label("lines", exact=True).fill('[{"count": 2}]')
    dialog.get_by_role("button", name="Submit").press("Enter")
    expect(number).to_be_focused()
    expect(number).to_have_attribute("aria-invalid", "true")
    expect(number).to_have_accessible_description("Its number in the shop. Field required")
    expect(dialog.get_by_label("lines", exact=True)).to_have_accessible_description(
        re.compile("0.sku: Field required$")
    )
    expect(dialog.get_by_role("alert")).to_have_text("Look at the marked fields.")
    page.keyboard.type("17")
    expect(number).not_to_have_attribute("aria-invalid", "true")
    dialog.get_by_label("lines", exact=True).fill("[{")
    page.keyboard.press("Tab")
    dialog.get_by_role("button", name="Submit").press("Enter")
    expect(dialog.get_by_label("lines", exact=True)).to_be_focused()
    expect(dialog.get_by_text("Not valid JSON")).to_be_visible()
    assert place.count("SELECT count(*) FROM pipeline.jobs") == 0
    dialog.get_by_label("lines", exact=True).fill("")
    dialog.get_by_label("Body").fill('{"order": 17, "colour": "red"}')
    dialog.get_by_role("button", name="Submit").press("Enter")
    expect(dialog.get_by_role("alert")).to_have_text("body.body.colour: Extra inputs are not permitted")
    dialog.get_by_label("Body").fill('{"order": 17}')
    assert place.job(submitted(page, dialog))["body"]["order"] == 17


@pytest.mark.parametrize("width", [1280, PHONE])
def test_the_form_is_accessible_and_fits(
    place: Place, shop: ModuleType, serve: Serve, open_page: OpenPage, width: int
) -> None:
    """With mistakes in it, in light and dark: nothing serious for axe-core, nothing to be scrolled sideways."""
    page = open_page(serve(), width=width)
    page.evaluate(Axe().axe_script)
    dialog = form(page)
    dialog.get_by_role("button", name="Submit").click()
    expect(dialog.get_by_role("alert")).not_to_be_empty()
    found = findings(page, "the form")
    page.emulate_media(color_scheme="dark")
    found += findings(page, "the form in the dark", "color-contrast")
    wide = page.evaluate(
        "(() => { const d = document.querySelector('dialog'); return d.scrollWidth - d.clientWidth })()"
    )
    assert found == [] and wide <= 0

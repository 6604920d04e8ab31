"""Pages that an application adds: those of this repository work, a stranger's can, and without any there is no trace."""

from __future__ import annotations

import http.client
import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from pipeline import BadInput, View
from pipeline.declare import extension
from pipeline.declare.extension import Extension
from tests.front.api.conftest import Serve
from tests.front.dashboard.conftest import OpenPage
from tests.place import Place

ORDERS = """
import { h } from "/static/dom.js";
import { heading, table } from "/static/parts.js";
import { price } from "./price.js";

document.head.append(h("link", { rel: "stylesheet", href: "/extensions/shop/shop.css" }));

export default {
  title: () => "Orders",
  every: 5,
  load: async () => [{ id: 7, cents: 1250 }],
  render: (rows) => [
    heading("Orders"),
    table({
      label: "Orders",
      rows,
      key: (row) => String(row.id),
      columns: [
        { name: "Order", cell: (row) => h("a", { href: `/orders/${row.id}` }, `No. ${row.id}`) },
        { name: "Price", cell: (row) => h("span", { class: "price" }, price(row.cents)) },
      ],
    }),
  ],
};
"""
ORDER = """
import { heading } from "/static/parts.js";

export default {
  title: ({ params }) => `Order ${params.id}`,
  every: 5,
  load: async () => null,
  render: (_, { params }) => heading(`Order ${params.id}`),
};
"""
Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Only this extension is loaded: a shop with the views given, by their addresses. Returns its folder."""

    def write(**views: str) -> Path:
        folder = tmp_path / "shop" / "dashboard"
        folder.mkdir(parents=True)
        (folder / "orders.js").write_text(ORDERS)
        (folder / "order.js").write_text(ORDER)
        (folder / "price.js").write_text("export const price = (cents) => `${(cents / 100).toFixed(2)} EUR`;")
        (folder / "shop.css").write_text(".price { color: rgb(1, 2, 3) }")
        more = tuple(View(f"/{path}", folder / file, title=path.title()) for path, file in views.items())
        orders = (View("/orders", folder / "orders.js", title="Orders"), View("/orders/{id}", folder / "order.js"))
        monkeypatch.setattr(extension, "_extensions", {"shop": Extension("shop", views=(*orders, *more))})
        return folder

    return write


def test_a_source_is_paused_and_resumed(place: Place, serve: Serve, open_page: OpenPage) -> None:
    """The page and the database agree."""
    place.rows(
        "INSERT INTO sources (id, name, adapter, base_url, rate_limit_per_minute)"
        " VALUES ('coins', 'coins', 'items-api', 'http://127.0.0.1:9/', 30) RETURNING id"
    )
    page = open_page(serve())
    page.get_by_role("link", name="Sources", exact=True).click()
    row = page.get_by_role("row", name="coins")
    expect(row.locator(".pill")).to_have_text("closed")
    row.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Pause the source").click()
    expect(row.locator(".pill")).to_have_text("paused")
    assert place.count("SELECT count(*) FROM sources WHERE paused_until > now()") == 1
    row.get_by_role("button", name="Resume").click()
    page.get_by_role("button", name="Resume the source").click()
    expect(row.locator(".pill")).to_have_text("closed")
    assert place.count("SELECT count(*) FROM sources WHERE paused_until > now()") == 0


def test_prices_that_were_not_read_are_a_link_away(place: Place, serve: Serve, open_page: OpenPage) -> None:
    """Each with its reason; what a marketplace wrote is text, whatever it is."""
    place.rows(
        "INSERT INTO sources (id, name, adapter, base_url, rate_limit_per_minute)"
        " VALUES ('coins', 'coins', 'items-api', 'http://127.0.0.1:9/', 30) RETURNING id"
    )
    place.rows("INSERT INTO coin_intakes (id, title) VALUES ('i1', 'cent') RETURNING id")
    for text, reason in (("120 <b>kr</b>", "unknown currency"), ("$1 to $2", "range")):
        place.rows(
            "INSERT INTO unread_prices (intake_id, source_id, title, url, price_text, reason, detail)"
            " VALUES ('i1', 'coins', 'cent', 'https://m.example/', %s, %s, 'why') RETURNING id",
            text,
            reason,
        )
    page = open_page(serve())
    page.get_by_role("link", name="Sources", exact=True).click()
    page.get_by_role("row", name="coins").get_by_role("link", name="2", exact=True).click()
    expect(page.get_by_role("row", name="120 <b>kr</b>")).to_contain_text("unknown currency")
    page.get_by_role("combobox").select_option("range")
    expect(page.get_by_role("table", name="Unread prices").locator("tbody tr")).to_have_count(1)


def test_a_project_is_opened_filtered_and_deleted(place: Place, serve: Serve, open_page: OpenPage) -> None:
    """From the navigation to the list, to the project, and back to the list when it is gone."""
    base = serve()
    with httpx.Client(base_url=base, timeout=20) as api:
        project = api.post("/v1/projects", json={"name": "coins of Rome"}).json()["id"]
        api.post(f"/v1/projects/{project}/entries", json=[{"name": "Nero"}, {"name": "Trajan"}]).raise_for_status()
    page = open_page(base)
    page.get_by_role("link", name="Projects", exact=True).click()
    page.get_by_role("link", name="coins of Rome").click()
    expect(page.locator("main h1")).to_contain_text("coins of Rome")
    rows = page.get_by_role("table", name="Records").locator("tbody tr")
    expect(rows).to_have_count(2)
    page.get_by_label("status").select_option("COMPLETED")
    expect(page.get_by_text("No record matches.")).to_be_visible()
    page.reload()
    expect(page.get_by_label("status")).to_have_value("COMPLETED")
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete the project").click()
    expect(page.get_by_text("No project yet.")).to_be_visible()
    assert place.count("SELECT count(*) FROM projects") == 0


def test_a_stranger_adds_a_page_with_a_style_and_a_module_of_its_own(
    place: Place, serve: Serve, open_page: OpenPage, install: Install
) -> None:
    """It stands in the navigation, uses the dashboard's parts, and can be reloaded and shared like the others."""
    install()
    page = open_page(f"{serve()}/orders")
    current = page.locator("nav a[aria-current]")
    expect(current).to_have_text("Orders")
    expect(page).to_have_title("Orders · Pipeline")
    price = page.get_by_role("cell", name="12.50 EUR").locator(".price")
    expect(price).to_have_css("color", "rgb(1, 2, 3)")
    page.get_by_role("link", name="No. 7").click()
    expect(page.locator("main h1:focus")).to_have_text("Order 7")
    expect(current).to_have_text("Orders")
    page.reload()
    expect(page.locator("main h1")).to_have_text("Order 7")


def test_a_page_that_cannot_be_loaded_is_told_and_leaves_the_others_alone(
    place: Place, serve: Serve, open_page: OpenPage, install: Install
) -> None:
    """A slip in one file of the application must not cost the person on call the dashboard."""
    folder = install(broken="broken.js", empty="empty.js") / "broken.js"
    folder.write_text("export default {")
    folder.with_name("empty.js").write_text("export const view = {};")
    page = open_page(f"{serve()}/orders")
    expect(page.get_by_role("cell", name="12.50 EUR")).to_be_visible()
    wrong = page.locator("#wrong")
    expect(wrong).to_contain_text("The page Broken cannot be shown: ")
    expect(wrong).to_contain_text("The page Empty cannot be shown: its module has no default export")
    expect(page.get_by_role("link", name=re.compile("Broken|Empty"))).to_have_count(0)


def test_without_an_extension_there_is_no_trace_of_one(
    place: Place, serve: Serve, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine alone: its own pages, and nothing of anybody's workflow."""
    monkeypatch.setattr(extension, "_extensions", {})
    base = serve()
    page = open_page(base)
    names = page.get_by_role("navigation", name="Main").get_by_role("link")
    expect(names).to_have_text(
        [
            "Overview",
            "Jobs",
            "Dead letters",
            "Workflows",
            "Phases",
            "Schedules",
            "Limits",
            "Workers",
            "Batches",
            "Bulk",
            "Audit",
        ]
    )
    with httpx.Client(base_url=base) as api:
        assert api.get("/extensions").json() == []
        for path in (
            "/projects",
            "/projects/1",
            "/sources",
            "/v1/projects",
            "/v1/sources",
            "/extensions/match/project.js",
        ):
            assert api.get(path).status_code == 404, path


def test_only_files_of_the_page_in_its_folder_are_served(place: Place, serve: Serve, install: Install) -> None:
    """Not what lies outside, by whatever spelling or link; not code or data that lies beside the pages."""
    folder = install()
    outside = folder.parent / "secret.js"
    outside.write_text("// not for the browser")
    (folder / "views.py").write_text("SECRET = 1")
    (folder / "keys.json").write_text("{}")
    (folder / "out.js").symlink_to(outside)
    (folder / "code.js").symlink_to(folder / "views.py")
    (folder / "up").symlink_to(folder.parent)
    (folder / "folder.js").mkdir()
    host = serve().removeprefix("http://")
    refused = (
        *("../secret.js", "%2e%2e/secret.js", "..%2fsecret.js", "..%5csecret.js", "x/../../secret.js", "up/secret.js"),
        *("/" + str(outside), "%2f" + str(outside)[1:], "//etc/passwd", "orders.js%00", "orders.js/.."),
        *("out.js", "code.js", "views.py", "keys.json", "folder.js", "", ".", "%00.js", "a" * 300 + ".js"),
    )
    for path in refused:
        # As it stands: a client that tidies the path up would test nothing.
        line = http.client.HTTPConnection(host, timeout=10)
        line.putrequest("GET", f"/extensions/shop/{path}", skip_host=False)
        line.endheaders()
        answer = line.getresponse()
        assert answer.status == 404, (path, answer.status, answer.read())
        line.close()


def test_its_files_come_with_the_headers_of_the_dashboards_own(place: Place, serve: Serve, install: Install) -> None:
    """The same policy; kept by the browser, which asks each time whether they changed."""
    install()
    same = ("content-security-policy", "cache-control", "x-content-type-options", "x-frame-options", "referrer-policy")
    with httpx.Client(base_url=serve()) as api:
        ours, theirs = api.get("/static/main.js"), api.get("/extensions/shop/orders.js")
        assert [theirs.headers[name] for name in same] == [ours.headers[name] for name in same]
        assert theirs.headers["content-type"] == ours.headers["content-type"]
        again = api.get("/extensions/shop/orders.js", headers={"If-None-Match": theirs.headers["etag"]})
        assert again.status_code == 304
        assert api.get("/orders/7").headers["content-security-policy"] == ours.headers["content-security-policy"]
        assert api.post("/extensions/shop/orders.js").status_code == 405


@pytest.mark.parametrize("path", ["jobs", "workers", "orders", "healthz", "extensions"])
def test_an_address_that_is_taken_is_refused_at_the_start(serve: Serve, install: Install, path: str) -> None:
    """Otherwise one of the two would never be seen."""
    install(**{path: "orders.js"})
    with pytest.raises(BadInput, match=f"at /{path}: it is taken"):
        serve()


def test_a_file_that_is_missing_is_named_at_the_start(serve: Serve, install: Install) -> None:
    """And not by a reader of the dashboard."""
    install(refunds="refunds.js")
    with pytest.raises(BadInput, match=r"refunds\.js does not exist"):
        serve()

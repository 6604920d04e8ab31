"""What an application may register, and what is refused when it is declared."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import BadInput, View
from pipeline.declare.extension import Extension

HERE = Path("/shop/dashboard")


@pytest.mark.parametrize(
    "path", ["", "/", "orders", "/orders/", "//orders", "/../orders", "/{id:path}", "/a.b", "/a b"]
)
def test_an_address_that_no_view_can_have_is_refused(path: str) -> None:
    """Also one that would mean something else to the router than to the reader."""
    with pytest.raises(BadInput, match="not the address of a view"):
        View(path, HERE / "orders.js")


@pytest.mark.parametrize("module", [Path("orders.js"), HERE / "orders.py", HERE])
def test_a_view_is_an_absolute_path_to_a_script(module: Path) -> None:
    """A relative one would depend on the folder in which the server was started."""
    with pytest.raises(BadInput, match=r"absolute path to a \.js file"):
        View("/orders", module)


def test_the_navigation_cannot_link_to_a_view_with_a_parameter() -> None:
    """Nobody could say which one is meant."""
    with pytest.raises(BadInput, match="leave its title out"):
        View("/orders/{id}", HERE / "order.js", title="Order")


def test_the_views_of_an_extension_are_in_one_folder() -> None:
    """It is the folder that is served."""
    views = (View("/orders", HERE / "orders.js"), View("/refunds", HERE.parent / "refunds.js"))
    with pytest.raises(BadInput, match="keep them in one"):
        Extension("shop", views=views)


@pytest.mark.parametrize("name", ["", "Shop", "my shop", "a/b", "..", "-shop"])
def test_a_name_that_cannot_be_part_of_an_address_is_refused(name: str) -> None:
    """The files of its views are served under it."""
    with pytest.raises(BadInput, match="not a name for an extension"):
        Extension(name)

"""What of a page is shown: by its elements, and by what its style sheets make of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from actors.website.css.selectors import Element
from actors.website.css.sheets import Styles

# What has no text of its own, or shows its content only where the browser cannot show better.
_UNSEEN_NAMES = """
annotation annotation-xml audio canvas datalist embed head iframe meter noembed noframes noscript progress rp
script style template textarea title video
"""
_BLOCK_NAMES = """
address article aside blockquote body br caption center dd details dialog dir div dl dt fieldset figcaption
figure footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend li listing main marquee menu nav ol
optgroup option p plaintext pre search section summary table tbody td tfoot th thead tr ul xmp
"""
_UNSEEN, _BLOCKS = frozenset(_UNSEEN_NAMES.split()), frozenset(_BLOCK_NAMES.split())
# What the page's style sheet can make of an element: a line of its own, or part of a line.
_IN_LINE = frozenset({"inline", "inline-block", "inline-flex", "inline-grid", "inline-table", "contents", "ruby"})
_STRETCHES = frozenset({"flex", "inline-flex", "grid", "inline-grid"})
# Writing within a drawing.
_DRAWN = frozenset({"text", "tspan", "textpath"})


@dataclass
class Open:
    """An open element: whether it is shown, and what is collected while it is open.

    ``shut``: it is shown, and what is in it is not. ``display`` is empty unless a style sheet sets it.
    """

    element: Element
    hidden: bool
    invisible: bool
    foreign: bool
    block: bool = False
    shut: bool = False
    display: str = ""
    letters: str = ""
    heading: list[str] | None = None
    link: list[str] | None = None

    @property
    def shows_text(self) -> bool:
        """Whether text right in it is shown."""
        return not (self.hidden or self.invisible or self.shut) and (not self.foreign or is_drawn(self))

    def written(self, text: str) -> str:
        """Text as it is shown."""
        return CASES[self.letters](text) if self.letters in CASES else text


def shown(styles: Styles, above: Open | None, tag: str, attributes: Mapping[str, str]) -> Open:
    """The element that begins within ``above``."""
    element = Element.below(above.element if above else None, tag, attributes)
    foreign = tag == "svg" or (above is not None and above.foreign and tag.lower() != "foreignobject")
    opened = Open(element, hidden=False, invisible=False, foreign=foreign)
    if above is not None:
        opened.hidden = above.hidden or (above.shut and not _is_handle(element))
        opened.invisible, opened.letters = above.invisible, above.letters
    if not opened.hidden:
        _dress(opened, styles.decide(element), above)
    return opened


def _dress(opened: Open, styled: Mapping[str, str], above: Open | None) -> None:
    """What style sheets say of an element that stands in something shown."""
    tag, attributes = opened.element.tag, opened.element.attributes
    opened.display = styled.get("display", "")
    opened.hidden = tag in _UNSEEN or (opened.display or _default_display(tag, attributes)) == "none"
    if styled.get("visibility", "inherit") != "inherit":
        opened.invisible = styled["visibility"] in {"hidden", "collapse"}
    if styled.get("text-transform", "inherit") != "inherit":
        opened.letters = styled["text-transform"]
    opened.shut = styled.get("content-visibility", _default_content(tag, attributes)) == "hidden"
    stretched = above is not None and above.display in _STRETCHES
    usual = tag in _BLOCKS and (opened.display not in _IN_LINE or tag == "br")
    opened.block = stretched or usual or (opened.display not in {"", "table-cell", "none", *_IN_LINE} and not usual)


def _is_handle(element: Element) -> bool:
    """The part of closed details that is shown: the first summary."""
    parent = element.parent
    return element.tag == "summary" and element.place_of_type == 1 and parent is not None and parent.tag == "details"


def is_drawn(opened: Open) -> bool:
    """Text of a drawing that is shown: not its title, nor what it only defines."""
    if opened.element.tag.lower() not in _DRAWN:
        return False
    above = opened.element.parent
    while above is not None and above.tag.lower() not in {"svg", "defs", "symbol", "clippath", "mask"}:
        above = above.parent
    return above is not None and above.tag.lower() == "svg"


def _capitalized(text: str) -> str:
    return re.sub(r"(?<![\w'’])\w", lambda letter: letter.group().title(), text)


CASES = {"uppercase": str.upper, "lowercase": str.lower, "capitalize": _capitalized}


def _default_content(tag: str, attributes: Mapping[str, str]) -> str:
    """What a browser shuts until it is opened or searched."""
    shut = tag == "details" and "open" not in attributes
    return "hidden" if shut or attributes.get("hidden", "").lower() == "until-found" else ""


def _default_display(tag: str, attributes: Mapping[str, str]) -> str:
    """What a browser's own style sheet hides."""
    if ("hidden" in attributes and attributes["hidden"].lower() != "until-found") or "popover" in attributes:
        return "none"
    if tag == "dialog" and "open" not in attributes:
        return "none"
    if tag == "object" and ("data" in attributes or "type" in attributes):
        return "none"
    return ""

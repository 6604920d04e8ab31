"""HTML as a browser's parser understands it, within bounds that hostile pages cannot move.

The tree is lexbor's, which follows the HTML Standard. Some of the standard's rules cost the square of what they are
given: nesting, attributes of one tag, formatting elements that are opened again in every paragraph. The parser cannot
be interrupted, so the text is tamed first, by replacements that depend on nothing but the characters at their place:
no comment, script or quote can hide a tag from them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Protocol

from selectolax.lexbor import LexborHTMLParser, LexborNode

_MOST_TAGS = 30_000
_MOST_ATTRIBUTES = 256
_MOST_REOPENED = 2_000_000
_MOST_ROOTS = 20
_SPACE = r"[\t\n\f\r ]"
_TAG = re.compile(r"</?[A-Za-z]")
_ATTRIBUTE = (
    rf"[\t\n\f\r /]*+[^\t\n\f\r />][^\t\n\f\r />=]*+"
    rf"(?:{_SPACE}*+={_SPACE}*+(?:\"[^\"]*+\"|'[^']*+'|(?![\"'])[^\t\n\f\r >]*+))?+"
)
_TOO_MANY = re.compile(rf"</?[A-Za-z][^\t\n\f\r />]*+(?:{_ATTRIBUTE}){{{_MOST_ATTRIBUTES}}}+")
_MORE = re.compile(rf"(?:{_ATTRIBUTE})*+")
_FORMATTING = "b|big|code|em|font|i|s|small|strike|strong|tt|u"
_FORMATTED = re.compile(rf"<(?:{_FORMATTING})(?=[\t\n\f\r />])[^>]{{0,200}}", re.IGNORECASE)
_FORMATTING_TAG = re.compile(rf"<(/?)(?:{_FORMATTING})(?=[\t\n\f\r />])", re.IGNORECASE)
_ROOT_TAG = re.compile(r"<(?=(?:html|body)[\t\n\f\r />])", re.IGNORECASE)
# Without scripts the content of noscript is markup, with scripts it is text; noframes is always text.
_NOSCRIPT = re.compile(r"<(/?)noscript(?=[\t\n\f\r />])", re.IGNORECASE)


class Reader(Protocol):
    """Takes the events of a tree, in the order of the document."""

    @property
    def full(self) -> bool:
        """Whether the rest of the page need not be read."""
        ...

    def style(self, sheet: str, media: str) -> None:
        """A style sheet, before the elements it is for."""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""

    def end(self, tag: str) -> None:
        """An element ends."""

    def data(self, text: str) -> None:
        """Text."""


def read_tree(html: str, reader: Reader, seconds: float) -> bool:
    """Read ``html`` to its end; False if something was left out or the time was up before. Never raises."""
    tame, whole = tamed(html)
    parsed = LexborHTMLParser(tame)
    if parsed.root is None:
        return whole
    for sheet in parsed.css("style"):
        reader.style(sheet.text(), sheet.attributes.get("media") or "")
    return _walk(parsed.root, reader, time.monotonic() + seconds) and whole


def tamed(html: str) -> tuple[str, bool]:
    """``html`` so that it can be parsed in bounded time and space, and whether all of it is there."""
    html, whole = _without_too_many_tags(html.replace("\0", ""))
    html = _without_too_many_attributes(html)
    html = _NOSCRIPT.sub(r"<\1noframes", html)
    distinct = len({found.group() for found in _FORMATTED.finditer(html)})
    if 3 * distinct * html.count("<") > _MOST_REOPENED:
        html = _FORMATTING_TAG.sub(r"<\1span", html)
    return _without_too_many_roots(html), whole


def _without_too_many_tags(html: str) -> tuple[str, bool]:
    if html.count("<") <= _MOST_TAGS:
        return html, True
    for number, tag in enumerate(_TAG.finditer(html)):
        if number == _MOST_TAGS:
            return html[: tag.start()], False
    return html, True


def _without_too_many_attributes(html: str) -> str:
    kept: list[str] = []
    at = 0
    while found := _TOO_MANY.search(html, at):
        kept.append(html[at : found.end()])
        more = _MORE.match(html, found.end())
        at = more.end() if more else found.end()
    return "".join([*kept, html[at:]])


def _without_too_many_roots(html: str) -> str:
    """Every further html or body tag adds its attributes to the first one's."""
    begin = 0
    for number, found in enumerate(_ROOT_TAG.finditer(html)):
        begin = found.start()
        if number == _MOST_ROOTS:
            return html[:begin] + _ROOT_TAG.sub("<x-", html[begin:])
    return html


def _walk(root: LexborNode, reader: Reader, until: float) -> bool:
    node: LexborNode | None = root
    stack: list[LexborNode] = []
    steps = 0
    while node is not None:
        steps += 1
        if steps % 512 == 0 and (reader.full or time.monotonic() > until):
            return False
        child = _enter(node, reader)
        if child is not None:
            stack.append(node)
            node = child
            continue
        if node.is_element_node:
            reader.end(node.tag or "")
        while node is not None and node.next is None:
            node = stack.pop() if stack else None
            if node is not None:
                reader.end(node.tag or "")
            if not stack:
                return not reader.full
        node = node.next if node is not None else None
    return not reader.full


def _enter(node: LexborNode, reader: Reader) -> LexborNode | None:
    if node.is_element_node:
        given = node.attributes
        reader.start(node.tag or "", {name: value or "" for name, value in given.items()})
        return node.child
    if node.is_text_node:
        reader.data(node.text_content or "")
    return None

"""XHTML that is sent as XML, read as XML: as a browser does, and only if it is well-formed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from lxml import etree

_XHTML = "{http://www.w3.org/1999/xhtml}"
_XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
LONGEST = 1024 * 1024


class Reader(Protocol):
    """Takes the events of a tree."""

    def style(self, sheet: str, media: str) -> None:
        """A style sheet, before the elements it is for."""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""

    def end(self, tag: str) -> None:
        """An element ends."""

    def data(self, text: str) -> None:
        """Text."""


def read_xhtml(body: bytes, reader: Reader) -> bool:
    """Read ``body`` into ``reader``; False if this is not well-formed XHTML, or more than is worth it."""
    if len(body) > LONGEST:
        return False
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(body, parser)
    except (etree.LxmlError, ValueError):
        return False
    if root.tag != f"{_XHTML}html":
        return False
    for sheet in root.iter(f"{_XHTML}style"):
        reader.style("".join(str(text) for text in sheet.itertext()), str(sheet.get("media", "")))
    _walk(root, reader)
    return True


def _walk(root: etree._Element, reader: Reader) -> None:
    for event, element in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
        tag = _name(element)
        if event == "start":
            reader.start(tag, _attributes(element))
            reader.data(element.text or "")
            continue
        if event == "end":
            reader.end(tag)
        if element is not root:
            reader.data(element.tail or "")


def _name(element: etree._Element) -> str:
    """An element of HTML by its own name, any other with its namespace, which no rule for HTML knows."""
    tag = str(element.tag)
    if tag == "{http://www.w3.org/2000/svg}svg":
        return "svg"
    return tag.removeprefix(_XHTML)


def _attributes(element: etree._Element) -> dict[str, str]:
    given = {str(name): str(value) for name, value in element.attrib.items()}
    if _XML_LANG in given:
        given["lang"] = given[_XML_LANG]
    return given

"""Read HTML as a stream of events, within bounds that hostile pages cannot move.

No tree is built: libxml2's tree takes quadratic time for a tag with very many attributes. The text goes in
piece by piece, so that a page which nests too deep or never ends is left at the next piece.
"""

from __future__ import annotations

import time
from typing import Any, Protocol, cast

from lxml import etree

_PIECE = 16_384


class Reader(Protocol):
    """Takes the parser's events as lxml calls them (``start``, ``end``, ``data``, ``close``).

    Must not raise: the parser would swallow it and continue.
    """

    @property
    def full(self) -> bool:
        """Whether the rest of the page need not be read."""
        ...


def read_events(html: str, reader: Reader, seconds: float) -> bool:
    """Read ``html`` to its end; False if the reader was full or the time was up before. Never raises."""
    parser = etree.HTMLParser(target=cast(Any, reader), encoding="utf-8", no_network=True)
    until, html = time.monotonic() + seconds, html.replace("\0", "")
    try:
        for start in range(0, len(html), _PIECE):
            parser.feed(html[start : start + _PIECE].encode("utf-8", "replace"))
            if reader.full or time.monotonic() > until:
                return False
        parser.close()
    except etree.LxmlError:
        # raised for a page without any element; what was read until then stands
        pass
    return True

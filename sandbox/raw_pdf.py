"""PDF files written out by hand: pages of plain text, and the smallest file of each bad kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

A4 = b"595 842"
CATALOG = b"<</Type/Catalog/Pages 2 0 R>>"
# Times is one of the fonts that every PDF renderer brings along, with all letters of French.
FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Times-Roman/Encoding/WinAnsiEncoding>>"
FONT_SIZE = 14


class Line(NamedTuple):
    """A printed line and where it begins, in points from the lower left corner."""

    x: int
    y: int
    text: str


def printed(pages: Sequence[Sequence[Line]]) -> bytes:
    """A4 pages of text."""
    kids = b" ".join(b"%d 0 R" % (4 + 2 * n) for n in range(len(pages)))
    objects = [CATALOG, b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(pages), kids), FONT]
    for n, lines in enumerate(pages):
        drawn = b"BT /F %d Tf %s ET" % (FONT_SIZE, b" ".join(map(_drawn, lines)))
        objects.append(_page(A4, b"/Resources<</Font<</F 3 0 R>>>>/Contents %d 0 R" % (5 + 2 * n)))
        objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(drawn), drawn))
    return _file(objects)


def without_pages() -> bytes:
    """A whole file, but nothing in it."""
    return _file([CATALOG, b"<</Type/Pages/Count 0/Kids[]>>"])


def page_bomb() -> bytes:
    """Ten thousand pages: four levels of ten links each to the same one below."""
    levels = [_node(4, 1000, 2), _node(5, 100, 3), _node(6, 10, 4)]
    return _file([CATALOG, b"<</Type/Pages/Count 10000/Kids[%s]>>" % (b"3 0 R " * 10), *levels, _page(A4)])


def giant_page() -> bytes:
    """One page so large that a picture of it would fill any memory."""
    return _file([CATALOG, b"<</Type/Pages/Count 1/Kids[3 0 R]>>", _page(b"200000 200000")])


def encrypted() -> bytes:
    """Opens only with a password, which nobody knows."""
    lock = b"<</Filter/Standard/V 1/R 2/O(%s)/U(%s)/P -44>>" % (b"o" * 32, b"u" * 32)
    objects = [CATALOG, b"<</Type/Pages/Count 1/Kids[3 0 R]>>", _page(A4), lock]
    return _file(objects, b"/Encrypt 4 0 R/ID[(0123456789abcdef)(0123456789abcdef)]")


def _page(size: bytes, more: bytes = b"") -> bytes:
    return b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 %s]%s>>" % (size, more)


def _node(kid: int, pages: int, parent: int) -> bytes:
    return b"<</Type/Pages/Parent %d 0 R/Count %d/Kids[%s]>>" % (parent, pages, b"%d 0 R " % kid * 10)


def _drawn(line: Line) -> bytes:
    text = line.text.encode("cp1252").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")
    return b"1 0 0 1 %d %d Tm (%s) Tj" % (line.x, line.y, text)


def _file(objects: Sequence[bytes], trailer: bytes = b"") -> bytes:
    out, starts = bytearray(b"%PDF-1.4\n"), []
    for n, content in enumerate(objects, start=1):
        starts.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (n, content)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % start for start in starts)
    out += b"trailer<</Root 1 0 R/Size %d%s>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, trailer, table)
    return bytes(out)

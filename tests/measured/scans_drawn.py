"""Makes the PDF of a description in ``scans/``: the same description gives the same bytes."""

from __future__ import annotations

import io
import math
import zlib

import numpy
from PIL import Image, ImageFilter

from tests.measured.scans_set import FONTS, HEIGHT, MARGIN, WIDTH, Drawing, Row, Setter

POINTS_PER_INCH = 72


def pdf_of(document: Row) -> bytes:
    """The document's file, with its damage."""
    file = File(document["font"])
    for number, page in enumerate(document["pages"]):
        file.add(page, f"{document['id']}:{number}" if number else document["id"])
    return damaged(*file.written(), document.get("damage", {}))


class File:
    """A PDF that is being written; objects 1 and 2 are the catalogue and the list of pages."""

    def __init__(self, font: Row) -> None:
        self._font, self._objects, self._kids = font, [b"", b""], list[int]()

    def add(self, page: Row, seed: str) -> None:
        """One page of a description."""
        setter = Setter(self._font["family"], self._font["size"])
        setter.blocks(page["blocks"], MARGIN, HEIGHT - MARGIN, WIDTH - 2 * MARGIN)
        layer, drawing = page["text_layer"], setter.drawing
        if page["source"] == "digital":
            shift = layer.get("by", 0) if layer["kind"] == "shifted" else 0
            self._page(self._shown(drawing), (WIDTH, HEIGHT), self._fonts(drawing, shift))
            return
        scan = page["scan"]
        picture = scanned(File.of(drawing, self._font), scan, seed)
        sideways = scan["rotation"] % 180 == 90
        size = (HEIGHT, WIDTH) if sideways else (WIDTH, HEIGHT)
        content = b"q %.2f 0 0 %.2f 0 0 cm /I Do Q\n" % size
        hidden = self._layer(layer, drawing)
        content += b"q %s cm 3 Tr\n%sQ" % (TURNED[scan["rotation"]], self._shown(hidden))
        self._page(content, size, self._fonts(hidden, 0) + b"/XObject<</I %d 0 R>>" % self._picture(picture))

    @classmethod
    def of(cls, drawing: Drawing, font: Row) -> bytes:
        """A file of one page that shows the drawing."""
        file = cls(font)
        file._page(file._shown(drawing), (WIDTH, HEIGHT), file._fonts(drawing, 0))
        return file.written()[0]

    def written(self) -> tuple[bytes, int]:
        """The file, and where its cross-references begin."""
        kids = b" ".join(b"%d 0 R" % kid for kid in self._kids)
        self._objects[0] = b"<</Type/Catalog/Pages 2 0 R>>"
        self._objects[1] = b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(self._kids), kids)
        out, starts = bytearray(b"%PDF-1.4\n"), []
        for n, content in enumerate(self._objects, start=1):
            starts.append(len(out))
            out += b"%d 0 obj\n%s\nendobj\n" % (n, content)
        table, size = len(out), len(self._objects) + 1
        out += b"xref\n0 %d\n0000000000 65535 f \n" % size + b"".join(b"%010d 00000 n \n" % at for at in starts)
        out += b"trailer<</Root 1 0 R/Size %d>>\nstartxref\n%d\n%%%%EOF\n" % (size, table)
        return bytes(out), table

    def _layer(self, layer: Row, drawing: Drawing) -> Drawing:
        if layer["kind"] == "good":
            return Drawing(drawing.words)
        setter = Setter(self._font["family"], self._font["size"])
        block = {"kind": "paragraph", "text": layer.get("text", "")}
        top = HEIGHT - MARGIN if layer["kind"] == "wrong" else MARGIN / 2
        setter.blocks([block] if block["text"] else [], MARGIN, top, WIDTH - 2 * MARGIN)
        return setter.drawing

    def _shown(self, drawing: Drawing) -> bytes:
        lines = [
            b"BT /%s %.3f Tf %.3f %.3f Td <%s> Tj ET" % (b"FB"[bold : bold + 1], size, x, y, codes(text).hex().encode())
            for text, x, y, size, bold in drawing.words
        ]
        lines += [b"0.5 w %.3f %.3f m %.3f %.3f l S" % rule for rule in drawing.rules]
        return b"\n".join([*lines, b""])

    def _fonts(self, drawing: Drawing, shift: int) -> bytes:
        letters = sorted({letter for text, *_ in drawing.words for letter in text})
        if shift or not all(map(_is_plain, letters)):
            pairs = b"".join(b"<%02X><%04X>\n" % (codes(a)[0], ord(a) + shift) for a in letters)
            unicode = b"/ToUnicode %d 0 R" % self._stream(CMAP % (len(letters), pairs))
        else:
            unicode = b""
        names = FONTS[self._font["family"]]
        kind = b"<</Type/Font/Subtype/Type1/BaseFont/%s/Encoding/WinAnsiEncoding%s>>"
        regular, bold = (self._new(kind % (name.encode(), unicode)) for name in names)
        return b"/Font<</F %d 0 R/B %d 0 R>>" % (regular, bold)

    def _picture(self, picture: Image.Image) -> int:
        jpeg = io.BytesIO()
        picture.save(jpeg, "JPEG", quality=85)
        shape = b"/Width %d/Height %d/ColorSpace/DeviceGray/BitsPerComponent 8" % picture.size
        return self._stream(jpeg.getvalue(), b"/Type/XObject/Subtype/Image/Filter/DCTDecode" + shape)

    def _page(self, content: bytes, size: tuple[float, float], resources: bytes) -> None:
        shown = self._stream(zlib.compress(content), b"/Filter/FlateDecode")
        page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 %.2f %.2f]/Resources<<%s>>/Contents %d 0 R>>"
        self._kids.append(self._new(page % (*size, resources, shown)))

    def _stream(self, content: bytes, more: bytes = b"") -> int:
        return self._new(b"<</Length %d%s>>stream\n%s\nendstream" % (len(content), more, content))

    def _new(self, content: bytes) -> int:
        self._objects.append(content)
        return len(self._objects)


# Matrices that turn the upright page clockwise.
TURNED = {
    0: b"1 0 0 1 0 0",
    90: b"0 -1 1 0 0 %.2f" % WIDTH,
    180: b"-1 0 0 -1 %.2f %.2f" % (WIDTH, HEIGHT),
    270: b"0 1 -1 0 %.2f 0" % HEIGHT,
}
CMAP = (
    b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapType 2 def\n"
    b"1 begincodespacerange <00><FF> endcodespacerange\n%d beginbfchar\n%sendbfchar\nendcmap end end"
)


def _is_plain(letter: str) -> bool:
    try:
        return len(letter.encode("cp1252")) == 1
    except UnicodeEncodeError:
        return False


def codes(text: str) -> bytes:
    """One byte a letter: its place in WinAnsi, or of letters that have none, one of its own below 32."""
    return b"".join(a.encode("cp1252") if _is_plain(a) else bytes([1 + ord(a) % 31]) for a in text)


def scanned(upright: bytes, scan: Row, seed: str) -> Image.Image:
    """The page as a scanner would see it, step by step as the README says."""
    import pypdfium2  # type: ignore[import-untyped]  # ships no types

    document = pypdfium2.PdfDocument(upright)
    drawn = document[0].render(scale=scan["dpi"] / POINTS_PER_INCH, grayscale=True).to_pil()
    document.close()
    paper = 255 * scan["paper"]
    levels = numpy.asarray(drawn, float) / 255
    levels = paper - (1 - levels) * scan["ink"] * paper
    picture = Image.fromarray(levels.round().astype("uint8"))
    if scan["blur"]:
        picture = picture.filter(ImageFilter.GaussianBlur(scan["blur"]))
    if scan["noise"]:
        picture = _noisy(picture, scan["noise"], seed)
    if scan["skew"]:
        picture = picture.rotate(scan["skew"], Image.Resampling.BICUBIC, fillcolor=round(paper))
    return picture.rotate(-scan["rotation"], expand=True)


def _noisy(picture: Image.Image, share: float, seed: str) -> Image.Image:
    chance = numpy.random.default_rng(list(seed.encode()))
    levels = numpy.array(picture)
    hit = chance.random(levels.shape) < share
    levels[hit] = chance.integers(0, 2, math.prod(levels.shape)).reshape(levels.shape)[hit] * 255
    return Image.fromarray(levels.astype("uint8"))


def damaged(file: bytes, table: int, damage: Row) -> bytes:
    """The file with what the description does to it."""
    file = _without_order(file, table, damage.get("xref", ""))
    return _bytes(damage.get("before_header")) + file + _bytes(damage.get("after_eof"))


def _bytes(more: Row | None) -> bytes:
    if more is None:
        return b""
    unit = bytes([more["byte"]]) if "byte" in more else more["text"].encode()
    return bytes(unit * more.get("count", 1))


def _without_order(file: bytes, table: int, how: str) -> bytes:
    body, rest = file[:table], file[table:]
    entries, trailer, end = _parts(rest)
    if how == "wrong startxref":
        return body + entries + trailer + b"startxref\n%d\n%%%%EOF\n" % (table + 100)
    if how == "offsets shifted by 7":
        lines = entries.split(b"\n")
        moved = [b"%010d%s" % (int(a[:10]) + 7, a[10:]) if a.endswith(b"n ") else a for a in lines]
        return body + b"\n".join(moved) + trailer + end
    if how == "removed":
        blank = b"startxref\n" + b" " * len(str(table)) + b"\n%%EOF\n"
        return body + b" " * len(entries) + trailer + blank
    return file


def _parts(rest: bytes) -> tuple[bytes, bytes, bytes]:
    cut, last = rest.index(b"trailer"), rest.index(b"startxref")
    return rest[:cut], rest[cut:last], rest[last:]

"""From bytes to text, as a browser would: BOM, then header, then meta, then a look at the bytes."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from charset_normalizer import from_bytes

# Labels are taken from the page, so only these are ever looked up: codecs such as zip or utf-7 are not text.
_LABELS = {
    "utf-8": ("utf8", "utf-8", "unicode-1-1-utf-8"),
    "cp1252": ("ascii", "us-ascii", "latin1", "latin-1", "iso-8859-1", "iso8859-1", "windows-1252", "cp1252"),
    "cp1250": ("windows-1250", "cp1250"),
    "cp1251": ("windows-1251", "cp1251"),
    "cp1253": ("windows-1253", "cp1253"),
    "cp1254": ("windows-1254", "cp1254", "iso-8859-9", "latin5"),
    "cp1255": ("windows-1255", "cp1255"),
    "cp1256": ("windows-1256", "cp1256"),
    "cp1257": ("windows-1257", "cp1257"),
    "cp1258": ("windows-1258", "cp1258"),
    "iso8859-2": ("iso-8859-2", "latin2"),
    "iso8859-5": ("iso-8859-5",),
    "iso8859-7": ("iso-8859-7",),
    "iso8859-15": ("iso-8859-15", "latin-9"),
    "koi8-r": ("koi8-r", "koi8"),
    "koi8-u": ("koi8-u",),
    "cp932": ("shift_jis", "shift-jis", "sjis", "x-sjis", "windows-31j", "cp932"),
    "euc_jp": ("euc-jp", "x-euc-jp"),
    "iso2022_jp": ("iso-2022-jp",),
    "gb18030": ("gb18030", "gbk", "gb2312", "x-gbk", "gb_2312-80"),
    "big5hkscs": ("big5", "big5-hkscs", "x-x-big5"),
    "cp949": ("euc-kr", "ks_c_5601-1987", "korean", "windows-949", "cp949"),
    "cp874": ("tis-620", "windows-874", "iso-8859-11", "cp874"),
    "utf-16-le": ("utf-16", "utf-16le"),
    "utf-16-be": ("utf-16be",),
}
_CODECS = {label: codec for codec, labels in _LABELS.items() for label in labels}
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_CHARSET = re.compile(r"""charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE | re.ASCII)
_META = re.compile(rb"""<meta[^>]{0,500}?charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
_XML = re.compile(rb"""^\s{0,20}<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,40})""", re.IGNORECASE)
_PRESCAN = 4096
_SAMPLE = 32_768


@dataclass(frozen=True)
class Decoded:
    """Text, and the codec that gave it."""

    text: str
    encoding: str


def decode(body: bytes, content_type: str = "") -> Decoded:
    """Decode ``body``; never raises, bytes that fit nowhere become U+FFFD."""
    for mark, codec in _BOMS:
        if body.startswith(mark):
            return Decoded(body[len(mark) :].decode(codec, "replace"), codec)
    codec = _from_header(content_type) or _from_meta(body) or _from_look(body)
    return Decoded(body.decode(codec, "replace"), codec)


def _from_header(content_type: str) -> str | None:
    found = _CHARSET.search(content_type)
    return _CODECS.get(found.group(1).lower()) if found else None


def _from_meta(body: bytes) -> str | None:
    head = body[:_PRESCAN]
    found = _META.search(head) or _XML.search(head)
    if not found:
        return None
    codec = _CODECS.get(found.group(1).decode("ascii", "replace").lower())
    # a page whose meta could be read as ASCII cannot be in UTF-16, whatever it says
    return "utf-8" if codec and codec.startswith("utf-16") else codec


def _from_look(body: bytes) -> str:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(body) - 4:
            return _guess(body[:_SAMPLE])
    return "utf-8"


def _guess(sample: bytes) -> str:
    best = from_bytes(sample, steps=3, chunk_size=1024).best()
    return _CODECS.get(best.encoding.replace("_", "-"), "cp1252") if best else "cp1252"

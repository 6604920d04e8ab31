"""From bytes to text, as a browser would: BOM, then header, then meta, then a look at the bytes."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

import webencodings
from charset_normalizer import from_bytes

from actors.website.guess import multibyte, single_byte

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_CHARSET = re.compile(r"""charset\s*=\s*["']?\s*([^\s"';]{1,40})""", re.IGNORECASE)
_PRESCAN = 1024
_SAMPLE = 32_768
# Where Python's codec knows less than the encoding that browsers mean by its name.
_WIDER = {"gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949", "big5": "big5hkscs"}
# Not texts that anybody could read, or a way to write markup past a filter.
_NEVER = frozenset({"replacement", "x-user-defined"})
# What a page without a label is most often written in, by its language (HTML, "default encoding by locale").
_LANGUAGES = {
    "cp1250": "cs hr hu pl ro sk sl",
    "cp1251": "be bg mk ru sr uk",
    "cp1253": "el",
    "cp1254": "az ku tr",
    "cp1255": "he",
    "cp1256": "ar fa",
    "cp1257": "et lt lv",
    "cp1258": "vi",
    "cp874": "th",
    "cp932": "ja",
    "cp949": "ko",
    "gb18030": "zh",
}
_BY_LANGUAGE = {language: codec for codec, languages in _LANGUAGES.items() for language in languages.split()}
_LANG = re.compile(rb"""<(?:html|body)\b[^>]{0,500}?\blang\s*=\s*["']?\s*([A-Za-z]{2,3})""", re.IGNORECASE)
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")


@dataclass(frozen=True)
class Decoded:
    """Text, the codec that gave it, and whether a ``meta`` further down the page may still say otherwise."""

    text: str
    encoding: str
    tentative: bool = False


def decode(body: bytes, content_type: str = "") -> Decoded:
    """Decode ``body``; never raises, bytes that fit nowhere become U+FFFD."""
    for mark, codec in _BOMS:
        if body.startswith(mark):
            return Decoded(body[len(mark) :].decode(codec, "replace"), codec)
    said = _from_header(content_type) or _from_meta(body)
    return decode_as(body, said) if said else decode_as(body, _from_look(body), tentative=True)


def decode_as(body: bytes, codec: str, *, tentative: bool = False) -> Decoded:
    """Decode ``body`` with a codec that ``codec_for`` gave."""
    single = codec.startswith(("cp125", "cp874"))
    return Decoded(body.decode(codec, "website-c1" if single else "replace"), codec, tentative)


def codec_for(label: str) -> str | None:
    """Python's codec for a label of the Encoding Standard; None for any other word: zip and utf-7 are not text."""
    found = webencodings.lookup(label.strip())
    if found is None or found.name in _NEVER:
        return None
    codec = str(found.codec_info.name)
    return _WIDER.get(codec, codec)


def codec_of_meta(label: str) -> str | None:
    """As a page names its own encoding: what could be read as ASCII cannot be UTF-16, whatever it says."""
    codec = codec_for(label)
    return "utf-8" if codec and codec.startswith("utf-16") else codec


def charset_in(content: str) -> str:
    """The label in ``text/html; charset=…``; empty if there is none."""
    found = _CHARSET.search(content[:1000])
    return found.group(1) if found else ""


def _undefined(error: UnicodeError) -> tuple[str, int]:
    """Single-byte encodings of Windows: bytes 80 to 9F without a sign of their own are control characters."""
    assert isinstance(error, UnicodeDecodeError)
    byte = error.object[error.start]
    return (chr(byte) if byte < 0xA0 else "\ufffd"), error.start + 1


codecs.register_error("website-c1", _undefined)


def _from_header(content_type: str) -> str | None:
    return codec_for(charset_in(content_type)) if content_type else None


_COMMENT = re.compile(rb"<!--.*?(?:-->|--!>|$)|<!-->", re.DOTALL)
_META = re.compile(rb"<meta(?=[\s/])((?:[^>\"']|\"[^\"]*\"|'[^']*')*+)>?", re.IGNORECASE)
_ATTRIBUTE = re.compile(rb"""([^\s/>=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]*)))?""")
_XML = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([^"']{1,40})""", re.IGNORECASE)


def _from_meta(body: bytes) -> str | None:
    """The prescan: the first ``meta`` within the first 1,024 bytes that names an encoding, else an XML declaration."""
    head = _COMMENT.sub(b"", body[:_PRESCAN])
    for meta in _META.finditer(head):
        codec = _from_attributes(meta.group(1))
        if codec:
            return codec
    xml = _XML.match(head.lstrip())
    return codec_of_meta(xml.group(1).decode("latin-1")) if xml else None


def _from_attributes(raw: bytes) -> str | None:
    given: dict[str, str] = {}
    for name, *values in _ATTRIBUTE.findall(raw):
        given.setdefault(name.decode("latin-1").lower(), b"".join(values).decode("latin-1"))
    if "charset" in given:
        return codec_of_meta(given["charset"])
    if given.get("http-equiv", "").strip().lower() == "content-type":
        return codec_of_meta(charset_in(given.get("content", "")))
    return None


def _from_look(body: bytes) -> str:
    """UTF-8, also with a few spoiled characters; else a guess."""
    text = body.decode("utf-8", "replace")
    spoiled = text.count("\ufffd")
    return "utf-8" if spoiled * 20 <= sum(sign > "\x7f" for sign in text) else _guess(body)


def _guess(body: bytes) -> str:
    """By the page's language if it says one, else by the letters. Accents of Latin letters stand alone."""
    expected = _expected(body)
    if expected and _fits(body, expected):
        return expected
    if codec := multibyte(body) or single_byte(body):
        return codec
    runs = _HIGH_RUN.findall(body[: 4 * _SAMPLE])
    if sum(len(run) == 1 for run in runs) * 2 > sum(map(len, runs)):
        return "cp1252"
    best = from_bytes(body[:_SAMPLE], steps=3, chunk_size=1024).best()
    return _known(best.encoding) if best else "cp1252"


def _known(guess: str) -> str:
    return guess if guess in _LANGUAGES else codec_for(guess) or codec_for(guess.replace("_", "-")) or "cp1252"


def _expected(body: bytes) -> str:
    found = _LANG.search(body[:4096])
    return _BY_LANGUAGE.get(found.group(1).decode("ascii").lower(), "") if found else ""


def _fits(body: bytes, codec: str) -> bool:
    sample = body[:_SAMPLE].decode(codec, "replace")
    return sample.count("\ufffd") <= 1

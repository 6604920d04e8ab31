"""What a page says, in a shape that can be stored, shown and put into a prompt."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from actors.website.encoding import Decoded, charset_in, codec_of_meta, decode, decode_as
from actors.website.reader import Bounds, Reading, read_html, read_plain, read_xml
from actors.website.soft_errors import jump_of, looks_like_error, seems_to_need_scripts
from actors.website.storable import load_json
from actors.website.urls import absolute, base_of

_LANGUAGE = re.compile(r"[a-z]{2,8}(-[a-z0-9]{1,8}){0,4}", re.IGNORECASE)
LONGEST_JSON_LD = 65_536
# What stands for bytes that are no letter.
SPOILED = "\ufffd"


class Frozen(BaseModel):
    """A value: equal by content, never changed."""

    model_config = ConfigDict(frozen=True)


class Heading(Frozen):
    """A heading; ``level`` is 1 to 6."""

    level: int
    text: str


class Link(Frozen):
    """Where a link leads, and its words."""

    url: str
    text: str


class Page(Frozen):
    """One page. ``truncated`` says that a bound was met and the rest was left out.

    ``soft_error`` and ``needs_scripts`` are doubts: the page was read, but is probably not what was asked for. So is
    ``encoding_doubtful``: nobody said what its letters are, or some of them are none.
    """

    url: str
    title: str = ""
    # the page has no title: this one is Open Graph's, or the first heading
    title_borrowed: bool = False
    description: str = ""
    language: str = ""
    canonical: str = ""
    meta: dict[str, str] = {}
    open_graph: dict[str, str] = {}
    headings: list[Heading] = []
    links_in: list[Link] = []
    links_out: list[Link] = []
    # all links, also those to one place or to none; the lists above were cut if links_cut
    links_total: int = 0
    links_cut: bool = False
    frames: list[str] = []
    structured_data: list[Any] = []
    text: str = ""
    encoding: str = ""
    encoding_doubtful: bool = False
    truncated: bool = False
    soft_error: bool = False
    needs_scripts: bool = False
    # what a browser had made of it once its scripts had run
    rendered: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing here that could be analysed."""
        return not (self.title or self.description or self.text)


@dataclass(frozen=True)
class Parsed:
    """A page, and where it sends its reader at once: the text of a refresh, or the address in a script."""

    page: Page
    refresh: str
    jump: str


def parse_page(
    body: bytes, url: str, content_type: str = "", bounds: Bounds | None = None, content_language: str = ""
) -> Page:
    """Read ``body`` as the page at ``url``. Never raises, and ends in bounded time."""
    return parse(body, url, content_type, bounds, content_language).page


def parse(
    body: bytes, url: str, content_type: str = "", bounds: Bounds | None = None, content_language: str = ""
) -> Parsed:
    """As ``parse_page``, with what leads on from the page."""
    decoded, reading = _read(body, content_type, bounds or Bounds())
    base = base_of(url, reading.base)
    links_in, links_out = _links(reading, base, url, decoded.encoding)
    named, graph = _named(reading, "og:", inside=False), _named(reading, "og:", inside=True)
    borrowed = _first(graph.get("title"), *(words for _, words in reading.headings[:1]))
    text = "\n".join(reading.lines)
    page = Page(
        url=url,
        title=reading.title or borrowed,
        title_borrowed=bool(borrowed and not reading.title),
        description=_first(named.get("description"), graph.get("description")),
        language=_language(reading, named.get("content-language", ""), content_language),
        canonical=absolute(base, reading.canonical),
        meta=named,
        open_graph=graph,
        headings=[Heading(level=level, text=words) for level, words in reading.headings],
        links_in=links_in,
        links_out=links_out,
        links_total=reading.links_total,
        links_cut=reading.links_total > len(reading.links),
        frames=[frame for frame in (absolute(base, source) for source in reading.frames) if frame],
        structured_data=_structured(reading.json_ld),
        text=text,
        encoding=decoded.encoding,
        encoding_doubtful=(decoded.tentative and decoded.encoding != "utf-8") or SPOILED in reading.title + text,
        truncated=reading.full or reading.cut,
        soft_error=looks_like_error(reading.title, [words for _, words in reading.headings], text),
        needs_scripts=seems_to_need_scripts(reading),
    )
    return Parsed(page, reading.refresh, jump_of(reading))


def with_frames(page: Page, frames: Sequence[Page]) -> Page:
    """A frameset with what its frames say, in their order; title and language stay its own."""
    return page.model_copy(
        update={
            "headings": [heading for frame in frames for heading in frame.headings],
            "links_in": [link for frame in frames for link in frame.links_in],
            "links_out": [link for frame in frames for link in frame.links_out],
            "links_total": sum(frame.links_total for frame in frames),
            "links_cut": any(frame.links_cut for frame in frames),
            "text": "\n".join(frame.text for frame in frames if frame.text),
            "truncated": page.truncated or any(frame.truncated for frame in frames),
            "encoding_doubtful": page.encoding_doubtful or any(frame.encoding_doubtful for frame in frames),
            "soft_error": all(frame.soft_error for frame in frames),
            "needs_scripts": all(frame.needs_scripts for frame in frames),
        }
    )


def _read(body: bytes, content_type: str, bounds: Bounds) -> tuple[Decoded, Reading]:
    kind = content_type.partition(";")[0].strip().lower()
    decoded = decode(body, content_type)
    if kind == "text/plain":
        return decoded, read_plain(decoded.text, bounds)
    if kind == "application/xhtml+xml":
        reading = read_xml(body, bounds)
        if reading is not None:
            return decoded, reading
    reading = read_html(decoded.text, bounds)
    later = _later_codec(reading.charset) if decoded.tentative else None
    if later and later != decoded.encoding:
        decoded = decode_as(body, later)
        reading = read_html(decoded.text, bounds)
    return decoded, reading


def _later_codec(charset: str) -> str | None:
    """What a meta element beyond the first 1,024 bytes says."""
    return codec_of_meta(charset_in(charset) or charset) if charset else None


def _first(*candidates: str | None) -> str:
    return next((found for found in candidates if found), "")


def _named(reading: Reading, prefix: str, *, inside: bool) -> dict[str, str]:
    return {
        (name.removeprefix(prefix) if inside else name): value
        for name, value in reading.meta.items()
        if name.startswith(prefix) is inside
    }


def _language(reading: Reading, pragma: str, header: str) -> str:
    """The language of the body: what its elements say counts, even that it is unknown; then meta, then the header."""
    if reading.language is not None:
        return _spelled(reading.language)
    said = [one for one in (pragma, header) if "," not in one]
    return next((spelled for spelled in map(_spelled, said) if spelled), "")


def _spelled(language: str) -> str:
    spelled = (language.split() or [""])[0].replace("_", "-")
    return spelled.lower() if _LANGUAGE.fullmatch(spelled) else ""


def _links(reading: Reading, base: str, url: str, encoding: str) -> tuple[list[Link], list[Link]]:
    home, seen = _site(url), set()
    inside: list[Link] = []
    outside: list[Link] = []
    for reference, words in reading.links:
        address = absolute(base, reference.strip() or base, encoding)
        if address and address not in seen:
            seen.add(address)
            (inside if _site(address) == home else outside).append(Link(url=address, text=words))
    return inside, outside


def _site(url: str) -> str:
    return (urlsplit(url).hostname or "").removeprefix("www.")


def _structured(scripts: list[str]) -> list[Any]:
    """The JSON-LD that can be read; what is broken is left out, as every consumer of it does."""
    found: list[Any] = []
    left = LONGEST_JSON_LD
    for script in scripts:
        left -= len(script)
        if left < 0:
            break
        try:
            found.append(load_json(script.strip().removeprefix("<!--").removesuffix("-->")))
        except ValueError:
            continue
    return found

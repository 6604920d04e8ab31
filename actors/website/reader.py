"""Keep what matters of a page, within bounds that hostile pages cannot move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from actors.html_tree import read_tree
from actors.website.css.sheets import Styles
from actors.website.showing import Open, shown
from actors.website.storable import one_line
from actors.website.xhtml import read_xhtml

_HEADINGS = {f"h{level}": level for level in range(1, 7)}


@dataclass(frozen=True)
class Bounds:
    """How much of a page is kept; counts, characters, and ``seconds`` of reading."""

    text: int = 200_000
    headings: int = 200
    links: int = 500
    meta: int = 60
    frames: int = 20
    line: int = 300
    json_ld: int = 65_536
    script: int = 20_000
    seconds: float = 10.0


@dataclass
class Reading:
    """What was read so far. ``language`` is None where the page says nothing; ``links_total`` counts all links."""

    title: str = ""
    language: str | None = None
    base: str | None = None
    canonical: str = ""
    refresh: str = ""
    charset: str = ""
    meta: dict[str, str] = field(default_factory=dict)
    headings: list[tuple[int, str]] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
    links_total: int = 0
    frames: list[str] = field(default_factory=list)
    json_ld: list[str] = field(default_factory=list)
    scripts: int = 0
    script: str = ""
    lines: list[str] = field(default_factory=list)
    # full: a bound was met, and reading stopped; cut: some headings, or rules of its style sheets, were left out
    full: bool = False
    cut: bool = False


def read_html(html: str, bounds: Bounds) -> Reading:
    """Read ``html`` to its end or to the first bound; never raises."""
    reader = _Reader(bounds)
    if not read_tree(html, reader, bounds.seconds):
        reader.reading.full = True
    return reader.close()


def read_xml(body: bytes, bounds: Bounds) -> Reading | None:
    """Read XHTML that is well-formed; None if it is not."""
    reader = _Reader(bounds)
    return reader.close() if read_xhtml(body, reader) else None


def read_plain(text: str, bounds: Bounds) -> Reading:
    """Text without markup."""
    kept = text[: bounds.text]
    lines = [line for line in (one_line(line, bounds.text) for line in kept.splitlines()) if line]
    return Reading(lines=lines, full=len(text) > bounds.text)


class _Reader:
    """Takes the events of a tree, each start with its end."""

    def __init__(self, bounds: Bounds) -> None:
        self.reading = Reading()
        self.styles = Styles()
        self._bounds = bounds
        self._open: list[Open] = []
        self._kept_text = 0
        self._line: list[str] = []
        self._headings: list[tuple[int, list[str]]] = []
        self._links: list[tuple[str, list[str]]] = []
        self._in_heading: list[list[str]] = []
        self._in_link: list[list[str]] = []
        self._raw: list[str] | None = None
        self._titled = False
        self._languages: dict[str, str] = {}

    @property
    def full(self) -> bool:
        return self.reading.full

    def style(self, sheet: str, media: str) -> None:
        self.styles.add(sheet, media)

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        opened = shown(self.styles, self._open[-1] if self._open else None, tag, attributes)
        self._open.append(opened)
        if opened.foreign:
            return
        self._note(tag, attributes)
        if opened.hidden or self.reading.full:
            return
        if opened.block:
            self._break()
        if opened.invisible:
            return
        if tag in _HEADINGS:
            opened.heading = []
            self._keep_heading(tag, opened.heading)
        elif tag == "a" and "href" in attributes:
            opened.link = []
            self._keep_link(attributes["href"], opened.link)

    def _note(self, tag: str, attributes: Mapping[str, str]) -> None:
        """What counts whether it is shown or not."""
        reading = self.reading
        if tag == "body" and "onload" in attributes:
            self._keep_script(attributes["onload"])
        match tag:
            case "html" | "body" if "lang" in attributes:
                self._languages[tag] = attributes["lang"][:40]
            case "base":
                reading.base = attributes.get("href") if reading.base is None else reading.base
            case "meta":
                self._keep_meta(attributes)
            case "link" if "canonical" in attributes.get("rel", "").lower().split():
                reading.canonical = reading.canonical or attributes.get("href", "")
            case "title" if not self._titled:
                self._raw = []
            case "frame" if len(reading.frames) < self._bounds.frames:
                reading.frames.append(attributes.get("src", ""))
            case "script":
                self._raw = []

    def end(self, tag: str) -> None:
        closed = self._open.pop()
        if closed.foreign:
            return
        if tag in {"title", "script"} and self._raw is not None:
            self._keep_raw(tag, "".join(self._raw), closed.element.attributes)
            self._raw = None
        if closed.hidden:
            return
        if closed.heading is not None:
            self._end_line(_HEADINGS[tag])
            self._in_heading.pop()
        elif closed.block:
            self._break()
        if closed.link is not None:
            self._in_link.pop()

    def data(self, text: str) -> None:
        if self.reading.full or not self._open:
            return
        around = self._open[-1]
        if self._raw is not None:
            self._raw.append(text)
        elif around.shows_text:
            self._add(around.written(text))

    def _add(self, text: str) -> None:
        self._line.append(text)
        for words in self._in_heading[:5]:
            words.append(text)
        for words in self._in_link[:5]:
            words.append(text)

    def close(self) -> Reading:
        self._end_line()
        self.reading.cut |= not self.styles.all_read
        self.reading.language = self._languages.get("body", self._languages.get("html"))
        words = ((level, one_line("".join(parts), self._bounds.line)) for level, parts in self._headings)
        self.reading.headings = [(level, text) for level, text in words if text]
        self.reading.links = [(to, one_line("".join(parts), self._bounds.line)) for to, parts in self._links]
        return self.reading

    def _break(self) -> None:
        """The edge of a block: a new line, but within a heading of usual length only a space."""
        if self._in_heading and sum(map(len, self._line)) <= self._bounds.line:
            self._add(" ")
            return
        self._end_line()
        for words in [*self._in_heading[:5], *self._in_link[:5]]:
            words.append(" ")

    def _end_line(self, level: int = 0) -> None:
        line = one_line("".join(self._line), self._bounds.text)
        self._line.clear()
        if not line:
            return
        line = f"{'#' * level} {line}" if level else line
        line = line[: max(self._bounds.text - self._kept_text, 0)]
        self._kept_text += len(line) + 1
        self.reading.lines.append(line)
        self.reading.full = self.reading.full or self._kept_text >= self._bounds.text

    def _keep_heading(self, tag: str, words: list[str]) -> None:
        self._end_line(0)
        self._in_heading.append(words)
        if len(self._headings) < self._bounds.headings:
            self._headings.append((_HEADINGS[tag], words))
        else:
            self.reading.cut = True

    def _keep_link(self, to: str, words: list[str]) -> None:
        self.reading.links_total += 1
        self._in_link.append(words)
        if len(self._links) < self._bounds.links:
            self._links.append((to, words))

    def _keep_raw(self, tag: str, text: str, attributes: Mapping[str, str]) -> None:
        reading = self.reading
        if tag == "title":
            reading.title, self._titled = one_line(text, self._bounds.line), True
            return
        kind = attributes.get("type", "").strip().lower()
        if kind == "application/ld+json":
            if len(text) <= self._bounds.json_ld and len(reading.json_ld) < 20:
                reading.json_ld.append(text)
        elif not kind or "javascript" in kind or kind == "module":
            self._keep_script(text)

    def _keep_script(self, text: str) -> None:
        self.reading.scripts += 1
        self.reading.script = (self.reading.script + "\n" + text)[: self._bounds.script].strip()

    def _keep_meta(self, attributes: Mapping[str, str]) -> None:
        pragma, content = attributes.get("http-equiv", "").strip().lower(), attributes.get("content", "")
        if pragma == "refresh" and not self.reading.refresh:
            self.reading.refresh = content[:3000]
        if not self.reading.charset:
            named = content[:1000] if pragma == "content-type" else ""
            self.reading.charset = attributes.get("charset", "")[:40] or named
        name = attributes.get("property") or attributes.get("name") or pragma
        name = one_line(name.lower(), 80)
        value = one_line(content, self._bounds.line * 3)
        if name and value and len(self.reading.meta) < self._bounds.meta:
            self.reading.meta.setdefault(name, value)

"""Keep what matters of a page, within bounds that hostile pages cannot move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from actors.html_events import read_events
from actors.website.storable import one_line

_UNSEEN = frozenset(
    {
        "script",
        "style",
        "noscript",
        "template",
        "iframe",
        "object",
        "svg",
        "math",
        "canvas",
        "audio",
        "video",
        "select",
        "datalist",
    }
)
_BLOCKS = frozenset(
    {
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "br",
        "caption",
        "center",
        "dd",
        "details",
        "dialog",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "html",
        "legend",
        "li",
        "main",
        "menu",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "summary",
        "table",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "tr",
        "ul",
    }
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}


@dataclass(frozen=True)
class Bounds:
    """How much of a page is kept; counts, characters, and ``seconds`` of reading."""

    text: int = 200_000
    elements: int = 200_000
    depth: int = 400
    headings: int = 200
    links: int = 500
    meta: int = 60
    line: int = 300
    json_ld: int = 65_536
    seconds: float = 10.0


@dataclass
class Reading:
    """What was read so far."""

    title: str = ""
    language: str = ""
    base: str = ""
    canonical: str = ""
    meta: dict[str, str] = field(default_factory=dict)
    headings: list[tuple[int, str]] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
    json_ld: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    full: bool = False


def read_html(html: str, bounds: Bounds) -> Reading:
    """Read ``html`` to its end or to the first bound; never raises."""
    reader = _Reader(bounds)
    if not read_events(html, reader, bounds.seconds):
        reader.reading.full = True
    return reader.close()


class _Reader:
    """Takes the parser's events, and must not raise."""

    def __init__(self, bounds: Bounds) -> None:
        self.reading = Reading()
        self._bounds = bounds
        self._depth = 0
        self._elements = 0
        self._kept_text = 0
        self._hidden_at = 0
        self._line: list[str] = []
        self._title: list[str] | None = None
        self._heading: tuple[int, list[str]] | None = None
        self._link: tuple[str, list[str]] | None = None
        self._json_ld: list[str] | None = None

    @property
    def full(self) -> bool:
        return self.reading.full

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        self._elements += 1
        if self._depth > self._bounds.depth or self._elements > self._bounds.elements:
            self.reading.full = True
        if self.reading.full or self._hidden_at:
            return
        if tag in _BLOCKS:
            self._end_line()
        self._open(tag, attributes)
        if tag in _UNSEEN or _is_hidden(attributes):
            self._hidden_at = self._depth

    def _open(self, tag: str, attributes: Mapping[str, str]) -> None:
        match tag:
            case "html":
                self.reading.language = self.reading.language or attributes.get("lang", "")[:40]
            case "base":
                self.reading.base = self.reading.base or attributes.get("href", "")
            case "meta":
                self._keep_meta(attributes)
            case "link" if "canonical" in attributes.get("rel", "").lower().split():
                self.reading.canonical = self.reading.canonical or attributes.get("href", "")
            case "title" if not self.reading.title:
                self._title = []
            case "a" if "href" in attributes:
                self._end_link()
                self._link = (attributes["href"], [])
            case "script" if attributes.get("type", "").strip().lower() == "application/ld+json":
                self._json_ld = []
            case _ if tag in _HEADINGS:
                self._heading = (_HEADINGS[tag], [])

    def end(self, tag: str) -> None:
        if tag == "script":
            self._end_json_ld()
        if self._hidden_at and self._depth <= self._hidden_at:
            self._hidden_at = 0
        elif not self._hidden_at:
            self._shut(tag)
        self._depth = max(self._depth - 1, 0)

    def _shut(self, tag: str) -> None:
        if tag == "title" and self._title is not None:
            self.reading.title = one_line("".join(self._title), self._bounds.line)
            self._title = None
        if tag == "a":
            self._end_link()
        if tag in _BLOCKS:
            self._end_line()

    def data(self, text: str) -> None:
        if self.reading.full:
            return
        if self._json_ld is not None:
            self._json_ld.append(text)
        elif self._title is not None:
            self._title.append(text)
        elif not self._hidden_at:
            self._line.append(text)
            if self._heading:
                self._heading[1].append(text)
            if self._link:
                self._link[1].append(text)

    def comment(self, text: str) -> None:
        """Comments say nothing to a reader."""

    def close(self) -> Reading:
        self._end_link()
        self._end_line()
        if self._title and not self.reading.title:
            self.reading.title = one_line("".join(self._title), self._bounds.line)
        return self.reading

    def _end_line(self) -> None:
        heading, self._heading = self._heading, None
        line = one_line("".join(self._line), self._bounds.text)
        self._line.clear()
        if heading and line:
            line = self._keep_heading(heading[0], "".join(heading[1]), line)
        if not line:
            return
        line = line[: max(self._bounds.text - self._kept_text, 0)]
        self._kept_text += len(line) + 1
        self.reading.lines.append(line)
        self.reading.full = self.reading.full or self._kept_text >= self._bounds.text

    def _keep_heading(self, level: int, words: str, line: str) -> str:
        words = one_line(words, self._bounds.line)
        if words and len(self.reading.headings) < self._bounds.headings:
            self.reading.headings.append((level, words))
        return f"{'#' * level} {line}"

    def _end_link(self) -> None:
        if self._link and len(self.reading.links) < self._bounds.links:
            self.reading.links.append((self._link[0], one_line("".join(self._link[1]), self._bounds.line)))
        self._link = None

    def _end_json_ld(self) -> None:
        if self._json_ld is not None:
            script = "".join(self._json_ld)
            if len(script) <= self._bounds.json_ld and len(self.reading.json_ld) < 20:
                self.reading.json_ld.append(script)
        self._json_ld = None

    def _keep_meta(self, attributes: Mapping[str, str]) -> None:
        name = attributes.get("property") or attributes.get("name") or attributes.get("http-equiv") or ""
        name = one_line(name.lower(), 80)
        value = one_line(attributes.get("content", ""), self._bounds.line * 3)
        if name and value and len(self.reading.meta) < self._bounds.meta:
            self.reading.meta.setdefault(name, value)


def _is_hidden(attributes: Mapping[str, str]) -> bool:
    if "hidden" in attributes:
        return True
    return "display:none" in attributes.get("style", "")[:500].replace(" ", "").lower()

"""How Sphinx makes the site: of the files that the repository shows, and with nothing that is loaded from elsewhere.

Its navigation is the list at the end of the README, so a page that nobody lists there fails the build.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
CHAPTER = re.compile(r"^- \*\*(.+?)\*\*: (.+)$", re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)\)")

project = "Pipeline"
html_title = "Pipeline"
html_theme = "furo"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["*.md", "docs/*.md", "docs/*/*.md", "tests/measured/README.md"]
exclude_patterns = [".*", "**/.*", "build"]
myst_heading_anchors = 6
# Signatures of SQL functions are no statements.
suppress_warnings = ["misc.highlighting_failure"]


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.add_lexer("mermaid", TextLexer)
    app.connect("source-read", _prepare)
    app.connect("build-finished", _name_the_first_page)


def _prepare(_: Sphinx, name: str, source: list[str]) -> None:
    """A site has pages and files, and no folders to link to."""
    folder = (ROOT / name).parent
    source[0] = LINK.sub(lambda link: link[1] if (folder / link[2]).is_dir() else link[0], source[0])
    if name == root_doc:
        source[0] += "\n".join(_toctree(chapter, pages) for chapter, pages in CHAPTER.findall(source[0]))
        source[0] += _toctree("Decisions", "".join(f"[]({page.relative_to(ROOT)})" for page in _decisions()))


def _name_the_first_page(app: Sphinx, error: Exception | None) -> None:
    """Servers and people look for index.html."""
    if error is None:
        shutil.copyfile(app.outdir / "README.html", app.outdir / "index.html")


def _toctree(chapter: str, pages: str) -> str:
    listed = dict.fromkeys(target.removesuffix(".md") for _, target in LINK.findall(pages) if target.endswith(".md"))
    return "\n".join(["", "```{toctree}", ":hidden:", f":caption: {chapter}", "", *listed, "```", ""])


def _decisions() -> list[Path]:
    return sorted((ROOT / "docs/adr").glob("*.md"))

"""The site is made of the repository's pages alone, and needs nothing from elsewhere to be read or searched."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.place import ROOT

# What a browser loads by itself, as against what a reader may follow.
LOADED = re.compile(r'<(?:script|img|iframe)[^>]* src="([^"]+)"|<link[^>]* rel="(?!canonical)[^>]* href="([^"]+)"')


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `script/docs` makes it. Every warning is an error: a link that leads nowhere, a page that is in no chapter."""
    made = tmp_path_factory.mktemp("site")
    options = ["-q", "-W", "--keep-going", "-b", "html", "-c", "docs/site", "-d", str(made / ".trees")]
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, ".", str(made)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return made


def test_every_page_is_in_a_chapter_and_every_link_leads_somewhere(site: Path) -> None:
    written = {path.relative_to(ROOT).with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert all((site / page).exists() for page in written)
    first = (site / "index.html").read_text()
    assert [page for page in sorted(written) if f'href="{page}"' not in first] == []


def test_it_loads_nothing_from_elsewhere_and_can_be_searched(site: Path) -> None:
    loaded = {one or other for page in site.rglob("*.html") for one, other in LOADED.findall(page.read_text())}
    assert len(loaded) > 10 and not [address for address in loaded if "//" in address]
    styles = "".join(path.read_text() for path in site.rglob("*.css"))
    assert not re.search(r"url\([\"']?(?:https?:)?//", styles)
    # A script, so that it works from a folder, without a server.
    assert "poison" in (site / "searchindex.js").read_text()

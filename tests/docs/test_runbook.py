"""The runbook knows every alert, and names metrics, functions and settings that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.place import ROOT

RUNBOOK = ROOT / "docs/runbook.md"
GUIDES = [RUNBOOK, *sorted((ROOT / "docs/howto").glob("*.md"))]


def test_every_alert_has_an_entry_and_every_entry_an_alert() -> None:
    """Whoever is called at night finds the name of the alert in a heading."""
    [group] = yaml.safe_load((ROOT / "docs/monitoring/alerts.yaml").read_text(encoding="utf-8"))["groups"]
    headings = " ".join(re.findall(r"^## (.+)$", RUNBOOK.read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"`(Pipeline\w+)`", headings)) == {rule["alert"] for rule in group["rules"]}


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_names_in_the_guides_exist(page: Path) -> None:
    """Metrics are documented, functions are in the reference, settings too."""
    text = page.read_text(encoding="utf-8")
    known = "".join(
        (ROOT / "docs" / name).read_text() for name in ("metrics.md", "reference/sql.md", "reference/settings.md")
    )
    # Fixtures of the test kit.
    known += (ROOT / "pipeline" / "testing" / "plugin.py").read_text()
    # What compose.yaml alone knows: it gives these to the servers, not to us.
    known += (ROOT / "compose.yaml").read_text()
    named = set(re.findall(r"\b(?:pipeline|PIPELINE|MODEL|OCR|GEMINI|CACHE|JOB)_\w+", text)) - {"JOB_ID"}
    assert not {name for name in named if not re.search(rf"\b{name}\b", known)}

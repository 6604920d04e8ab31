"""The alert rules, the Grafana dashboard and the docs name metrics that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import yaml

from tests.place import ROOT, Place

FILES = ("docs/monitoring/alerts.yaml", "docs/monitoring/grafana.json", "docs/metrics.md")


def test_every_metric_that_is_named_exists_and_every_one_that_exists_is_documented(
    place: Place, api: httpx.Client
) -> None:
    """A renamed metric would silence an alert."""
    text = api.get("/metrics").text
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
    samples = set(kinds) | {f"{name}_bucket" for name, kind in kinds.items() if kind == "histogram"}
    for file in FILES:
        named = set(re.findall(r"\bpipeline_[a-z_]+\b", (ROOT / file).read_text())) - {"pipeline_"}
        assert named <= samples, f"{file} names {named - samples}"
    documented = set(re.findall(r"`(pipeline_[a-z_]+)`", (ROOT / "docs/metrics.md").read_text()))
    assert documented == set(kinds)


def test_every_alert_says_what_happened() -> None:
    """And both files can be read by their programs."""
    [group] = yaml.safe_load(Path(ROOT / FILES[0]).read_text())["groups"]
    assert all(
        rule["annotations"]["summary"] and rule["expr"] and rule["labels"]["severity"] for rule in group["rules"]
    )
    panels = json.loads((ROOT / FILES[1]).read_text())["panels"]
    assert all(panel["targets"] for panel in panels) and len({panel["id"] for panel in panels}) == len(panels)

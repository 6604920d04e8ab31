"""The table of supported versions, as script/versions fills it."""

from __future__ import annotations

from pathlib import Path

from docs import versions
from pipeline.dev.versions import SUPPORTED
from tests.place import ROOT

PAGE = (ROOT / "docs/supported-versions.md").read_text(encoding="utf-8")
JUNIT = '<testsuites><testsuite tests="12" failures="1" errors="0" skipped="2"/></testsuites>'
EMPTY = f"""| another | table |
|---|---|
| x | y |

{versions.HEAD}
|---|---|---|---|---|---|---|---|

| a third | table |"""


def test_the_page_names_the_versions_that_doctor_asks_for() -> None:
    named = [f"{server} {'.'.join(map(str, oldest))} and newer" for server, oldest in SUPPORTED.items()]
    assert ", ".join(named) in PAGE


def test_a_run_adds_its_servers_in_order_and_keeps_what_it_did_not_run(tmp_path: Path) -> None:
    report = tmp_path / "flow.xml"
    report.write_text(JUNIT)
    page = versions.with_row(EMPTY, ("10.0.1", "18.4", "Debian b"), {"flow": versions.passed(report)})
    page = versions.with_row(page, ("4.3.6", "18.4", "Debian a"), {"db": "5 of 5"})
    page = versions.with_row(page, ("10.0.1", "18.4", "Debian b"), {"db": "7 of 7"})
    assert page.splitlines()[6:] == [
        "| 4.3.6 | 18.4 | Debian a | – | 5 of 5 | – | – | – |",
        "| 10.0.1 | 18.4 | Debian b | – | 7 of 7 | – | 9 of 10 | – |",
        "",
        "| a third | table |",
    ]

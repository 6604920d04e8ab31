"""Each alert fires when it should, is quiet when all is well, and leads to a page of the runbook that exists."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.place import ROOT

RULES = ROOT / "docs/monitoring/alerts.yaml"
# As /metrics has them on a day on which all is well; "a+bxN": begins at a, grows by b each minute.
WELL = {
    'up{job="pipeline"}': "1+0x200",
    'pipeline_workers{state="alive"}': "2+0x200",
    'pipeline_workers{state="not_consuming"}': "0+0x200",
    'pipeline_workers{state="missing"}': "0+0x200",
    'pipeline_queued{queue="a.b"}': "5+0x200",
    'pipeline_waiting{queue="a.b",reason="sending"}': "5+0x200",
    "pipeline_relay_lag_seconds": "0+0x200",
    "pipeline_schedule_lag_seconds": "0+0x200",
    "pipeline_oldest_snapshot_age_seconds": "1+0x200",
    'pipeline_leader{leader="relay"}': "1+0x200",
    'pipeline_leader{leader="maintenance"}': "1+0x200",
    'pipeline_workers_by_version{version="1"}': "2+0x200",
    'pipeline_oldest_age_seconds{queue="a.b"}': "3+0x200",
    'pipeline_pool_processors{queue="a.b",state="error"}': "0+0x200",
    'pipeline_stuck_threads{state="alive"}': "0+0x200",
    'pipeline_jobs_finished_total{workflow="a",status="failed"}': "3+0x200",
    'pipeline_attempts_total{queue="a.b",outcome="succeeded"}': "0+100x200",
    'pipeline_attempts_total{queue="a.b",outcome="retried"}': "0+1x200",
    'pipeline_attempts_total{queue="a.b",outcome="crashed"}': "0+0x200",
    'pipeline_breaker{source="s",state="open"}': "0+0x200",
    'pipeline_event_loop_lag_seconds_bucket{le="0.1"}': "0+600x200",
    'pipeline_event_loop_lag_seconds_bucket{le="5"}': "0+600x200",
    'pipeline_event_loop_lag_seconds_bucket{le="+Inf"}': "0+600x200",
    'pipeline_leader_age_seconds{leader="relay"}': "0+60x200",
}
# What differs from that day (None: the series is absent), and how long it takes to notice, in minutes.
WRONG: dict[str, list[tuple[dict[str, str | None], int]]] = {
    "PipelineAway": [({'up{job="pipeline"}': "0+0x200"}, 5), ({'up{job="pipeline"}': None}, 5)],
    "PipelineNoWorkers": [
        ({'pipeline_workers{state="alive"}': "0+0x200"}, 5),
        # Nothing waits at the gate, and that series is absent then.
        ({'pipeline_workers{state="alive"}': "0+0x200", 'pipeline_waiting{queue="a.b",reason="sending"}': None}, 5),
        ({'pipeline_workers{state="alive"}': None}, 5),
    ],
    "PipelineSeriesAbsent": [
        ({name: None}, 10)
        for name in (
            'pipeline_workers{state="alive"}',
            'pipeline_queued{queue="a.b"}',
            "pipeline_relay_lag_seconds",
            'pipeline_leader{leader="relay"}',
            'pipeline_jobs_finished_total{workflow="a",status="failed"}',
        )
    ],
    "PipelineNoLeader": [({'pipeline_leader{leader="maintenance"}': "0+0x200"}, 5)],
    "PipelineRelayLate": [({"pipeline_relay_lag_seconds": "90+0x200"}, 5)],
    "PipelineOldJobs": [({'pipeline_oldest_age_seconds{queue="a.b"}': "1000+0x200"}, 10)],
    # However many there are: dead letters themselves are counted up to a limit.
    "PipelineDeadLetters": [({'pipeline_jobs_finished_total{workflow="a",status="failed"}': "20000+1x200"}, 10)],
    "PipelineErrorRate": [({'pipeline_attempts_total{queue="a.b",outcome="retried"}': "0+50x200"}, 30)],
    "PipelineCrashes": [({'pipeline_attempts_total{queue="a.b",outcome="crashed"}': "0+1x200"}, 20)],
    "PipelineBreakerOpen": [({'pipeline_breaker{source="s",state="open"}': "1+0x200"}, 20)],
    "PipelineProcessorsStuck": [({'pipeline_pool_processors{queue="a.b",state="error"}': "1+0x200"}, 10)],
    "PipelineThreadsStuck": [({'pipeline_stuck_threads{state="alive"}': "1+0x200"}, 10)],
    "PipelineWorkerNotConsuming": [({'pipeline_workers{state="not_consuming"}': "1+0x200"}, 5)],
    "PipelineWorkerMissing": [({'pipeline_workers{state="missing"}': "1+0x200"}, 10)],
    "PipelineScheduleLate": [({"pipeline_schedule_lag_seconds": "400+0x200"}, 10)],
    "PipelineOldSnapshot": [({"pipeline_oldest_snapshot_age_seconds": "4000+0x200"}, 15)],
    "PipelineEventLoopLate": [({'pipeline_event_loop_lag_seconds_bucket{le="0.1"}': "0+300x200"}, 15)],
    # Every three minutes another one.
    "PipelineLeaderChanges": [({'pipeline_leader_age_seconds{leader="relay"}': "1 61 121 " * 20}, 40)],
    "PipelineVersions": [({'pipeline_workers_by_version{version="2"}': "1+0x200"}, 130)],
}


def rules() -> list[dict[str, object]]:
    [group] = yaml.safe_load(RULES.read_text())["groups"]
    found: list[dict[str, object]] = group["rules"]
    return found


def case(changed: dict[str, str | None], minutes: int, alert: str | None) -> dict[str, object]:
    """A day in the form of promtool; without an alert none fires."""
    series = {name: values for name, values in {**WELL, **changed}.items() if values is not None}
    only = f',alertname="{alert}"' if alert else ""
    expected = [{"labels": f'{{alertname="{alert}"}}', "value": 1}] if alert else []
    firing = {
        "expr": f'group by (alertname) (ALERTS{{alertstate="firing"{only}}})',
        "eval_time": f"{minutes}m",
        "exp_samples": expected,
    }
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [firing],
    }


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed; script/setup --test brings it")
def test_each_alert_fires_and_none_does_when_all_is_well(tmp_path: Path) -> None:
    """Evaluated by Prometheus's own tool, absent series included."""
    cases = [case(changed, minutes, alert) for alert, ways in WRONG.items() for changed, minutes in ways]
    cases.append(case({}, 180, None))
    file = tmp_path / "alerts.test.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": cases}))
    run = subprocess.run(["promtool", "test", "rules", file], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_alert_is_fired_by_a_test_and_has_a_page_in_the_runbook() -> None:
    """Its link leads to a heading that names it."""
    headings = [line[3:] for line in (ROOT / "docs/runbook.md").read_text().splitlines() if line.startswith("## ")]
    anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-"): heading for heading in headings}
    assert {str(rule["alert"]) for rule in rules()} == set(WRONG)
    for rule in rules():
        url = str(rule["annotations"]["runbook_url"])  # type: ignore[index]
        assert url.startswith("{{ $externalLabels.docs }}/runbook.md#"), url
        assert f"`{rule['alert']}`" in anchors[url.partition("#")[2]]

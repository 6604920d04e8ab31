"""Record matching: one job a task, and the two that begin and end a large project."""

from __future__ import annotations

from actors.match.config import RATE_LIMIT
from actors.match.entity_match import entity_match as match_entity
from actors.match.fan_out import fan_out as queue_tasks
from actors.match.project_completion import project_completion as complete_project
from pipeline import Backoff, Limit, Workflow

match = Workflow("match")
match_fanout = Workflow("match-fanout")
match_finish = Workflow("match-finish")

# Its calls ask for their permits themselves (calls.py); the rate is that of the settings (projects.py).
entity_match = match.phase(
    "entity-match", pool=50, time_limit=120.0, backoff=Backoff((5.0, 30.0)), limit=Limit(RATE_LIMIT, calls=0)
)(match_entity)
fan_out = match_fanout.phase("fan-out", pool=4, time_limit=1800.0)(queue_tasks)
project_completion = match_finish.phase("project-completion", pool=10, time_limit=300.0)(complete_project)

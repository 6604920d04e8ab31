"""``pipeline schedules``: what is there and when next; add, remove, pause, resume, run, backfill."""

from __future__ import annotations

import json
from types import ModuleType

from tests.commands import pipeline, pipeline_here
from tests.front.api.test_http_schedules import look
from tests.place import Place


def ok(place: Place, *words: str) -> str:
    ran = pipeline_here(place, "schedules", *words, COLUMNS="200")
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def refused(place: Place, *words: str) -> str:
    ran = pipeline_here(place, "schedules", *words)
    assert ran.returncode == 1, ran.stdout
    return ran.stderr


def add(place: Place) -> None:
    """In this process, which knows the workflow already."""
    place.db.execute("SELECT pipeline.schedule('single', 'weekly', '0 7 * * 1', p_timezone => 'Europe/Paris')")


def test_a_schedule_is_added_from_the_command_line(place: Place, shop: ModuleType) -> None:
    """A process of its own: it loads the workflow, which says what a body is."""
    words = (
        "schedules",
        "add",
        "shop-orders",
        "weekly",
        "order=17",
        "--cron",
        "0 7 * * 1",
        "--timezone",
        "Europe/Paris",
    )
    ran = pipeline(
        place, *words, "--catch-up", "2h", "--overlap", "queue", "--tag", "vip", PIPELINE_WORKFLOWS="tests.front.shop"
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("scheduled shop-orders.weekly; its next moments: pipeline schedules")
    [one] = json.loads(ok(place, "--json"))
    assert (one["cron"], one["timezone"], one["catch_up"], one["overlap"], one["tags"]) == (
        "0 7 * * 1",
        "Europe/Paris",
        7200,
        "queue",
        ["vip"],
    )
    assert one["body"]["order"] == 17


def test_the_list_has_the_next_moments(place: Place) -> None:
    """The first is PostgreSQL's; as many as were asked for."""
    add(place)
    look(place)
    [one] = json.loads(ok(place, "--json", "--moments", "3"))
    assert one["next"][0].startswith(one["next_at"][:19]) and len(one["next"]) == 3
    shown = ok(place)
    assert "single.weekly" in shown and "0 7 * * 1 Europe/Paris" in shown and one["next"][0] in shown
    assert "1 schedules" in ok(place, "--workflow", "single") and "0 schedules" in ok(place, "--workflow", "triple")
    assert "there is no workflow or phase 'nowhere'" in refused(place, "--workflow", "nowhere")


def test_it_is_steered_by_its_name(place: Place) -> None:
    """Each answer names the next command."""
    add(place)
    assert (
        ok(place, "pause", "single.weekly")
        == "paused single.weekly; to end it: pipeline schedules resume single.weekly\n"
    )
    assert "was paused already" in ok(place, "pause", "single.weekly")
    assert "paused since" in ok(place)
    job = json.loads(ok(place, "run", "single.weekly", "--json"))["id"]
    assert place.job(job)["tags"] == ["schedule:weekly"]
    assert ok(place, "resume", "single.weekly") == "resumed single.weekly\n"
    assert ok(place, "resume", "single.weekly") == "single.weekly was not paused\n"
    assert "--tag schedule:weekly" in ok(
        place, "backfill", "single.weekly", "--from", "2026-01-01", "--until", "2026-02-01T07:00:00+01:00"
    )
    look(place)
    assert place.count("SELECT count(*) FROM pipeline.jobs") == 1 + 4
    assert ok(place, "remove", "single.weekly") == "removed single.weekly\n"


def test_mistakes_are_named(place: Place) -> None:
    """In one sentence, with what would be right."""
    add(place)
    assert "write WORKFLOW.NAME" in refused(place, "pause", "weekly")
    assert "there is no schedule monthly of single: its schedules: weekly" in refused(place, "run", "single.monthly")
    assert "there is no schedule single.monthly" in refused(place, "remove", "single.monthly")
    assert "--from takes a moment such as" in refused(place, "backfill", "single.weekly", "--from", "x", "--until", "y")

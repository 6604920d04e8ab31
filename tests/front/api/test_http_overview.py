"""Statistics, batches, live events and metrics."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from pipeline.front.api import events
from pipeline.journey.submit import open_batch, seal_batch, submit, submit_many
from pipeline.observe.instruments import BOUNDS
from tests.db import steps
from tests.place import Place


def phases(api: httpx.Client) -> dict[str, dict[str, Any]]:
    return {phase["queue"]: phase for phase in api.get("/v1/stats").json()["phases"]}


def metrics(api: httpx.Client) -> dict[tuple[str, ...], float]:
    """Every sample by its name and its labels' values, in the order of the labels' names."""
    samples = [sample for one in text_string_to_metric_families(api.get("/metrics").text) for sample in one.samples]
    return {(sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value for sample in samples}


def le(bound: str) -> str:
    """As Prometheus writes it."""
    return "+Inf" if bound == "inf" else bound


def test_stats_say_what_waits_and_why(place: Place, api: httpx.Client) -> None:
    """At the gate, for its time, sent; failed; the pool."""
    submit_many(None, "small", [{}] * 7)
    submit(None, "small", due=datetime(2100, 1, 1, tzinfo=UTC))
    submit_many(None, "pooled", [{}] * 2)
    place.rows("SELECT pipeline.admit(1, 1000)")
    [failed] = submit_many(None, "single", [{}])
    place.rows("SELECT pipeline.undeliverable(%s, 1, 'x')", failed)
    found = phases(api)
    assert (found["small.queue"]["waiting"], found["small.queue"]["queued"]) == ({"queue_full": 2, "scheduled": 1}, 5)
    assert (found["pooled.narrow"]["queued"], found["pooled.narrow"]["pool"], found["pooled.narrow"]["busy"]) == (
        2,
        3,
        0,
    )
    assert (found["single.act"]["failed"], found["single.act"]["oldest_seconds"]) == (1, None)
    assert found["small.queue"]["oldest_seconds"] >= 0
    shown = metrics(api)
    assert shown["pipeline_waiting", "small.queue", "queue_full"] == 2
    assert shown["pipeline_queued", "small.queue"] == 5 and shown["pipeline_dead_letters", "single.act"] == 1
    assert shown["pipeline_pool_processors", "pooled.narrow", "idle"] == 3


def test_batches_show_their_progress(place: Place, api: httpx.Client) -> None:
    """Newest first; complete ones can be left out."""
    batches = [open_batch(None) for _ in range(3)]
    submit_many(None, "single", [{}] * 2, batch=batches[0])
    seal_batch(None, batches[1])
    page = api.get("/v1/batches", params={"limit": 2}).json()
    rest = api.get("/v1/batches", params={"limit": 2, "cursor": page["next"]}).json()
    assert [item["id"] for item in page["items"] + rest["items"]] == [str(b) for b in sorted(batches, reverse=True)]
    still = {
        item["id"]: (item["remaining"], item["total"]) for item in api.get("/v1/batches?open=true").json()["items"]
    }
    assert still == {str(batches[0]): (2, 2), str(batches[2]): (0, 0)}


def test_a_minute_is_rolled_up_once_for_the_charts(place: Place, api: httpx.Client) -> None:
    """What stood at its end, and the attempts that ended in it."""
    jobs = submit_many(None, "single", [{}] * 3)
    place.rows("SELECT pipeline.undeliverable(%s, 1, 'x')", jobs[0])
    place.rows(
        "UPDATE pipeline.attempts SET finished_at = date_trunc('minute', now() - interval '10 s') - interval '1 s' RETURNING 1"
    )
    assert [row["roll_up"] for row in place.rows("SELECT pipeline.roll_up() UNION ALL SELECT pipeline.roll_up()")] == [
        True,
        False,
    ]
    [row] = [
        row
        for row in api.get("/v1/stats/history", params={"workflow": "single"}).json()
        if row["queue"] == "single.act"
    ]
    assert (row["waiting"], row["dead"], row["failed"], row["succeeded"]) == (2, 1, 1, 0)
    assert api.get("/v1/stats/history", params={"queue": "triple.first"}).json() == []


def test_events_bring_the_stats_as_they_change(place: Place, api: httpx.Client) -> None:
    """A job that is submitted while somebody listens is in a later event."""
    with api.stream("GET", "/v1/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        waited = 0
        for line in stream.iter_lines():
            if line.startswith("data: "):
                waited = {p["queue"]: p["waiting"] for p in json.loads(line[6:])["phases"]}["single.act"].get(
                    "sending", 0
                )
                if waited:
                    break
                submit(None, "single")
    assert waited == 1


def test_the_number_of_listeners_is_bounded_and_a_place_comes_free(
    place: Place, api: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """429 beyond it; a listener that went away leaves its place."""
    monkeypatch.setattr(events, "LISTENERS", 1)
    with api.stream("GET", "/v1/events") as stream:
        next(stream.iter_lines())
        assert api.get("/v1/events").status_code == 429

    def free() -> bool:
        with api.stream("GET", "/v1/events") as again:
            return again.status_code == 200

    place.until(free, 10, "the place to come free")


def test_workers_counters_are_totals_that_never_fall(place: Place, api: httpx.Client) -> None:
    """Of living, stopped and pruned workers; outcomes and durations by queue, the rest by name."""
    counted = {
        "single.act.retried": 2,
        "relay.sent": 5,
        "cache.hit": 1,
        "duration.single.act.0.05": 3,
        "duration.single.act.inf": 1,
        "duration.single.act.ms": 400_100,
    }
    for name in ("a", "b"):
        place.rows(
            "INSERT INTO pipeline.workers (id, host, pid, threads, queues, counters, stopped_at) VALUES (%s, 'h', 1, 1, '{}', %s, now() - interval '9 d')"
            " RETURNING no",
            name,
            json.dumps(counted),
        )
    before = metrics(api)
    assert before["pipeline_attempts_total", "retried", "single.act"] == 4
    assert (before["pipeline_events_total", "relay.sent"], before["pipeline_events_total", "cache.hit"]) == (10, 2)
    buckets = [before["pipeline_phase_duration_seconds_bucket", le(bound), "single.act"] for bound in BOUNDS]
    assert buckets == [0, 0, 0] + [6] * 11 + [8]
    assert before["pipeline_phase_duration_seconds_sum", "single.act"] == pytest.approx(800.2)
    place.rows("SELECT pipeline.prune(interval '8 days', 10)")
    assert place.count("SELECT count(*) FROM pipeline.workers") == 0
    totals = {row["name"]: row["n"] for row in place.rows("SELECT * FROM pipeline.counters")}
    assert totals == {name: 2 * n for name, n in counted.items()}


def test_durations_are_counted_into_the_first_bucket_that_holds_them() -> None:
    """As the collector reads them."""
    from pipeline.observe import instruments

    before = instruments.snapshot()
    for seconds in (0.0, 0.005, 0.3, 301.0):
        instruments.observe_duration("t.durations", seconds)
    new = {name: n - before.get(name, 0) for name, n in instruments.snapshot().items() if "t.durations" in name}
    assert new == {
        "duration.t.durations.0.005": 2,
        "duration.t.durations.0.5": 1,
        "duration.t.durations.inf": 1,
        "duration.t.durations.ms": 301_305,
    }


def test_breakers_and_lanes_are_shown(place: Place, api: httpx.Client) -> None:
    """One for the state a breaker is in."""
    place.rows("SELECT pipeline.set_rate_limit('source:coins', 5)")
    place.rows("SELECT pipeline.pause_rate_limit('source:coins', now() + interval '1 minute', 'breaker')")
    shown = metrics(api)
    assert (
        shown["pipeline_rate_limit_per_second", "source:coins"],
        shown["pipeline_rate_limit_paused", "source:coins"],
    ) == (5, 1)
    assert shown["pipeline_relay_lag_seconds",] == 0


def test_many_askers_cost_one_computation(place: Place, api: httpx.Client) -> None:
    """Statistics are remembered for a second."""
    from pipeline.front.api.http.remember import Remembered

    calls: list[int] = []

    def compute() -> int:
        calls.append(1)
        return len(calls)

    remembered = Remembered(compute, 60)
    threads = [threading.Thread(target=remembered.get) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (remembered.get(), calls) == (1, [1])


def test_series_that_alerts_need_are_there_before_anything_happened(api: httpx.Client) -> None:
    """What begins at nothing has an increase when it comes; an absent series never fires."""
    text = api.get("/metrics").text
    assert 'pipeline_workers{state="alive"} 0.0' in text
    for outcome in ("failed", "exhausted", "poisoned", "crashed"):
        assert f'pipeline_attempts_total{{outcome="{outcome}",queue="single.act"}} 0.0' in text


def test_a_job_that_waits_says_for_what(place: Place, api: httpx.Client) -> None:
    """Not since when its last wait was over: a source that is paused holds it."""
    place.db.execute("INSERT INTO pipeline.rate_limits (name) VALUES ('shop')")
    place.db.execute("SELECT pipeline.pause_rate_limit('shop', now() + interval '1 h', 'breaker')")
    job = steps.submit(place.db, rate_limit="shop")
    assert not steps.admit(place.db), "the relay has looked"
    place.db.execute("UPDATE pipeline.jobs SET next_retry_at = now() - interval '6 min' WHERE id = %s", (job,))
    found = api.get(f"/v1/jobs/{job}").json()
    assert (found["waits_for"], found["due_at"]) == ("breaker", None)


def test_the_rate_of_dead_letters_is_known(place: Place, api: httpx.Client) -> None:
    """Apart from errors that are tried again."""
    steps.fail(place.db, steps.held(place.db))
    steps.retry(place.db, steps.held(place.db))
    [found] = [phase for phase in api.get("/v1/stats").json()["phases"] if phase["queue"] == "single.act"]
    assert found["failed_per_second"] * 2 == found["ended_per_second"] > 0
